package hub

import (
	"github.com/aster-mesh/aster/protocol"
)

// renames plays: rename OLD NEW; forget AGENT; and what another home says of such: renamed PEER OLD NEW [late|again],
// where late is a record older than the last and again a binding of OLD that is.
func (s *stage) renames(w []string) bool {
	switch w[0] {
	case "rename":
		s.core.Step(s.now, Rename{Agent: protocol.AgentID(w[1]), To: protocol.AgentID(w[2]), Token: s.toks})
	case "forget":
		s.core.Step(s.now, Forget{Agent: protocol.AgentID(w[1]), Token: s.toks})
	case "renamed":
		s.renamed(w)
	case "older": // older PEER bind AGENT: a binding from a log of a former start, which arrives late
		peer := s.peer(w[1])
		rec := protocol.Record{Log: protocol.LogID{Peer: peer, Start: protocol.Start{At: 1, Rand: 1}, Scope: protocol.ScopeInside}, Seq: 1,
			At: protocol.HLCAt(s.now) - 1, Kind: protocol.KindBind,
			Body: protocol.EncodeBody(protocol.BindBody{Agent: protocol.AgentID(w[3]), Home: peer, Since: 5, Role: protocol.RoleLocal})}
		s.core.Step(s.now, Applied{Record: &rec})
	default:
		return false
	}
	return true
}

func (s *stage) renamed(w []string) {
	peer := s.peer(w[1])
	log := protocol.LogID{Peer: peer, Start: protocol.Start{At: 2, Rand: 2}, Scope: protocol.ScopeInside}
	since := s.core.find(protocol.AgentID(w[2])).bind.Since
	for i, body := range []protocol.BindBody{
		{Agent: protocol.AgentID(w[3]), Home: peer, Since: protocol.HLCAt(s.now), Was: protocol.AgentID(w[2]), Role: protocol.RoleLocal},
		{Agent: protocol.AgentID(w[2]), Home: peer, Since: since, RenamedTo: protocol.AgentID(w[3]), Role: protocol.RoleLocal},
	} {
		s.seqs[log]++
		rec := protocol.Record{Log: log, Seq: s.seqs[log], At: protocol.HLCAt(s.now) + protocol.HLC(i), Kind: protocol.KindBind, Body: protocol.EncodeBody(body)}
		s.core.Step(s.now, Applied{Record: &rec})
	}
}

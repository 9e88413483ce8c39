package hub

import (
	"fmt"
	"github.com/aster-mesh/aster/protocol"
	"strings"
)

// more plays what is said of agents: rename OLD NEW; forget AGENT; what another home says of such: renamed PEER OLD NEW;
// doing AGENT STATE; notes.
func (s *stage) more(w []string) bool {
	switch w[0] {
	case "rename":
		s.core.Step(s.now, Rename{Agent: protocol.AgentID(w[1]), To: protocol.AgentID(w[2]), Token: s.toks})
	case "forget":
		s.core.Step(s.now, Forget{Agent: protocol.AgentID(w[1]), Token: s.toks})
	case "renamed":
		s.renamed(w)
	case "limits": // limits SENDER-PER-SECOND SENDER-BURST PAIR-PER-SECOND PAIR-BURST
		l := &s.core.limits
		fmt.Sscan(strings.Join(w[1:], " "), &l.SenderPerSecond, &l.SenderBurst, &l.PairPerSecond, &l.PairBurst)
	case "volley": // volley A B N: so many messages, in turn from A and from B; each has processed what it answers
		var n int
		fmt.Sscan(w[3], &n)
		for i := range n {
			from, to, id := w[1], w[2], fmt.Sprint("v", s.toks, "-", i)
			if i%2 == 1 {
				from, to = to, from
			}
			s.core.Step(s.now, Say{As: protocol.AgentID(from), Env: s.envelope([]string{"say", from, to, "Request", id})})
			s.core.Step(s.now, Acked{Agent: protocol.AgentID(to), Of: protocol.MsgID(id), Processed: true})
			s.core.Ready(s.now)
		}
	case "doing":
		s.core.Step(s.now, Doing{Agent: protocol.AgentID(w[1]), State: protocol.AgentState(w[2])})
	case "notes": // presence makes records from now on
		s.core.notes = true
	case "older": // older PEER bind AGENT: a binding from a log of a former start, which arrives late
		peer := s.peer(w[1])
		rec := protocol.Record{Log: protocol.LogID{Peer: peer, Start: protocol.Start{At: 1, Rand: 1}, Scope: protocol.ScopeInside}, Seq: 1,
			At: protocol.HLCAt(s.now) - 1, Kind: protocol.KindBind,
			Body: protocol.EncodeBody(protocol.BindBody{Agent: protocol.AgentID(w[3]), Home: peer, Since: 5, Role: protocol.RoleLocal})}
		s.core.Step(s.now, Applied{Record: &rec})
	default:
		return s.moves(w)
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

// remember puts into a boot what the board's fold would.
func (s *stage) remember(b *Boot) {
	for id, w := range s.core.ended {
		b.Ended = append(b.Ended, Former{protocol.BindBody{Agent: id.id, Home: w.claim.Home, Origin: id.first, Moves: w.claim.Moves, Forced: w.claim.Forced}, w.at, w.guest})
	}
	for _, f := range s.core.former {
		b.Former = append(b.Former, f)
	}
	if !s.core.notes {
		return
	}
	b.Presence, b.Now = map[protocol.AgentID]Noted{}, s.now
	for _, a := range s.core.agents {
		if a.box != nil {
			b.Presence[a.bind.Agent] = a.noted
		}
	}
}

package hub

import (
	"fmt"
	"strings"

	"github.com/aster-mesh/aster/protocol"
)

// foreign plays a record of another node.
func (s *stage) foreign(w []string) {
	peer := s.peer(w[1])
	log := protocol.LogID{Peer: peer, Start: protocol.Start{At: 2, Rand: 2}, Scope: protocol.ScopeInside}
	if m := s.core.members[peer]; !m.Inside { // nor is it known yet
		log.Scope = protocol.ScopeOutside(peer)
	}
	if w[2] == "over" { // from PEER over GUEST FROM TO INTENT ID: a message in its log for a member outside
		log.Scope = protocol.ScopeOutside(s.peer(w[3]))
		w = append([]string{w[0], w[1], "say"}, w[4:]...)
	}
	if w[2] == "fill" { // from PEER fill FROM TO N: so many messages
		var n int
		fmt.Sscan(w[5], &n)
		for i := range n {
			s.foreign([]string{w[0], w[1], "say", w[3], w[4], "Request", fmt.Sprintf("%s-f%d", w[3], i)})
		}
		s.core.Ready(s.now)
		return
	}
	s.seqs[log]++
	rec := protocol.Record{Log: log, Seq: s.seqs[log], At: protocol.HLCAt(s.now), Wall: s.now.UnixMilli()}
	in := Applied{Record: &rec}
	switch w[2] {
	case "bind": // from PEER bind AGENT [SINCE]
		rec.Kind = protocol.KindBind
		since := protocol.HLCAt(s.now)
		if len(w) > 4 {
			var n uint64
			fmt.Sscan(w[4], &n)
			since = protocol.HLC(n)
		}
		rec.Body = protocol.EncodeBody(protocol.BindBody{Agent: protocol.AgentID(w[3]), Home: peer, Since: since, Role: protocol.RoleLocal})
	case "mixed": // from PEER mixed FROM TO INTENT ID: under a name that is another's here
		env := s.envelope(append([]string{"say"}, w[3:]...))
		env.From = protocol.AgentID(w[3])
		rec.Kind, in.Disbelieved = protocol.KindMessage, &env
	case "say": // from PEER say FROM TO INTENT ID [VALUE] [re=ID]
		env := s.envelope(append([]string{"say"}, w[3:]...))
		env.From = protocol.AgentID(w[3])
		switch w[3] {
		case "person":
			env.From, env.Source = "", protocol.SourceBoard
		case "server":
			env.From, env.Source = "", protocol.SourceServer
		}
		if re := strings.TrimPrefix(w[len(w)-1], "re="); re != w[len(w)-1] {
			for _, e := range s.envs {
				if e.ID == protocol.MsgID(re) {
					in.Parent, env.Re = e, e.ID
				}
			}
		}
		rec.Kind, in.Env = protocol.KindMessage, &env
		s.envs[Ref{log, rec.Seq}] = &env
		if old, ok := s.seen[env.Identity()]; ok {
			in.Seen = &old
		} else {
			s.seen[env.Identity()] = Seen{env.Content(), Ref{log, rec.Seq}}
		}
	case "room": // from PEER room BODY
		rec.Kind, rec.Body = protocol.KindRoom, []byte(strings.ReplaceAll(w[3], "ROOM", string(s.room)))
	case "ahead": // from PEER ahead TIER AGENT OF LAST: of the messages 1 to LAST of OF's log for PEER, as far as they are not here
		rec.Kind = protocol.KindReceipts
		var n uint64
		fmt.Sscan(w[6], &n)
		of := protocol.LogID{Peer: s.peer(w[5]), Start: protocol.Start{At: 2, Rand: 2}, Scope: log.Scope}
		rec.Body = protocol.EncodeBody(protocol.ReceiptsBody{Tier: protocol.Tier(w[3]), Agent: protocol.AgentID(w[4]),
			Of: []protocol.LogRange{{Log: of.String(), Ranges: []uint64{1, n}}}})
		in.Held = func(id protocol.LogID) uint64 { return s.seqs[id] }
	case "receipt": // from PEER receipt TIER AGENT SEQ: of a message of our inside log
		rec.Kind = protocol.KindReceipts
		var n uint64
		fmt.Sscan(w[5], &n)
		own := protocol.LogID{Peer: s.core.self, Start: protocol.Start{At: 1, Rand: 1}, Scope: protocol.ScopeInside}
		rec.Body = protocol.EncodeBody(protocol.ReceiptsBody{Tier: protocol.Tier(w[3]), Agent: protocol.AgentID(w[4]),
			Of: []protocol.LogRange{{Log: own.String(), Ranges: []uint64{n, n}}}})
	}
	s.core.Step(s.now, in)
}

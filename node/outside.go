package node

import (
	"bytes"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
	"github.com/aster-mesh/aster/roles"
	"github.com/aster-mesh/aster/roles/keys"
)

// A client that joined by a key of an outside role has what roles.MaySeeRecord allows and nothing else: its own
// messages, and in AgentList main, itself, and whom it exchanged messages with. The old hub's whole History to such
// clients is a fault, not a contract (DESIGN 4 One way out).

// pastMessages is how far back whom a client knows is looked for when it comes.
const pastMessages = 2000

// outsideBy says whether a socket's key, or the one in its HELLO, claims an outside role.
func (s *socket) outsideBy(inHello string) bool {
	if s.kind != "" {
		return s.kind != keys.Local
	}
	k, ok := keys.KindOf(inHello)
	return ok && k != keys.Local
}

// seesMessage says whether an outside client may have a stored message.
func seesMessage(agent protocol.AgentID, m *journal.Message) bool {
	rec := protocol.Record{Log: m.Log, Seq: m.Seq, Kind: protocol.KindMessage}
	return roles.MaySeeRecord(roles.Viewer{Agent: agent}, &rec, &m.Envelope)
}

// pastOf is what an outside client may see of the past, and with whom it spoke.
func (n *Node) pastOf(agent protocol.AgentID) (asterism.History, map[protocol.AgentID]bool) {
	met := map[protocol.AgentID]bool{}
	found, err := n.messages(journal.Query{Agent: agent, But: noTalk, Limit: pastMessages, Newest: true})
	if err != nil {
		n.log.Error("history not readable", "err", err)
		return asterism.History{}, met
	}
	own := found[:0]
	for i := range found {
		if seesMessage(agent, &found[i]) {
			own = append(own, found[i])
			met[protocol.FoldAgentID(found[i].Envelope.From)] = true
			met[protocol.FoldAgentID(found[i].Envelope.To)] = true
		}
	}
	return asterism.History{Channels: channels(own[:min(len(own), historyMessages)])}, met
}

// meet notes that an outside client and another agent exchanged a message: from now on it sees that agent come and go.
func (l *loop) meet(s *socket, other protocol.AgentID) {
	id := protocol.FoldAgentID(other)
	if !s.outside || other == "" || s.met[id] {
		return
	}
	s.met[id] = true
	if s.seen {
		l.outsideRoster(s, l.core.Listed(l.now))
	}
}

// rosterOf are the rows of AgentList, of those that are present, that an outside client may see.
func (l *loop) rosterOf(s *socket, present []hub.Known) []asterism.Agent {
	me := protocol.FoldAgentID(s.as.Agent)
	var rows []asterism.Agent
	for i := range present {
		k := &present[i]
		if id := protocol.FoldAgentID(k.Agent); k.Role == protocol.RoleMain || id == me || s.met[id] {
			rows = append(rows, asterism.Agent{ID: k.Agent, Name: k.Name, Role: k.Role})
		}
	}
	return rows
}

// outsideRoster sends an outside client its AgentList, if that is another one than it has: how often those change whom it
// may not see is not its business either.
func (l *loop) outsideRoster(s *socket, present []hub.Known) {
	rows := l.rosterOf(s, present)
	now := protocol.EncodeBody(rows)
	if s.seen && bytes.Equal(now, s.roster) {
		return
	}
	s.roster, s.seen = now, true
	s.conn.Send(l.enc.AgentList(l.now, rows))
}

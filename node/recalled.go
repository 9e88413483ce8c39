package node

import (
	"maps"
	"sync/atomic"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// calling is what a socket's agent is called, which may change while it is attached: another node had bound its name
// before, unseen.
type calling struct {
	info   asterism.ConnectionInfo          // the last that it was told; the loop's
	called atomic.Pointer[protocol.AgentID] // what the read loop has yet to take up
}

// inNames is a message of the store as agents are shown it: what one that lost its name had said is by the name that it has
// now. It may be called from any goroutine.
func (n *Node) inNames(m *journal.Message) *protocol.Envelope {
	var names hub.Aliases
	if now := n.aliases.Load(); now != nil {
		names = *now
	}
	return names.Shown(m.Log.Peer, &m.Envelope)
}

// saidBy says whether a message is from an agent, by the name that it said it under or the one that it has now.
func (n *Node) saidBy(m *journal.Message, from protocol.AgentID) bool {
	is := protocol.FoldAgentID(from)
	return protocol.FoldAgentID(m.Envelope.From) == is || protocol.FoldAgentID(n.inNames(m).From) == is
}

// ready is what the turn owes. Other goroutines see the names that the hub has now before they see what it owes.
func (l *loop) ready() hub.Ready {
	rd, now := l.core.Ready(l.now), l.core.Aliases()
	if before := l.n.aliases.Load(); before == nil || !maps.Equal(*before, now) {
		l.n.aliases.Store(&now)
	}
	return rd
}

// recalled tells a socket what its agent is called now, and lets it go on under that name.
func (l *loop) recalled(o hub.Recalled) {
	s := l.sockets[o.Conn]
	if s == nil || s.as == nil {
		return
	}
	s.as.Agent = o.Is
	s.called.Store(&o.Is)
	s.info.AgentID, s.info.Role = o.Is, o.Role
	s.conn.Send(l.enc.ServerNotice(l.now, o.Is, asterism.Notice{
		Kind: "agent-renamed", Text: "another node had bound " + string(o.Was) + " before: you are " + string(o.Is) + " from now on", AgentID: o.Is}))
	s.conn.Send(l.enc.ConnectionInfo(l.now, s.info))
}

// takeName lets the session go on under the name that its agent has now. It runs in the read loop.
func (s *socket) takeName() {
	if id := s.called.Swap(nil); id != nil {
		s.session.Recall(*id)
	}
}

// as is whom a socket speaks as: what it said before it heard of its new name is its own too.
func (l *loop) as(s *socket, said protocol.AgentID) protocol.AgentID {
	if s.as != nil && said != "" {
		return s.as.Agent
	}
	return said
}

// by is env under the name that its sender has now.
func (l *loop) by(s *socket, env *protocol.Envelope) *protocol.Envelope {
	env.From = l.as(s, env.From)
	return env
}

package node

import (
	"sync/atomic"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// calling is what a socket's agent is called, which may change while it is attached: another node had bound its name
// before, unseen.
type calling struct {
	info   asterism.ConnectionInfo          // the last that it was told; the loop's
	called atomic.Pointer[protocol.AgentID] // what the read loop has yet to take up
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

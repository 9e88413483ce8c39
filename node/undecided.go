package node

import (
	"time"

	"github.com/aster-mesh/aster/node/link"
	"github.com/aster-mesh/aster/protocol"
)

// helloWait is how long what boards see is held back from a socket that may yet say HELLO: an agent would be shown a
// message first as a board, and then be given it.
const helloWait = 500 * time.Millisecond

// heldMax and heldBytesMax bound what is held back; more decides that the socket is a board.
const (
	heldMax      = 1024
	heldBytesMax = protocol.LinkQueueBytesMax / 2
)

// hold keeps back what an undecided socket would be shown.
func (l *loop) hold(s *socket, p *link.Prepared) {
	s.heldBytes += p.Size()
	if s.held = append(s.held, p); len(s.held) > heldMax || s.heldBytes > heldBytesMax {
		l.decided(s)
	}
}

// decided lets out what was held back from a socket, unless it is an agent by now.
func (l *loop) decided(s *socket) {
	if !s.undecided || s.greets.Load() {
		return // with its HELLO on the way it stays undecided until that is judged
	}
	s.undecided = false
	if s.as == nil && !s.gone {
		for _, p := range s.held {
			s.conn.SendPrepared(p)
		}
	}
	s.held = nil
}

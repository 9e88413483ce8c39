package node

import "time"

// helloWait is how long what boards see is held back from a socket that may yet say HELLO: an agent would be shown a
// message first as a board, and then be given it.
const helloWait = 500 * time.Millisecond

// heldMax bounds what is held back; more decides that the socket is a board.
const heldMax = 1024

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

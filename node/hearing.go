package node

import (
	"context"
	"sync/atomic"
)

// hearing is a HELLO that is being judged. The socket's session is the loop's while it holds the hearing, and the read loop's else:
// that one waits until it is over, and when the node stops it goes on only if the loop is not at it.
type hearing struct {
	held atomic.Bool // by the loop, or for good by a read loop that went
	over chan struct{}
}

// hold takes the hearing; false: the other side has it.
func (h *hearing) hold() bool { return h.held.CompareAndSwap(false, true) }

// adjourn lets go of it for a while. Whoever began to wait for the loop when the node stopped is let go, too: it may never go on.
func (h *hearing) adjourn(stopping context.Context) {
	h.held.Store(false)
	if stopping.Err() != nil && h.hold() {
		close(h.over)
	}
}

// wait is the read loop's part.
func (h *hearing) wait(l *loop) {
	select {
	case <-h.over:
		return
	case <-l.n.done:
	}
	if h.hold() {
		return
	}
	select {
	case <-h.over:
	case <-l.ended:
	}
}

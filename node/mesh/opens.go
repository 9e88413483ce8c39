package mesh

import (
	"context"
	"sync"

	"golang.org/x/time/rate"

	"github.com/aster-mesh/aster/protocol"
)

// A member may open so many streams at once, and for long so many a second; one more waits before anything is read from it. Each
// costs a negotiation, and one that opens them without end would have a processor to itself. Attachments take one each.
const (
	opensPerSec = 100
	opensBurst  = 200
)

// opens holds members to that. The zero value is ready. Safe for concurrent use.
type opens struct {
	mu sync.Mutex
	of map[protocol.PeerID]*rate.Limiter
}

// wait returns when a member may have one more stream served; false: ctx ended first.
func (o *opens) wait(ctx context.Context, from protocol.PeerID) bool {
	o.mu.Lock()
	if o.of == nil {
		o.of = map[protocol.PeerID]*rate.Limiter{}
	}
	l := o.of[from]
	if l == nil { // members alone come here, whose number is bounded
		l = rate.NewLimiter(opensPerSec, opensBurst)
		o.of[from] = l
	}
	o.mu.Unlock()
	return l.Wait(ctx) == nil
}

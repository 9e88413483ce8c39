package node

import (
	"context"
	"sync"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
)

// asideMost is how much of what one peer passes on may wait beside its reader: more than an honest one sends before it hears
// that the first of it is kept. What is above is dropped; it is asked for again.
const asideMost = 2 * protocol.PushBacklogBytes

// ranged is a range that came. On credit it needs no share of its author's.
type ranged struct {
	meshwire.Records
	credit bool
}

// aside is where ranges wait that a peer passes on of a member that has had its share, or that are on credit: what else that peer says
// does not wait for them. The zero value is ready. Safe for concurrent use.
type aside struct {
	mu    sync.Mutex
	of    map[source][]ranged     // with an entry somebody takes them
	bytes map[protocol.PeerID]int // of each peer
}

// put has a range wait, if its source has had its share, it is on credit, or others of it wait already.
func (a *aside) put(n *Node, src source, f ranged) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	queue, busy := a.of[src]
	if !busy && !f.credit && n.debts.due(src, time.Now()) <= 0 {
		return false
	}
	if a.of == nil {
		a.of, a.bytes = map[source][]ranged{}, map[protocol.PeerID]int{}
	}
	if size := bytesOf(&f.Records); a.bytes[src.from]+size <= asideMost {
		a.bytes[src.from] += size
		a.of[src] = append(queue, f)
		if !busy {
			n.wait.Go(func() { a.run(n, src) })
		}
	}
	return true
}

// run takes what waits of a source, in its time.
func (a *aside) run(n *Node, src source) {
	for {
		a.mu.Lock()
		queue := a.of[src]
		if len(queue) == 0 || n.ctx.Err() != nil {
			delete(a.of, src)
			a.mu.Unlock()
			return
		}
		f := queue[0]
		a.of[src] = queue[1:]
		a.mu.Unlock()
		if !f.credit {
			n.debts.pauseRange(n.ctx, src, f.Records.Records)
		}
		if err := n.takeRange(src.from, f); err != nil {
			n.mesh.CloseLink(src.from, err)
		}
		a.mu.Lock()
		if a.bytes[src.from] -= bytesOf(&f.Records); a.bytes[src.from] == 0 {
			delete(a.bytes, src.from)
		}
		a.mu.Unlock()
	}
}

// drained returns when no range of a source waits any more.
func (a *aside) drained(ctx context.Context, src source) {
	for {
		a.mu.Lock()
		_, busy := a.of[src]
		a.mu.Unlock()
		if !busy || pause(ctx, debtLook) != nil {
			return
		}
	}
}

// bytesOf is about what a range holds.
func bytesOf(f *meshwire.Records) (bytes int) {
	for i := range f.Records {
		bytes += len(f.Records[i].Body) + 128
	}
	return bytes
}

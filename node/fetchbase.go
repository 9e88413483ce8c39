package node

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/protocol"
)

// Snapshots at which a newcomer begins are fetched beside one another, each of another member, so that one that gives its own at a
// trickle holds up no other. It is given up for a while, and the next is asked that says the same.

const (
	// fetchTime bounds the fetching of one snapshot.
	fetchTime = 10 * time.Minute
	// fetchLeast must come of it in each fetchWindow: 2 KiB a second, which any network gives.
	fetchLeast  = 64 << 10
	fetchWindow = 30 * time.Second
	// fetchAgain is how long a member is not asked again of whom it did not come.
	fetchAgain = 5 * time.Minute
	// fetchesMost run beside one another.
	fetchesMost = 4
)

// errTrickle says that too little of a snapshot came.
var errTrickle = errors.New("it comes at a trickle, or not at all")

// errNotSaid says that a member gave another snapshot than it told of.
var errNotSaid = errors.New("it is another than was said")

// fetching fetches snapshots for as long as the node runs.
func (n *Node) fetching(ctx context.Context) error {
	running, over := map[protocol.PeerID]bool{}, make(chan protocol.PeerID)
	for {
		select {
		case from := <-n.fetch:
			if running[from.peer] || len(running) >= fetchesMost {
				continue // they say it again
			}
			running[from.peer] = true
			go func() {
				n.fetchFrom(ctx, from)
				over <- from.peer
			}()
		case peer := <-over:
			delete(running, peer)
		case <-ctx.Done():
			for range running {
				<-over
			}
			return nil
		}
	}
}

func (n *Node) fetchFrom(ctx context.Context, from baseFrom) {
	err := n.fetchBase(ctx, from)
	if err == nil || ctx.Err() != nil {
		return
	}
	n.log.Warn("the snapshot at which a member begins was not taken", "peer", from.peer, "err", err)
	if errors.Is(err, errTrickle) || errors.Is(err, errNotSaid) || errors.Is(err, board.ErrBadCheckpoint) {
		_ = n.loop.call(ctx, func() { n.loop.stall(from.peer) }) // it only fails when the node ends
	} // else it was cut off, and says it again
}

// stalled says whether a member gave no snapshot of late.
func (l *loop) stalled(p protocol.PeerID) bool { return l.now.Before(l.stalls[p]) }

// stall asks the next instead of a member.
func (l *loop) stall(p protocol.PeerID) {
	if l.stalls == nil {
		l.stalls = map[protocol.PeerID]time.Time{}
	}
	l.stalls[p] = l.now.Add(fetchAgain)
	if len(l.toldBases) > 0 {
		l.chooseBase()
	}
}

func (n *Node) fetchBase(ctx context.Context, from baseFrom) error {
	ctx, cancel := context.WithTimeoutCause(ctx, fetchTime, errTrickle)
	defer cancel()
	s, err := n.mesh.OpenStream(ctx, from.peer, mesh.Base)
	if err != nil {
		return err
	}
	defer s.Reset()
	defer context.AfterFunc(ctx, func() { _ = s.Reset() })()
	in := &counted{from: s}
	watched, unwatch := context.WithCancelCause(ctx)
	defer unwatch(nil)
	go func() {
		if in.trickles(watched, n.cfg.fetchWindow) {
			unwatch(errTrickle)
			_ = s.Reset()
		}
	}()
	raw, err := io.ReadAll(io.LimitReader(in, int64(from.base.Bytes)+1))
	if err != nil {
		if cause := context.Cause(watched); cause != nil {
			err = cause
		}
		return fmt.Errorf("read a snapshot: %w", err)
	}
	snap, err := board.DecodeSnapshot(raw)
	if err != nil {
		return err
	}
	if snap.Digest() != hex.EncodeToString(from.base.Digest[:]) || string(snap.Mesh()) != n.home.mesh.Mesh {
		return errNotSaid
	}
	return n.loop.call(ctx, func() { n.loop.beginning = &beginning{snap, from.peer} })
}

// counted counts what is read.
type counted struct {
	from io.Reader
	n    atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// trickles returns once less than fetchLeast came in a window; false: ctx ended before.
func (c *counted) trickles(ctx context.Context, window time.Duration) bool {
	for last := int64(0); ; {
		if pause(ctx, window) != nil {
			return false
		}
		now := c.n.Load()
		if now-last < fetchLeast {
			return true
		}
		last = now
	}
}

package node

import (
	"context"
	"sync"

	"github.com/aster-mesh/aster/protocol"
)

// How much of what one client, or one peer, has said may wait for the loop at once. The loop takes everything in the order in
// which it came; without a share for each a flood of one would stand before every word of the others. A client's share
// is half of what one turn takes; a peer's frame may hold as many records by itself.
const (
	clientLane = protocol.CommitRecordsMax / 4
	peerLane   = 8
	// laneBytes is what one place of a client's is for; a larger message takes several.
	laneBytes = 4 << 10
)

// lane lets so many jobs of one source wait for the loop; the next one waits in the source's own read loop, and so its
// peer is slowed down and nobody else.
type lane chan struct{}

// post waits for room, then for the loop. The loop's own goroutine must not call it.
func (ln lane) post(ctx context.Context, l *loop, job func()) error {
	select {
	case ln <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.n.done:
		return errStopping
	}
	err := l.post(ctx, func() {
		<-ln
		job()
	})
	if err != nil {
		<-ln
	}
	return err
}

// lanes are those of peers. The zero value is ready. Safe for concurrent use.
type lanes struct {
	mu    sync.Mutex
	of    map[protocol.PeerID]lane
	longs map[protocol.PeerID]lane
}

func (s *lanes) lane(p protocol.PeerID) lane { return s.in(&s.of, p, peerLane) }

// long is for ranges of many records, one at a time.
func (s *lanes) long(p protocol.PeerID) lane { return s.in(&s.longs, p, 1) }

func (s *lanes) in(all *map[protocol.PeerID]lane, p protocol.PeerID, places int) lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *all == nil {
		*all = map[protocol.PeerID]lane{}
	}
	ln := (*all)[p]
	if ln == nil {
		ln = make(lane, places)
		(*all)[p] = ln
	}
	return ln
}

// source is the client by which debts know it.
func (s *socket) source() source { return source{author: protocol.PeerID(s.name)} }

// forgotten lets go of what is counted for a socket.
func (s *socket) forgotten() {
	s.known()
	s.n.debts.forget(s.source())
}

// postSized is post for a message of so many bytes, once the client has its share of the node. One goroutine of a socket, its read loop, takes several places: two would
// wait for each other.
func (s *socket) postSized(bytes int, job func()) {
	s.n.debts.pause(s.n.ctx, s.source(), float64(1+bytes/debtBytes))
	more := min(bytes/laneBytes, clientLane-1)
	for taken := range more {
		select {
		case s.lane <- struct{}{}:
		case <-s.n.ctx.Done():
			s.lane.leave(taken)
			return
		case <-s.n.done:
			s.lane.leave(taken)
			return
		}
	}
	if s.lane.post(s.n.ctx, s.n.loop, func() { s.lane.leave(more); job() }) != nil {
		s.lane.leave(more)
	}
}

func (ln lane) leave(places int) {
	for range places {
		<-ln
	}
}

// post posts a job of the read loop's.
func (s *socket) post(job func()) { _ = s.lane.post(s.n.ctx, s.n.loop, job) }

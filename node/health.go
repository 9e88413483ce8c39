package node

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// healthEvery and healthKept make the last hour, which is what somebody who looks asks about: some 100 KB with ten links.
const (
	healthEvery = 10 * time.Second
	healthKept  = 360
	healthLinks = 64 // of a sample
)

// health is what the node measured of itself: a ring of samples, and the counts since the last. Any goroutine may use it.
type health struct {
	mu      sync.Mutex
	now     api.Sample // counts since the last sample
	delays  int64      // sum of receipts' delays since then, ms
	samples []api.Sample
	sum     counts // since the start
}

// counts are what metrics count.
type counts struct{ messages, redelivered, receipts, delayMillis int64 }

func (h *health) total() counts {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sum
}

func (h *health) message() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now.Messages++
	h.sum.messages++
}

func (h *health) redelivered() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now.Redelivered++
	h.sum.redelivered++
}

// persisted notes a receipt and how long after the message was logged it came.
func (h *health) persisted(after time.Duration) {
	ms := max(after.Milliseconds(), 0)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now.Receipts++
	h.sum.receipts++
	h.sum.delayMillis += ms
	h.delays += ms
	h.now.ReceiptMax = max(h.now.ReceiptMax, ms)
}

// take ends a sample: with what is measured now.
func (h *health) take(measured api.Sample) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := measured
	s.Messages, s.Redelivered, s.Receipts, s.ReceiptMax = h.now.Messages, h.now.Redelivered, h.now.Receipts, h.now.ReceiptMax
	if s.Receipts > 0 {
		s.ReceiptMillis = h.delays / s.Receipts
	}
	h.now, h.delays = api.Sample{}, 0
	if len(h.samples) == healthKept {
		h.samples = slices.Delete(h.samples, 0, 1)
	}
	h.samples = append(h.samples, s)
}

// Health implements web.Page.
func (n *Node) Health(context.Context) (api.Health, error) {
	n.health.mu.Lock()
	defer n.health.mu.Unlock()
	return api.Health{EveryMillis: healthEvery.Milliseconds(), Samples: slices.Clone(n.health.samples)}, nil
}

// sampleHealth takes a sample at once, then every healthEvery.
func (n *Node) sampleHealth(ctx context.Context) error {
	tick := time.NewTicker(healthEvery)
	defer tick.Stop()
	for {
		n.health.take(n.measured())
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (n *Node) measured() api.Sample {
	used, _ := n.store.Size()
	s := api.Sample{At: time.Now().UnixMilli(), Records: n.store.Records(), Jobs: len(n.loop.jobs), Disk: used, Resident: resident()}
	for _, link := range n.mesh.Links() {
		s.Queued += link.Queued
		if len(s.Links) < healthLinks {
			if s.Links == nil {
				s.Links = map[protocol.PeerID]uint32{}
			}
			s.Links[link.Peer] = uint32(min(max(link.RTT.Microseconds(), 0), 1<<31))
		}
	}
	return s
}

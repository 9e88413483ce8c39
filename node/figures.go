package node

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// What other inside nodes measured of themselves is asked for over a short stream, when somebody looks: it is no record,
// and a node that nobody looks at says nothing. A minute is one sample there.
const (
	figuresEvery  = 6 // samples of a node in one that others see
	figuresBytes  = 32 << 10
	figuresWithin = 3 * time.Second
	figuresFresh  = 15 * time.Second // what is younger is not asked for again
	figuresAtOnce = 4
)

// othersFigures is what the others said last. Any goroutine may use it.
type othersFigures struct {
	mu     sync.Mutex
	heard  map[protocol.PeerID]heardFigures
	asking chan struct{} // capacity 1: one round at a time
}

func newFigures() othersFigures { return othersFigures{asking: make(chan struct{}, 1)} }

type heardFigures struct {
	at, tried time.Time // when it answered last, when it was asked last
	ok        bool      // it answered when it was asked last
	health    api.Health
}

// byMinute is the last hour in minutes, without the links, which are between others.
func byMinute(samples []api.Sample) []api.Sample {
	var out []api.Sample
	for first := len(samples) % figuresEvery; first+figuresEvery <= len(samples); first += figuresEvery {
		part := samples[first : first+figuresEvery]
		sum := part[len(part)-1]
		sum.Links, sum.Messages, sum.Receipts, sum.Redelivered, sum.ReceiptMillis, sum.ReceiptMax = nil, 0, 0, 0, 0, 0
		for _, s := range part {
			sum.Messages += s.Messages
			sum.Redelivered += s.Redelivered
			sum.Receipts += s.Receipts
			sum.ReceiptMillis += s.ReceiptMillis * s.Receipts
			sum.ReceiptMax = max(sum.ReceiptMax, s.ReceiptMax)
			sum.Jobs, sum.Queued = max(sum.Jobs, s.Jobs), max(sum.Queued, s.Queued)
		}
		if sum.Receipts > 0 {
			sum.ReceiptMillis /= sum.Receipts
		}
		out = append(out, sum)
	}
	if len(out) == 0 && len(samples) > 0 { // a node that has just begun
		last := samples[len(samples)-1]
		last.Links = nil
		out = append(out, last)
	}
	return out
}

func (n *Node) ownFigures() api.Health {
	n.health.mu.Lock()
	defer n.health.mu.Unlock()
	return api.Health{EveryMillis: healthEvery.Milliseconds() * figuresEvery, Samples: byMinute(n.health.samples)}
}

// serveFigures tells an inside member what this node measured of itself.
func (n *Node) serveFigures(_ protocol.PeerID, s mesh.Stream) {
	_ = s.SetDeadline(time.Now().Add(figuresWithin))
	if raw, err := json.Marshal(n.ownFigures()); err == nil {
		_, _ = s.Write(raw) // who does not read it asks again
	}
}

// decodeFigures reads what another node says of itself: bounded, in order, and without a figure that is none.
func decodeFigures(raw []byte) (h api.Health, err error) {
	if err := json.Unmarshal(raw, &h); err != nil {
		return h, fmt.Errorf("read figures: %w", err)
	}
	if h.EveryMillis < 1000 || h.EveryMillis > time.Hour.Milliseconds() || len(h.Samples) > healthKept/figuresEvery {
		return api.Health{}, fmt.Errorf("read figures: %d samples, one every %d ms", len(h.Samples), h.EveryMillis)
	}
	last := int64(0)
	for i := range h.Samples {
		s := &h.Samples[i]
		least := min(s.Messages, s.Receipts, s.ReceiptMillis, s.ReceiptMax, s.Redelivered, s.Disk, s.Resident, int64(s.Jobs), int64(s.Queued))
		if s.At < last || least < 0 {
			return api.Health{}, fmt.Errorf("read figures: sample %d is none", i)
		}
		last, s.Links = s.At, nil
	}
	return h, nil
}

func (n *Node) askFigures(ctx context.Context, peer protocol.PeerID) (api.Health, error) {
	ctx, cancel := context.WithTimeout(ctx, figuresWithin)
	defer cancel()
	s, err := n.mesh.OpenStream(ctx, peer, mesh.Figures)
	if err != nil {
		return api.Health{}, err
	}
	defer s.Reset()
	defer context.AfterFunc(ctx, func() { _ = s.Reset() })()
	raw, err := io.ReadAll(io.LimitReader(s, figuresBytes+1))
	if err != nil {
		return api.Health{}, fmt.Errorf("read figures: %w", err)
	}
	if len(raw) > figuresBytes {
		return api.Health{}, fmt.Errorf("read figures: more than %d bytes", figuresBytes)
	}
	return decodeFigures(raw)
}

// Figures implements web.Page. Who does not answer within three seconds is shown as it was known, with the time.
func (n *Node) Figures(ctx context.Context) (out api.Figures, err error) {
	peers, err := n.Peers(ctx)
	if err != nil {
		return out, err
	}
	peers = slices.DeleteFunc(peers, func(p api.Peer) bool { return !p.Inside || p.Revoked || p.Self })
	peers = peers[:min(len(peers), protocol.NodesMax)]
	select {
	case n.figures.asking <- struct{}{}:
		n.askAll(ctx, peers)
		<-n.figures.asking
	case <-ctx.Done():
		return out, ctx.Err()
	}
	out.Nodes = append(out.Nodes, api.NodeFigures{Peer: n.home.peer, Name: n.home.mesh.Name, Self: true, OK: true, At: time.Now().UnixMilli(), Health: n.ownFigures()})
	n.figures.mu.Lock()
	defer n.figures.mu.Unlock()
	for _, p := range peers {
		row := api.NodeFigures{Peer: p.Peer, Name: p.Name}
		if h, ok := n.figures.heard[p.Peer]; ok {
			row.OK, row.Health = h.ok, h.health
			if !h.at.IsZero() {
				row.At = h.at.UnixMilli()
			}
		}
		out.Nodes = append(out.Nodes, row)
	}
	return out, nil
}

// askAll asks those whose word is old, a few at once.
func (n *Node) askAll(ctx context.Context, peers []api.Peer) {
	n.figures.mu.Lock()
	known := maps.Clone(n.figures.heard)
	n.figures.mu.Unlock()
	now := time.Now()
	heard := make(map[protocol.PeerID]heardFigures, len(peers))
	var mu sync.Mutex
	var wait sync.WaitGroup
	room := make(chan struct{}, figuresAtOnce)
	for _, p := range peers {
		h := known[p.Peer]
		heard[p.Peer] = h // who is no member any more is forgotten
		if now.Sub(h.tried) < figuresFresh && (h.ok || !p.Linked) {
			continue
		}
		if !p.Linked {
			h.tried, h.ok = now, false
			heard[p.Peer] = h
			continue
		}
		wait.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			got, err := n.askFigures(ctx, p.Peer)
			h.tried, h.ok = time.Now(), err == nil
			if err == nil {
				h.at, h.health = h.tried, got
			}
			mu.Lock()
			heard[p.Peer] = h
			mu.Unlock()
		})
	}
	wait.Wait()
	n.figures.mu.Lock()
	n.figures.heard = heard
	n.figures.mu.Unlock()
}

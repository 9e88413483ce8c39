package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// pacedEvery is the distance of messages in the paced cases: 50 a second.
const pacedEvery = 20 * time.Millisecond

// inFlight is the window of the cases that measure rates.
const inFlight = 64

// relayBench holds what the relay's cases share.
type relayBench struct {
	*Bench
	disk *disk
	bare *way
	one  *way // both agents at one node
	two  *way // at two nodes
	echo *echo
	mesh []*node
}

func (b *Bench) relay(ctx context.Context) (rows []Row, err error) {
	r := &relayBench{Bench: b}
	var ends []func() error
	defer func() {
		for i := len(ends) - 1; i >= 0; i-- {
			err = errors.Join(err, ends[i]())
		}
	}()
	b.say("relay: starting a bare hub, a node alone, and a mesh of two")
	if r.disk, err = openDisk(b.Dir); err != nil {
		return nil, err
	}
	ends = append(ends, r.disk.close)
	hub, err := b.startBare(ctx)
	if err != nil {
		return nil, err
	}
	ends = append(ends, hub.end)
	alone, err := b.startNode(ctx, "alone", "")
	if err != nil {
		return nil, err
	}
	ends = append(ends, alone.stop)
	if r.mesh, err = b.startMesh(ctx, "pair", 2); err != nil {
		return nil, err
	}
	ends = append(ends, func() error { return stopAll(r.mesh) })
	if r.echo, err = b.openEcho(ctx); err != nil {
		return nil, err
	}
	ends = append(ends, r.echo.close)
	for _, w := range []struct {
		at       **way
		from, to string
		name     string
	}{{&r.bare, hub.addr.URL, hub.addr.URL, "bare"}, {&r.one, alone.url(), alone.url(), "one"}, {&r.two, r.mesh[0].url(), r.mesh[1].url(), "two"}} {
		if w.name == "two" {
			err = r.openTwo(ctx)
		} else {
			*w.at, err = openWay(ctx, w.from, w.to, w.name)
		}
		if err != nil {
			return nil, err
		}
		ends = append(ends, (*w.at).close)
	}
	for _, measure := range []func(context.Context) ([]Row, error){r.latency, r.paced, r.rates} {
		more, err := measure(ctx)
		rows = append(rows, more...)
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// openTwo opens the way between nodes; the first must have heard of the second's agent.
func (r *relayBench) openTwo(ctx context.Context) (err error) {
	if r.two, err = openWay(ctx, r.mesh[0].url(), r.mesh[1].url(), "two"); err != nil {
		return err
	}
	return until(ctx, "the agent of the second node is not known at the first", func() (bool, error) {
		all, err := r.mesh[0].client.Agents(ctx)
		for _, a := range all {
			if a.ID == protocol.AgentID(r.two.to.id) && a.State == protocol.StateIdle {
				return true, nil
			}
		}
		return false, err
	})
}

const durableNote = "no durable hub beats one that keeps messages in memory: each message waits for the disk once before it is sent on"

// latency is one message at a time.
func (r *relayBench) latency(context.Context) ([]Row, error) {
	r.say("relay: one in flight, at once")
	sync, bare, one, two, echo := &side{once: r.disk.once}, &side{once: r.bare.once}, &side{once: r.one.once}, &side{once: r.two.once}, &side{once: r.echo.once}
	if err := interleave(2*r.For, 0, sync, bare, one, two, echo); err != nil {
		return nil, err
	}
	disk, trip := sync.got.p50(), echo.got.p50()
	return []Row{
		Row{Bench: "relay", Case: "one node, 1 in flight", Value: one.got.p50(), Unit: "ms", P99: one.got.p99(),
			Raw: []Raw{{"bare relay", bare.got.p50(), "ms"}, {"bare p99", bare.got.p99(), "ms"}, {"fdatasync", disk, "ms"}},
			Bar: bare.got.p50() + 2*disk, Rule: "bare + 2 fdatasync", Note: durableNote}.judge(),
		Row{Bench: "relay", Case: "two nodes, 1 in flight", Value: two.got.p50(), Unit: "ms", P99: two.got.p99(),
			Raw: []Raw{{"2 fdatasync + libp2p round trip", 2*disk + trip, "ms"}, {"fdatasync", disk, "ms"}, {"libp2p round trip", trip, "ms"}},
			Bar: 2 * (2*disk + trip), Rule: "2 × (2 fdatasync + round trip)"}.judge(),
	}, nil
}

// paced is 50 messages a second: processors and disk fall asleep in between.
func (r *relayBench) paced(context.Context) ([]Row, error) {
	r.say("relay: paced at 50 a second")
	sync, bare, one, two, echo := &side{once: r.disk.once}, &side{once: r.bare.once}, &side{once: r.one.once}, &side{once: r.two.once}, &side{once: r.echo.once}
	if err := interleave(2*r.For, pacedEvery, sync, bare, one, two, echo); err != nil {
		return nil, err
	}
	disk, trip := sync.got.p50(), echo.got.p50()
	return []Row{
		Row{Bench: "relay", Case: "one node, 50 a second", Value: one.got.p50(), Unit: "ms", P99: one.got.p99(),
			Raw: []Raw{{"bare relay", bare.got.p50(), "ms"}, {"bare p99", bare.got.p99(), "ms"}, {"fdatasync", disk, "ms"}},
			Bar: bare.got.p50() + 3*disk, Rule: "bare + 3 fdatasync"}.judge(),
		Row{Bench: "relay", Case: "two nodes, 50 a second", Value: two.got.p50(), Unit: "ms", P99: two.got.p99(),
			Raw: []Raw{{"2 fdatasync + libp2p round trip", 2*disk + trip, "ms"}, {"fdatasync", disk, "ms"}, {"libp2p round trip", trip, "ms"}},
			Bar: 2 * (2*disk + trip), Rule: "2 × (2 fdatasync + round trip)"}.judge(),
	}, nil
}

// rates keeps 64 messages in flight; the three ways take turns.
func (r *relayBench) rates(ctx context.Context) ([]Row, error) {
	r.say("relay: %d in flight", inFlight)
	var rate [3][]float64
	var lat [3]samples
	before, err := r.linkBytes(ctx)
	if err != nil {
		return nil, err
	}
	sent := r.two.next
	turn := max(r.For/4, 200*time.Millisecond)
	for range 5 {
		for i, w := range []*way{r.bare, r.one, r.two} {
			took, count, l, err := w.flood(turn, inFlight)
			if err != nil {
				return nil, err
			}
			rate[i] = append(rate[i], float64(count)/took.Seconds())
			lat[i] = append(lat[i], l...)
		}
	}
	after, err := r.linkBytes(ctx)
	if err != nil {
		return nil, err
	}
	bare, one, two := median(rate[0]), median(rate[1]), median(rate[2])
	return []Row{
		Row{Bench: "relay", Case: fmt.Sprintf("one node, %d in flight", inFlight), Value: one, Unit: "msg/s",
			Raw: []Raw{{"bare relay", bare, "msg/s"}, {"p50", lat[1].p50(), "ms"}, {"p99", lat[1].p99(), "ms"}, {"bare p99", lat[0].p99(), "ms"}},
			Bar: 0.3 * bare, Floor: true, Rule: "0.3 × bare"}.judge(),
		Row{Bench: "relay", Case: fmt.Sprintf("two nodes, %d in flight", inFlight), Value: two, Unit: "msg/s",
			Raw: []Raw{{"our one node", one, "msg/s"}, {"p50", lat[2].p50(), "ms"}, {"p99", lat[2].p99(), "ms"}},
			Bar: 0.4 * one, Floor: true, Rule: "0.4 × our one node"}.judge(),
		Row{Bench: "relay", Case: "two nodes, bytes on all links a message", Value: float64(after-before) / float64(r.two.next-sent), Unit: "bytes",
			Raw: []Raw{{"body", bodyBytes, "bytes"}}, Bar: 4 * bodyBytes, Rule: "4 × (nodes − 1) × 600; receipts and acknowledgements included, gossip and pings not"}.judge(),
	}, nil
}

// linkBytes is what both nodes have sent over links so far.
func (r *relayBench) linkBytes(ctx context.Context) (sum uint64, err error) {
	for _, n := range r.mesh {
		peers, err := n.client.Peers(ctx)
		if err != nil {
			return 0, err
		}
		for _, p := range peers {
			sum += p.BytesOut
		}
	}
	return sum, nil
}

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// hostileBench is a mesh of two honest nodes with two honest pairs, and a third member that is hostile.
type hostileBench struct {
	*Bench
	mesh  []*node
	pairs [2]*way           // at the node that is attacked; from there to the other
	evil  map[string]target // by the first word of an attack's name
	bare  map[string]target // where it goes without the node
}

const (
	// hostileRounds are how often the control and the attack are measured, in turns, each first as often as the other.
	hostileRounds = 6
	warmUp        = 300 * time.Millisecond
	restFor       = time.Second          // without a new record, before a turn
	hostilePace   = 5 * time.Millisecond // of messages, the pairs in turn
	// hostileTimes is how much slower the slowest hundredth of others' messages may be beside an attack.
	hostileTimes = 2
)

// hostile measures what members and clients that break the rules cost others. The attacker runs at the lowest priority, as if its
// processor were its own; the control is the same attacker with another target, so that what it takes from the machine is in both.
func (b *Bench) hostile(ctx context.Context) (rows []Row, err error) {
	h := &hostileBench{Bench: &Bench{Self: b.Self, Dir: b.Dir, For: b.For, Say: b.Say, env: append(b.env, normalLimits()...), Attacks: b.Attacks}}
	var ends []func() error
	defer func() {
		for i := len(ends) - 1; i >= 0; i-- {
			err = errors.Join(err, ends[i]())
		}
	}()
	h.say("hostile: starting two honest nodes and one that is not")
	if h.mesh, err = h.startMesh(ctx, "honest", 2); err != nil {
		return nil, err
	}
	ends = append(ends, func() error { return stopAll(h.mesh) })
	hub, err := h.low().startBare(ctx)
	if err != nil {
		return nil, err
	}
	ends = append(ends, hub.end)
	if err := h.enemies(ctx, hub.addr.URL); err != nil {
		return nil, err
	}
	target, err := attach(ctx, h.mesh[0].url(), victim, nil)
	if err != nil {
		return nil, err
	}
	ends = append(ends, target.close)
	two := &relayBench{Bench: h.Bench, mesh: h.mesh}
	if h.pairs[0], err = openWay(ctx, h.mesh[0].url(), h.mesh[0].url(), "near"); err != nil {
		return nil, err
	}
	ends = append(ends, h.pairs[0].close)
	if err := two.openTwo(ctx); err != nil {
		return nil, err
	}
	h.pairs[1] = two.two
	ends = append(ends, h.pairs[1].close)
	for _, a := range attacks {
		kind := a.kind
		if !strings.Contains(kind, b.Attacks) {
			continue
		}
		more, err := h.attacked(ctx, kind)
		rows = append(rows, more...)
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// normalLimits are how fast a sender may be where nobody measures.
func normalLimits() (env []string) {
	for name, n := range map[string]int{
		"SENDER_PER_SECOND": protocol.SenderPerSecond, "SENDER_BURST": protocol.SenderBurst, "PAIR_PER_SECOND": protocol.PairPerSecond, "PAIR_BURST": protocol.PairBurst,
	} {
		env = append(env, fmt.Sprintf("ASTER_LIMITS_%s=%d", name, n))
	}
	return env
}

// enemies makes the hostile members, whose homes and keys the attacks use, and the key of a client outside.
func (h *hostileBench) enemies(ctx context.Context, bare string) error {
	h.evil, h.bare = map[string]target{}, map[string]target{}
	for who, role := range map[string]protocol.Role{"member": protocol.RoleLocal, "outside": protocol.RoleCollab} {
		in, err := h.mesh[0].client.Invite(ctx, api.InviteRequest{Role: role, TTLMillis: time.Hour.Milliseconds()})
		if err != nil {
			return fmt.Errorf("invite: %w", err)
		}
		n, err := h.startNode(ctx, who, in.Token)
		if err != nil {
			return err
		}
		s, err := n.client.Status(ctx)
		if err := errors.Join(err, n.stop()); err != nil {
			return err
		}
		t := target{Home: n.home, Mesh: s.MeshID, Peer: h.mesh[0].ready.Peer, Addrs: h.mesh[0].ready.Mesh}
		h.evil[who] = t
		t.Sink = true
		h.bare[who] = t
	}
	key, err := h.mesh[0].client.IssueKey(ctx, api.KeyRequest{Kind: string(protocol.RoleCollab)})
	if err != nil {
		return fmt.Errorf("issue a key: %w", err)
	}
	home := h.evil["member"].Home
	h.evil["client"], h.bare["client"] = target{Home: home, URL: h.mesh[0].url()}, target{Home: home, URL: bare}
	h.evil["key"], h.bare["key"] = target{Home: home, URL: h.mesh[0].url() + "?key=" + key.Secret}, target{Home: home, URL: bare}
	return nil
}

// low has what it starts run when nobody else wants the processor.
func (h *hostileBench) low() *Bench {
	b := *h.Bench
	b.nice = true
	return &b
}

// settle waits until the nodes are through with what came before.
func (h *hostileBench) settle(ctx context.Context) error {
	had, calm := uint64(0), time.Now()
	return until(ctx, "the nodes do not come to rest", func() (bool, error) {
		now := uint64(0)
		for _, n := range h.mesh {
			s, err := n.client.Status(ctx)
			if err != nil {
				return false, err
			}
			now += s.Records
		}
		if now != had {
			had, calm = now, time.Now()
		}
		return time.Since(calm) > restFor, nil
	})
}

// turn measures the pairs for a while, beside an attacker if there is a target.
func (h *hostileBench) turn(ctx context.Context, kind string, at *target, d time.Duration, to *spell) (err error) {
	began := time.Now()
	if at != nil {
		t := *at
		t.Kind = kind
		raw, err := json.Marshal(t)
		if err != nil {
			return err
		}
		p, _, err := h.low().spawn(ctx, string(raw), "bench", "attack")
		if err != nil {
			return err
		}
		defer func() {
			said, gone := p.endSaying()
			to.lasted = time.Since(began)
			err = errors.Join(err, gone, json.Unmarshal(said, &to.tally))
		}()
	}
	if err := pause(ctx, warmUp); err != nil {
		return err
	}
	for begin, i := time.Now(), 0; time.Since(begin) < d; i++ {
		if err := pause(ctx, time.Until(begin.Add(time.Duration(i)*hostilePace))); err != nil {
			return err
		}
		took, err := h.pairs[i%2].once()
		if err != nil {
			return err
		}
		to.took[i%2] = append(to.took[i%2], took)
		if time.Since(begin) > time.Duration(i+1)*hostilePace {
			begin = begin.Add(time.Since(begin) - time.Duration(i+1)*hostilePace) // what was late is not made up for
		}
	}
	return nil
}

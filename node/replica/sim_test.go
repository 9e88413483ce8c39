package replica

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aster-mesh/aster/protocol"
)

// storm drives a world through writes, cuts, restarts and losses, then heals it into a connected mesh.
func storm(w *world, inside, outside int) {
	scopes := []protocol.Scope{protocol.ScopeInside, protocol.ScopeInside, protocol.ScopeRoom("plan", 1)}
	for i := range outside {
		scopes = append(scopes, protocol.ScopeOutside(peerNames[inside+i]))
	}
	total := inside + outside
	for range 60 {
		a, b := w.rng.Intn(total), w.rng.Intn(total)
		outsiders := a >= inside && b >= inside
		switch w.rng.Intn(12) {
		case 0, 1, 2:
			if !outsiders {
				w.up(a, b)
			}
		case 3:
			w.down(a, b)
		case 4:
			if w.rng.Intn(3) == 0 {
				w.restart(a)
			}
		case 5:
			w.run(time.Duration(w.rng.Intn(20)) * time.Second)
		case 6:
			w.run(time.Duration(w.rng.Intn(400)) * time.Millisecond)
		default:
			w.nodes[a].write(scopes[w.rng.Intn(len(scopes))], 1+w.rng.Intn(4), w.rng.Intn(64))
		}
	}
}

// restart stops a node and starts it again, at times from an older copy of its home.
func (w *world) restart(a int) {
	for b := range w.nodes {
		w.down(a, b)
	}
	n := w.nodes[a]
	w.logf("node %d starts again", a)
	if w.rng.Intn(3) == 0 && w.elsewhere(n) {
		w.older = true
		for id, rs := range n.logs {
			keep := len(rs)
			for keep = w.rng.Intn(keep + 1); keep > 0 && len(rs[keep-1].Sig) == 0; keep-- {
			}
			if n.logs[id] = rs[:keep:keep]; keep == 0 {
				delete(n.logs, id)
			}
		}
	}
	n.boot()
	n.flush()
}

// elsewhere says whether all that n holds is held by another node as well, so that n can lose it.
func (w *world) elsewhere(n *node) bool {
	for id, rs := range n.logs {
		found := false
		for _, m := range w.nodes {
			found = found || (m != n && len(m.logs[id]) >= len(rs))
		}
		if !found {
			return false
		}
	}
	return true
}

// heal links all nodes: full, as a chain, as a star or as a random tree.
func (w *world) heal(inside, outside int, shape int) {
	for a := range w.nodes {
		for b := range a {
			w.down(a, b)
		}
	}
	w.loss, w.twice = 0, 0
	for a := 1; a < inside; a++ {
		switch shape {
		case 0:
			for b := range a {
				w.up(a, b)
			}
		case 1:
			w.up(a, a-1)
		case 2:
			w.up(a, 0)
		default:
			w.up(a, w.rng.Intn(a))
		}
	}
	for i := range outside {
		w.up(inside+i, w.rng.Intn(inside))
	}
}

// wants is what a node must hold in the end: the longest copy of each log that it may see.
func (w *world) wants(n *node) map[string]int {
	out := map[string]int{}
	for _, m := range w.nodes {
		for id, rs := range m.logs {
			if w.maySee(n, id) {
				out[id.String()] = max(out[id.String()], len(rs))
			}
		}
	}
	return out
}

func (n *node) holds() map[string]int {
	out := map[string]int{}
	for id, rs := range n.logs {
		out[id.String()] = len(rs)
	}
	return out
}

func (w *world) checkSettled() {
	w.t.Helper()
	for _, n := range w.nodes {
		if diff := cmp.Diff(n.holds(), w.wants(n)); diff != "" {
			w.fail("node %d holds (-), wants (+):\n%s", n.at, diff)
		}
		if lacks := n.rep.Lacking(w.now); len(lacks) > 0 {
			w.fail("node %d still lacks %v", n.at, lacks)
		}
		for id, rs := range n.logs {
			if h := n.rep.Head(id); h.Seq != uint64(len(rs)) || h.Hash != rs[len(rs)-1].Hash() {
				w.fail("node %d: head %d of %d", n.at, h.Seq, len(rs))
			}
			if n.inside && id.Peer == n.id && w.insideNodes() > 1 && n.rep.ReplicatedTo(id) != uint64(len(rs)) {
				w.fail("node %d: own log replicated to %d of %d", n.at, n.rep.ReplicatedTo(id), len(rs))
			}
		}
		for _, m := range w.nodes {
			if w.linked(n.at, m.at) {
				if logs, recs := n.rep.Behind(m.id); logs != 0 {
					w.fail("node %d believes %d to be behind by %d records of %d logs", n.at, m.at, recs, logs)
				}
			}
		}
		if len(n.forks) > 0 {
			w.fail("node %d sees a fork where there is none: %v", n.at, n.forks)
		}
	}
}

func (w *world) insideNodes() (count int) {
	for _, n := range w.nodes {
		if n.inside {
			count++
		}
	}
	return count
}

func TestAfterAnyStormAllHoldTheSame(t *testing.T) {
	seeds := int64(500)
	if !testing.Short() {
		seeds = 1500
	}
	for seed := range seeds {
		if !t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			inside, outside := 2+int(seed%6), int(seed/6%3)
			w := newWorld(t, seed, inside, outside)
			if seed%2 == 1 {
				w.loss, w.twice = 0.1, 0.1
			}
			if seed%5 == 4 {
				w.scale = 2000 // a window holds two or three commits
			}
			storm(w, inside, outside)
			w.heal(inside, outside, int(seed/18%4))
			w.run(40 * time.Second)
			w.checkSettled()
			// What is said now goes by push alone.
			for _, n := range w.nodes {
				n.write(protocol.ScopeInside, 2, 10)
			}
			w.run(protocol.PassOnAfter * 3 * time.Duration(len(w.nodes)))
			w.checkSettled()
		}) {
			t.Fatalf("failing seed: %d", seed)
		}
	}
}

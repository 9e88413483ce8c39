package gossip

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestDeathIsNoticedInTimeAtEverySize: from the cut until each of the others calls a node dead, in the bubble's time. What is usual
// was measured of memberlist alone (performance.md 3); its dice are its own, so the bound is wide.
func TestDeathIsNoticedInTimeAtEverySize(t *testing.T) {
	for _, c := range []struct {
		nodes, deaths int
		usual         time.Duration
	}{{3, 20, 6 * time.Second}, {8, 10, 6 * time.Second}, {32, 3, 7800 * time.Millisecond}} {
		if testing.Short() {
			if c.deaths = c.deaths / 4; c.deaths == 0 {
				continue
			}
		}
		t.Run(fmt.Sprint(c.nodes, " nodes"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				defer w.stop()
				all := mesh(t, w, c.nodes)
				var took []time.Duration
				for i := range c.deaths {
					victim := all[1+i%(c.nodes-1)]
					name := string(victim.cfg.Self)
					w.setCut(victim.cfg.Self, true)
					began, waiting := time.Now(), map[*node]bool{}
					for _, m := range all {
						waiting[m] = m != victim
					}
					within(t, time.Minute, "the others call it dead", func() bool {
						for _, m := range all {
							if waiting[m] && m.state(name) == Dead {
								waiting[m] = false
								took = append(took, time.Since(began))
							}
						}
						return len(took) == (i+1)*(c.nodes-1)
					})
					w.setCut(victim.cfg.Self, false)
					for _, m := range all {
						if m != victim {
							victim.Join(m.cfg.Self) // as the node does with each link that comes up
						}
					}
					within(t, 5*time.Minute, "it is back for all", func() bool {
						return !slices.ContainsFunc(all, func(m *node) bool { return alive(m) != c.nodes-1 })
					})
				}
				slices.Sort(took)
				median, last := took[len(took)/2], took[len(took)-1]
				t.Logf("%d nodes: median %v, the last %v", c.nodes, median, last)
				if median < c.usual/2 || median > c.usual*3/2 || last > 3*c.usual {
					t.Errorf("%d nodes: median %v, the last %v, usual is %v", c.nodes, median, last, c.usual)
				}
			})
		})
	}
}

// TestNewsReachesEightNodesInTime: what a member says of itself, and that one leaves, is known to all others by the next exchange of
// all, half of the time within a second, in the bubble's time.
func TestNewsReachesEightNodesInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, times := 8, 40
		if testing.Short() {
			times = 8
		}
		w := newWorld()
		defer w.stop()
		all := mesh(t, w, nodes)
		var took []time.Duration
		for i := range times {
			from := all[i%nodes]
			news := fmt.Sprint("news ", i)
			if err := from.SetMeta([]byte(news)); err != nil {
				t.Fatal(err)
			}
			took = append(took, within(t, pushPullInterval+time.Second, "all know it", func() bool {
				return !slices.ContainsFunc(all, func(m *node) bool {
					return m != from && !slices.ContainsFunc(m.Members(), func(o Member) bool { return o.Peer == from.cfg.Self && string(o.Meta) == news })
				})
			}))
		}
		leaver := all[nodes-1]
		if err := leaver.Leave(2 * time.Second); err != nil {
			t.Fatal(err)
		}
		leaver.stop()
		left := within(t, pushPullInterval+time.Second, "all know that it left", func() bool {
			return !slices.ContainsFunc(all[:nodes-1], func(m *node) bool { return m.state(string(leaver.cfg.Self)) != Left })
		})
		slices.Sort(took)
		t.Logf("median %v, the slowest but one of %d %v, the last %v; left after %v", took[times/2], times, took[times-2], took[times-1], left)
		if took[times/2] > time.Second { // what gossip misses, now and then, the exchange of all brings
			t.Errorf("half of %d took %v or more", times, took[times/2])
		}
	})
}

package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol/api"
)

// mains asks nodes again and again who is main, and remembers who called itself so, by term.
type mains struct {
	stop context.CancelFunc
	wait sync.WaitGroup

	mu     sync.Mutex
	acting map[uint64]map[string]bool
}

func watchMains(t *testing.T, nodes []*node) *mains {
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	w := &mains{stop: stop, acting: map[uint64]map[string]bool{}}
	t.Cleanup(w.end)
	for _, n := range nodes {
		w.wait.Go(func() {
			tick := time.NewTicker(300 * time.Millisecond)
			defer tick.Stop()
			for {
				ask, cancel := context.WithTimeout(ctx, time.Second)
				if m, err := n.api().Main(ask); err == nil && m.Here && m.Sure {
					w.mu.Lock()
					if w.acting[m.Term] == nil {
						w.acting[m.Term] = map[string]bool{}
					}
					w.acting[m.Term][n.name] = true
					w.mu.Unlock()
				}
				cancel()
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
			}
		})
	}
	return w
}

func (w *mains) end() {
	w.stop()
	w.wait.Wait()
}

// check wants one acting main a term, of those that were seen. It returns in words who had the office.
func (w *mains) check(t *testing.T) string {
	t.Helper()
	w.end()
	words := fmt.Sprintf("%d terms", len(w.acting))
	for term, who := range w.acting {
		if len(who) != 1 {
			t.Errorf("acting mains of term %d: %v", term, who)
		}
	}
	return words
}

// oneMain waits until all agree on one main, who may act, and returns it.
func oneMain(t *testing.T, within time.Duration, nodes []*node) (m api.Main, took time.Duration) {
	t.Helper()
	took = eventually(t, within, "one main, on whom all agree", func() (bool, string) {
		acting, agree, stands := 0, true, ""
		first, _ := nodes[0].main()
		for _, n := range nodes {
			at, ok := n.main()
			agree = agree && ok && at.Peer == first.Peer && at.Term == first.Term
			if at.Here && at.Sure {
				acting++
				m = at
			}
			stands += fmt.Sprintf("%s: term %d %s here %v sure %v; ", n.name, at.Term, at.Node, at.Here, at.Sure)
		}
		return agree && acting == 1, stands
	})
	return m, took
}

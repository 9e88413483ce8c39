package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	joiners = 2000
	// joinDialers open connections at once, as 2,000 clients of a machine would not.
	joinDialers = 64
)

// joins lets 2,000 agents attach to one node.
func (b *Bench) joins(ctx context.Context) (rows []Row, err error) {
	b.say("fanout: %d agents join one node", joiners)
	n, err := b.startNode(ctx, "joins", "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.stop()) }()
	empty, known := residentBytes(n.ready.PID)
	agents := make([]*agent, joiners)
	defer func() {
		for _, a := range agents {
			if a != nil {
				a.stop()
			}
		}
		for _, a := range agents {
			if a != nil {
				err = errors.Join(err, a.close())
			}
		}
	}()
	began := time.Now()
	next := make(chan int)
	var wg sync.WaitGroup
	failed := make(chan error, joinDialers)
	for range joinDialers {
		wg.Go(func() {
			for i := range next {
				a, err := attach(ctx, n.url(), fmt.Sprintf("agent-%04d", i), nil)
				if err != nil {
					failed <- err
					for range next { // the others go on being told
					}
					return
				}
				agents[i] = a
			}
		})
	}
	for i := range joiners {
		next <- i
	}
	close(next)
	wg.Wait()
	took := time.Since(began)
	select {
	case err := <-failed:
		return nil, err
	default:
	}
	// The last rosters are still on their way.
	var bytes int64
	calm := time.Now()
	if err := until(ctx, "rosters still go out", func() (bool, error) {
		sum := int64(0)
		for _, a := range agents {
			sum += a.came.Load()
		}
		if sum != bytes {
			bytes, calm = sum, time.Now()
		}
		return time.Since(calm) > 2*time.Second, nil
	}); err != nil {
		return nil, err
	}
	rows = append(rows,
		Row{Bench: "fanout", Case: fmt.Sprintf("%d agents join", joiners), Value: took.Seconds(), Unit: "s", Bar: 5}.judge(),
		Row{Bench: "fanout", Case: fmt.Sprintf("%d agents join, bytes in all", joiners), Value: float64(bytes) / 1e6, Unit: "MB", Bar: 500}.judge(),
	)
	if full, ok := residentBytes(n.ready.PID); ok && known {
		rows = append(rows, Row{Bench: "fanout", Case: "resident memory an agent, queues empty", Value: float64(full-empty) / joiners / 1024, Unit: "KiB", Bar: 40}.judge())
	}
	return rows, nil
}

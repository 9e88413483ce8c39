package e2e

import (
	"io"
	"net"
	"sync"
	"testing"
)

// wire carries a browser's connections to a board. It can be cut: what runs over it ends, and nothing comes through until it
// is mended; the node knows nothing of it.
type wire struct {
	at   string // host and port for the browser
	mu   sync.Mutex
	cut  bool
	ends map[net.Conn]bool
}

// wireTo lays one to the host and port of a board, until the test ends.
func wireTo(t *testing.T, board string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	w := &wire{at: l.Addr().String(), ends: map[net.Conn]bool{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { w.carry(near, board) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); w.sever(); all.Wait() })
	return w
}

func (w *wire) carry(near net.Conn, board string) {
	defer near.Close()
	far, err := net.Dial("tcp", board)
	if err != nil {
		return // nobody is there, which the browser is told by a connection that ends
	}
	defer far.Close()
	w.mu.Lock()
	if w.cut {
		w.mu.Unlock()
		return
	}
	w.ends[near], w.ends[far] = true, true
	w.mu.Unlock()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // how it ended is nobody's business: both ends are closed
			_, _ = way[0].Close(), way[1].Close()
		})
	}
	both.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.ends, near)
	delete(w.ends, far)
}

func (w *wire) sever() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	for c := range w.ends {
		_ = c.Close()
	}
}

func (w *wire) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = false
}

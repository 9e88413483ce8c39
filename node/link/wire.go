package link

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	batchBytes = 64 << 10
	// stepBytes is what a peer must read within the queue's wait, however large the frame.
	stepBytes = 256 << 10
)

var batches = sync.Pool{New: func() any { b := make([]byte, 0, batchBytes); return &b }}

// wire is the socket below the WebSocket. It gathers the writes of a batch into few, and sets the deadlines: for a write
// the queue's wait, for a read the time after which a silent peer is dead.
type wire struct {
	net.Conn

	// Set by arm before the loops start. Unarmed, it only passes on.
	armed     bool
	writeWait time.Duration
	readWait  time.Duration
	raw       syscall.RawConn // nil: nothing can be offered to this socket

	until atomic.Int64 // a closing connection's last instant, Unix ns; 0: it is not closing

	// Guarded by mu, which is held across writes on purpose: it is their order. Beside the write loop only a close frame for
	// a protocol error comes from the read loop, and every write has a deadline.
	mu     sync.Mutex
	batch  *[]byte
	trying bool // what is gathered is to be offered, so nothing of it is written before
}

func (w *wire) arm(writeWait, readWait time.Duration) {
	w.armed, w.writeWait, w.readWait = true, writeWait, readWait
	w.raw = rawOf(w.Conn)
}

// closeBy bounds all reads and writes from now on, also those under way.
func (w *wire) closeBy(t time.Time) {
	w.until.Store(t.UnixNano())
	_ = w.Conn.SetDeadline(t) // it fails only on a closed socket
}

// Read counts any bytes as a sign of life: a large message may take long.
func (w *wire) Read(p []byte) (int, error) {
	if w.armed {
		w.deadline(w.Conn.SetReadDeadline, w.readWait)
	}
	return w.Conn.Read(p)
}

// deadline sets now+wait, or the closing connection's last instant. It looks twice, since closeBy may come between.
func (w *wire) deadline(set func(time.Time) error, wait time.Duration) {
	if w.until.Load() == 0 {
		_ = set(time.Now().Add(wait))
	}
	if until := w.until.Load(); until != 0 {
		_ = set(time.Unix(0, until))
	}
}

// SetWriteDeadline is left to Write once armed: the WebSocket layer would clear it.
func (w *wire) SetWriteDeadline(t time.Time) error {
	if w.armed {
		return nil
	}
	return w.Conn.SetWriteDeadline(t)
}

func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.batch == nil {
		return len(p), w.writeOut(p)
	}
	if len(*w.batch)+len(p) > batchBytes && !w.trying {
		if err := w.flushLocked(); err != nil {
			return 0, err
		}
	}
	if len(p) >= batchBytes && !w.trying {
		return len(p), w.writeOut(p)
	}
	*w.batch = append(*w.batch, p...)
	return len(p), nil
}

// begin gathers writes until finish, behind what the socket did not take when it was offered.
func (w *wire) begin() {
	w.mu.Lock()
	if w.batch == nil {
		w.batch = batches.Get().(*[]byte)
	}
	w.mu.Unlock()
}

// try gathers writes until offer. It does not wait: false says that somebody is writing, or that nothing can be offered.
func (w *wire) try() bool {
	if w.raw == nil || !w.mu.TryLock() {
		return false
	}
	defer w.mu.Unlock()
	if w.batch != nil {
		return false
	}
	w.batch, w.trying = batches.Get().(*[]byte), true
	return true
}

// offer writes as much of what was gathered as the socket takes at once. all: nothing is left for finish.
func (w *wire) offer() (all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trying = false
	n := writeNow(w.raw, *w.batch)
	if n < len(*w.batch) {
		*w.batch = append((*w.batch)[:0], (*w.batch)[n:]...)
		return false
	}
	w.letGo()
	return true
}

// letGo gives an empty batch back, unless it has grown.
func (w *wire) letGo() {
	if cap(*w.batch) <= 2*batchBytes {
		*w.batch = (*w.batch)[:0]
		batches.Put(w.batch)
	}
	w.batch = nil
}

// finish writes what was gathered.
func (w *wire) finish() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.flushLocked()
	w.letGo()
	return err
}

func (w *wire) flushLocked() error {
	if len(*w.batch) == 0 {
		return nil
	}
	err := w.writeOut(*w.batch)
	*w.batch = (*w.batch)[:0]
	return err
}

func (w *wire) writeOut(p []byte) error {
	for len(p) > 0 {
		n := min(len(p), stepBytes)
		if w.armed {
			w.deadline(w.Conn.SetWriteDeadline, w.writeWait)
		}
		if _, err := w.Conn.Write(p[:n]); err != nil {
			return err
		}
		if n == stepBytes && w.armed {
			// No ping fits into a long frame, so that the peer takes it is its sign of life.
			w.deadline(w.Conn.SetReadDeadline, w.readWait)
		}
		p = p[n:]
	}
	return nil
}

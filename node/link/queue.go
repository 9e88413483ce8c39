package link

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Prepared is one text frame for many connections: its wire form is made once, and so is each form that a connection's
// Recode makes of it.
type Prepared struct {
	wire []byte // as a server writes it, with its head
	head int

	mu      sync.Mutex
	recoded map[string][]byte // wire forms by subprotocol
}

// preparedBytes is what a prepared frame holds beside its wire form, about.
const preparedBytes = 128

// Prepare makes a Prepared. It does not keep frame.
func Prepare(frame []byte) *Prepared {
	wire, head := wireForm(websocket.TextMessage, frame)
	return &Prepared{wire: wire, head: head}
}

// Size is what a Prepared costs while it is held, in bytes.
func (p *Prepared) Size() int { return heapBytes(cap(p.wire)) + preparedBytes }

// heapBytes is what the heap gives for so many bytes, about: whole pages for much, an eighth more for little.
func heapBytes(n int) int {
	const page, small = 8 << 10, 32 << 10
	if n > small {
		return (n + page - 1) &^ (page - 1)
	}
	return n + n/8
}

// wireForm is a whole message in one unmasked frame.
func wireForm(kind int, payload []byte) (wire []byte, head int) {
	wire = make([]byte, 0, len(payload)+10)
	wire = append(wire, 0x80|byte(kind))
	switch n := len(payload); {
	case n < 126:
		wire = append(wire, byte(n))
	case n < 1<<16:
		wire = binary.BigEndian.AppendUint16(append(wire, 126), uint16(n))
	default:
		wire = binary.BigEndian.AppendUint64(append(wire, 127), uint64(n))
	}
	head = len(wire)
	return append(wire, payload...), head
}

// write puts p on a connection, in its form. A client's frames are masked, each anew.
func (p *Prepared) write(c *Conn) error {
	wire := p.wire
	switch {
	case c.client && c.recode == nil:
		return c.ws.WriteMessage(websocket.TextMessage, p.wire[p.head:])
	case c.client:
		return c.ws.WriteMessage(websocket.BinaryMessage, c.recode(p.wire[p.head:]))
	case c.recode != nil:
		wire = p.recodedFor(c)
	}
	_, err := c.wire.Write(wire) // in one piece: a control frame of the read loop may come before it or behind
	return err
}

// recodedFor makes one form at a time: the others wait for it rather than make it again.
func (p *Prepared) recodedFor(c *Conn) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	wire := p.recoded[c.Subprotocol()]
	if wire == nil {
		wire, _ = wireForm(websocket.BinaryMessage, c.recode(p.wire[p.head:]))
		if p.recoded == nil {
			p.recoded = map[string][]byte{}
		}
		p.recoded[c.Subprotocol()] = wire
	}
	return wire
}

// Send queues a text frame and never blocks. False: the connection is ending, and the frame will not be written. frame must
// not change afterwards. A frame that finds the queue full waits as one above the limit; the next one that finds it so
// closes the connection with 1013, which drops what waits.
func (c *Conn) Send(frame []byte) bool {
	_, ok := c.enqueue(entry{data: frame})
	return ok
}

// SendBinary is Send for a binary frame.
func (c *Conn) SendBinary(frame []byte) bool {
	_, ok := c.enqueue(entry{data: frame, binary: true})
	return ok
}

// SendPrepared is Send for a frame that goes to many.
func (c *Conn) SendPrepared(p *Prepared) bool {
	_, ok := c.enqueue(entry{prepared: p, cost: p.Size()})
	return ok
}

// SendCounted is Send; the seq is the one that Options.OnRead will name, here or in a later call, once the peer has read
// the frame. It rises by one with each frame of the connection.
func (c *Conn) SendCounted(frame []byte) (seq uint64, ok bool) {
	return c.enqueue(entry{data: frame})
}

// Probe pings the peer behind what waits now instead of at the next turn, so that OnRead comes soon.
func (c *Conn) Probe() {
	c.mu.Lock()
	c.probe = true
	if !c.corked {
		c.poke()
	}
	c.mu.Unlock()
}

// Waiting is how many bytes wait for the peer or are being written.
func (c *Conn) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

func (c *Conn) enqueue(e entry) (uint64, bool) {
	e.at = time.Now()
	e.cost += heapBytes(cap(e.data)) + entryBytes
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != open {
		return 0, false
	}
	if c.bytes+e.cost > c.opt.QueueBytes {
		if c.over {
			c.tooSlowLocked()
			return 0, false
		}
		c.over, e.over = true, true
	} else {
		c.bytes += e.cost
	}
	c.seq++
	e.seq = c.seq
	c.waiting = append(c.waiting, e)
	if !c.corked {
		c.poke()
	}
	return e.seq, true
}

func (c *Conn) tooSlowLocked() {
	const reason = "reads too slowly"
	c.endLocked(dropping, websocket.CloseTryAgainLater, reason, &CloseError{Code: websocket.CloseTryAgainLater, Reason: reason})
}

// release gives back what written frames had taken of the queue.
func (c *Conn) release(bytes int, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == open || c.state == closing {
		c.bytes -= bytes
		c.over = c.over && !over
	}
}

package link

import (
	"fmt"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Prepared is one text frame for many connections: its wire form is made once, and so is each form that a connection's
// Recode makes of it.
type Prepared struct {
	message *websocket.PreparedMessage
	frame   []byte
	size    int

	mu      sync.Mutex
	recoded map[string]*websocket.PreparedMessage // by subprotocol
}

// preparedBytes is what a prepared frame holds beside its two forms, about.
const preparedBytes = 512

// Prepare makes a Prepared. It keeps frame, which must not change afterwards.
func Prepare(frame []byte) (*Prepared, error) {
	m, err := websocket.NewPreparedMessage(websocket.TextMessage, frame)
	if err != nil {
		return nil, fmt.Errorf("prepare a frame: %w", err)
	}
	return &Prepared{message: m, frame: frame, size: 2*len(frame) + preparedBytes}, nil // the frame and its wire form
}

// write puts p on a connection, in its form.
func (p *Prepared) write(c *Conn) error {
	if c.recode == nil {
		return c.ws.WritePreparedMessage(p.message)
	}
	m, err := p.recodedFor(c)
	if err != nil {
		return err
	}
	return c.ws.WritePreparedMessage(m)
}

// recodedFor makes one form at a time: the others wait for it rather than make it again.
func (p *Prepared) recodedFor(c *Conn) (*websocket.PreparedMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.recoded[c.Subprotocol()]; m != nil {
		return m, nil
	}
	m, err := websocket.NewPreparedMessage(websocket.BinaryMessage, c.recode(p.frame))
	if err != nil {
		return nil, fmt.Errorf("prepare a frame: %w", err)
	}
	if p.recoded == nil {
		p.recoded = map[string]*websocket.PreparedMessage{}
	}
	p.recoded[c.Subprotocol()] = m
	return m, nil
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
	_, ok := c.enqueue(entry{prepared: p, cost: p.size})
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
	e.cost += len(e.data) + entryBytes
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

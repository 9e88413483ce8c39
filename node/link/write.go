package link

import (
	"encoding/binary"
	"errors"
	"net"
	"time"

	"github.com/gorilla/websocket"
)

// writeLoop writes what waits until the close frame is out or the socket is gone.
func (c *Conn) writeLoop() {
	ping := time.NewTimer(c.opt.PingEvery)
	defer ping.Stop()
	due := false
	for {
		select {
		case <-ping.C: // also when there is always something to write
			due = true
			ping.Reset(c.opt.PingEvery)
		default:
		}
		t, st := c.take(due)
		due = due && st == open && !t.any
		switch {
		case st == gone:
			return
		case !t.any:
			select {
			case <-c.wake:
			case <-ping.C:
				due = true
				ping.Reset(c.opt.PingEvery)
			}
			continue
		}
		err := c.gather(&t)
		if err = errors.Join(err, c.wire.finish()); err != nil {
			c.writeFailed(err)
			return
		}
		c.put(false)
		if st != open && c.sayFarewell(t.farewell) {
			return
		}
	}
}

// turn is what somebody writes at once.
type turn struct {
	any      bool // there is something, and it is whose who took it to write
	frames   []entry
	pong     []byte
	ping     bool
	farewell []byte
}

// take gives the write loop what there is to write, and with it the writing side, until put. due: a ping is.
func (c *Conn) take(due bool) (t turn, st state) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writing || c.state == gone { // an Uncork under way does not wait for anything, and wakes the loop when it leaves some
		return t, c.state
	}
	t.any = len(c.waiting) > 0 && !c.corked || c.pong != nil || c.probe && !c.corked || due || c.rest || c.state != open
	if t.any {
		t = c.takeLocked(due)
	}
	return t, c.state
}

func (c *Conn) takeLocked(due bool) turn {
	t := turn{any: true, frames: c.waiting, pong: c.pong, ping: (c.probe || due) && c.state == open, farewell: c.farewell}
	c.waiting, c.pong, c.probe = nil, nil, false
	c.writing, c.rest = true, false
	return t
}

// put gives the writing side back. rest: wire still holds some of what was written.
func (c *Conn) put(rest bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing, c.rest = false, rest
	if rest || len(c.waiting) > 0 || c.probe || c.pong != nil || c.state != open {
		c.poke()
	}
}

// gather puts frames into wire, then the answer to a ping, then a ping that names the last frame, in as few writes as fit.
func (c *Conn) gather(t *turn) error {
	c.wire.begin()
	err := c.writeFrames(t.frames, &c.written)
	if err == nil && t.pong != nil {
		err = c.ws.WriteControl(websocket.PongMessage, t.pong, time.Time{})
	}
	if err == nil && t.ping {
		err = c.ws.WriteControl(websocket.PingMessage, binary.BigEndian.AppendUint64(nil, c.written), time.Time{})
	}
	return err
}

func (c *Conn) writeFrames(frames []entry, written *uint64) error {
	done, over := 0, false
	for i := range frames {
		e := &frames[i]
		if c.stale(e) {
			return nil
		}
		var err error
		switch {
		case e.prepared != nil:
			err = e.prepared.write(c)
		case e.binary:
			err = c.ws.WriteMessage(websocket.BinaryMessage, e.data)
		case c.recode != nil:
			err = c.ws.WriteMessage(websocket.BinaryMessage, c.recode(e.data))
		default:
			err = c.ws.WriteMessage(websocket.TextMessage, e.data)
		}
		if err != nil {
			return err
		}
		*written = e.seq
		if over = over || e.over; !e.over {
			done += e.cost
		}
		*e = entry{}
		if done >= batchBytes || over || i == len(frames)-1 {
			c.release(done, over)
			done, over = 0, false
		}
	}
	return nil
}

// stale says that e is not to be written any more: the connection drops what waits, or e has waited too long, which makes
// it drop.
func (c *Conn) stale(e *entry) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == open && time.Since(e.at) > c.opt.QueueWait {
		c.tooSlowLocked()
	}
	return c.state > closing
}

// sayFarewell writes the close frame, unless something came to wait meanwhile that goes before it.
func (c *Conn) sayFarewell(payload []byte) bool {
	c.mu.Lock()
	more := len(c.waiting) > 0 && c.state == closing
	c.mu.Unlock()
	if more {
		return false
	}
	if err := c.ws.WriteControl(websocket.CloseMessage, payload, time.Time{}); err != nil && !errors.Is(err, websocket.ErrCloseSent) {
		c.writeFailed(err)
	}
	return true
}

// writeFailed ends the connection for a write that did not go through. A peer that did not read for the queue's wait is
// told nothing, since a frame is half written; the reason is 1013 all the same.
func (c *Conn) writeFailed(err error) {
	if errors.Is(err, websocket.ErrCloseSent) {
		return // the read loop met a protocol error and has said so
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		c.mu.Lock()
		if c.state == open {
			c.tooSlowLocked()
		}
		c.mu.Unlock()
	}
	c.end(gone, 0, "", err)
	_ = c.wire.Conn.Close() // wakes the read loop
}

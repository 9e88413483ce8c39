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
	var written uint64 // seq of the last frame written
	due := false
	for {
		select {
		case <-ping.C: // also when there is always something to write
			due = true
			ping.Reset(c.opt.PingEvery)
		default:
		}
		c.mu.Lock()
		frames, st, pong := c.waiting, c.state, c.pong
		c.waiting, c.pong = nil, nil
		probe := c.probe || due
		c.probe, due = false, false
		farewell := c.farewell
		c.mu.Unlock()

		switch {
		case st == gone:
			return
		case st == open && len(frames) == 0 && pong == nil && !probe:
			select {
			case <-c.wake:
			case <-ping.C:
				due = true
				ping.Reset(c.opt.PingEvery)
			}
			continue
		}
		if err := c.writeBatch(frames, pong, probe && st == open, &written); err != nil {
			c.writeFailed(err)
			return
		}
		if st != open && c.sayFarewell(farewell) {
			return
		}
	}
}

// writeBatch writes frames, then the answer to a ping, then a ping that names the last frame, in as few writes as fit.
func (c *Conn) writeBatch(frames []entry, pong []byte, ping bool, written *uint64) error {
	c.wire.begin()
	err := c.writeFrames(frames, written)
	if err == nil && pong != nil {
		err = c.ws.WriteControl(websocket.PongMessage, pong, time.Time{})
	}
	if err == nil && ping {
		err = c.ws.WriteControl(websocket.PingMessage, binary.BigEndian.AppendUint64(nil, *written), time.Time{})
	}
	return errors.Join(err, c.wire.finish())
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

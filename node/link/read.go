package link

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"
)

// scratchBytes is what is borrowed to read a message; a larger one grows its own.
const scratchBytes = 32 << 10

var scratches = sync.Pool{New: func() any { b := make([]byte, scratchBytes); return &b }}

var errOversize = errors.New("frame above the limit")

// readLoop hands over messages until the peer has closed, the socket fails, or a closing connection's time is over.
func (c *Conn) readLoop(onMessage func(data []byte, binary bool)) {
	for {
		kind, r, err := c.ws.NextReader()
		var data []byte
		switch {
		case err != nil:
		case c.isShut.Load():
			_, err = io.Copy(io.Discard, r)
		default:
			data, err = c.readMessage(r)
		}
		if errors.Is(err, errOversize) {
			c.Close(websocket.CloseMessageTooBig, "frame too large")
			continue // NextReader skips the rest of it
		}
		if err != nil {
			c.readFailed(err)
			return
		}
		if c.isShut.Load() {
			continue
		}
		if kind == websocket.TextMessage && !utf8.Valid(data) {
			c.Close(websocket.CloseInvalidFramePayloadData, "text is not UTF-8")
			continue
		}
		c.handed++
		onMessage(data, kind == websocket.BinaryMessage)
	}
}

// readMessage reads one message whole. Above the stranger's limit it stops until Authenticated was called, and only if a
// message before it may lead to that.
func (c *Conn) readMessage(r io.Reader) ([]byte, error) {
	borrowed := scratches.Get().(*[]byte)
	defer scratches.Put(borrowed)
	buf, n, known := *borrowed, 0, false
	for {
		if n == len(buf) {
			buf = append(make([]byte, 0, 2*len(buf)), buf...)
			buf = buf[:cap(buf)]
		}
		m, err := r.Read(buf[n:])
		n += m
		if n > c.opt.LimitStranger && !known {
			if known = c.waitAuthenticated(); !known {
				return nil, errOversize
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if &buf[0] == &(*borrowed)[0] {
		return bytes.Clone(buf[:n]), nil
	}
	return buf[:n:n], nil
}

func (c *Conn) waitAuthenticated() bool {
	select {
	case <-c.authed:
		return true
	default:
	}
	if c.handed == 0 {
		return false
	}
	t := time.NewTimer(authWait)
	defer t.Stop()
	select {
	case <-c.authed:
		return true
	case <-c.shut:
	case <-t.C:
	}
	return false
}

// readFailed sorts out why reading ended. After an offence of the peer's the rest is read away for a moment, since closing a
// socket with unread bytes would destroy the close frame on its way.
func (c *Conn) readFailed(err error) {
	var closed *websocket.CloseError
	var netErr net.Error
	switch {
	case errors.As(err, &closed) && closed.Code != websocket.CloseAbnormalClosure:
		return // peerClosed has seen to it
	case errors.Is(err, websocket.ErrReadLimit):
		c.offence(websocket.CloseMessageTooBig, "frame too large")
		return
	case errors.As(err, &closed), errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	case errors.As(err, &netErr):
		if netErr.Timeout() {
			err = ErrDead
		}
	case errors.Is(err, io.ErrClosedPipe), errors.Is(err, net.ErrClosed):
	default:
		c.offence(websocket.CloseProtocolError, err.Error())
		return
	}
	c.end(gone, 0, "", err)
	_ = c.wire.Conn.Close() // wakes the write loop
}

func (c *Conn) offence(code int, reason string) {
	c.end(dropping, code, reason, &CloseError{Code: code, Reason: reason})
	c.wire.closeBy(time.Now().Add(lingerWait))
	_, _ = io.Copy(io.Discard, io.LimitReader(c.wire, int64(c.opt.Limit)))
}

// pinged leaves the answer to the write loop; of several pings the latest is answered, as RFC 6455 5.5.3 allows.
func (c *Conn) pinged(payload string) error {
	c.mu.Lock()
	c.pong = []byte(payload)
	c.mu.Unlock()
	c.poke()
	return nil
}

func (c *Conn) ponged(payload string) error {
	if c.opt.OnRead == nil || len(payload) != 8 || c.isShut.Load() {
		return nil
	}
	seq := binary.BigEndian.Uint64([]byte(payload))
	c.mu.Lock()
	honest := seq > 0 && seq <= c.seq
	c.mu.Unlock()
	if honest {
		c.opt.OnRead(seq)
	}
	return nil
}

// peerClosed answers a close frame with its own code; what waits is dropped, the peer reads no more.
func (c *Conn) peerClosed(code int, reason string) error {
	c.end(dropping, code, "", &CloseError{Code: code, Reason: reason, Remote: true})
	return nil
}

package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/aster-mesh/aster/protocol"
)

// Options says how a connection behaves. The zero value is right for /ws.
type Options struct {
	// Subprotocols the server accepts, or the client asks for, best first.
	Subprotocols []string
	// Recode makes, for those of them that are no JSON text, a binary message of each frame given to Send, SendCounted or
	// SendPrepared. The write loop calls it, and the one that prepared frames share may be called from several at once.
	Recode map[string]func(frame []byte) []byte
	// Header is added to the server's 101 reply.
	Header http.Header
	// OnRead, if set, is told that the peer's WebSocket layer has read every frame up to the seq that SendCounted gave: a
	// pong came back for a ping behind it. The read loop calls it; it must not block.
	OnRead func(seq uint64)

	// The rest is for tests; zero takes the value of package protocol.
	QueueBytes    int           // LinkQueueBytesMax
	QueueWait     time.Duration // LinkQueueWait
	PingEvery     time.Duration // PingEvery
	PingDead      time.Duration // PingDead
	LimitStranger int           // FrameBytesMaxStranger
	Limit         int           // FrameBytesMax
}

func (o *Options) fill() {
	o.QueueBytes = or(o.QueueBytes, protocol.LinkQueueBytesMax)
	o.QueueWait = or(o.QueueWait, protocol.LinkQueueWait)
	o.PingEvery = or(o.PingEvery, protocol.PingEvery)
	o.PingDead = or(o.PingDead, protocol.PingDead)
	o.LimitStranger = or(o.LimitStranger, protocol.FrameBytesMaxStranger)
	o.Limit = or(o.Limit, protocol.FrameBytesMax)
}

func or[T int | time.Duration](v, otherwise T) T {
	if v == 0 {
		return otherwise
	}
	return v
}

const (
	// closeWait is how long a closing connection may take to write what waits and to hear the peer's close.
	closeWait = 2 * time.Second
	// lingerWait is how long the bytes behind an offence are read away.
	lingerWait = 300 * time.Millisecond
	// authWait is how long a large frame behind a HELLO waits, unread, for the HELLO to be judged.
	authWait = 2 * time.Second
	// entryBytes is counted for each waiting frame beside its bytes, so that empty ones are not free.
	entryBytes = 128
	// reasonBytesMax is what a close frame has room for.
	reasonBytesMax = 123
)

// ErrDead says that nothing came from the peer for PingDead, not even a pong.
var ErrDead = errors.New("no sign of life from the peer")

// CloseError is why a connection ended when one side closed it properly.
type CloseError struct {
	Code   int // 1005: the peer gave none
	Reason string
	Remote bool // the peer closed first
}

func (e *CloseError) Error() string {
	by := "closed here"
	if e.Remote {
		by = "closed by the peer"
	}
	return fmt.Sprintf("%s: %d %s", by, e.Code, e.Reason)
}

type state uint8

const (
	open     state = iota
	closing        // write what waits, then the close frame
	dropping       // write the close frame only
	gone           // write nothing more
)

// Conn is one WebSocket.
type Conn struct {
	// Fixed at creation.
	ws     *websocket.Conn
	wire   *wire
	opt    Options
	client bool                // its frames are masked
	recode func([]byte) []byte // nil: frames go out as they are
	wake   chan struct{}       // 1: there is something to write, or the state changed
	shut   chan struct{}       // closed when the state leaves open
	authed chan struct{}       // closed by Authenticated

	authOnce sync.Once
	isShut   atomic.Bool // what shut says, cheap enough to ask before every message

	// Owned by the read loop.
	handed int // messages given to onMessage

	// Guarded by mu.
	mu       sync.Mutex
	state    state
	cause    error // first reason to end; later ones are dropped
	waiting  []entry
	bytes    int    // of waiting frames and those being written, without the one that is over
	over     bool   // one frame waits that did not fit; another one closes the connection
	seq      uint64 // of the last frame taken by Send
	probe    bool   // a ping is due at once
	corked   bool   // nothing is written on its own account
	writing  bool   // somebody owns written and the writing side of ws and wire: the write loop, or an Uncork
	rest     bool   // wire holds what the socket did not take from an Uncork
	written  uint64 // seq of the last frame written
	pong     []byte // the answer to the latest ping; nil: none is due
	farewell []byte // payload of our close frame
}

// entry is one frame that waits to be written.
type entry struct {
	data     []byte
	prepared *Prepared // instead of data
	binary   bool
	over     bool
	cost     int
	seq      uint64
	at       time.Time
}

func newConn(ws *websocket.Conn, w *wire, opt Options) *Conn {
	ws.EnableWriteCompression(false)
	ws.SetReadLimit(int64(opt.Limit)) // the stranger's limit is readMessage's, since it may end while a frame is under way
	c := &Conn{
		ws: ws, wire: w, opt: opt, recode: opt.Recode[ws.Subprotocol()],
		wake: make(chan struct{}, 1), shut: make(chan struct{}), authed: make(chan struct{}),
		writing: true, // until it is served
	}
	ws.SetPingHandler(c.pinged)
	ws.SetPongHandler(c.ponged)
	ws.SetCloseHandler(c.peerClosed)
	return c
}

// Subprotocol is what was agreed on, or empty.
func (c *Conn) Subprotocol() string { return c.ws.Subprotocol() }

// RemoteAddr is the peer's address.
func (c *Conn) RemoteAddr() net.Addr { return c.wire.RemoteAddr() }

// LocalAddr is our end's address.
func (c *Conn) LocalAddr() net.Addr { return c.wire.LocalAddr() }

// Authenticated lifts the limit from that of a stranger to that of a known peer.
func (c *Conn) Authenticated() { c.authOnce.Do(func() { close(c.authed) }) }

// Done is closed once the connection begins to end; nothing is handed to onMessage after it.
func (c *Conn) Done() <-chan struct{} { return c.shut }

// Serve reads in the calling goroutine and writes in another until the connection has ended, closes the socket, and returns
// the first reason: a *CloseError, ErrDead, or what the socket said. onMessage is called for one whole message at a time;
// the bytes are its to keep; text is valid UTF-8. When ctx ends the peer is told 1001. Serve must be called once for every
// Conn, also for one that is already closed: it is what lets go of the socket.
func (c *Conn) Serve(ctx context.Context, onMessage func(data []byte, binary bool)) error {
	c.wire.arm(c.opt.QueueWait, c.opt.PingDead)
	c.put(false)
	if c.isShut.Load() {
		c.wire.closeBy(time.Now().Add(closeWait)) // closed before it was served: its last words still have their time
	}
	told := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(told)
		c.Close(websocket.CloseGoingAway, "going away")
	})
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		c.writeLoop()
	}()
	c.readLoop(onMessage)
	<-wrote
	if !stop() {
		<-told
	}
	c.wire.Conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// Close ends the connection: what Send took before it is still written, then a close frame with code and reason (cut to 123
// bytes), all within 2 s. When it returns nothing more is handed to onMessage, except by a call that has already begun.
// Only the first Close counts.
func (c *Conn) Close(code int, reason string) {
	c.end(closing, code, reason, &CloseError{Code: code, Reason: reason})
}

// end moves the connection towards its end. Of several calls the first cause holds; the state only moves forward.
func (c *Conn) end(to state, code int, reason string, cause error) {
	c.mu.Lock()
	c.endLocked(to, code, reason, cause)
	c.mu.Unlock()
}

func (c *Conn) endLocked(to state, code int, reason string, cause error) {
	if to <= c.state {
		return
	}
	if c.state == open {
		c.cause = cause
		c.farewell = websocket.FormatCloseMessage(code, cutReason(reason))
		c.isShut.Store(true)
		close(c.shut)
		c.wire.closeBy(time.Now().Add(closeWait))
	}
	c.state = to
	if to != closing {
		c.waiting, c.bytes, c.over = nil, 0, false
	}
	c.poke()
}

// poke wakes the write loop.
func (c *Conn) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// cutReason keeps a reason within a close frame, whole characters only.
func cutReason(s string) string {
	if len(s) <= reasonBytesMax {
		return s
	}
	n := reasonBytesMax
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}

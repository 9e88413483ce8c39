package mesh

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/aster-mesh/aster/protocol"
)

// A frame on a link is: length (4 bytes, big endian, of what follows), kind (1 byte), payload. A ping's payload is 8
// bytes that its pong repeats.
const (
	kindData byte = 0
	kindPing byte = 1
	kindPong byte = 2

	frameHead   = 5
	pingPayload = 8
	// readBuffer holds what one read brings; writeChunk is what one write takes of many small frames.
	readBuffer = 64 << 10
	writeChunk = 64 << 10
	// queueFrames bounds empty frames, which cost a slot and no bytes of payload.
	queueFrames = 1 << 16
	// probeTime is what a link has to answer the ping that follows a waking or a change of network.
	probeTime = 3 * time.Second
)

// link is one stream of frames to a peer, from its greeting to its end.
type link struct {
	// Fixed at creation.
	m       *Mesh
	peer    protocol.PeerID
	id      uint64
	start   uint64 // of the peer's process
	at      uint64 // its hybrid time, or 0
	dialed  bool   // we opened it
	stream  network.Stream
	since   time.Time
	listens []string
	after   *link // the link whose place this one took; its end comes first
	traffic *traffic
	wake    chan struct{} // capacity 1: something waits to be written
	closed  chan struct{} // the link is over; closed by shut
	flushed chan struct{} // the writer has returned
	done    chan struct{} // both goroutines have returned and OnLinkDown has been called

	heard    atomic.Int64 // Mesh.now of the last byte
	handling atomic.Bool  // OnFrame has not returned: we are the slow one
	rtt      atomic.Int64
	probe    atomic.Int64 // Mesh.now of a probe that awaits any byte; 0 = none

	// Guarded by mu.
	mu        sync.Mutex
	up        bool // OnLink is due: Send works
	finishing bool
	queue     []queued // at most LinkQueueBytesMax together and queueFrames; full means the peer is too slow and the link closes
	bytes     int      // in queue and in the write under way
	half      bool     // bytes has been above half the bound since the last OnRoom
	pong      []byte
	cause     error // first reason to end; later ones are dropped
}

type queued struct {
	frame []byte
	at    time.Duration // Mesh.now
}

// traffic counts a peer's bytes over all its links, frame heads included, transport and encryption not.
type traffic struct{ dataIn, dataOut, pingIn, pingOut atomic.Uint64 }

func (m *Mesh) newLink(s network.Stream, peer protocol.PeerID, theirs hello, dialed bool) *link {
	l := &link{
		m: m, peer: peer, id: theirs.Link, start: theirs.Start, at: theirs.At, dialed: dialed, stream: s, since: time.Now(), listens: m.plausible(peer, theirs.Addrs, s.Conn().RemoteMultiaddr()),
		wake: make(chan struct{}, 1), closed: make(chan struct{}), flushed: make(chan struct{}), done: make(chan struct{}),
	}
	l.heard.Store(int64(m.now()))
	return l
}

// send queues a frame and never blocks.
func (l *link) send(frame []byte) bool {
	l.mu.Lock()
	if !l.up || l.finishing || l.cause != nil {
		l.mu.Unlock()
		return false
	}
	if l.bytes+frameHead+len(frame) > protocol.LinkQueueBytesMax || len(l.queue) >= queueFrames {
		l.mu.Unlock()
		l.shut(ErrTooSlow)
		return false
	}
	l.queue = append(l.queue, queued{frame: frame, at: l.m.now()})
	l.bytes += frameHead + len(frame)
	l.half = l.half || l.bytes > protocol.LinkQueueBytesMax/2
	l.mu.Unlock()
	l.poke()
	return true
}

func (l *link) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// shut ends the link for a reason. It returns at once; done closes when the link is over.
func (l *link) shut(why error) {
	l.mu.Lock()
	first := l.cause == nil
	if first {
		l.cause = why
		close(l.closed)
	}
	l.mu.Unlock()
	if first {
		refuseStream(l.stream, why)
	}
}

// finish lets the writer write what waits and then end the stream in order.
func (l *link) finish() {
	l.mu.Lock()
	l.finishing = true
	l.mu.Unlock()
	l.poke()
}

// run is the link's life: writer in a goroutine of its own, reader in this one.
func (l *link) run() {
	defer close(l.done)
	if l.after != nil {
		<-l.after.done // its OnLinkDown comes before our OnLink
		l.after = nil
	}
	_ = l.stream.SetDeadline(time.Time{})
	l.mu.Lock()
	l.up = true
	l.mu.Unlock()
	if l.m.cfg.OnLink != nil {
		l.m.cfg.OnLink(l.info())
	}
	l.m.log.Info("link up", "peer", l.peer, "addr", l.stream.Conn().RemoteMultiaddr().String(), "dialed", l.dialed)
	go func() {
		defer close(l.flushed)
		l.write()
	}()
	l.shut(l.read())
	<-l.flushed
	l.mu.Lock()
	cause := l.cause
	l.queue, l.bytes, l.pong = nil, 0, nil
	l.mu.Unlock()
	l.m.unlink(l, cause)
}

// read takes frames until the stream ends and returns why it did.
func (l *link) read() error {
	in := bufio.NewReaderSize(hearing{l}, readBuffer)
	for {
		var head [frameHead]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			if errors.Is(err, io.EOF) {
				return ErrPeerClosed
			}
			return explain(err)
		}
		size := binary.BigEndian.Uint32(head[:4])
		if size == 0 {
			return ErrBadFrame
		}
		if size-1 > protocol.MeshFrameBytesMax {
			return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, size-1, protocol.MeshFrameBytesMax)
		}
		if kind := head[4]; kind > kindPong || kind != kindData && size != 1+pingPayload {
			return fmt.Errorf("%w: kind %d of %d bytes", ErrBadFrame, kind, size-1)
		}
		frame := make([]byte, size-1)
		if _, err := io.ReadFull(in, frame); err != nil {
			return explain(err)
		}
		if err := l.take(head[4], frame); err != nil {
			return err
		}
	}
}

func (l *link) take(kind byte, frame []byte) error {
	switch kind {
	case kindPing:
		l.traffic.pingIn.Add(frameHead + pingPayload)
		l.mu.Lock()
		l.pong = frame
		l.mu.Unlock()
		l.poke()
	case kindPong:
		l.traffic.pingIn.Add(frameHead + pingPayload)
		if d := l.m.now() - time.Duration(binary.BigEndian.Uint64(frame)); d > 0 && d < l.m.cfg.pace.pingDead {
			l.rtt.Store(int64(d))
		}
	default:
		l.traffic.dataIn.Add(uint64(frameHead + len(frame)))
		if l.m.cfg.OnFrame == nil {
			return nil
		}
		l.handling.Store(true)
		err := l.m.cfg.OnFrame(l.peer, frame)
		l.heard.Store(int64(l.m.now())) // what came meanwhile was not looked at
		l.handling.Store(false)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrFrame, err)
		}
	}
	return nil
}

// hearing notes when bytes come.
type hearing struct{ l *link }

func (h hearing) Read(p []byte) (int, error) {
	n, err := h.l.stream.Read(p)
	if n > 0 {
		h.l.heard.Store(int64(h.l.m.now()))
		h.l.probe.Store(0)
	}
	return n, err
}

// write sends what waits, pings, and ends the link when nothing is heard.
func (l *link) write() {
	var buf []byte
	timer := time.NewTimer(l.m.cfg.pace.pingEvery)
	defer timer.Stop()
	pingAt := l.m.now() // the first at once: it measures the round trip
	for {
		select {
		case <-l.closed:
			return
		case <-l.wake:
		case <-timer.C:
		}
		now := l.m.now()
		due, dead := l.deadline(now)
		if dead {
			l.shut(ErrDead)
			return
		}
		probing := l.probe.Load() < 0
		if probing {
			l.probe.Store(int64(now))
			due = min(due, now+probeTime)
		}
		if now >= pingAt || probing {
			if standing := l.m.cfg.Standing(l.peer); !standing.Member() {
				l.shut(ErrNotMember)
				return
			}
			pingAt = now + l.m.cfg.pace.pingEvery
			buf = appendControl(buf[:0], kindPing, binary.BigEndian.AppendUint64(nil, uint64(now)))
			if !l.put(buf, now, 0) {
				return
			}
		}
		last, ok := l.drain(&buf)
		if !ok {
			return
		}
		if last {
			_ = l.stream.CloseWrite()
			return
		}
		timer.Reset(max(min(pingAt, due)-l.m.now(), time.Millisecond))
	}
}

// deadline is when the link will be dead if nothing is heard until then.
func (l *link) deadline(now time.Duration) (due time.Duration, dead bool) {
	if l.handling.Load() {
		return now + l.m.cfg.pace.pingDead, false
	}
	due = time.Duration(l.heard.Load()) + l.m.cfg.pace.pingDead
	if p := l.probe.Load(); p > 0 {
		due = min(due, time.Duration(p)+probeTime)
	}
	return due, now >= due
}

// drain writes until nothing waits. last: and nothing will.
func (l *link) drain(buf *[]byte) (last, ok bool) {
	for {
		chunk, oldest, data := l.next((*buf)[:0])
		*buf = chunk
		if len(chunk) == 0 {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.finishing && len(l.queue) == 0, true
		}
		if !l.put(chunk, oldest, data) {
			return false, false
		}
		if cap(*buf) > 2*writeChunk {
			*buf = nil // one large frame must not hold its size for the link's life
		}
	}
}

// next takes a pong and as many frames as make a chunk, one at least. data is how many bytes of it are data.
func (l *link) next(buf []byte) (chunk []byte, oldest time.Duration, data int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	oldest = l.m.now()
	if l.pong != nil {
		buf = appendControl(buf, kindPong, l.pong)
		l.pong = nil
	}
	n := 0
	for n < len(l.queue) && (n == 0 || len(buf)+frameHead+len(l.queue[n].frame) <= writeChunk) {
		f := l.queue[n].frame
		buf = binary.BigEndian.AppendUint32(buf, uint32(1+len(f)))
		buf = append(buf, kindData)
		buf = append(buf, f...)
		data += frameHead + len(f)
		oldest = min(oldest, l.queue[n].at)
		l.queue[n].frame = nil
		n++
	}
	if l.queue = l.queue[n:]; len(l.queue) == 0 {
		l.queue = nil
	}
	return buf, oldest, data
}

// put writes one chunk; false: the link is over. What has waited for its time and cannot be written ends it.
func (l *link) put(chunk []byte, oldest time.Duration, data int) bool {
	_ = l.stream.SetWriteDeadline(l.m.began.Add(oldest + l.m.cfg.pace.queueWait))
	_, err := l.stream.Write(chunk)
	if err != nil {
		var timeout interface{ Timeout() bool }
		if errors.As(err, &timeout) && timeout.Timeout() {
			err = ErrTooSlow
		}
		l.shut(explain(err))
		return false
	}
	l.traffic.dataOut.Add(uint64(data))
	l.traffic.pingOut.Add(uint64(len(chunk) - data))
	l.mu.Lock()
	l.bytes -= data
	room := l.half && l.bytes <= protocol.LinkQueueBytesMax/2
	l.half = l.half && !room
	l.mu.Unlock()
	if room && l.m.cfg.OnRoom != nil {
		l.m.cfg.OnRoom(l.peer)
	}
	return true
}

// prove asks the peer for a sign of life within probeTime.
func (l *link) prove() {
	l.probe.Store(-1)
	l.poke()
}

func appendControl(buf []byte, kind byte, payload []byte) []byte {
	buf = binary.BigEndian.AppendUint32(buf, uint32(1+len(payload)))
	return append(append(buf, kind), payload...)
}

package gossip

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/aster-mesh/aster/protocol"
)

// A stream begins with one byte that says what it carries.
const (
	carriesPackets byte = 'p' // each with its length before it (2 bytes, big endian), one way
	carriesState   byte = 's' // memberlist's own exchange
)

const (
	packetQueue  = 32 // packets that wait for one peer; more are dropped, as UDP would
	packetsIn    = 256
	openTime     = 2 * time.Second
	writeTime    = 2 * time.Second
	openAgain    = time.Second // after a stream broke; packets meanwhile are dropped
	writerIdle   = time.Minute
	streamsFirst = 5 * time.Second // for the first byte
)

// transport carries memberlist over streams: packets on one long-lived stream a peer and direction, exchanges on fresh
// ones. Nodes are named by peer id, and addresses are made up.
type transport struct {
	// Fixed at creation.
	streams Opener
	packets chan *memberlist.Packet // at most packetsIn; more are dropped
	conns   chan net.Conn           // unbuffered: whoever brings one waits
	ctx     context.Context
	stop    context.CancelFunc
	wg      sync.WaitGroup // entered by enter only

	// Guarded by mu.
	mu      sync.Mutex
	closed  bool
	writers map[protocol.PeerID]chan []byte
	inbound map[protocol.PeerID]Stream // the packet stream of each peer
	live    map[Stream]struct{}
}

var _ memberlist.NodeAwareTransport = (*transport)(nil)

func newTransport(streams Opener) *transport {
	ctx, stop := context.WithCancel(context.Background())
	return &transport{
		streams: streams,
		packets: make(chan *memberlist.Packet, packetsIn),
		conns:   make(chan net.Conn),
		ctx:     ctx,
		stop:    stop,
		writers: map[protocol.PeerID]chan []byte{},
		inbound: map[protocol.PeerID]Stream{},
		live:    map[Stream]struct{}{},
	}
}

// enter counts a goroutine in; false once Shutdown has begun.
func (t *transport) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.wg.Add(1)
	}
	return !t.closed
}

// FinalAdvertiseAddr is the made-up address that was configured.
func (t *transport) FinalAdvertiseAddr(ip string, port int) (net.IP, int, error) {
	return net.ParseIP(ip), port, nil
}

// PacketCh is where packets come in.
func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }

// StreamCh is where exchanges come in.
func (t *transport) StreamCh() <-chan net.Conn { return t.conns }

// WriteTo cannot be: an address names nobody.
func (t *transport) WriteTo([]byte, string) (time.Time, error) { return time.Time{}, errNoName }

// DialTimeout cannot be either.
func (t *transport) DialTimeout(string, time.Duration) (net.Conn, error) { return nil, errNoName }

var errNoName = errors.New("a node is reached by name only")

// WriteToAddress queues a packet and never blocks; like UDP it does not say what became of it.
func (t *transport) WriteToAddress(b []byte, to memberlist.Address) (time.Time, error) {
	if to.Name == "" {
		return time.Time{}, errNoName
	}
	if len(b) > protocol.GossipPacketBytesMax {
		return time.Time{}, fmt.Errorf("packet of %d bytes, at most %d", len(b), protocol.GossipPacketBytesMax)
	}
	now := time.Now()
	p := protocol.PeerID(to.Name)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return now, ErrClosed
	}
	queue := t.writers[p]
	if queue == nil {
		queue = make(chan []byte, packetQueue)
		t.writers[p] = queue
		t.wg.Add(1)
		go t.write(p, queue)
	}
	framed := append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...)
	select {
	case queue <- framed:
	default:
	}
	return now, nil
}

// write sends one peer's packets until none has come for a while.
func (t *transport) write(to protocol.PeerID, queue <-chan []byte) {
	defer t.wg.Done()
	var s Stream
	var closedAt time.Time
	end := func() {
		if s != nil {
			t.drop(s)
			s, closedAt = nil, time.Now()
		}
	}
	defer end()
	idle := time.NewTimer(writerIdle)
	defer idle.Stop()
	for {
		select {
		case <-t.ctx.Done():
			return
		case <-idle.C:
			t.mu.Lock()
			if len(queue) == 0 {
				delete(t.writers, to)
				t.mu.Unlock()
				return
			}
			t.mu.Unlock()
			idle.Reset(writerIdle)
		case packet := <-queue:
			idle.Reset(writerIdle)
			if s == nil {
				if time.Since(closedAt) < openAgain {
					continue
				}
				var err error
				if s, err = t.open(to, carriesPackets, openTime); err != nil {
					s, closedAt = nil, time.Now()
					continue
				}
			}
			_ = s.SetWriteDeadline(time.Now().Add(writeTime))
			if _, err := s.Write(packet); err != nil {
				end()
			}
		}
	}
}

// open opens a stream and says what it will carry.
func (t *transport) open(to protocol.PeerID, what byte, within time.Duration) (Stream, error) {
	if !t.enter() {
		return nil, ErrClosed
	}
	defer t.wg.Done()
	ctx, cancel := context.WithTimeoutCause(t.ctx, within, errors.New("opening a gossip stream took too long"))
	defer cancel()
	s, err := t.streams.Open(ctx, to)
	if err != nil {
		return nil, err
	}
	if !t.keep(s) {
		return nil, errors.Join(ErrClosed, s.Close())
	}
	_ = s.SetWriteDeadline(time.Now().Add(writeTime))
	if _, err := s.Write([]byte{what}); err != nil {
		t.drop(s)
		return nil, err
	}
	_ = s.SetWriteDeadline(time.Time{})
	return s, nil
}

// DialAddressTimeout opens a stream for one exchange.
func (t *transport) DialAddressTimeout(to memberlist.Address, within time.Duration) (net.Conn, error) {
	if to.Name == "" {
		return nil, errNoName
	}
	p := protocol.PeerID(to.Name)
	s, err := t.open(p, carriesState, min(within, openTime))
	if err != nil {
		return nil, err
	}
	return t.wrap(p, s), nil
}

// serve runs a stream that a peer opened.
func (t *transport) serve(from protocol.PeerID, s Stream) {
	if !t.enter() {
		return
	}
	defer t.wg.Done()
	if !t.keep(s) {
		return
	}
	defer t.drop(s)
	_ = s.SetReadDeadline(time.Now().Add(streamsFirst))
	var what [1]byte
	if _, err := io.ReadFull(s, what[:]); err != nil {
		return
	}
	_ = s.SetReadDeadline(time.Time{})
	switch what[0] {
	case carriesPackets:
		t.takePackets(from, s)
	case carriesState:
		c := t.wrap(from, s)
		select {
		case t.conns <- c:
			select {
			case <-c.done:
			case <-t.ctx.Done():
			}
		case <-t.ctx.Done():
		}
	}
}

func (t *transport) takePackets(from protocol.PeerID, s Stream) {
	t.mu.Lock()
	before := t.inbound[from]
	t.inbound[from] = s
	t.mu.Unlock()
	if before != nil {
		t.drop(before) // a peer needs one; its older one is forgotten by it
	}
	defer func() {
		t.mu.Lock()
		if t.inbound[from] == s {
			delete(t.inbound, from)
		}
		t.mu.Unlock()
	}()
	in := bufio.NewReaderSize(s, protocol.GossipPacketBytesMax)
	addr := &net.UDPAddr{IP: addrOf(from), Port: port}
	for {
		packet, err := readPacket(in)
		if err != nil {
			return
		}
		select {
		case t.packets <- &memberlist.Packet{Buf: packet, From: addr, Timestamp: time.Now()}:
		default: // memberlist is behind: drop, as UDP would
		}
	}
}

// readPacket reads one packet of at most protocol.GossipPacketBytesMax.
func readPacket(in io.Reader) ([]byte, error) {
	var head [2]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(head[:]))
	if n == 0 || n > protocol.GossipPacketBytesMax {
		return nil, fmt.Errorf("packet of %d bytes, at most %d", n, protocol.GossipPacketBytesMax)
	}
	packet := make([]byte, n)
	_, err := io.ReadFull(in, packet)
	return packet, err
}

// Shutdown closes every stream and waits for the goroutines. It may be called twice.
func (t *transport) Shutdown() error {
	t.mu.Lock()
	t.closed = true
	live := make([]Stream, 0, len(t.live))
	for s := range t.live {
		live = append(live, s)
	}
	t.mu.Unlock()
	t.stop()
	for _, s := range live {
		t.drop(s)
	}
	t.wg.Wait()
	return nil
}

// keep notes a stream for Shutdown; false once that has begun.
func (t *transport) keep(s Stream) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.live[s] = struct{}{}
	}
	return !t.closed
}

func (t *transport) drop(s Stream) {
	t.mu.Lock()
	delete(t.live, s)
	t.mu.Unlock()
	_ = s.SetDeadline(time.Unix(1, 0)) // Close alone does not end a read that waits on every kind of stream
	_ = s.Close()
}

// conn makes a net.Conn of a stream, for memberlist.
type conn struct {
	Stream
	t    *transport
	peer protocol.PeerID
	once sync.Once
	done chan struct{}
}

func (t *transport) wrap(p protocol.PeerID, s Stream) *conn {
	return &conn{Stream: s, t: t, peer: p, done: make(chan struct{})}
}

func (c *conn) LocalAddr() net.Addr  { return &net.TCPAddr{Port: port} }
func (c *conn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: addrOf(c.peer), Port: port} }

// Close ends the exchange, and the serve that brought it.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.t.mu.Lock()
		delete(c.t.live, c.Stream)
		c.t.mu.Unlock()
		_ = c.Stream.Close()
		close(c.done)
	})
	return nil
}

package mesh

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aster-mesh/aster/protocol"
)

// Standing is what this node holds a peer to be.
type Standing int

// The standings. The zero value trusts nobody.
const (
	Unknown Standing = iota // may ask for admission, nothing else
	Revoked                 // may ask for admission like a stranger, and hears ErrRevoked for everything else
	Outside                 // a member outside: links and blobs
	Inside                  // a member inside: all
)

// Member says whether s may have a link.
func (s Standing) Member() bool { return s == Outside || s == Inside }

// AdmitRequest is what an unknown peer asks. The peer has proved that it holds Pub's private key; nothing else of it is
// trusted.
type AdmitRequest struct {
	Peer protocol.PeerID
	Pub  ed25519.PublicKey
	Addr string // multiaddr it dialled from
	Body []byte // at most 64 KiB
}

// Config says how one Mesh runs. Callbacks must not block for long and must not call Close or Run; they come from Run
// on, until Close returns.
type Config struct {
	Key    ed25519.PrivateKey // the node's own; its peer id is protocol.PeerIDOf of the public half
	Listen []string           // multiaddrs; see ListenOn. None: this node only dials
	MeshID string             // links to nodes of another mesh are refused by name

	// Standing tells what a peer is now. It is asked at the gate and again at every stream; it must be quick.
	Standing func(protocol.PeerID) Standing
	// Admit answers an unknown peer within the context's 10 s. The answer (at most 1 MiB) is sent whether admitted or
	// not. nil: nobody is admitted.
	Admit func(ctx context.Context, req AdmitRequest) (answer []byte, admitted bool)

	// OnLink comes once a link, before its first frame; Send works from then on.
	OnLink func(LinkInfo)
	// OnFrame gets each frame in the order it was sent, in the link's reader goroutine, and owns it. While it does not
	// return nothing more is read from this peer. An error closes the link; its text reaches the log, not the peer.
	OnFrame func(from protocol.PeerID, frame []byte) error
	// OnLinkDown comes once for each OnLink, after the last OnFrame, with what closed it.
	OnLinkDown func(protocol.PeerID, error)
	// OnRoom comes when a queue that was more than half full is so no longer.
	OnRoom func(protocol.PeerID)
	// OnRefused comes once an episode when a peer that is dialled refuses for good (ErrRevoked, ErrWrongMesh,
	// ErrNotMember, ErrGate); it is dialled again, seldom.
	OnRefused func(protocol.PeerID, error)
	// OnOlder comes at every refusal by a peer that a newer start of this node is linked to (ErrOlderStart), in a goroutine
	// that dials nobody else: the next try waits for it.
	OnOlder func(protocol.PeerID)
	// OnTwin comes when this node's own id is announced on a network here from other addresses, in a reader's goroutine.
	OnTwin func(addrs []string)
	// OnAddrs comes when this machine's addresses have changed, with the new Addrs.
	OnAddrs func([]string)

	Log *slog.Logger // nil: none

	pace pace // zero: the protocol's; tests hurry
	// multicast opens a network's socket; tests send nothing to the machine's own.
	multicast func(*net.Interface) (*net.UDPConn, error)
}

// pace is how often a link is pinged, when it is dead, and how long a frame may wait to be written.
type pace struct{ pingEvery, pingDead, queueWait time.Duration }

// Mesh is a node's side of its mesh. Make it with New.
type Mesh struct {
	// Fixed at creation.
	cfg      Config
	log      *slog.Logger
	self     protocol.PeerID
	start    uint64    // tells this start of the process from others with the same key; fixed by SetStart before Run
	at       uint64    // its hybrid time, or 0; likewise
	began    time.Time // monotonic base of all instants in links
	host     *host
	gate     *gate
	opens    opens
	offences offences
	ctx      context.Context // ends at Close
	stop     context.CancelFunc
	wg       sync.WaitGroup // link and handler goroutines; entered by enter only

	reconcile chan struct{} // capacity 1: SetPeers changed what Run keeps
	lanOpened chan struct{} // capacity 1: OpenLAN was called

	// Guarded by mu.
	mu       sync.Mutex
	running  bool
	closed   bool
	links    map[protocol.PeerID]*link
	pending  map[protocol.PeerID]bool     // our hello is out and unanswered
	gone     map[protocol.PeerID][]uint64 // ids of links and attempts that we gave up, newest last
	wanted   map[protocol.PeerID]Peer
	keepers  map[protocol.PeerID]*keeper
	good     map[protocol.PeerID][]string // addresses that worked, best first
	told     map[protocol.PeerID][]string // addresses that a peer named itself over a link
	hints    map[protocol.PeerID]hint     // of wanted peers, by multicast
	traffic  map[protocol.PeerID]*traffic
	handlers map[Purpose]handler
	lan      bool
}

// New opens the listeners and returns a Mesh that answers nobody until Run. It returns ErrPortTaken if an address is in
// use. The caller closes it.
func New(cfg Config) (*Mesh, error) {
	if len(cfg.Key) != ed25519.PrivateKeySize || cfg.Standing == nil {
		return nil, errors.New("mesh needs an Ed25519 key and a Standing function")
	}
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if cfg.pace == (pace{}) {
		cfg.pace = pace{protocol.PingEvery, protocol.PingDead, protocol.LinkQueueWait}
	}
	if cfg.multicast == nil {
		cfg.multicast = func(i *net.Interface) (*net.UDPConn, error) { return net.ListenMulticastUDP("udp4", i, mdnsGroup) }
	}
	quiet()
	ctx, stop := context.WithCancel(context.Background())
	m := &Mesh{
		cfg:       cfg,
		log:       log.With("part", "mesh"),
		self:      protocol.PeerIDOf(cfg.Key.Public().(ed25519.PublicKey)),
		start:     randomID(),
		began:     time.Now(),
		ctx:       ctx,
		stop:      stop,
		reconcile: make(chan struct{}, 1),
		lanOpened: make(chan struct{}, 1),
		links:     map[protocol.PeerID]*link{},
		pending:   map[protocol.PeerID]bool{},
		gone:      map[protocol.PeerID][]uint64{},
		wanted:    map[protocol.PeerID]Peer{},
		keepers:   map[protocol.PeerID]*keeper{},
		good:      map[protocol.PeerID][]string{},
		told:      map[protocol.PeerID][]string{},
		hints:     map[protocol.PeerID]hint{},
		traffic:   map[protocol.PeerID]*traffic{},
		handlers:  map[Purpose]handler{},
	}
	m.gate = newGate(cfg.Standing)
	m.gate.out = m.offences.isOut
	h, err := newHost(cfg.Key, m.gate, m.rank, func(p peer.ID) {
		if id, _, ok := remote(p); ok {
			m.offended(id, streamOffence, "it opens streams without end")
		}
	})
	if err != nil {
		stop()
		return nil, fmt.Errorf("open mesh: %w", err)
	}
	m.host = h
	m.host.swarm.SetStreamHandler(m.serve)
	m.host.swarm.Notify(m.gate)
	if err := m.Listen(cfg.Listen); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// Self is this node's peer id.
func (m *Mesh) Self() protocol.PeerID { return m.self }

// SetStart says which start of its node this is, before Run: of two that are alive at once peers link the newer one.
func (m *Mesh) SetStart(s protocol.Start) { m.start, m.at = max(s.Rand, 1), uint64(s.At) }

// Run answers peers and keeps links until ctx ends or Close; it returns nil then. It may be called once.
func (m *Mesh) Run(ctx context.Context) error {
	m.mu.Lock()
	closed, again := m.closed, m.running
	m.running = true
	m.mu.Unlock()
	if again {
		return errors.New("mesh runs already")
	}
	if closed {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(m.ctx, cancel)()
	var keepers sync.WaitGroup
	defer keepers.Wait()
	defer cancel()
	keepers.Go(func() { m.watch(ctx) })
	keepers.Go(func() { m.near(ctx) })
	for {
		m.startKeepers(ctx, &keepers)
		select {
		case <-ctx.Done():
			return nil
		case <-m.reconcile:
		}
	}
}

// Close flushes what waits for at most half a second, closes every link and listener and waits for all goroutines; it
// takes less than two seconds. No callback comes after it.
func (m *Mesh) Close() error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil
	}
	m.closed = true
	links := make([]*link, 0, len(m.links))
	for _, l := range m.links {
		links = append(links, l)
	}
	m.mu.Unlock()
	for _, l := range links {
		l.finish()
	}
	flushed := time.NewTimer(closeFlush)
	defer flushed.Stop()
	for _, l := range links {
		select {
		case <-l.done: // the peer has read to the end and hung up
		case <-flushed.C:
			flushed.Reset(0) // for the others too
		}
		l.shut(ErrClosed)
	}
	m.stop()
	err := m.host.close()
	m.gate.close()
	m.wg.Wait()
	return err
}

const closeFlush = 500 * time.Millisecond

// enter counts a goroutine of ours in; false once Close has begun or before Run.
func (m *Mesh) enter() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || !m.running {
		return false
	}
	m.wg.Add(1)
	return true
}

// now is the time since the Mesh was made, on the monotonic clock.
func (m *Mesh) now() time.Duration { return time.Since(m.began) }

func randomID() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // crypto/rand never returns an error
	return max(binary.BigEndian.Uint64(b[:]), 1)
}

// remote returns the id of a connection's other side; false if it is not an Ed25519 key's.
func remote(id peer.ID) (protocol.PeerID, ed25519.PublicKey, bool) {
	p := protocol.PeerID(id.String())
	pub, err := p.PublicKey()
	return p, pub, err == nil
}

// refuseStream resets s with the code for why.
func refuseStream(s network.Stream, why error) { _ = s.ResetWithError(codeOf(why)) }

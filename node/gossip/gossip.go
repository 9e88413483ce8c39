package gossip

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/aster-mesh/aster/protocol"
)

// State is what is held of a node.
type State string

// The states. Suspect means that this node's own last probe of it failed; others may still reach it.
const (
	Alive   State = "alive"
	Suspect State = "suspect"
	Dead    State = "dead"
	Left    State = "left" // it said so itself
)

// Member is another inside node.
type Member struct {
	Peer  protocol.PeerID
	State State
	Meta  []byte // what it says of itself; at most MetaBytesMax, and to be read as foreign bytes
}

// MetaBytesMax bounds what a node says of itself: memberlist's own bound, less our byte before it.
const MetaBytesMax = memberlist.MetaMaxSize - 1

// ErrClosed says that Gossip has ended.
var ErrClosed = errors.New("gossip is closed")

// Stream is one authenticated stream to or from a peer.
type Stream interface {
	Read([]byte) (int, error)
	Write([]byte) (int, error)
	Close() error
	SetDeadline(time.Time) error
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// Opener opens a stream to a peer that is linked now; it does not dial, and fails soon where there is no link.
type Opener interface {
	Open(ctx context.Context, to protocol.PeerID) (Stream, error)
}

// Config says how one Gossip runs.
type Config struct {
	Self    protocol.PeerID
	Streams Opener
	Inside  func(protocol.PeerID) bool // who takes part; must be quick
	Meta    []byte                     // of this node, at most MetaBytesMax
	// OnChange gets all others known, sorted by peer, after something changed. It may block; changes meanwhile come as
	// one.
	OnChange func([]Member)
	Log      *slog.Logger // nil: none
}

// Gossip is a node's part in the membership. Make it with New.
type Gossip struct {
	// Fixed at creation.
	cfg  Config
	log  *slog.Logger
	net  *transport
	list *memberlist.Memberlist

	changed chan struct{} // capacity 1: OnChange is due
	updated chan struct{} // capacity 1: meta is to be told
	joined  chan struct{} // capacity 1: a peer was named

	leaving sync.Mutex // held while Leave or Close runs: memberlist panics when it is asked to leave after its end

	// Guarded by mu.
	mu      sync.Mutex
	meta    []byte
	goes    bool // Leave has begun
	members map[protocol.PeerID]Member
	named   map[protocol.PeerID]bool // asked to join with
	closed  bool
}

// Intervals. Probes and suspicion are memberlist's for a LAN: death of a node whose link does not break is noticed after
// 6 to 8 s (performance.md 3); a link's own end is noticed by the mesh at once. memberlist stretches the push/pull
// interval by itself above 32 nodes. Gossip runs only while there is something to tell, but its timer always does.
const (
	probeInterval    = time.Second
	gossipInterval   = 200 * time.Millisecond
	pushPullInterval = 5 * time.Second
	rejoinEvery      = 5 * time.Second
	tellTime         = 2 * time.Second
	exchangeTime     = 5 * time.Second
	// retransmitMult 6 instead of 4: with 4 each change misses each node of 8 with 1.3 %, and only push/pull repairs it
	// (measured: one update of 7 took 46 s); with 6 it is 0.15 %. It costs packets only when something changes.
	retransmitMult = 6
)

// New takes part with what streams there are; it knows nobody until Join or until another comes. The caller runs it,
// and closes it if it does not.
func New(cfg Config) (*Gossip, error) {
	if len(cfg.Meta) > MetaBytesMax {
		return nil, fmt.Errorf("start gossip: meta of %d bytes, at most %d", len(cfg.Meta), MetaBytesMax)
	}
	logger := cfg.Log
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	g := &Gossip{
		cfg:     cfg,
		log:     logger.With("part", "gossip"),
		changed: make(chan struct{}, 1),
		updated: make(chan struct{}, 1),
		joined:  make(chan struct{}, 1),
		meta:    slices.Clone(cfg.Meta),
		members: map[protocol.PeerID]Member{},
		named:   map[protocol.PeerID]bool{},
	}
	g.net = newTransport(cfg.Streams)
	list, err := memberlist.Create(g.settings())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start gossip: %w", err), g.net.Shutdown())
	}
	g.list = list
	return g, nil
}

func (g *Gossip) settings() *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	c.Name = string(g.cfg.Self)
	c.Transport = g.net
	c.AdvertiseAddr, c.AdvertisePort, c.BindPort = addrOf(g.cfg.Self).String(), port, port
	c.RequireNodeNames = true
	c.ProbeInterval, c.GossipInterval, c.PushPullInterval = probeInterval, gossipInterval, pushPullInterval
	c.RetransmitMult = retransmitMult
	c.UDPBufferSize = protocol.GossipPacketBytesMax
	c.EnableCompression = false // packets are small, and nothing is decompressed that never was compressed
	c.TCPTimeout = exchangeTime
	c.Logger = log.New(newDiagnostics(g.log, g.suspected), "", 0)
	d := (*hooks)(g)
	c.Delegate, c.Events, c.Alive, c.Merge, c.Ping = d, d, d, d, d
	return c
}

// Run tells changes and looks for named peers that are not there, until ctx ends; then it closes and returns nil. It
// may be called once.
func (g *Gossip) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { g.seek(ctx) })
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-g.changed:
			if g.cfg.OnChange != nil {
				g.cfg.OnChange(g.Members())
			}
		case <-g.updated:
			if err := g.list.UpdateNode(tellTime); err != nil {
				g.log.Debug("meta not told yet", "err", err) // push/pull carries it
			}
		}
	}
	err := g.Close() // ends what seek may be waiting for
	wg.Wait()
	return err
}

// seek tries named peers that are not there.
func (g *Gossip) seek(ctx context.Context) {
	tick := time.NewTicker(rejoinEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.joined:
		case <-tick.C:
		}
		g.rejoin(ctx)
	}
}

// Join names peers to find the others by. Run tries them at once, and again every 5 s while they are not alive: call
// it for each link that comes up. Those that are not inside are passed over.
func (g *Gossip) Join(peers ...protocol.PeerID) {
	g.mu.Lock()
	for _, p := range peers {
		if p != g.cfg.Self {
			g.named[p] = true
		}
	}
	g.mu.Unlock()
	signal(g.joined)
}

func (g *Gossip) rejoin(ctx context.Context) {
	g.mu.Lock()
	var missing []protocol.PeerID
	for p := range g.named {
		if s := g.members[p].State; s != Alive && s != Suspect {
			missing = append(missing, p)
		}
	}
	g.mu.Unlock()
	for _, p := range missing {
		if ctx.Err() != nil {
			return
		}
		if !g.cfg.Inside(p) {
			g.mu.Lock()
			delete(g.named, p)
			g.mu.Unlock()
			continue
		}
		if _, err := g.list.Join([]string{string(p) + "/" + net.JoinHostPort(addrOf(p).String(), portText)}); err != nil {
			g.log.Debug("join", "peer", p, "err", err)
		}
	}
}

// Members lists the others that were ever seen since New, sorted by peer, without those that are not inside any more.
func (g *Gossip) Members() []Member {
	g.mu.Lock()
	all := slices.SortedFunc(maps.Values(g.members), func(a, b Member) int {
		if a.Peer < b.Peer {
			return -1
		}
		return 1
	})
	g.mu.Unlock()
	return slices.DeleteFunc(all, func(m Member) bool { return !g.cfg.Inside(m.Peer) })
}

// SetMeta changes what this node says of itself; the others hear within about a second.
func (g *Gossip) SetMeta(meta []byte) error {
	if len(meta) > MetaBytesMax {
		return fmt.Errorf("set meta: %d bytes, at most %d", len(meta), MetaBytesMax)
	}
	g.mu.Lock()
	g.meta = slices.Clone(meta)
	g.mu.Unlock()
	signal(g.updated)
	return nil
}

// Leave tells the others that this node goes, waiting at most for timeout. They then show it as left, not as dead.
// It returns ErrClosed after Close. It takes some 0.6 s.
func (g *Gossip) Leave(timeout time.Duration) error {
	g.leaving.Lock()
	defer g.leaving.Unlock()
	if g.isClosed() {
		return ErrClosed
	}
	g.mu.Lock()
	g.goes = true
	g.mu.Unlock()
	// Not memberlist's own way of leaving: it reaches the hooks of the others as a death.
	if err := g.list.UpdateNode(timeout); err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	return nil
}

// Close ends it without a word to the others. It waits for all goroutines of the streams.
func (g *Gossip) Close() error {
	g.leaving.Lock()
	defer g.leaving.Unlock()
	if g.isClosed() {
		return nil
	}
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	return g.list.Shutdown() // which begins with the transport
}

func (g *Gossip) isClosed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// Serve runs a stream that a peer opened, and returns when it is over; the caller closes it then.
func (g *Gossip) Serve(from protocol.PeerID, s Stream) {
	if g.cfg.Inside(from) {
		g.net.serve(from, s)
	}
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

const (
	port     = 7946 // never bound: a part of made-up addresses
	portText = "7946"
)

// addrOf makes up an address for a peer, in the range for private use: memberlist wants one, and its streams go by
// name.
func addrOf(p protocol.PeerID) net.IP {
	sum := sha256.Sum256([]byte("aster.gossip.addr.1\x00" + string(p)))
	return append(net.IP{0xfd}, sum[:15]...)
}

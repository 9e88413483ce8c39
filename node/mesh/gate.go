package mesh

import (
	"net/netip"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	"golang.org/x/time/rate"

	"github.com/aster-mesh/aster/protocol"
)

// Bounds on what strangers may have (DESIGN 5, reliability.md 29).
const (
	admissionsMax     = 16               // connections of unknown peers at once
	admissionsPerAddr = 4                // of them from one address
	admissionTime     = 10 * time.Second // each
	strangersPerSec   = 1                // unknown peers past the handshake, one address
	strangersBurst    = 20
	acceptsPerSec     = 50 // connections before the handshake, one address; members behind one address share it
	acceptsBurst      = 200
	addrsRemembered   = 1024
)

// gate decides which connections come to be. Members pass. Unknown peers get one of few short-lived places, in which
// the stream handlers let them do nothing but ask for admission.
type gate struct {
	standing func(protocol.PeerID) Standing
	patience time.Duration              // with an unknown peer's connection
	out      func(protocol.PeerID) bool // whether a member is cut off now

	// Guarded by mu.
	mu       sync.Mutex
	closed   bool
	inviters map[peer.ID]int // peers that we ask for admission now, with how many asks
	places   []*place
	accepts  buckets
	strange  buckets
	refused  uint64
}

// place is what one unknown peer's connection holds.
type place struct {
	from   netip.Addr
	remote string // the connection's remote multiaddr
	until  time.Time
	conn   network.Conn // nil until the connection is up
	timer  *time.Timer
}

var (
	_ connmgr.ConnectionGater = (*gate)(nil)
	_ network.Notifiee        = (*gate)(nil)
)

func newGate(standing func(protocol.PeerID) Standing) *gate {
	return &gate{
		standing: standing,
		patience: admissionTime,
		out:      func(protocol.PeerID) bool { return false },
		inviters: map[peer.ID]int{},
		accepts:  buckets{per: map[netip.Addr]*rate.Limiter{}, rate: acceptsPerSec, burst: acceptsBurst},
		strange:  buckets{per: map[netip.Addr]*rate.Limiter{}, rate: strangersPerSec, burst: strangersBurst},
	}
}

// ask lets p be dialled although it is not (yet) a member for us, until the returned function is called.
func (g *gate) ask(p peer.ID) (done func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inviters[p]++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.inviters[p]--; g.inviters[p] == 0 {
			delete(g.inviters, p)
		}
	}
}

// InterceptPeerDial lets members and inviters be dialled.
func (g *gate) InterceptPeerDial(p peer.ID) bool {
	g.mu.Lock()
	asked := g.inviters[p] > 0
	g.mu.Unlock()
	id, _, ok := remote(p)
	return ok && (asked || g.standing(id).Member() && !g.out(id))
}

// InterceptAddrDial leaves the choice of addresses to the dialler.
func (g *gate) InterceptAddrDial(peer.ID, ma.Multiaddr) bool { return true }

// InterceptAccept bounds how often one address may begin a handshake.
func (g *gate) InterceptAccept(c network.ConnMultiaddrs) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.closed && g.accepts.take(source(c.RemoteMultiaddr()), time.Now())
}

// InterceptSecured is where the peer's id is known and proved.
func (g *gate) InterceptSecured(dir network.Direction, p peer.ID, c network.ConnMultiaddrs) bool {
	id, _, ok := remote(p)
	if !ok {
		return false
	}
	standing := g.standing(id)
	if standing.Member() {
		return !g.out(id)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if dir == network.DirOutbound {
		return g.inviters[p] > 0
	}
	// A revoked one too: it may hear why it is refused, or hold a new invite.
	if g.closed || !g.reserve(c) {
		g.refused++
		return false
	}
	return true
}

// InterceptUpgraded has nothing to add.
func (g *gate) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) { return true, 0 }

// reserve takes a place for an unknown peer's connection. Called with mu held.
func (g *gate) reserve(c network.ConnMultiaddrs) bool {
	now := time.Now()
	from := source(c.RemoteMultiaddr())
	here := 0
	kept := g.places[:0]
	for _, p := range g.places {
		// A connection that never came up leaves no other trace than its time.
		if p.conn == nil && now.After(p.until) {
			continue
		}
		// Who is a member by now is no stranger: members that came while the node started would shut out newcomers.
		if p.conn != nil && g.member(p.conn) {
			p.timer.Stop()
			continue
		}
		kept = append(kept, p)
		if p.from == from {
			here++
		}
	}
	clear(g.places[len(kept):])
	g.places = kept
	if len(g.places) >= admissionsMax || here >= admissionsPerAddr || !g.strange.take(from, now) {
		return false
	}
	g.places = append(g.places, &place{from: from, remote: c.RemoteMultiaddr().String(), until: now.Add(g.patience)})
	return true
}

// Connected ends an unknown peer's connection when its time is over, unless it has become a member meanwhile.
func (g *gate) Connected(_ network.Network, c network.Conn) {
	if c.Stat().Direction != network.DirInbound {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.places {
		if p.conn == nil && p.remote == c.RemoteMultiaddr().String() {
			p.conn = c
			p.timer = time.AfterFunc(time.Until(p.until), func() {
				if !g.member(c) {
					_ = c.CloseWithError(network.ConnGated)
				}
				g.leave(c)
			})
			return
		}
	}
}

func (g *gate) member(c network.Conn) bool {
	id, _, ok := remote(c.RemotePeer())
	return ok && g.standing(id).Member()
}

// Disconnected frees the place that the connection held.
func (g *gate) Disconnected(_ network.Network, c network.Conn) { g.leave(c) }

// Listen and ListenClose are not our business.
func (g *gate) Listen(network.Network, ma.Multiaddr)      {}
func (g *gate) ListenClose(network.Network, ma.Multiaddr) {}

func (g *gate) leave(c network.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, p := range g.places {
		if p.conn == c {
			p.timer.Stop()
			g.places = append(g.places[:i], g.places[i+1:]...)
			return
		}
	}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, p := range g.places {
		if p.timer != nil {
			p.timer.Stop()
		}
	}
	g.places = nil
}

// buckets bounds a rate per address. It remembers few addresses: when there are more, the full ones are forgotten, and
// if that does not help an address that is not remembered is refused.
type buckets struct {
	per   map[netip.Addr]*rate.Limiter
	rate  rate.Limit
	burst int
}

func (b *buckets) take(from netip.Addr, now time.Time) bool {
	l := b.per[from]
	if l == nil {
		if len(b.per) >= addrsRemembered {
			for a, old := range b.per {
				if old.TokensAt(now) >= float64(b.burst) {
					delete(b.per, a)
				}
			}
			if len(b.per) >= addrsRemembered {
				return false
			}
		}
		l = rate.NewLimiter(b.rate, b.burst)
		b.per[from] = l
	}
	return l.AllowN(now, 1)
}

// source is the address that a connection counts for: of IPv6 the /64, since one machine owns that many.
func source(a ma.Multiaddr) netip.Addr {
	ip, err := manet.ToIP(a)
	if err != nil {
		return netip.Addr{}
	}
	addr, _ := netip.AddrFromSlice(ip)
	addr = addr.Unmap()
	if addr.Is6() {
		p, err := addr.Prefix(64)
		if err == nil {
			return p.Addr()
		}
	}
	return addr
}

package mesh

import (
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	p2p "github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/gologshim"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/net/upgrader"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	p2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
	quic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/libp2p/go-libp2p/p2p/transport/tcpreuse"
	"github.com/libp2p/go-libp2p/p2p/transport/websocket"
	"github.com/libp2p/go-libp2p/x/rate"

	"github.com/aster-mesh/aster/protocol"
)

// host is the part of libp2p that we use: a swarm with three transports. The usual host is left out on purpose: its
// identify service tells every stranger our addresses, protocols and version, and its import of all transports costs
// some 20 MiB of program.
type host struct {
	swarm *swarm.Swarm
	quic  *quicreuse.ConnManager
	limit network.ResourceManager
	book  peerstore.Peerstore
}

// Bounds of the resource manager (reliability.md 5). Per peer: a connection that is in use, one that replaces it, and
// one more from each side while both dial.
const (
	connsPerPeer   = 4
	streamsPerPeer = 32
	memoryPerPeer  = 16 << 20
	connsTransient = 64
	connsTotal     = connsPerPeer * 2 * protocol.NodesMax
	memoryTotal    = 256 << 20
	memoryStranger = 32 << 20
)

func newHost(key ed25519.PrivateKey, g *gate, rank network.DialRanker, refused func(peer.ID)) (*host, error) {
	priv, err := crypto.UnmarshalEd25519PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("node key: %w", err)
	}
	id, err := peer.IDFromPrivateKey(priv)
	if err != nil {
		return nil, fmt.Errorf("node key: %w", err)
	}
	h := &host{}
	if h.limit, err = rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(limits()), limiterOptions()...); err != nil {
		return nil, fmt.Errorf("resource limits: %w", err)
	}
	if h.book, err = pstoremem.NewPeerstore(); err != nil {
		return nil, errors.Join(err, h.close())
	}
	if err := errors.Join(h.book.AddPrivKey(id, priv), h.book.AddPubKey(id, priv.GetPublic())); err != nil {
		return nil, errors.Join(err, h.close())
	}
	// The black hole counters would stop dialling UDP or IPv6 after some failures; a laptop changes networks.
	h.swarm, err = swarm.NewSwarm(id, h.book, eventbus.NewBus(),
		swarm.WithConnectionGater(g), swarm.WithResourceManager(counting{h.limit, refused}), swarm.WithDialRanker(rank),
		swarm.WithDialTimeout(dialTimeout), swarm.WithDialTimeoutLocal(dialTimeout),
		swarm.WithUDPBlackHoleSuccessCounter(nil), swarm.WithIPv6BlackHoleSuccessCounter(nil))
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	if err := h.addTransports(priv, g); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

func (h *host) addTransports(priv crypto.PrivKey, g *gate) error {
	muxers := []upgrader.StreamMuxer{{ID: yamux.ID, Muxer: yamux.DefaultTransport}}
	withNoise, err := noise.New(noise.ID, priv, muxers)
	if err != nil {
		return fmt.Errorf("noise: %w", err)
	}
	withTLS, err := p2ptls.New(p2ptls.ID, priv, muxers)
	if err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	up, err := upgrader.New([]sec.SecureTransport{withNoise, withTLS}, muxers, nil, h.limit, g)
	if err != nil {
		return fmt.Errorf("upgrader: %w", err)
	}
	// No SO_REUSEPORT for TCP: a second node on this machine would share our port unnoticed. QUIC's "reuse" is another
	// thing: it dials from the sockets that listen; without it each dial leaves a socket behind.
	shared := tcpreuse.NewConnMgr(false, up)
	overTCP, err := tcp.NewTCPTransport(up, h.limit, shared, tcp.DisableReuseport(), tcp.WithConnectionTimeout(dialTimeout))
	if err != nil {
		return fmt.Errorf("tcp: %w", err)
	}
	overWS, err := websocket.New(up, h.limit, shared)
	if err != nil {
		return fmt.Errorf("websocket: %w", err)
	}
	// Both keys derive from the node's: a restarted node can then tell its QUIC peers at once that it forgot them.
	raw, err := priv.Raw()
	if err != nil {
		return fmt.Errorf("node key: %w", err)
	}
	derive := func(label string) [32]byte { return sha256.Sum256(append([]byte(label), raw...)) }
	if h.quic, err = quicreuse.NewConnManager(derive("aster.quic.reset.1"), derive("aster.quic.token.1")); err != nil {
		return fmt.Errorf("quic: %w", err)
	}
	overQUIC, err := quic.NewTransport(priv, h.quic, nil, g, h.limit)
	if err != nil {
		return fmt.Errorf("quic: %w", err)
	}
	return errors.Join(h.swarm.AddTransport(overTCP), h.swarm.AddTransport(overQUIC), h.swarm.AddTransport(overWS))
}

func (h *host) close() error {
	var errs []error
	if h.swarm != nil {
		errs = append(errs, h.swarm.Close())
	}
	if h.quic != nil {
		errs = append(errs, h.quic.Close())
	}
	if h.book != nil {
		errs = append(errs, h.book.Close())
	}
	if h.limit != nil {
		errs = append(errs, h.limit.Close())
	}
	return errors.Join(errs...)
}

// limits lists each protocol of ours; every other gets nothing.
func limits() rcmgr.ConcreteLimitConfig {
	none := rcmgr.ResourceLimits{
		Streams: rcmgr.BlockAllLimit, StreamsInbound: rcmgr.BlockAllLimit, StreamsOutbound: rcmgr.BlockAllLimit,
		Conns: rcmgr.BlockAllLimit, ConnsInbound: rcmgr.BlockAllLimit, ConnsOutbound: rcmgr.BlockAllLimit,
		FD: rcmgr.BlockAllLimit, Memory: rcmgr.BlockAllLimit64,
	}
	streams := func(n int) rcmgr.ResourceLimits {
		v := rcmgr.LimitVal(n)
		return rcmgr.ResourceLimits{Streams: v, StreamsInbound: v, StreamsOutbound: v}
	}
	conns := func(n, s int, memory int64) rcmgr.ResourceLimits {
		r := streams(s)
		c := rcmgr.LimitVal(n)
		r.Conns, r.ConnsInbound, r.ConnsOutbound, r.FD, r.Memory = c, c, c, c, rcmgr.LimitVal64(memory)
		return r
	}
	const nodes = 2 * protocol.NodesMax
	return rcmgr.PartialLimitConfig{
		System:          conns(connsTotal, streamsPerPeer*nodes, memoryTotal),
		Transient:       conns(connsTransient, 4*connsTransient, memoryStranger),
		PeerDefault:     conns(connsPerPeer, streamsPerPeer, memoryPerPeer),
		ProtocolDefault: none,
		Protocol: map[p2p.ID]rcmgr.ResourceLimits{
			framesID: streams(4 * nodes), admitID: streams(2 * admissionsMax), blobID: streams(16 * nodes), gossipID: streams(16 * nodes), tailID: streams(2 * nodes), figuresID: streams(2 * nodes),
			baseID: streams(2 * nodes),
		},
		ProtocolPeerDefault: none,
		ProtocolPeer: map[p2p.ID]rcmgr.ResourceLimits{
			framesID: streams(4), admitID: streams(2), blobID: streams(12), gossipID: streams(12), tailID: streams(2), figuresID: streams(2), baseID: streams(2),
		},
		ServiceDefault: none,
	}.Build(rcmgr.InfiniteLimits)
}

// limiterOptions replaces libp2p's limits per address: they would stop a whole mesh behind one address, and the gate
// has its own.
func limiterOptions() []rcmgr.Option {
	all := func(cidr string) []rcmgr.NetworkPrefixLimit {
		return []rcmgr.NetworkPrefixLimit{{Network: netip.MustParsePrefix(cidr), ConnCount: connsTotal}}
	}
	return []rcmgr.Option{
		rcmgr.WithMetricsDisabled(),
		rcmgr.WithConnRateLimiters(&rate.Limiter{}),
		rcmgr.WithNetworkPrefixLimit(all("0.0.0.0/0"), all("::/0")),
	}
}

// quiet keeps libp2p's own diagnostics off stderr, unless somebody asks for them in the library's usual way: they name
// each stranger's failed dial as an error, which is not one to us.
func quiet() {
	if os.Getenv("GOLOG_LOG_LEVEL") == "" {
		gologshim.SetDefaultHandler(slog.DiscardHandler)
	}
}

const dialTimeout = 5 * time.Second

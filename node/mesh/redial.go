package mesh

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peerstore"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/aster-mesh/aster/protocol"
)

// Peer is a node to keep linked.
type Peer struct {
	ID    protocol.PeerID
	Addrs []string // multiaddrs without /p2p, the likeliest first
}

const (
	backoffMin   = 500 * time.Millisecond
	backoffSoon  = 5 * time.Second // at most, for a peer that is missing for less than soonFor: it is linked within 10 s of a split's end
	soonFor      = 5 * time.Minute
	backoffMax   = 30 * time.Second
	refusedRetry = 5 * time.Minute  // of a peer that refuses for good
	steadyAfter  = 10 * time.Second // a link that lived so long is redialled at once
	yieldTime    = 150 * time.Millisecond
	goodMax      = 8  // addresses that worked, remembered for each peer
	dialAddrsMax = 24 // addresses in one attempt
	stagger      = 250 * time.Millisecond
)

// keeper redials one peer for as long as it is wanted.
type keeper struct {
	kick chan struct{} // capacity 1: try now
	stop context.CancelFunc
}

func (k *keeper) poke() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

// SetPeers says whom to keep linked, instead of whom it said before. A peer whose addresses are new is tried at once.
// A link to a peer that is no longer named stays until it ends.
func (m *Mesh) SetPeers(peers []Peer) {
	m.mu.Lock()
	before := m.wanted
	m.wanted = make(map[protocol.PeerID]Peer, len(peers))
	for _, p := range peers {
		if p.ID == m.self {
			continue
		}
		m.wanted[p.ID] = Peer{ID: p.ID, Addrs: slices.Clone(p.Addrs)}
		if k := m.keepers[p.ID]; k != nil && !slices.Equal(before[p.ID].Addrs, p.Addrs) {
			k.poke()
		}
	}
	m.mu.Unlock()
	select {
	case m.reconcile <- struct{}{}:
	default:
	}
}

// Kick tries every missing link at once and asks every live one for a sign of life within 3 s. Run calls it by itself
// after a sleep of the machine and when its addresses change.
func (m *Mesh) Kick() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.links {
		l.prove()
	}
	for _, k := range m.keepers {
		k.poke()
	}
}

// startKeepers makes the keepers match the wanted peers.
func (m *Mesh) startKeepers(ctx context.Context, wg *sync.WaitGroup) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, k := range m.keepers {
		if _, ok := m.wanted[id]; !ok {
			k.stop()
			delete(m.keepers, id)
		}
	}
	for id := range m.wanted {
		if m.keepers[id] != nil {
			continue
		}
		ctx, stop := context.WithCancel(ctx)
		k := &keeper{kick: make(chan struct{}, 1), stop: stop}
		m.keepers[id] = k
		wg.Go(func() {
			defer stop()
			m.keep(ctx, id, k)
		})
	}
}

// keep holds a link to one peer until ctx ends.
func (m *Mesh) keep(ctx context.Context, to protocol.PeerID, k *keeper) {
	if !opensFirst(m.self, to) {
		// Its own dial would win over ours: give it the time.
		wait(ctx, yieldTime, k.kick)
	}
	backoff, refused, lost := backoffMin, false, time.Now()
	for ctx.Err() == nil {
		if l := m.link(to); l != nil {
			refused = false
			select {
			case <-l.done:
			case <-ctx.Done():
				return
			}
			lost = time.Now()
			if time.Since(l.since) >= steadyAfter {
				backoff = backoffMin
				wait(ctx, jitter(100*time.Millisecond), k.kick)
				continue
			}
		} else if !m.cfg.Standing(to).Member() {
			wait(ctx, backoffMax, k.kick)
			continue
		} else if err := m.open(ctx, to); err == nil {
			continue
		} else if errors.Is(err, ErrDuplicate) || ctx.Err() != nil {
			wait(ctx, jitter(backoffMin), k.kick)
			continue
		} else if errors.Is(err, ErrOlderStart) {
			if m.cfg.OnOlder != nil {
				m.cfg.OnOlder(to)
			}
		} else if forGood(err) {
			if !refused {
				refused = true
				m.log.Warn("peer refuses us", "peer", to, "err", err)
				if m.cfg.OnRefused != nil {
					m.cfg.OnRefused(to, err)
				}
			}
			if errors.Is(err, ErrRevoked) || errors.Is(err, ErrWrongMesh) {
				wait(ctx, jitter(refusedRetry), k.kick)
				continue
			}
		} else {
			m.log.Debug("dial", "peer", to, "err", err)
		}
		if wait(ctx, jitter(backoff), k.kick) {
			backoff = backoffMin
		} else {
			backoff = nextBackoff(backoff, time.Since(lost))
		}
	}
}

// nextBackoff is the pause after one of backoff, to a peer that is missing for so long.
func nextBackoff(backoff, missing time.Duration) time.Duration {
	if missing < soonFor {
		return min(2*backoff, backoffSoon)
	}
	return min(2*backoff, backoffMax)
}

// wait returns true if it was cut short by a kick.
func wait(ctx context.Context, d time.Duration, kick <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-kick:
		return true
	case <-ctx.Done():
	case <-t.C:
	}
	return false
}

// jitter spreads d over [d/2, d], so that nodes that lost each other at one moment do not meet at one moment.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// open dials a peer and greets it. ErrDuplicate: another link holds, or is about to.
func (m *Mesh) open(ctx context.Context, to protocol.PeerID) error {
	conn, err := m.dial(ctx, to, m.addrsOf(to))
	if err != nil {
		return err
	}
	s, err := openOn(ctx, conn, framesID)
	if err != nil {
		return m.blame(conn, err)
	}
	ours, ok := m.begin(to)
	if !ok {
		_ = s.Reset()
		return ErrDuplicate
	}
	stop := context.AfterFunc(ctx, func() { _ = s.Reset() })
	defer stop()
	_ = s.SetDeadline(time.Now().Add(negotiateTime))
	theirs, err := func() (hello, error) {
		if err := writeHello(s, ours); err != nil {
			return hello{}, err
		}
		return readHello(s)
	}()
	if err == nil && theirs.Mesh != m.cfg.MeshID {
		err = ErrWrongMesh
	}
	if err != nil {
		refuseStream(s, err)
		m.abandon(to, ours.Link)
		return m.blame(conn, err)
	}
	theirs.Link = ours.Link
	l, why := m.place(m.newLink(s, to, theirs, true), theirs)
	if why != nil {
		refuseStream(s, why)
		return ErrDuplicate
	}
	m.remember(to, conn.RemoteMultiaddr().String())
	go func() {
		defer m.wg.Done()
		l.run()
	}()
	return nil
}

// dial returns a connection to a peer: one that is up, or a new one to the first address that answers with its key.
func (m *Mesh) dial(ctx context.Context, to protocol.PeerID, addrs []string) (network.Conn, error) {
	id, err := peerID(to)
	if err != nil {
		return nil, err
	}
	var parsed []ma.Multiaddr
	for _, a := range addrs {
		if p, err := parseAddr(a); err == nil && len(parsed) < dialAddrsMax {
			parsed = append(parsed, p)
		}
	}
	m.host.book.ClearAddrs(id)
	m.host.book.AddAddrs(id, parsed, peerstore.TempAddrTTL)
	m.host.swarm.Backoff().Clear(id) // we have a backoff of our own
	ctx, cancel := context.WithTimeoutCause(ctx, 2*dialTimeout, errors.New("dialling took too long"))
	defer cancel()
	conn, err := m.host.swarm.DialPeer(ctx, id)
	if err != nil {
		// After the handshake of security a gate closes: the multiplexer is what is missed then.
		if strings.Contains(err.Error(), "negotiate stream multiplexer") {
			err = fmt.Errorf("%w: %w", ErrGate, err)
		}
		return nil, err
	}
	return conn, nil
}

// blame explains why nothing could be opened on a connection, and gives the connection up unless the peer gave a reason.
func (m *Mesh) blame(conn network.Conn, err error) error {
	err = explain(err)
	var said *RemoteError
	if errors.As(err, &said) || errors.Is(err, ErrWrongMesh) {
		return err
	}
	m.closeUnlinked(conn)
	var timeout net.Error
	if young := time.Since(conn.Stat().Opened) < time.Second; young && !(errors.As(err, &timeout) && timeout.Timeout()) {
		err = fmt.Errorf("%w: %w", ErrGate, err)
	}
	return err
}

// remember puts an address that worked first.
func (m *Mesh) remember(peer protocol.PeerID, addr string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := []string{addr}
	for _, a := range m.good[peer] {
		if a != addr && len(kept) < goodMax {
			kept = append(kept, a)
		}
	}
	m.good[peer] = kept
}

// plausible leaves of the addresses that a peer names those that may be its own: of an outside member only such with
// the address it is seen at, so that it cannot make us knock at others' doors; loopback only from this machine.
func (m *Mesh) plausible(peer protocol.PeerID, addrs []string, seen ma.Multiaddr) []string {
	inside := m.cfg.Standing(peer) == Inside
	at, err := manet.ToIP(seen)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(addrs), func(a string) bool {
		parsed, err := parseAddr(a)
		if err != nil {
			return true
		}
		ip, err := manet.ToIP(parsed)
		if err != nil {
			return !inside // a name
		}
		return ip.IsUnspecified() || ip.IsMulticast() || !inside && !ip.Equal(at) || ip.IsLoopback() && !at.IsLoopback()
	})
}

// addrsOf lists where a peer may be: what worked, what multicast says, what the caller knows, what the peer said itself.
func (m *Mesh) addrsOf(peer protocol.PeerID) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for _, list := range [][]string{m.good[peer], m.hints[peer].addrs, m.wanted[peer].Addrs, m.told[peer]} {
		for _, a := range list {
			if !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	return out
}

// rank dials what worked last first, then TCP, then QUIC, then WebSocket, each a little later: a killed peer is noticed
// at once on TCP and only after 45 s on QUIC (deps.md 2.2).
func (m *Mesh) rank(addrs []ma.Multiaddr) []network.AddrDelay {
	m.mu.Lock()
	last := map[string]bool{}
	for _, list := range m.good {
		last[list[0]] = true
	}
	m.mu.Unlock()
	step := map[string]time.Duration{"tcp": 1, "quic": 2, "ws": 3}
	out := make([]network.AddrDelay, 0, len(addrs))
	first := time.Duration(3)
	for _, a := range addrs {
		s := step[transportOf(a)]
		if last[a.String()] {
			s = 0
		}
		first = min(first, s)
		out = append(out, network.AddrDelay{Addr: a, Delay: s})
	}
	for i := range out {
		out[i].Delay = (out[i].Delay - first) * stagger
	}
	slices.SortStableFunc(out, func(a, b network.AddrDelay) int { return int(a.Delay - b.Delay) })
	return out
}

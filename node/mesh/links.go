package mesh

import (
	"errors"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/aster-mesh/aster/protocol"
)

// LinkInfo is what is known of a live link.
type LinkInfo struct {
	Peer      protocol.PeerID
	Transport string        // "tcp", "quic" or "ws"
	Addr      string        // the peer's multiaddr as this connection sees it
	Listens   []string      // multiaddrs on which the peer says it listens: worth storing, worth no trust
	RTT       time.Duration // of the last ping; 0 until the first pong
	Since     time.Time
	Dialed    bool   // this side opened it
	BytesIn   uint64 // data frames of all links with this peer since New, frame heads included
	BytesOut  uint64
	Queued    int // bytes waiting to be sent
}

// Traffic counts a peer's frames in bytes over all its links since New, heads included, encryption and transport not.
type Traffic struct{ DataIn, DataOut, PingIn, PingOut uint64 }

// Links lists the live links, sorted by peer.
func (m *Mesh) Links() []LinkInfo {
	m.mu.Lock()
	links := make([]*link, 0, len(m.links))
	for _, l := range m.links {
		links = append(links, l)
	}
	m.mu.Unlock()
	out := make([]LinkInfo, 0, len(links))
	for _, l := range links {
		if info := l.info(); l.isUp() {
			out = append(out, info)
		}
	}
	slices.SortFunc(out, func(a, b LinkInfo) int { return compareIDs(a.Peer, b.Peer) })
	return out
}

// Send queues a frame for a linked peer and never blocks; it keeps the slice. False: there is no link, or there is none
// any more because the frame did not fit the queue. It does not say that the peer got it. A frame above
// protocol.MeshFrameBytesMax is our own mistake and is refused.
func (m *Mesh) Send(to protocol.PeerID, frame []byte) bool {
	if len(frame) > protocol.MeshFrameBytesMax {
		m.log.Error("frame over its bound was not sent", "peer", to, "bytes", len(frame))
		return false
	}
	l := m.link(to)
	return l != nil && l.send(frame)
}

// Queued is how many bytes wait for a peer; 0 without a link.
func (m *Mesh) Queued(to protocol.PeerID) int {
	l := m.link(to)
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}

// Bytes counts a peer's frames.
func (m *Mesh) Bytes(of protocol.PeerID) Traffic {
	m.mu.Lock()
	t := m.traffic[of]
	m.mu.Unlock()
	if t == nil {
		return Traffic{}
	}
	return Traffic{DataIn: t.dataIn.Load(), DataOut: t.dataOut.Load(), PingIn: t.pingIn.Load(), PingOut: t.pingOut.Load()}
}

// CloseRevoked closes every connection of a peer at once, with its links and streams. Standing must already say
// Revoked, or the peer comes back.
func (m *Mesh) CloseRevoked(peer protocol.PeerID) { m.closePeer(peer, ErrRevoked) }

// CloseLink closes a peer's link for a reason that its log names; a wanted peer is dialled again.
func (m *Mesh) CloseLink(peer protocol.PeerID, why error) {
	if l := m.link(peer); l != nil {
		l.shut(why)
	}
}

func (m *Mesh) closePeer(peer protocol.PeerID, why error) {
	if l := m.link(peer); l != nil {
		l.shut(why)
	}
	id, err := peerID(peer)
	if err != nil {
		return
	}
	for _, c := range m.host.swarm.ConnsToPeer(id) {
		// Each in its own goroutine: closing waits for the transport, which may be the very thing that hangs.
		if m.enter() {
			go func() {
				defer m.wg.Done()
				_ = c.CloseWithError(network.ConnGated)
			}()
		}
	}
}

func (m *Mesh) link(of protocol.PeerID) *link {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.links[of]
}

// acceptLink answers the greeting of a peer that opened a link, and runs it.
func (m *Mesh) acceptLink(s network.Stream, from protocol.PeerID) {
	theirs, err := readHello(s)
	if err != nil {
		refuseStream(s, ErrBadFrame)
		return
	}
	if theirs.Mesh != m.cfg.MeshID {
		m.log.Warn("link refused", "peer", from, "err", ErrWrongMesh)
		refuseStream(s, ErrWrongMesh)
		return
	}
	l, why := m.place(m.newLink(s, from, theirs, false), theirs)
	if why != nil {
		refuseStream(s, why)
		return
	}
	defer m.wg.Done() // place counted the link in
	answer := hello{Version: helloVersion, Mesh: m.cfg.MeshID, Start: m.start, At: m.at, Link: theirs.Link, Addrs: m.Addrs()}
	if err := writeHello(s, answer); err != nil {
		l.shut(explain(err))
	}
	l.run()
}

// begin notes that our greeting goes out. False: there is a link already, or another greeting of ours is out.
func (m *Mesh) begin(to protocol.PeerID) (hello, bool) {
	addrs := m.Addrs()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.links[to] != nil || m.pending[to] {
		return hello{}, false
	}
	m.pending[to] = true
	return hello{
		Version: helloVersion, Mesh: m.cfg.MeshID, Start: m.start, At: m.at, Link: randomID(), Gone: slices.Clone(m.gone[to]), Addrs: addrs,
	}, true
}

// abandon notes that a greeting of ours came to nothing.
func (m *Mesh) abandon(to protocol.PeerID, id uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pending, to)
	m.forget(to, id)
}

// forget notes a link that is no more. Called with mu held.
func (m *Mesh) forget(peer protocol.PeerID, id uint64) {
	ids := append(m.gone[peer], id)
	if len(ids) > goneMax {
		ids = slices.Clone(ids[len(ids)-goneMax:])
	}
	m.gone[peer] = ids
}

// place makes l the peer's link, and counts it in, unless another holds. Both sides decide alike about two links that
// cross: the one that the smaller peer id opened holds. A link that the peer knows to be gone, or that belongs to a
// former start of it, gives way; one that a newer start of it holds does not.
func (m *Mesh) place(l *link, theirs hello) (*link, error) {
	m.mu.Lock()
	refused := m.holds(l, theirs)
	var old *link
	if refused == nil {
		if old = m.links[l.peer]; old != nil {
			l.after = old
			m.forget(l.peer, old.id)
		}
		if len(l.listens) > 0 {
			m.told[l.peer] = l.listens
		}
		if l.traffic = m.traffic[l.peer]; l.traffic == nil {
			l.traffic = &traffic{}
			m.traffic[l.peer] = l.traffic
		}
		m.links[l.peer] = l
		m.wg.Add(1)
	}
	m.mu.Unlock()
	if old != nil {
		why := ErrReplaced
		if old.olderThan(l) {
			why = ErrOlderStart
		}
		old.shut(why)
	}
	return l, refused
}

// olderThan says whether l is of an older start of the peer than o, as far as both say when they began.
func (l *link) olderThan(o *link) bool {
	return l.at != 0 && o.at != 0 && (l.at < o.at || l.at == o.at && l.start < o.start)
}

// holds says why l may not become the peer's link, or nil. Called with mu held.
func (m *Mesh) holds(l *link, theirs hello) error {
	if l.dialed {
		delete(m.pending, l.peer)
	}
	if m.closed || !m.running {
		return ErrDuplicate
	}
	mineFirst := opensFirst(m.self, l.peer)
	if !l.dialed && m.pending[l.peer] && mineFirst {
		return ErrDuplicate
	}
	cur := m.links[l.peer]
	switch {
	case cur == nil || cur.ended():
		return nil
	case l.olderThan(cur):
		return ErrOlderStart
	case cur.start != l.start || slices.Contains(theirs.Gone, cur.id):
		return nil
	}
	curFirst := cur.dialed == mineFirst // the smaller id opened it
	newFirst := l.dialed == mineFirst
	if newFirst || !curFirst {
		return nil
	}
	return ErrDuplicate
}

// unlink is the end of a link, called once by its run. It gives up the link's place only when its end has been told: the
// next link finds it there and waits for it, or the peer would be called gone after its new link was called up.
func (m *Mesh) unlink(l *link, why error) {
	m.mu.Lock()
	current := m.links[l.peer] == l
	if current {
		m.forget(l.peer, l.id)
	}
	m.mu.Unlock()
	m.log.Info("link down", "peer", l.peer, "err", why)
	if errors.Is(why, ErrFrame) || errors.Is(why, ErrBadFrame) || errors.Is(why, ErrTooLarge) {
		if said := (*RemoteError)(nil); !errors.As(why, &said) { // we ended it
			m.offended(l.peer, linkOffence, "its links end for what it sends")
		}
	}
	if current && (errors.Is(why, ErrDead) || errors.Is(why, ErrTooSlow)) {
		// The connection may be as dead as the link and the transport not know it for a long time: dial anew. Otherwise
		// it stays, or the reset that names the reason would be lost with it.
		m.dropConn(l.stream.Conn())
	}
	if m.cfg.OnLinkDown != nil {
		m.cfg.OnLinkDown(l.peer, why)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.links[l.peer] == l {
		delete(m.links, l.peer)
	}
}

// dropConn closes a connection without waiting for it: a graceful close writes first, and may hang where the link did.
func (m *Mesh) dropConn(c network.Conn) {
	if m.enter() {
		go func() {
			defer m.wg.Done()
			_ = c.Close()
		}()
	}
}

// closeUnlinked closes a connection that carries no link.
func (m *Mesh) closeUnlinked(c network.Conn) {
	if !m.carriesLink(c) {
		_ = c.Close()
	}
}

func (m *Mesh) carriesLink(c network.Conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.links {
		if l.stream.Conn() == c {
			return true
		}
	}
	return false
}

func (l *link) ended() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

func (l *link) isUp() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.up && l.cause == nil
}

func (l *link) info() LinkInfo {
	l.mu.Lock()
	bytes := l.bytes
	l.mu.Unlock()
	addr := l.stream.Conn().RemoteMultiaddr()
	return LinkInfo{
		Peer: l.peer, Transport: transportOf(addr), Addr: addr.String(), Listens: l.listens, RTT: time.Duration(l.rtt.Load()), Since: l.since,
		Dialed: l.dialed, BytesIn: l.traffic.dataIn.Load(), BytesOut: l.traffic.dataOut.Load(), Queued: bytes,
	}
}

func transportOf(a ma.Multiaddr) string {
	name := "tcp"
	ma.ForEach(a, func(c ma.Component) bool {
		switch c.Protocol().Code {
		case ma.P_QUIC_V1:
			name = "quic"
		case ma.P_WS, ma.P_WSS:
			name = "ws"
		}
		return true
	})
	return name
}

func compareIDs(a, b protocol.PeerID) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

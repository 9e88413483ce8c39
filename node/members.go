package node

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/protocol/meshwire"
	"github.com/aster-mesh/aster/roles/member"
)

// standings is who is what now, read by the mesh's gate from any goroutine; the loop replaces it whole.
type standings map[protocol.PeerID]mesh.Standing

func (n *Node) standingOf(p protocol.PeerID) mesh.Standing {
	if s := n.standings.Load(); s != nil {
		return (*s)[p]
	}
	return mesh.Unknown
}

// role is this node's by its certificate.
func (n *Node) role() protocol.Role {
	if r, ok := n.ownRole.Load().(protocol.Role); ok {
		return r
	}
	return protocol.RoleLocal
}

// membersChanged makes everything that depends on membership follow: gate, links, hub, names, the board's cuts.
func (l *loop) membersChanged() {
	l.n.seeded = nil
	if l.board.Stale() {
		l.refold()
	}
	st, all := standings{}, map[protocol.PeerID]hub.Member{}
	var dial []mesh.Peer
	for p, m := range l.known() {
		all[p] = hub.Member{Name: m.Name, Role: m.Role, Inside: m.Inside, Gone: m.Revoked, Admitted: m.Since}
		switch {
		case m.Revoked:
			st[p] = mesh.Revoked
		case !m.Valid:
			st[p] = mesh.Unknown
		case m.Inside:
			st[p] = mesh.Inside
		default:
			st[p] = mesh.Outside
		}
		if st[p].Member() && p != l.n.home.peer && (l.inside() || m.Inside) {
			dial = append(dial, mesh.Peer{ID: p, Addrs: l.addrsOf(p, m.Addrs)})
		}
	}
	before := l.n.standings.Swap(&st)
	l.n.mesh.SetPeers(dial)
	for p, s := range st {
		if s == mesh.Revoked && (before == nil || (*before)[p] != mesh.Revoked) {
			l.n.mesh.CloseRevoked(p)
		}
	}
	l.cut(st)
	l.core.Step(l.now, hub.Members{All: all})
	if t := l.roster().Term(); t.Number > 0 {
		l.core.Step(l.now, hub.Term{TermBody: t})
	}
	l.office.Feed()
	l.publishNames()
	l.peersChanged()
	l.n.gossipPeers(dial)
	if m, ok := l.roster().Member(l.n.home.peer); ok && m.Revoked && !m.Left && !l.lifted() {
		l.refusedAsRevoked(m.RevokedBy)
	}
	if m, ok := l.roster().Member(l.n.home.peer); ok && !m.Revoked && string(m.Chain) != string(l.n.home.mesh.Chain) {
		l.n.home.mesh.Chain, l.n.seeded = m.Chain, nil // renewed
		if err := l.n.home.saveMesh(); err != nil {
			l.log.Error("renewed certificate not kept", "err", err)
		}
	}
}

// cut stops what lies beyond a revoked node's cuts from being sent or taken, also where it is a member again. A log that
// began after the revocation is left alone unless the node is revoked: the record that lets it in may be on its way.
func (l *loop) cut(st standings) {
	for _, h := range l.rep.Heads() {
		bound := l.roster().Bound(h.Log)
		if bound != member.NoBound && (st[h.Log.Peer] == mesh.Revoked || h.Log.Start.At <= l.roster().RevokedAt(h.Log.Peer)) {
			l.rep.Cut(h.Log, bound)
		}
	}
}

// refold builds the board again after a cut took back what it had shown, from the base that it stands on.
func (l *loop) refold() {
	l.board = l.board.Restart()
	l.foldStore()
}

// foldStore folds all that is in the store into a board that holds nothing of it yet.
func (l *loop) foldStore() {
	l.keysDirty = true // a key, or its end, may count no longer
	for pos := uint64(0); ; {
		page, err := l.store.Since(pos, 1000)
		if err != nil {
			l.log.Error("journal not readable for the board", "err", err)
			return
		}
		if len(page) == 0 {
			l.refolded()
			return
		}
		for i := range page {
			if err := l.board.Apply(&page[i].Record, nil); err != nil {
				l.log.Error("record not folded", "pos", page[i].Pos, "err", err)
			}
			pos = page[i].Pos
		}
	}
}

// refolded gives whoever keeps something of the board the new one.
func (l *loop) refolded() {
	l.declarations = nil
	l.showState()
	l.showChannels()
	rooms, err := l.board.Rooms()
	if err != nil {
		l.log.Error("rooms not taken from the board", "err", err)
		return
	}
	shared, err := l.board.SharedRooms()
	if err != nil {
		l.log.Error("rooms not taken from the board", "err", err)
		return
	}
	l.core.Step(l.now, hub.Rooms{All: rooms, Shared: shared})
}

func (l *loop) publishNames() {
	out := names{}
	for p, name := range l.heardNames {
		out[p] = name
	}
	for p, m := range l.known() {
		out[p] = m.Name
	}
	out[l.n.home.peer] = l.n.home.mesh.Name
	l.n.names.Store(&out)
}

// addrsOf is where a member can be reached: its newest signed list, else what its admission said.
func (l *loop) addrsOf(p protocol.PeerID, recorded []string) []string {
	if a, ok := l.addrs[p]; ok {
		return a.Addrs
	}
	return recorded
}

const keyAddrs = "addrs/"

// learnAddrs takes a signed address list; the newest of each member holds and is kept over restarts.
func (l *loop) learnAddrs(from protocol.PeerID, f meshwire.Addrs) {
	if old, ok := l.addrs[f.Peer]; ok && old.At >= f.At || f.Peer == l.n.home.peer || !l.n.standingOf(f.Peer).Member() {
		return
	}
	l.addrs[f.Peer] = f
	l.value(keyAddrs+string(f.Peer), protocol.EncodeBody(f))
	l.membersDirty = true
	for peer := range l.peers {
		if peer != from && peer != f.Peer && (l.n.standingOf(peer) == mesh.Inside || l.n.standingOf(f.Peer) == mesh.Inside) {
			l.sendTo(peer, f)
		}
	}
}

// onAddrs runs in the mesh's goroutine when this machine's addresses changed.
func (n *Node) onAddrs(addrs []string) {
	_ = n.loop.post(n.ctx, func() {
		f := n.loop.ownAddrs(addrs)
		for peer := range n.loop.peers {
			n.loop.sendTo(peer, f)
		}
	})
}

// onRefused runs in the mesh's goroutine: a peer that does not know us yet is shown our certificate.
func (n *Node) onRefused(peer protocol.PeerID, why error) {
	n.log.Info("peer refuses the link", "peer", peer, "err", why)
	n.wait.Add(1)
	go func() {
		defer n.wait.Done()
		ctx, cancel := context.WithTimeout(n.ctx, 15*time.Second)
		defer cancel()
		var addrs []string
		var chain []byte
		if n.loop.call(ctx, func() {
			if m, ok := n.loop.known()[peer]; ok {
				addrs = n.loop.addrsOf(peer, m.Addrs)
			}
			chain = n.home.mesh.Chain
		}) != nil || len(addrs) == 0 {
			return
		}
		answer, _, err := n.mesh.Admit(ctx, peer, addrs, append([]byte{askPresent}, chain...))
		if err != nil {
			n.log.Info("certificate not shown", "peer", peer, "err", err)
			return
		}
		if a, err := member.DecodeJoinAnswer(answer); err == nil && a.Refusal != nil {
			n.log.Warn("certificate refused", "peer", peer, "code", a.Refusal.Code)
			if a.Refusal.Code == protocol.CodeRevoked {
				_ = n.loop.post(n.ctx, func() { n.loop.refusedAsRevoked(peer) })
			}
			return
		}
		n.mesh.Kick()
	}()
}

// refusedAsRevoked remembers that a member refuses this node as revoked: the next start says so too, and may use a new
// invite of the same mesh.
func (l *loop) refusedAsRevoked(by protocol.PeerID) {
	m := &l.n.home.mesh
	name := l.n.nameOf(by)
	l.warn("revoked", revokedLine(name))
	l.n.revokedBy.Store(&name)
	if m.Revoked != "" {
		return
	}
	m.Revoked = name
	if err := l.n.home.saveMesh(); err != nil {
		l.log.Error("revocation not kept", "err", err)
	}
}

// lifted says whether this node's own certificate is newer than its revocation: the record of that is still to come.
func (l *loop) lifted() bool {
	chain, err := member.ParseChain(l.n.home.mesh.Chain)
	return err == nil && chain[0].Cert.Lifts >= l.roster().RevokedAt(l.n.home.peer)
}

func revokedLine(by string) string {
	return "this node was revoked, says " + by + ": nobody takes what it says. To come back it needs a new invite"
}

// Peers implements web.Viewer.
func (n *Node) Peers(ctx context.Context) (out []api.Peer, err error) {
	err = n.loop.call(ctx, func() { out = n.loop.peerRows() })
	return out, err
}

func (n *Node) peer(ctx context.Context, id protocol.PeerID) (api.Peer, error) {
	all, err := n.Peers(ctx)
	if err != nil {
		return api.Peer{}, err
	}
	for _, p := range all {
		if p.Peer == id {
			return p, nil
		}
	}
	return api.Peer{}, protocol.Refuse(protocol.CodeUnknownID, "no member %s", "aster member list shows them", string(id))
}

func (l *loop) peerRows() []api.Peer {
	alive := l.n.aliveness()
	links := map[protocol.PeerID]mesh.LinkInfo{}
	for _, info := range l.n.mesh.Links() {
		links[info.Peer] = info
	}
	var out []api.Peer
	for p, m := range l.known() {
		row := api.Peer{
			Peer: p, Name: m.Name, Role: l.shownRole(p, m.Role), Inside: m.Inside, Self: p == l.n.home.peer, Alive: alive[p],
			Until: m.Cert.NotAfter, Issuer: m.AdmittedBy, Revoked: m.Revoked,
		}
		if row.Alive == "" {
			row.Alive = "unknown"
		}
		if info, ok := links[p]; ok && l.peers[p] != nil {
			row.Linked, row.Alive = true, "alive"
			row.Transport, row.Addr, row.RTTMicros = info.Transport, info.Addr, info.RTT.Microseconds()
			row.Board, row.Version = l.peers[p].hello.Board, l.peers[p].hello.Software
			row.LastSeen, row.SkewMillis = l.now.UnixMilli(), l.peers[p].skew.Milliseconds()
			_, row.Behind = l.rep.Behind(p)
			bytes := l.n.mesh.Bytes(p)
			row.BytesIn, row.BytesOut = bytes.DataIn, bytes.DataOut
		} else if at, ok := l.lastSeen[p]; ok {
			row.LastSeen = at.UnixMilli()
		}
		if row.Self {
			row.Alive, row.Board, row.Version, row.LastSeen = "alive", l.n.boardURL, "aster "+l.n.cfg.Version, l.now.UnixMilli()
		}
		out = append(out, row)
	}
	slices.SortFunc(out, func(a, b api.Peer) int {
		if a.Self != b.Self {
			if a.Self {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name+string(a.Peer), b.Name+string(b.Peer))
	})
	return out
}

// openLAN makes the mesh listen on this machine's networks, from now on (DESIGN 5).
func (n *Node) openLAN() error {
	if err := n.mesh.OpenLAN(); err != nil {
		return err
	}
	var err error
	if e := n.loop.call(n.ctx, func() {
		if n.home.mesh.LAN {
			return
		}
		n.home.mesh.LAN = true
		err = n.home.saveMesh()
	}); e != nil {
		return e
	}
	return err
}

// loopback is where a node listens until somebody opens it to a network.
var loopback = netip.MustParseAddr("127.0.0.1")

// loopbackOnly says whether none of the multiaddrs can be reached from another machine.
func loopbackOnly(addrs []string) bool {
	for _, a := range addrs {
		parts := strings.Split(a, "/")
		if len(parts) < 3 {
			continue
		}
		if ip, err := netip.ParseAddr(parts[2]); err != nil || !ip.IsLoopback() {
			return false
		}
	}
	return true
}

// noteSkew remembers how far a member's wall clock is off, for the "~" on its times.
func (l *loop) noteSkew(p protocol.PeerID, skew time.Duration) { l.n.skews.Store(p, skew) }

func (n *Node) doubt(p protocol.PeerID) bool {
	v, ok := n.skews.Load(p)
	return ok && v.(time.Duration).Abs() > protocol.ClockDoubt
}

// replicatedHas says whether another inside node holds a record, as far as is known: of our own logs by their word; of
// others' because we are that other node.
func (n *Node) replicatedHas(log protocol.LogID, seq uint64) bool {
	if log.Peer != n.home.peer {
		return n.role().Inside()
	}
	v, ok := n.replicated.Load(log)
	return ok && v.(uint64) >= seq
}

package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/node/turn"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/protocol/meshwire"
)

// peerState is what the loop knows of a linked peer besides its logs.
type peerState struct {
	link     mesh.LinkInfo
	hello    meshwire.Hello
	skew     time.Duration // its wall clock less ours, at its hello
	heard    turn.Heard
	vector   turn.Comparison
	compared bool // its whole vector has come once
	compares int  // how often one of all its logs has
	lastSeen time.Time
	since    time.Time
}

// pack encodes a frame for the mesh, which frames it itself: type, then body.
func pack(f meshwire.Frame) ([]byte, error) {
	raw, err := meshwire.Encode(f)
	if err != nil {
		return nil, err
	}
	return raw[4:], nil
}

// sendTo sends a frame to a linked peer, in several pieces if it must.
func (l *loop) sendTo(peer protocol.PeerID, f meshwire.Frame) bool {
	for _, part := range meshwire.Split(f) {
		raw, err := pack(part)
		if err != nil {
			l.log.Error("frame not encoded", "type", f.Type(), "err", err)
			return false
		}
		if !l.n.mesh.Send(peer, raw) {
			return false
		}
	}
	return true
}

// onLink, onLinkDown, onFrame run in the mesh's goroutines.
func (n *Node) onLink(info mesh.LinkInfo) {
	_ = n.loop.post(n.ctx, func() { n.loop.linkUp(info) })
}

func (n *Node) onLinkDown(peer protocol.PeerID, why error) {
	_ = n.loop.post(n.ctx, func() { n.loop.linkDown(peer, why) })
}

func (l *loop) linkUp(info mesh.LinkInfo) {
	st := l.n.standingOf(info.Peer)
	if !st.Member() {
		l.n.mesh.CloseRevoked(info.Peer)
		return
	}
	l.peers[info.Peer] = &peerState{link: info, lastSeen: l.now, since: l.now}
	l.log.Info("link up", "peer", info.Peer, "transport", info.Transport, "addr", info.Addr)
	l.sendTo(info.Peer, meshwire.Hello{
		Version: meshwire.Version, Mesh: l.n.home.mesh.Mesh, Start: l.n.startID, Name: l.n.home.mesh.Name,
		Role: l.n.role(), Board: l.n.boardURL, Wall: l.now.UnixMilli(), Software: "aster " + l.n.cfg.Version,
	})
	l.sendTo(info.Peer, l.ownAddrs(l.n.mesh.Addrs()))
	for _, a := range l.addrs {
		if a.Peer != info.Peer && a.Peer != l.n.home.peer && (st == mesh.Inside || l.n.standingOf(a.Peer) == mesh.Inside) {
			l.sendTo(info.Peer, a)
		}
	}
	l.sendStarts(info.Peer)
	if st == mesh.Inside {
		l.n.credit.linked(info.Peer, l.now)
	}
	l.rep.LinkUp(l.now, info.Peer, st == mesh.Inside)
	l.sendPresence(info.Peer)
	l.peersChanged()
	if l.n.runner != nil {
		l.n.runner.linked()
	}
}

func (l *loop) linkDown(peer protocol.PeerID, why error) {
	p := l.peers[peer]
	if p == nil {
		return
	}
	delete(l.peers, peer)
	delete(l.toldBases, peer)
	if len(l.toldBases) == 0 {
		l.n.warnings.clear(warnBeginning) // nobody says so any more
	}
	l.lastSeen[peer] = l.now
	l.log.Info("link down", "peer", peer, "err", why)
	l.rep.LinkDown(peer)
	l.n.credit.ended(peer, l.now)
	l.core.Step(l.now, hub.PeerGone{Peer: peer})
	l.peersChanged()
}

// onFrame decodes and verifies in the link's own goroutine, so that signatures of several peers are checked at once,
// then hands the result to the loop.
func (n *Node) onFrame(from protocol.PeerID, raw []byte) error {
	if len(raw) == 0 {
		return errors.New("empty frame")
	}
	f, err := meshwire.Decode(raw[0], raw[1:])
	if err != nil {
		return err
	}
	switch f := f.(type) {
	case meshwire.Records:
		return n.onRecords(from, f)
	case meshwire.Addrs:
		if f.Verify() != nil {
			return nil // a wrong signature proves nothing about the peer that passed it on
		}
	case meshwire.Started:
		if f.Verify() != nil {
			return nil
		}
	case meshwire.Unknown:
		return nil
	}
	return n.lanes.lane(from).post(n.ctx, n.loop, func() { n.loop.frame(from, f) })
}

// frame takes a decoded frame of a linked peer.
func (l *loop) frame(from protocol.PeerID, f meshwire.Frame) {
	p := l.peers[from]
	if p == nil {
		return // the link went down meanwhile
	}
	p.lastSeen = l.now
	switch f := f.(type) {
	case meshwire.Hello:
		if f.Mesh != l.n.home.mesh.Mesh {
			l.n.mesh.CloseLink(from, fmt.Errorf("it is of mesh %q", protocol.CutText(f.Mesh, 16)))
			return
		}
		p.hello, p.skew = f, time.UnixMilli(f.Wall).Sub(l.now)
		l.noteSkew(from, p.skew)
		l.peersChanged()
	case meshwire.Vector:
		l.vector(from, p, f)
	case meshwire.Have:
		l.confirmed(from, turn.Marks(f.Marks))
	case meshwire.Need:
		l.rep.Wanted(l.now, from, replica.Need{Log: f.Log, From: f.From, To: f.To})
	case meshwire.Addrs:
		l.learnAddrs(from, f)
	case meshwire.Started:
		l.learnStarted(from, f)
	case meshwire.Base:
		l.toldOfBase(from, f)
	case meshwire.Presence:
		l.presence(from, p, &f)
	case meshwire.Roster:
		l.rosterFrom(from, p, f)
	case meshwire.Live:
		l.liveFrom(from, f)
	case meshwire.Office:
		l.office.From(from, &f)
	case meshwire.Claims:
		l.office.Asked(from, &f)
	case meshwire.Bye:
		l.log.Info("peer says goodbye", "peer", from, "reason", f.Reason)
	}
}

func (l *loop) vector(from protocol.PeerID, p *peerState, f meshwire.Vector) {
	v, whole, err := p.vector.Take(f)
	if err != nil {
		l.log.Warn("comparison not understood", "peer", from, "err", err)
	}
	if !whole {
		return
	}
	l.rep.Compared(l.now, from, v)
	l.vouched(from, p, &v)
	p.compared = true
	for _, m := range v.Marks {
		l.noteReplicated(m.Log)
	}
}

// replicate does what the replica owes: comparisons, ranges, questions and confirmations. said: there was something.
func (l *loop) replicate() (said bool) {
	for range 256 { // a bound, so that one turn cannot serve a newcomer for ever
		rd := l.rep.Ready(l.now)
		if rd.Empty() {
			break
		}
		said = true
		for _, t := range turn.Talk(&rd) {
			l.sendTo(t.Peer, t.Frame)
		}
		for _, r := range rd.Send {
			l.sendRange(r)
		}
		l.tellBase(rd.Based)
		for _, f := range rd.Forks {
			l.log.Error("two records under one number: a stolen or damaged key", "log", f.Log.String(), "seq", f.Seq, "peer", f.Peer)
			l.forked(&f)
		}
	}
	clear(l.fresh)
	return said
}

// sendRange sends whole commits of a log: from memory if this turn wrote them, else from the store.
func (l *loop) sendRange(r replica.Range) {
	recs, ok := turn.Within(l.fresh[r.Log], &r)
	if !ok {
		var err error
		if recs, err = l.store.Range(r.Log, r.From, min(max(r.Bytes, 1), protocol.MeshFrameBytesMax/2)); err != nil {
			l.log.Error("range not readable", "log", r.Log.String(), "seq", r.From, "err", err)
		}
		recs = turn.UpTo(recs, &r)
	}
	bytes, last := 0, r.From-1
	parts, err := meshwire.SplitRecords(recs)
	if err != nil {
		l.log.Error("range not encoded", "log", r.Log.String(), "seq", r.From, "err", err)
	}
	l.n.blobs.show(r.Peer, recs)
	for _, part := range parts {
		raw, err := pack(part)
		if err != nil || !l.n.mesh.Send(r.Peer, raw) {
			break
		}
		bytes += len(raw)
		last = part.First + uint64(len(part.Records)) - 1
	}
	if !r.Proof {
		l.rep.Sent(r.Peer, r.Log, last, bytes)
	}
}

// confirmed takes a peer's word on what it has on disk, and tells the hub what that replicates.
func (l *loop) confirmed(from protocol.PeerID, have []replica.Mark) {
	l.rep.Confirmed(l.now, from, have)
	for _, m := range have {
		l.noteReplicated(m.Log)
	}
}

func (l *loop) noteReplicated(log protocol.LogID) {
	if log.Peer != l.n.home.peer {
		return
	}
	seq := l.rep.ReplicatedTo(log)
	if old, _ := l.n.replicated.Load(log); old != nil && old.(uint64) >= seq {
		return
	}
	l.n.replicated.Store(log, seq)
	l.core.Step(l.now, hub.Replicated{Log: log, Seq: seq})
}

// waitReplicated returns when another inside node has a record, or with ctx.
func (n *Node) waitReplicated(ctx context.Context, ref hub.Ref) {
	w := tierWaiter{protocol.Replicated, make(chan struct{})}
	reached := false
	err := n.loop.call(ctx, func() {
		if reached = n.replicatedHas(ref.Log, ref.Seq) || n.loop.core.Alone(); !reached {
			n.loop.tierWait[ref] = append(n.loop.tierWait[ref], w)
		}
	})
	if err != nil || reached {
		return
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		_ = n.loop.post(context.WithoutCancel(ctx), func() { n.loop.unwaitTier(ref, w) })
	}
}

// peersChanged tells pages of links that came, went or changed.
func (l *loop) peersChanged() {
	if l.n.pages.watched() {
		l.n.pages.publish(api.Event{Type: "peers", Peers: l.peerRows()})
	}
}

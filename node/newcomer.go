package node

import (
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/node/turn"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
	"github.com/aster-mesh/aster/roles/member"
)

// Where records have left, a newcomer cannot begin with the first of a log, nor can a member that was gone for long go on where
// it was. It is told so, fetches the snapshot from a member, and begins there.

// warnBeginning is about where this node is to begin; bases.go warns of what it makes otherwise.
const warnBeginning = "begins"

// standsOn is the base that the board of a store stands on; nil: none.
func standsOn(store *journal.Journal, id member.MeshID, log *slog.Logger) (*board.Snapshot, error) {
	begins, err := beginsAt(store, id)
	if err != nil {
		return nil, err
	}
	_, raw, ok, err := store.Checkpoint(baseCheckpoint)
	if err != nil {
		return nil, fmt.Errorf("checkpoint of the base: %w", err)
	}
	if !ok {
		return begins, nil
	}
	kept, err := board.DecodeSnapshot(raw)
	if err != nil || kept.Mesh() != id {
		log.Warn("the fold at the base is not usable: it is made anew", "err", err)
		return begins, nil
	}
	for _, b := range begins.Bases() {
		if kept.Base(b.Log).Seq < b.Seq {
			return begins, nil // it began at a later one
		}
	}
	return kept, nil
}

// beginsAt is the snapshot at which a store's logs begin; nil: at their first records.
func beginsAt(store *journal.Journal, id member.MeshID) (*board.Snapshot, error) {
	raw, ok, err := store.Snapshot()
	if err != nil || !ok {
		return nil, err
	}
	snap, err := board.DecodeSnapshot(raw)
	if err == nil && snap.Mesh() != id {
		err = errors.New("it is of another mesh")
	}
	if err != nil {
		return nil, fmt.Errorf("what the records that left came to: %w", err)
	}
	return snap, nil
}

func (n *Node) readBegins() error {
	begins, err := beginsAt(n.store, member.MeshID(n.home.mesh.Mesh))
	n.begins.Store(begins)
	return errors.Join(err, n.readBegun())
}

// based takes that records have left up to a base.
func (l *loop) based(snap *board.Snapshot) {
	l.n.begins.Store(snap)
	for _, b := range snap.Bases() {
		l.rep.Based(b.Log, b.Seq)
	}
}

// tellBase tells members of the inside where this node begins.
func (l *loop) tellBase(peers []protocol.PeerID) {
	snap := l.n.begins.Load()
	if snap == nil {
		return
	}
	f := meshwire.Base{Bytes: uint64(len(snap.Encode()))}
	_, _ = hex.Decode(f.Digest[:], []byte(snap.Digest())) // it is hex of that length
	for _, p := range peers {
		if l.n.standingOf(p) == mesh.Inside {
			l.sendTo(p, f)
		}
	}
}

// baseFrom is a snapshot to be fetched.
type baseFrom struct {
	peer protocol.PeerID
	base meshwire.Base
}

// toldOfBase hears that a peer does not hold what this node lacks.
func (l *loop) toldOfBase(from protocol.PeerID, f meshwire.Base) {
	if l.n.standingOf(from) != mesh.Inside || !l.inside() || l.n.fenced.Load() != nil {
		return
	}
	if l.toldBases == nil {
		l.toldBases = map[protocol.PeerID]meshwire.Base{}
	}
	l.toldBases[from] = f
	l.chooseBase()
}

// chooseBase has a snapshot fetched, if it is clear of whom.
func (l *loop) chooseBase() {
	inviter := l.n.home.mesh.Inviter
	known := l.known()
	own, _ := member.ParseChain(l.n.home.mesh.Chain)
	b := turn.Beginning{Told: l.toldBases, Inviter: inviter, Linked: l.peers[inviter] != nil, Others: len(l.insideMembers()) - 1, Stalled: l.stalled}
	b.House = func(p protocol.PeerID) protocol.PeerID {
		chain, err := member.ParseChain(known[p].Chain)
		if err != nil {
			return p
		}
		return turn.HouseOf(chain, own)
	}
	peer, ok := b.Whose()
	switch {
	case !ok && b.Linked && !l.stalled(inviter):
		l.n.warnings.clear(warnBeginning) // whoever invited this node has all that is lacking, or has yet to speak
		return
	case !ok:
		l.warn(warnBeginning, l.waitsToBegin(b.Told))
		return // they say it again
	}
	// Who invited this node is believed anyway. Others are where records leave, too.
	if peer != inviter && l.n.cfg.Retention.Records <= 0 {
		l.warn(warnBeginning, "what others hold begins at a base, and this node lacks what is before it: it begins there as soon as the node that "+
			"invited it is linked, or once [retention] records is set here as there")
		return
	}
	select {
	case l.n.fetch <- baseFrom{peer, l.toldBases[peer]}:
	default: // one is on its way
	}
}

func (l *loop) waitsToBegin(told map[protocol.PeerID]meshwire.Base) string {
	var names []string
	for _, p := range slices.Sorted(maps.Keys(told)) {
		names = append(names, l.n.nameOf(p))
	}
	line := "what " + protocol.CutText(strings.Join(names, ", "), 200) + " holds begins at a base, and this node lacks what is before it. It begins there once members of which " +
		"none let the other in say the same, or all others that are left"
	if inviter := l.n.home.mesh.Inviter; l.peers[inviter] != nil {
		line += ", or " + l.n.nameOf(inviter) + " gives what it told of, which did not come"
	} else if inviter != "" {
		line += ", or " + l.n.nameOf(inviter) + " is linked, which invited it. Start that node: aster up"
	} else {
		line += ". Start more of them: aster up"
	}
	return line
}

// serveBase gives the snapshot at which this node begins to a member of the inside.
func (n *Node) serveBase(_ protocol.PeerID, s mesh.Stream) {
	if snap := n.begins.Load(); snap != nil {
		_, _ = s.Write(snap.Encode()) // whoever is cut off asks again
	}
}

// beginning is a snapshot that was fetched, and of whom.
type beginning struct {
	snap *board.Snapshot
	of   protocol.PeerID
}

// begin begins at a snapshot that was fetched, if this node still lacks what lies below it. Between two turns: nothing waits for
// the disk.
func (l *loop) begin() error {
	if l.beginning == nil {
		return nil
	}
	snap, of := l.beginning.snap, l.beginning.of
	if l.beginning = nil; !slices.ContainsFunc(snap.Bases(), func(b board.Base) bool { return l.rep.Head(b.Log).Seq < b.Seq }) {
		return nil
	}
	// Of what was agreed here later than that one nothing is given up.
	if slices.ContainsFunc(l.board.From().Bases(), func(b board.Base) bool { return snap.Base(b.Log).Seq < b.Seq }) {
		return nil
	}
	young, err := turn.TakesYoung(l.store, func(log protocol.LogID) uint64 { return l.rep.Head(log).Seq }, snap, l.now)
	if err != nil || young {
		l.log.Warn("this node does not begin at the base of others: it would take young records, which members agree on nowhere", "err", err)
		return nil
	}
	bases := turn.BasesOf(snap)
	err = l.store.Begin(bases, snap.Encode())
	if errors.Is(err, journal.ErrBase) || errors.Is(err, journal.ErrUndelivered) || errors.Is(err, journal.ErrFull) {
		l.log.Warn("this node does not begin at the base of others yet", "err", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("begin at a base: %w", err)
	}
	if err := l.n.keepBegun(&begun{Of: of, Digest: snap.Digest(), At: l.now.UnixMilli()}); err != nil {
		l.log.Warn("of whom this node has what it begins at is not kept", "err", err)
	}
	l.log.Info("this node begins at a base", "of", of, "logs", len(bases), "until", snap.Until().Format(time.DateTime))
	l.board = snap.State()
	l.foldStore()
	for l.board.Stale() {
		l.refold()
	}
	l.n.begins.Store(snap)
	l.n.warnings.clear(warnBeginning)
	clear(l.toldBases)
	if err := l.again(protocol.Refuse(protocol.CodeBusy, "this node has just begun at what other members hold", "say it again")); err != nil {
		return err
	}
	l.savedAt = 0 // the checkpoint is of before
	l.checkpoint()
	return nil
}

package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/node/turn"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/cut"
	"github.com/aster-mesh/aster/roles/member"
)

// The members of the inside agree on a base, below which records may leave: one proposes how far each log may begin later, each
// folds its records up to there and says the digest of that on record, and who sees that a majority says the same says that
// it holds. From then on every member's board stands on the fold there. Only where the settings say so do records leave.

// baseCheckpoint is the name of the snapshot of the newest base in the store; boards stand on it also where nothing left.
const baseCheckpoint = "base"

// baseEvery is how often a base is proposed.
const baseEvery = 24 * time.Hour

// baser remembers what this start made of the newest proposal. Owned by comparing.
type baser struct {
	log     protocol.LogID
	seq     uint64
	at      time.Time       // when that was tried last; zero: never
	made    *board.Snapshot // nil: nothing
	differs string          // digest of a base that this node makes otherwise
	looked  time.Time       // when a base was looked for last
}

// baseView is what the loop knows of bases at one moment.
type baseView struct {
	may     bool
	from    *board.Snapshot
	held    *board.BaseHeld
	agreed  map[protocol.LogID]uint64
	asked   *board.BaseAsked
	answers []board.CutAnswer
	turn    bool // it is this node's to propose, and to say that a base holds
	heads   map[protocol.LogID]uint64
}

func (l *loop) baseView() baseView {
	v := baseView{may: l.mayCompare(), from: l.board.From(), heads: map[protocol.LogID]uint64{}}
	held, agreed := l.board.BaseHeld()
	if held != nil {
		one := *held
		v.held, v.agreed = &one, maps.Clone(agreed)
	}
	v.asked, v.answers = l.board.BaseAsked()
	up := func(p protocol.PeerID) bool { return p == l.n.home.peer || l.peers[p] != nil }
	v.turn = cut.Proposer(l.roster().Term().Peer, l.insideMembers(), up) == l.n.home.peer
	for _, h := range l.rep.Heads() {
		v.heads[h.Log] = h.Seq
	}
	return v
}

// durable says whether all records up to marks are on this disk.
func (v *baseView) durable(marks map[protocol.LogID]uint64) bool {
	for log, seq := range marks {
		if v.heads[log] < seq {
			return false
		}
	}
	return true
}

// agree does what is due about bases: stand on the one that holds, answer a proposal, say that one holds, propose, let go.
func (n *Node) agree(ctx context.Context, b *baser) error {
	var v baseView
	look := func() error { return n.loop.call(ctx, func() { v = n.loop.baseView() }) }
	if err := look(); err != nil || !v.may {
		return err
	}
	for _, step := range []func(context.Context, *baser, *baseView) error{n.standOn, n.answerBase, n.holdBase, n.proposeBase, n.letGo} {
		if err := step(ctx, b, &v); err != nil {
			return err
		}
		if err := look(); err != nil {
			return err
		}
	}
	return nil
}

// snapshot folds up to bases, slowly.
func (n *Node) snapshot(ctx context.Context, from *board.Snapshot, marks map[protocol.LogID]uint64) (*board.Snapshot, error) {
	return turn.SnapshotAt(n.store, member.MeshID(n.home.mesh.Mesh), from, marks, func() error { return pause(ctx, cutRest) })
}

// standOn has the board stand on the base that holds, once all below it is here. A member that makes something else of the same
// records goes on as it was, and says so.
func (n *Node) standOn(ctx context.Context, b *baser, v *baseView) error {
	if v.held == nil || !cut.Raises(baseSeq(v.from), v.agreed) || !v.durable(v.agreed) || b.differs == v.held.Digest {
		return nil
	}
	snap, err := n.snapshot(ctx, v.from, v.agreed)
	if err != nil {
		return err
	}
	if snap.Digest() != v.held.Digest {
		alone, err := n.agreedAlone(v)
		if err != nil {
			return err
		}
		if alone { // else two were agreed apart, and nobody has said yet what both come to
			b.differs = v.held.Digest
			n.warnings.set("base", "this node makes something else of the records below the base on which the members agreed (program "+n.cfg.Version+
				"): it keeps all of them and shows what it makes of them. Look for damage: aster doctor")
			return nil
		}
	}
	b.differs = ""
	n.warnings.clear("base")
	if err := n.store.SaveCheckpoint(baseCheckpoint, 0, snap.Encode()); err != nil {
		return fmt.Errorf("keep the fold at a base: %w", err)
	}
	return n.loop.call(ctx, func() {
		if n.loop.board.From() == v.from { // else it has begun at another meanwhile
			n.loop.settleOn(snap)
		}
	})
}

// agreedAlone says whether the newest base that holds is the one that this node stands on, raised by what that word names.
func (n *Node) agreedAlone(v *baseView) (bool, error) {
	if v.held.Prev != v.from.ID() {
		return false, nil
	}
	body, err := n.cutBody(v.held.Word())
	if err != nil {
		return false, err
	}
	marks, err := board.Marks(body.Marks)
	if err != nil {
		return false, nil
	}
	for _, base := range v.from.Bases() {
		marks[base.Log] = max(marks[base.Log], base.Seq)
	}
	return maps.Equal(marks, v.agreed), nil
}

// settleOn has the board stand on a base.
func (l *loop) settleOn(snap *board.Snapshot) {
	l.board.Settle(snap)
	if l.board.Stale() {
		l.refold()
		l.membersDirty = true
	}
	l.log.Info("the board stands on a base", "logs", len(snap.Bases()), "until", snap.At().Time().Format(time.DateTime))
}

func baseSeq(s *board.Snapshot) func(protocol.LogID) uint64 {
	return func(log protocol.LogID) uint64 { return s.Base(log).Seq }
}

// cutBody reads what a record about a cut says.
func (n *Node) cutBody(log protocol.LogID, seq uint64) (body protocol.CutBody, err error) {
	st, found, err := n.store.At(log, seq)
	if err == nil && (!found || st.Damaged) {
		err = fmt.Errorf("%w: the proposal", turn.ErrCutDamaged)
	}
	if err != nil {
		return body, err
	}
	return protocol.DecodeBody[protocol.CutBody](&st.Record)
}

// rise finds how far bases may rise, as this node sees it.
func (n *Node) rise(ctx context.Context, from *board.Snapshot, age time.Duration) (*cut.Rise, error) {
	rise := cut.NewRise(n.time(), age, baseSeq(from))
	owed := func(recs []protocol.Record) (out []bool, err error) {
		var failed error
		err = n.loop.call(ctx, func() {
			var o *turn.Owed
			if o, failed = turn.OwedNow(n.loop.board, n.loop.core.Questions()); failed != nil {
				return
			}
			for i := range recs {
				out = append(out, o.For(&recs[i]))
			}
		})
		return out, errors.Join(err, failed)
	}
	return rise, turn.FindBase(n.store, rise, owed, func() error { return pause(ctx, cutRest) })
}

// answerBase says what this node makes of the records below a base that is proposed, if nothing there is young or owed.
func (n *Node) answerBase(ctx context.Context, b *baser, v *baseView) error {
	if v.asked == nil || v.asked.Prev != v.from.ID() || v.said(n.home.peer) {
		return nil
	}
	if b.log == v.asked.Log() && b.seq == v.asked.Seq() && time.Since(b.at) < cutAgain {
		return nil
	}
	body, err := n.cutBody(v.asked.Log(), v.asked.Seq())
	if err != nil {
		return err
	}
	marks, err := board.Marks(body.Marks)
	if err != nil || !v.durable(marks) {
		return err
	}
	b.log, b.seq, b.at, b.made = v.asked.Log(), v.asked.Seq(), time.Now(), nil
	rise, err := n.rise(ctx, v.from, cut.BaseAge)
	if err != nil {
		return err
	}
	if !rise.Bears(marks) {
		n.log.Info("a base that was proposed is not this node's: something below it is young here, or somebody owes something for it", "by", n.nameOf(v.asked.Log().Peer))
		return nil
	}
	snap, err := n.snapshot(ctx, v.from, marks)
	if err != nil {
		return err
	}
	b.made = snap
	return n.loop.call(ctx, func() {
		if now, _ := n.loop.board.BaseAsked(); now != nil && now.Log() == b.log && now.Seq() == b.seq {
			n.loop.authorCut(protocol.CutBody{Step: protocol.CutBaseAnswer, Log: b.log.String(), Seq: b.seq, Fold: board.FoldVersion, Digest: snap.Digest()})
		}
	})
}

func (v *baseView) said(p protocol.PeerID) bool {
	return slices.ContainsFunc(v.answers, func(a board.CutAnswer) bool { return a.By() == p })
}

// agreedByMost says whether a majority has said of the newest base that holds what the word on it says: one member's word alone
// has no record leave.
func (v *baseView) agreedByMost() bool {
	if v.asked == nil || v.asked.Log() != v.held.Log.LogID || v.asked.Seq() != v.held.Seq {
		return false
	}
	a, ok := v.mostSaid(v.from)
	return ok && a.Digest == v.held.Digest
}

// mostSaid is what a majority of the members as of a base answered to the newest proposal.
func (v *baseView) mostSaid(at *board.Snapshot) (cut.Answer, bool) {
	answers := make([]cut.Answer, 0, len(v.answers))
	for _, a := range v.answers {
		answers = append(answers, cut.Answer{By: a.By(), Fold: a.Fold, Digest: a.Digest})
	}
	return cut.Holds(turn.InsideOf(at.State().Roster()), answers)
}

func (l *loop) authorCut(body protocol.CutBody) {
	l.core.Step(l.now, hub.Author{Scope: protocol.ScopeInside, Kind: protocol.KindCut, Body: protocol.EncodeBody(body)})
}

// holdBase says that a base holds, once a majority of the members as of that base has answered alike.
func (n *Node) holdBase(ctx context.Context, b *baser, v *baseView) error {
	if !v.turn || v.asked == nil || v.asked.Prev != v.from.ID() || v.held != nil && v.held.Log.LogID == v.asked.Log() && v.held.Seq == v.asked.Seq() {
		return nil
	}
	if b.made == nil || b.log != v.asked.Log() || b.seq != v.asked.Seq() || !v.said(n.home.peer) {
		return nil // who does not know what it comes to does not say that it holds
	}
	a, ok := v.mostSaid(b.made)
	if !ok || a.Digest != b.made.Digest() {
		return nil
	}
	body, err := n.cutBody(b.log, b.seq)
	if err != nil {
		return err
	}
	body.Step, body.Log, body.Seq, body.Fold, body.Digest = protocol.CutHold, b.log.String(), b.seq, a.Fold, a.Digest
	return n.loop.call(ctx, func() { n.loop.authorCut(body) })
}

// proposeBase proposes the next base, once a day, where this node's settings say that records leave.
func (n *Node) proposeBase(ctx context.Context, b *baser, v *baseView) error {
	now := n.time()
	if n.cfg.Retention.Records <= 0 || !v.turn || n.full() != nil || v.held != nil && cut.Raises(baseSeq(v.from), v.agreed) {
		return nil
	}
	last := b.looked
	if v.asked != nil && last.UnixMilli() < v.asked.Wall {
		last = time.UnixMilli(v.asked.Wall)
	}
	if !cut.Due(now, last, baseEvery) {
		return nil
	}
	b.looked = now
	rise, err := n.rise(ctx, v.from, n.cfg.Retention.Records)
	if err != nil {
		return err
	}
	marks := rise.Marks(protocol.CutMarksMax)
	if len(marks) == 0 {
		return nil
	}
	body := protocol.CutBody{Step: protocol.CutBase, Marks: map[string]uint64{}, Prev: v.from.ID()}
	for log, seq := range marks {
		body.Marks[log.String()] = seq
		body.Records += seq - v.from.Base(log).Seq
	}
	return n.loop.call(ctx, func() { n.loop.authorCut(body) })
}

// letGo has what lies below the base leave this disk, where the settings say so and the members have said what it comes to.
func (n *Node) letGo(_ context.Context, _ *baser, v *baseView) error {
	keep := n.cfg.Retention.Records
	if keep <= 0 || v.from == nil || v.held == nil || v.held.Digest != v.from.Digest() || n.time().Sub(v.from.At().Time()) < keep || n.full() != nil {
		return nil
	}
	if n.fenced.Load() != nil || len(n.store.Recovery().SetAside) > 0 {
		return nil
	}
	bases := turn.BasesOf(v.from)
	raised := slices.ContainsFunc(bases, func(b journal.Base) bool {
		here, _ := n.store.Base(b.Log)
		return here.Seq < b.Seq
	})
	if !raised || !v.agreedByMost() {
		return nil
	}
	err := n.store.Leave(bases, v.from.Encode())
	switch {
	case errors.Is(err, journal.ErrUndelivered), errors.Is(err, journal.ErrFull):
		n.log.Info("records stay for now", "err", err)
		return nil
	case err != nil:
		return fmt.Errorf("let records go: %w", err)
	}
	n.log.Info("records below the base have left", "until", v.from.At().Time().Format(time.DateTime))
	return n.loop.call(n.ctx, func() {
		if n.loop.board.From() == v.from { // else it begins at another by now
			n.loop.based(v.from)
		}
	})
}

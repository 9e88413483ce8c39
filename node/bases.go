package node

import (
	"cmp"
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
	"github.com/aster-mesh/aster/protocol/meshwire"
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

// baser remembers what this start made of proposals. Owned by comparing.
type baser struct {
	tried   map[protocol.PeerID]triedBase // the newest proposal of each that it tried to answer
	own     placeOf                       // of this node's proposal
	made    *board.Snapshot               // what that comes to; nil: nothing
	differs string                        // digest of a base that this node makes otherwise
	young   youngBase
	look    baseLook
	logged  map[string]bool // warnings
	moments []cut.Moment
}

// placeOf is where a record lies.
type placeOf struct {
	log protocol.LogID
	seq uint64
}

type triedBase struct {
	placeOf
	at time.Time
}

// youngBase is one that holds and that is young by this node's clock.
type youngBase struct {
	digest string
	until  time.Time
}

// baseView is what the loop knows of bases at one moment.
type baseView struct {
	may    bool
	from   *board.Snapshot
	held   *board.BaseHeld
	agreed map[protocol.LogID]uint64
	asked  []baseAsked // the newest of each member, the newest first
	own    *baseAsked  // of this start, if it is among them
	turn   bool        // it is this node's to propose
	heads  map[protocol.LogID]uint64
}

// baseAsked is a proposal with what was answered.
type baseAsked struct {
	board.BaseAsked
	answers []board.CutAnswer
	said    cut.Answer // by a majority
	most    bool       // there is one
}

func (l *loop) baseView() baseView {
	v := baseView{may: l.mayCompare(), from: l.board.From(), heads: map[protocol.LogID]uint64{}}
	held, agreed := l.board.BaseHeld()
	if held != nil {
		one := *held
		v.held, v.agreed = &one, maps.Clone(agreed)
	}
	for _, asked := range l.board.BasesAsked() {
		one := baseAsked{BaseAsked: asked, answers: l.board.BaseAnswers(&asked)}
		one.said, one.most = l.board.BaseSaid(&asked)
		v.asked = append(v.asked, one)
		if asked.Log().Peer == l.n.home.peer && asked.Log().Start == l.n.startID {
			v.own = &one
		}
	}
	v.turn = cut.Proposer(l.roster().Term().Peer, l.insideMembers(), l.isUp) == l.n.home.peer
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

// agree does what is due about bases: stand on the one that holds, answer proposals, say that one holds, propose, let go.
func (n *Node) agree(ctx context.Context, b *baser) (err error) {
	if b.moments, err = turn.NoteMoment(n.store, n.time(), n.cfg.Retention.Records); err != nil {
		return err
	}
	if b.logged == nil {
		b.logged = map[string]bool{}
	}
	var v baseView
	look := func() error { return n.loop.call(ctx, func() { v = n.loop.baseView() }) }
	if err := look(); err != nil || !v.may {
		return err
	}
	defer func() {
		b.look.differs, b.look.clock = b.differs != "", b.young.digest != ""
		look := b.look
		n.baseLook.Store(&look)
		err = errors.Join(err, n.loop.call(ctx, func() { n.loop.noteStandstill(b) }))
	}()
	for _, step := range []func(context.Context, *baser, *baseView) error{n.standOn, n.answerBases, n.holdBase, n.proposeBase, n.letGo} {
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
	if v.held == nil || !cut.Raises(baseSeq(v.from), v.agreed) || !v.durable(v.agreed) || b.differs == v.held.Digest ||
		b.young.digest == v.held.Digest && n.young(b.young.until) {
		return nil
	}
	snap, err := n.snapshot(ctx, v.from, v.agreed)
	if err != nil {
		return err
	}
	if snap.Digest() != v.held.Digest {
		if n.agreedAlone(v) { // else two were agreed apart, and nobody has said yet what both come to
			b.differs = v.held.Digest
			n.warnings.set("base", "this node makes something else of the records below the base on which the members agreed (program "+n.cfg.Version+
				"): it keeps all of them and shows what it makes of them. Look for damage: aster doctor")
			return nil
		}
	}
	b.differs = ""
	n.warnings.clear("base")
	// A majority has held all of it for long, by their clocks. Whose own clock says otherwise waits: one of them is wrong.
	if b.young = (youngBase{}); n.young(snap.Until()) {
		b.young = youngBase{v.held.Digest, snap.Until()}
		n.warnings.set(warnBaseClock, "the members agreed on a base that goes to "+snap.Until().Format(time.DateTime)+
			", which is young by this node's clock: it waits. Look at the clocks of all machines: aster doctor")
		return nil
	}
	n.warnings.clear(warnBaseClock)
	if err := n.store.SaveCheckpoint(baseCheckpoint, 0, snap.Encode()); err != nil {
		return fmt.Errorf("keep the fold at a base: %w", err)
	}
	return n.loop.call(ctx, func() {
		if n.loop.board.From() == v.from { // else it has begun at another meanwhile
			n.loop.settleOn(snap)
			if snap.Digest() == v.held.Digest {
				n.loop.begunConfirmed()
			}
		}
	})
}

// warnBaseClock and warnBaseBytes are about what keeps this node from a base.
const (
	warnBaseClock = "base-clock"
	warnBaseBytes = "base-bytes"
)

// young says whether what was written until then may still wait for somebody, by this node's clock.
func (n *Node) young(until time.Time) bool { return n.time().Sub(until) < protocol.MessageLife }

// agreedAlone says whether the newest base that holds is the one that this node stands on, raised by what that word names.
func (n *Node) agreedAlone(v *baseView) bool {
	if v.held.Prev != v.from.ID() {
		return false
	}
	marks := maps.Clone(map[protocol.LogID]uint64(v.held.Marks))
	for _, base := range v.from.Bases() {
		marks[base.Log] = max(marks[base.Log], base.Seq)
	}
	return maps.Equal(marks, v.agreed)
}

// settleOn has the board stand on a base.
func (l *loop) settleOn(snap *board.Snapshot) {
	l.board.Settle(snap)
	if l.board.Stale() {
		l.refold()
		l.membersDirty = true
	}
	l.log.Info("the board stands on a base", "logs", len(snap.Bases()), "until", snap.Until().Format(time.DateTime))
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
func (n *Node) rise(ctx context.Context, b *baser, from *board.Snapshot, age time.Duration) (*cut.Rise, error) {
	rise := cut.NewRise(n.time(), age, b.moments, baseSeq(from))
	owed := func(recs []protocol.Record) (out []string, err error) {
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

// answerBases answers the newest proposal of each member, so that no other that is made holds one up.
func (n *Node) answerBases(ctx context.Context, b *baser, v *baseView) error {
	for i := range v.asked {
		if err := n.answerBase(ctx, b, v, &v.asked[i]); err != nil {
			return err
		}
	}
	return nil
}

// answerBase says what this node makes of the records below a base that is proposed, if nothing there is young or owed.
func (n *Node) answerBase(ctx context.Context, b *baser, v *baseView, asked *baseAsked) error {
	by, at := asked.Log().Peer, placeOf{asked.Log(), asked.Seq()}
	if last := b.tried[by]; asked.Prev != v.from.ID() || asked.saidBy(n.home.peer) || time.Since(last.at) < cutAgain && (last.placeOf == at || by != n.home.peer && last.seq > 0) {
		return nil
	}
	if !v.durable(asked.Marks) {
		return nil
	}
	if b.tried == nil {
		b.tried = map[protocol.PeerID]triedBase{}
	}
	b.tried[by] = triedBase{at, time.Now()}
	rise, err := n.rise(ctx, b, v.from, cut.BaseAge)
	if err != nil {
		return err
	}
	if !rise.Bears(asked.Marks) {
		n.log.Info("a base that was proposed is not this node's: something below it is young here, or somebody owes something for it", "by", n.nameOf(by))
		return nil
	}
	snap, err := n.snapshot(ctx, v.from, asked.Marks)
	if err != nil {
		return err
	}
	if by == n.home.peer {
		b.own, b.made = at, snap
	}
	return n.loop.call(ctx, func() {
		if slices.ContainsFunc(n.loop.board.BasesAsked(), func(now board.BaseAsked) bool { return now.Log() == at.log && now.Seq() == at.seq }) {
			n.loop.authorCut(protocol.CutBody{Step: protocol.CutBaseAnswer, Log: at.log.String(), Seq: at.seq, Fold: board.FoldVersion, Digest: snap.Digest()})
		}
	})
}

func (a *baseAsked) saidBy(p protocol.PeerID) bool {
	return slices.ContainsFunc(a.answers, func(a board.CutAnswer) bool { return a.By() == p })
}

func (l *loop) authorCut(body protocol.CutBody) {
	l.core.Step(l.now, hub.Author{Scope: protocol.ScopeInside, Kind: protocol.KindCut, Body: protocol.EncodeBody(body)})
}

// holdBase says that a base holds that this node proposed, once a majority of the members as of that base has answered alike.
func (n *Node) holdBase(ctx context.Context, b *baser, v *baseView) error {
	own := v.own
	if own == nil || own.Prev != v.from.ID() || b.made == nil || b.own != (placeOf{own.Log(), own.Seq()}) || !own.saidBy(n.home.peer) {
		return nil // who does not know what it comes to does not say that it holds
	}
	if !own.most || own.said.Digest != b.made.Digest() {
		return nil
	}
	body, err := n.cutBody(own.Log(), own.Seq())
	if err != nil {
		return err
	}
	body.Step, body.Log, body.Seq, body.Fold, body.Digest = protocol.CutHold, own.Log().String(), own.Seq(), own.said.Fold, own.said.Digest
	return n.loop.call(ctx, func() { n.loop.authorCut(body) })
}

// proposeBase proposes the next base, once a day, where this node's settings say that records leave. A store that is full for
// messages has room for that.
func (n *Node) proposeBase(ctx context.Context, b *baser, v *baseView) error {
	now := n.time()
	if n.cfg.Retention.Records <= 0 || !v.turn || v.held != nil && cut.Raises(baseSeq(v.from), v.agreed) {
		return nil
	}
	last := b.look.looked // what others proposed counts nothing: nobody may be able to answer that
	if v.own != nil && last.UnixMilli() < v.own.Wall {
		last = time.UnixMilli(v.own.Wall)
	}
	if v.held != nil && last.UnixMilli() < v.held.Wall {
		last = time.UnixMilli(v.held.Wall)
	}
	if !cut.Due(now, last, baseEvery) {
		return nil
	}
	b.look.looked = now
	rise, err := n.rise(ctx, b, v.from, n.cfg.Retention.Records)
	if err != nil {
		return err
	}
	marks := rise.Marks(protocol.CutMarksMax)
	b.look.rose = len(marks) > 0
	b.look.owed, b.look.young = rise.Holding()
	if !b.look.rose {
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
	if keep <= 0 || v.from == nil || v.held == nil || v.held.Digest != v.from.Digest() || n.time().Sub(v.from.Until()) < keep {
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
	if !raised {
		return nil
	}
	if bytes, most := len(v.from.Encode()), cmp.Or(n.cfg.baseBytes, meshwire.BaseBytesMax); bytes > most {
		n.warnings.set(warnBaseBytes, fmt.Sprintf("records do not leave: what they come to takes %d MB, and members could fetch no more than %d MB of it. It shrinks as tasks, rooms and keys end: aster status",
			bytes>>20, most>>20))
		return nil
	}
	n.warnings.clear(warnBaseBytes)
	err := n.store.Leave(bases, v.from.Encode())
	switch {
	case errors.Is(err, journal.ErrUndelivered), errors.Is(err, journal.ErrFull):
		n.log.Info("records stay for now", "err", err)
		return nil
	case err != nil:
		return fmt.Errorf("let records go: %w", err)
	}
	n.log.Info("records below the base have left", "until", v.from.Until().Format(time.DateTime))
	return n.loop.call(n.ctx, func() {
		if n.loop.board.From() == v.from { // else it begins at another by now
			n.loop.based(v.from)
		}
	})
}

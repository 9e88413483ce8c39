package sim

import (
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/turn"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
	"github.com/aster-mesh/aster/roles/cut"
	"github.com/aster-mesh/aster/roles/member"
)

const (
	agreeEvery     = 2 * time.Second
	proposeEvery   = 15 * time.Second
	agedFor        = cut.BaseAge + 24*time.Hour
	agedTalk       = 60 * time.Second
	baseCheckpoint = "base"
)

// age lets a month go by over a mesh that has come to rest, in which one node may be away; then the members agree on bases while
// they talk, die and are cut off, newcomers come, and who was away is back.
func (w *World) age() {
	if w.Violation != nil {
		return
	}
	dice := rand.New(rand.NewPCG(w.Plan.Seed, 0xA6ED))
	w.calm, w.mended = false, false
	inside := w.inside()
	away := inside[dice.IntN(len(inside))]
	for _, n := range inside {
		if n.p != nil {
			_, _ = turn.NoteMoment(n.disk, n.p.clock(), 0)
		}
	}
	for _, n := range w.nodes {
		if n.p == nil {
			continue
		}
		n.kill("and a month goes by")
		n.lets = dice.IntN(3) > 0
		n.away = n == away && len(inside) > 2
		n.startIn(w.between(0, 3*time.Second))
	}
	w.aged = agedFor
	w.logf("a month went by; node %d is away", away.i)
	w.after(agreeEvery, w.agreeing)
	w.lying(inside, away)
	for i := range 30 {
		a := Action{Do: Say, A: dice.IntN(64), B: dice.IntN(64), N: dice.IntN(1 << 16), For: time.Duration(dice.IntN(8000)) * time.Millisecond}
		switch i % 5 {
		case 3:
			a.Do = []Verb{Crash, Split, Cut, Drop, Fail, Stop}[dice.IntN(6)]
		case 4:
			a.Do = []Verb{Say, Join, Person, Away}[dice.IntN(4)]
		}
		w.after(time.Duration(dice.Int64N(int64(agedTalk))), func() { w.do(a) })
	}
	late := func() time.Duration { return agedTalk/2 + time.Duration(dice.Int64N(int64(agedTalk/2))) }
	w.after(late(), func() {
		away.away = false
		away.startIn(0)
	})
	for range 2 {
		w.after(late(), func() { w.do(Action{Do: Join, A: dice.IntN(64)}) })
	}
	w.runUntil(w.now + agedTalk)
	w.settle()
}

// agreeing has every node look now and then for what is due about bases.
func (w *World) agreeing() {
	for _, n := range w.nodes {
		if n.p != nil && n.inMesh && !n.out && n.role.Inside() {
			n.p.post(n.p.agree)
		}
	}
	w.after(agreeEvery, w.agreeing)
}

func noRest() error { return nil }

// agree is Node.agree, all at one moment: the real one reads beside the loop.
func (p *proc) agree() {
	if p.standing(p.n.peer) != insider {
		return
	}
	if _, err := turn.NoteMoment(p.n.disk, p.now, 0); err != nil {
		p.n.w.fail("moments are kept", "node %d: %v", p.n.i, err)
	}
	held, agreed := p.board.BaseHeld()
	from := p.board.From()
	base := func(log protocol.LogID) uint64 { return from.Base(log).Seq }
	up := func(peer protocol.PeerID) bool { return peer == p.n.peer || p.peers[peer] != nil }
	mine := cut.Proposer("", turn.InsideOf(p.roster()), up) == p.n.peer
	var own, open *board.BaseAsked // of this start; the newest of others and it to be answered
	for _, asked := range p.board.BasesAsked() {
		if asked.Log().Peer == p.n.peer && asked.Log().Start == p.start {
			own = &asked
		}
		said := false
		for _, a := range p.board.BaseAnswers(&asked) {
			said = said || a.By() == p.n.peer
		}
		if open == nil && !said && asked.Prev == from.ID() && p.tried != (hub.Ref{Log: asked.Log(), Seq: asked.Seq()}) {
			open = &asked
		}
	}
	switch {
	case held != nil && cut.Raises(base, agreed):
		p.standOn(from, agreed)
	case open != nil:
		p.answerBase(open, from)
	case own != nil && own.Prev == from.ID() && p.made != nil && p.madeOf == (hub.Ref{Log: own.Log(), Seq: own.Seq()}) && p.holdBase(own):
	case mine && p.n.w.now-p.n.proposed >= proposeEvery:
		p.n.proposed = p.n.w.now
		marks := p.rise(from).Marks(protocol.CutMarksMax)
		if len(marks) > 0 {
			p.authorCut(protocol.CutBody{Step: protocol.CutBase, Marks: board.MarkTexts(marks), Prev: from.ID()})
		}
	case p.n.lets && held != nil && from != nil && held.Digest == from.Digest():
		p.letGo(from)
	}
}

func (p *proc) authorCut(body protocol.CutBody) {
	p.core.Step(p.now, hub.Author{Scope: protocol.ScopeInside, Kind: protocol.KindCut, Body: protocol.EncodeBody(body)})
}

func (p *proc) durable(marks map[protocol.LogID]uint64) bool {
	for log, seq := range marks {
		if p.n.disk.Durable(log) < seq {
			return false
		}
	}
	return true
}

func (p *proc) standOn(from *board.Snapshot, agreed map[protocol.LogID]uint64) {
	if !p.durable(agreed) {
		return
	}
	snap, err := turn.SnapshotAt(p.n.disk, p.n.w.mesh.id, from, agreed, nil)
	if err != nil {
		p.n.w.fail("boards fold up to a base", "node %d: %v", p.n.i, err)
		return
	}
	if held, _ := p.board.BaseHeld(); p.n.w.lie(held.Digest) {
		p.n.w.fail("a false word on a base has no effect", "node %d stands on what node %d said alone", p.n.i, p.n.w.liar.n.i)
		return
	}
	_ = p.n.disk.SaveCheckpoint(baseCheckpoint, 0, snap.Encode())
	p.mayDie("before it stands on a base")
	p.board.Settle(snap)
	p.n.w.Stats.Bases++
	if p.board.Stale() {
		p.refold()
		p.dirty = true
	}
}

// mayDie is a crash between two steps.
func (p *proc) mayDie(when string) {
	if w := p.n.w; !w.calm && w.chance(0.1) {
		p.n.kill(when)
		p.n.startIn(w.between(0, 3*time.Second))
		panic(died{p.n})
	}
}

func (p *proc) owed() *turn.Owed {
	o, err := turn.OwedNow(p.board, p.core.Questions())
	if err != nil {
		p.n.w.fail("the board folds", "node %d: %v", p.n.i, err)
	}
	return o
}

func (p *proc) rise(from *board.Snapshot) *cut.Rise {
	moments, _ := turn.NoteMoment(p.n.disk, p.now, 0)
	rise := cut.NewRise(p.now, 0, moments, func(log protocol.LogID) uint64 { return from.Base(log).Seq })
	o := p.owed()
	_ = turn.FindBase(p.n.disk, rise, func(recs []protocol.Record) (out []string, err error) {
		for i := range recs {
			out = append(out, o.For(&recs[i]))
		}
		return out, nil
	}, noRest)
	return rise
}

func (p *proc) answerBase(asked *board.BaseAsked, from *board.Snapshot) {
	if !p.durable(asked.Marks) {
		return
	}
	at := hub.Ref{Log: asked.Log(), Seq: asked.Seq()}
	if p.tried = at; !p.rise(from).Bears(asked.Marks) {
		return
	}
	snap, err := turn.SnapshotAt(p.n.disk, p.n.w.mesh.id, from, asked.Marks, nil)
	if err != nil {
		p.n.w.fail("boards fold up to a base", "node %d: %v", p.n.i, err)
		return
	}
	if at.Log.Peer == p.n.peer {
		p.made, p.madeOf = snap, at
	}
	p.authorCut(protocol.CutBody{Step: protocol.CutBaseAnswer, Log: at.Log.String(), Seq: at.Seq, Fold: board.FoldVersion, Digest: p.n.w.answer(p.n, snap.Digest())})
}

// holdBase says whether it did.
func (p *proc) holdBase(own *board.BaseAsked) bool {
	for _, a := range p.board.BaseAnswers(own) {
		if a.Digest != p.made.Digest() && !p.n.w.byPeer[a.By()].out && !p.n.w.lie(a.Digest) {
			p.n.w.fail("boards are alike at a base", "nodes %d and %d answer otherwise", p.n.i, p.n.w.byPeer[a.By()].i)
		}
	}
	a, ok := p.board.BaseSaid(own)
	if !ok || a.Digest != p.made.Digest() {
		return false
	}
	p.authorCut(protocol.CutBody{Step: protocol.CutHold, Marks: board.MarkTexts(own.Marks), Prev: own.Prev, Log: own.Log().String(), Seq: own.Seq(), Fold: a.Fold, Digest: a.Digest})
	return true
}

func (p *proc) letGo(from *board.Snapshot) {
	raised := false
	for _, b := range from.Bases() {
		here, _ := p.n.disk.Base(b.Log)
		raised = raised || here.Seq < b.Seq
	}
	if !raised {
		return
	}
	o := p.owed()
	for r := range p.n.disk.order.from(0) {
		if rec := &r.Record; rec.Seq <= from.Base(rec.Log).Seq && o.For(rec) != "" {
			p.n.w.fail("nothing that is owed lies below a base", "node %d: %s %d (%s)", p.n.i, p.n.w.logName(rec.Log), rec.Seq, rec.Kind)
		}
	}
	if !p.rebased(p.n.disk.Leave(turn.BasesOf(from), from.Encode())) {
		return
	}
	p.n.w.Stats.Leaves++
	p.mayDie("when records have left")
	for _, b := range from.Bases() {
		p.rep.Based(b.Log, b.Seq)
	}
}

// rebased says whether the disk took a base; if it failed for good, the process ends.
func (p *proc) rebased(err error) bool {
	if errors.Is(err, errPower) {
		p.n.kill("of its disk")
		p.n.startIn(p.n.w.between(100*time.Millisecond, 5*time.Second))
		panic(died{p.n})
	}
	return err == nil
}

// standsOn is standsOn.
func (n *node) standsOn() *board.Snapshot {
	var begins, kept *board.Snapshot
	read := func(raw []byte) *board.Snapshot {
		snap, err := board.DecodeSnapshot(raw)
		if err != nil {
			n.w.fail("snapshots are read", "node %d: %v", n.i, err)
		}
		return snap
	}
	if raw, ok, _ := n.disk.Snapshot(); ok {
		begins = read(raw)
	}
	if _, raw, ok, _ := n.disk.Checkpoint(baseCheckpoint); ok {
		kept = read(raw)
		for _, b := range begins.Bases() {
			if kept.Base(b.Log).Seq < b.Seq {
				return begins
			}
		}
		return kept
	}
	return begins
}

// tellBase is loop.tellBase.
func (p *proc) tellBase(peers []protocol.PeerID) {
	raw, ok := p.n.serves()
	if !ok || len(peers) == 0 {
		return
	}
	snap, err := board.DecodeSnapshot(raw)
	if err != nil {
		p.n.w.fail("snapshots are read", "node %d: %v", p.n.i, err)
		return
	}
	f := meshwire.Base{Bytes: uint64(len(raw))}
	_, _ = hex.Decode(f.Digest[:], []byte(snap.Digest()))
	for _, peer := range peers {
		if p.standing(peer) == insider {
			p.sendTo(peer, f)
		}
	}
}

// toldOfBase is loop.toldOfBase with the fetching, which may be cut off.
func (p *proc) toldOfBase(from protocol.PeerID, f meshwire.Base) {
	if p.standing(from) != insider || !p.inside {
		return
	}
	p.bases[from] = f
	inviter := protocol.PeerID("")
	if p.n.by != nil {
		inviter = p.n.by.peer
	}
	known, inside := p.known(), 0
	for _, m := range known {
		if m.Inside && !m.Revoked && m.Valid {
			inside++
		}
	}
	own, _ := member.ParseChain(p.n.home.chain)
	b := turn.Beginning{Told: p.bases, Inviter: inviter, Linked: p.peers[inviter] != nil, Others: inside - 1, Stalled: func(protocol.PeerID) bool { return false }, House: func(peer protocol.PeerID) protocol.PeerID {
		chain, err := member.ParseChain(known[peer].Chain)
		if err != nil {
			return peer
		}
		return turn.HouseOf(chain, own)
	}}
	peer, ok := b.Whose()
	if !ok {
		return
	}
	w, to, said := p.n.w, p.n.w.byPeer[peer], p.bases[peer]
	w.after(w.between(10*time.Millisecond, 2*time.Second), func() {
		raw, ok := to.serves()
		if p.gone || to.p == nil || !ok || !w.network.passes(to.i, p.n.i) {
			return
		}
		snap, err := board.DecodeSnapshot(raw)
		if err == nil && snap.Digest() == hex.EncodeToString(said.Digest[:]) {
			p.post(func() { p.beginning = snap })
		}
	})
}

// begin is loop.begin.
func (p *proc) begin() {
	snap := p.beginning
	p.beginning = nil
	lacks := false
	for _, b := range snap.Bases() {
		lacks = lacks || p.rep.Head(b.Log).Seq < b.Seq
	}
	for _, b := range p.board.From().Bases() {
		lacks = lacks && snap.Base(b.Log).Seq >= b.Seq
	}
	if lacks {
		young, err := turn.TakesYoung(p.n.disk, func(log protocol.LogID) uint64 { return p.rep.Head(log).Seq }, snap, p.now)
		if err != nil || young {
			p.n.w.fail("a base takes no young record", "node %d: %v", p.n.i, err)
			return
		}
	}
	if !lacks || !p.rebased(p.n.disk.Begin(turn.BasesOf(snap), snap.Encode())) {
		return
	}
	if w := p.n.w; w.lie(snap.Digest()) && p.n.by != w.liar.n {
		w.fail("one member's word is no beginning", "node %d begins at what node %d made up", p.n.i, w.liar.n.i)
	}
	p.n.w.logf("node %d begins at a base", p.n.i)
	p.n.w.Stats.Begins++
	p.mayDie("when it has begun at a base")
	p.board = snap.State()
	p.foldDisk()
	for left := foldings; p.board.Stale() && p.n.settles(left); left-- {
		p.refold()
	}
	clear(p.bases)
	p.again(protocol.Refuse(protocol.CodeBusy, "this node has just begun at what other members hold", "say it again"))
	p.savedAt = 0
	p.checkpoint()
}

// left says whether a message lies below the base at which a node begins.
func (n *node) left(ref hub.Ref) bool { return ref.Seq <= n.disk.bases[ref.Log].Seq }

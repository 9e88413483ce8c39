package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/protocol"
)

// liar is a member of the inside that lies about bases: it says that some hold, answers otherwise, and tells of a snapshot that it made up.
type liar struct {
	n      *node
	dice   *rand.Rand
	lies   map[string]bool // digests of its own
	forged *board.Snapshot
}

// lying has one member lie in a third of the runs. It is linked like any other, and its records count.
func (w *World) lying(inside []*node, away *node) {
	dice := rand.New(rand.NewPCG(w.Plan.Seed, 0x11A2))
	if dice.IntN(3) > 0 || len(inside) < 3 {
		return
	}
	n := inside[dice.IntN(len(inside))]
	if n == away {
		return
	}
	w.liar = &liar{n: n, dice: dice, lies: map[string]bool{}}
	w.logf("node %d lies about bases", n.i)
	for range 4 {
		w.after(time.Duration(dice.Int64N(int64(agedTalk))), func() {
			if n.p != nil && n.p.inside && !n.out {
				n.p.post(func() { w.liar.says(n.p) })
			}
		})
	}
}

func (l *liar) digest() string {
	d := fmt.Sprintf("%064x", l.dice.Uint64()|1)
	l.lies[d] = true
	return d
}

// says proposes a base of young records and says at once that it holds, or says so of what it did not propose.
func (l *liar) says(p *proc) {
	body := protocol.CutBody{Step: protocol.CutBase, Marks: map[string]uint64{}, Prev: p.board.From().ID()}
	for log, seq := range p.n.w.heads(p.n) {
		if log.Scope == protocol.ScopeInside && seq.Seq > p.board.From().Base(log).Seq {
			body.Marks[log.String()] = seq.Seq
		}
	}
	if len(body.Marks) == 0 {
		return
	}
	at := protocol.LogID{Peer: p.n.peer, Start: p.start, Scope: protocol.ScopeInside}
	next := p.board.Mark(at) + 1
	if l.dice.IntN(3) > 0 {
		p.authorCut(body)
	}
	body.Step, body.Log, body.Seq, body.Fold, body.Digest = protocol.CutHold, at.String(), next, board.FoldVersion, l.digest()
	p.authorCut(body)
	p.n.w.Stats.Lies++
}

// answer is the digest that a member says, of what it made.
func (w *World) answer(n *node, digest string) string {
	if w.liar != nil && w.liar.n == n && w.liar.dice.IntN(2) == 0 {
		return w.liar.digest()
	}
	return digest
}

// lie says whether a digest is one of the liar's.
func (w *World) lie(digest string) bool { return w.liar != nil && w.liar.lies[digest] }

// serves is the snapshot that a member serves: the liar's is another once it has one.
func (n *node) serves() (raw []byte, ok bool) {
	raw, ok, _ = n.disk.Snapshot()
	l := n.w.liar
	if !ok || l == nil || l.n != n {
		return raw, ok
	}
	if l.forged == nil {
		snap, err := board.DecodeSnapshot(raw)
		if err != nil {
			return raw, ok
		}
		st := snap.State()
		l.forged = st.Snapshot(snap.Bases(), snap.At()+1, snap.Until().UnixMilli())
		l.lies[l.forged.Digest()] = true
	}
	return l.forged.Encode(), true
}

package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/node/turn"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/cut"
	"github.com/aster-mesh/aster/roles/member"
)

// The members of the inside compare their boards: one proposes a cut through all logs, each folds its records up to it and says
// the digest of that on record. Nodes that hold the same records and show different boards are found by it, whatever made
// them differ, and every board says so.

const (
	// cutLook is how often a node looks whether there is something to propose or to answer.
	cutLook = time.Minute
	// cutAgain is how long it waits before it folds again for a proposal that it could not answer.
	cutAgain = 15 * time.Minute
	// cutRest is the pause after a page of records, so that folding takes a fifth of a core at most.
	cutRest = 8 * time.Millisecond
)

// comparing takes part in comparisons for as long as the node runs.
func (n *Node) comparing(ctx context.Context) error {
	look := n.cfg.cutLook
	switch {
	case look == 0:
		look = cutLook
	case look < 0: // a test does it
		<-ctx.Done()
		return nil
	}
	t := time.NewTicker(look)
	defer t.Stop()
	var c comparer
	var b baser
	for {
		select {
		case <-t.C:
		case <-n.cutCame:
		case <-ctx.Done():
			return nil
		}
		err := errors.Join(n.compare(ctx, &c), n.agree(ctx, &b))
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, turn.ErrCutDamaged):
			n.log.Info("this node's board is not compared until its store is whole", "err", err)
		case err != nil:
			n.log.Warn("this node's board was not compared with others'", "err", err)
		}
	}
}

// comparer remembers which proposal this start tried to answer last, and when. Owned by comparing.
type comparer struct {
	log protocol.LogID
	seq uint64
	at  time.Time
}

// compare does what is due: propose, or answer the newest proposal.
func (n *Node) compare(ctx context.Context, c *comparer) error {
	var open *board.Cut
	if err := n.loop.call(ctx, func() {
		n.loop.noteDiffer()
		if n.loop.cutDue() {
			n.loop.proposeCut()
		}
		open = n.loop.openCut()
	}); err != nil || open == nil {
		return err
	}
	if c.log == open.Log() && c.seq == open.Seq() && time.Since(c.at) < cutAgain {
		return nil
	}
	body, err := n.cutBody(open.Log(), open.Seq())
	if err != nil {
		return err
	}
	var marks map[protocol.LogID]uint64
	var live liveBoard
	var bad error
	held := false
	var from *board.Snapshot
	if err := n.loop.call(ctx, func() {
		marks, held, bad = turn.CutMarks(n.loop.rep, n.loop.roster(), &body)
		from = n.loop.board.From()
		held = held && turn.Above(marks, from)
		if held {
			live = n.loop.liveBoard()
		}
	}); err != nil || bad != nil || !held {
		return cmp.Or(err, bad) // what is missing is on its way
	}
	c.log, c.seq, c.at = open.Log(), open.Seq(), time.Now()
	rest := func() error { return pause(ctx, cutRest) }
	st := board.New(member.MeshID(n.home.mesh.Mesh))
	if from != nil {
		st = from.State()
	}
	st, err = turn.FoldAt(n.store, st, marks, rest)
	if err != nil {
		return err
	}
	answer := protocol.CutBody{Step: protocol.CutAnswer, Log: open.Log().String(), Seq: open.Seq(), Fold: board.FoldVersion, Digest: st.Digest(), Parts: st.Parts()}
	if err := n.loop.call(ctx, func() {
		if still := n.loop.openCut(); still != nil && still.Log() == open.Log() && still.Seq() == open.Seq() {
			n.loop.authorCut(answer)
		}
	}); err != nil {
		return err
	}
	if st, err = turn.FoldAt(n.store, st, live.marks, rest); err != nil || st.Digest() == live.digest {
		return err
	}
	return n.loop.call(ctx, func() {
		if n.loop.board.From() == from { // else it stands on another base by now
			n.loop.wrongBoard()
		}
	})
}

// liveBoard is the board that this node shows at one moment, and how far it has taken each log.
type liveBoard struct {
	marks  map[protocol.LogID]uint64
	digest string
}

func (l *loop) liveBoard() liveBoard {
	out := liveBoard{marks: map[protocol.LogID]uint64{}, digest: l.board.Digest()}
	for _, h := range l.rep.Heads() {
		if seq := l.board.Mark(h.Log); seq > 0 {
			out.marks[h.Log] = seq
		}
	}
	return out
}

// wrongBoard makes the board anew that was not what the records make.
func (l *loop) wrongBoard() {
	l.log.Error("the board that this node showed was not what its records make: it is folded anew")
	l.warn("board", "the board that this node showed since its start was not what its records make. It was made anew from them; please report it")
	l.refold()
	l.membersDirty = true
}

// pause returns after d, or with its cause when ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// mayCompare says whether this node's word on boards is one: inside, and in possession of its home.
func (l *loop) mayCompare() bool {
	return l.inside() && l.n.fenced.Load() == nil && l.n.standingOf(l.n.home.peer) == mesh.Inside
}

// cutDue says whether it is time that the members compare, and this node's turn to ask them.
func (l *loop) cutDue() bool {
	inside := l.insideMembers()
	if !l.mayCompare() || len(inside) < 2 {
		return false
	}
	last := l.now
	if self, ok := l.roster().Member(l.n.home.peer); ok {
		last = time.UnixMilli(self.Since)
	}
	if c, _, ok := l.board.Cut(); ok {
		last = time.UnixMilli(c.Wall)
	}
	return cut.Due(l.now, last, l.n.cfg.Boards.Compare) && cut.Proposer(l.roster().Term().Peer, inside, l.isUp) == l.n.home.peer
}

// isUp says whether a member is linked, or this node.
func (l *loop) isUp(p protocol.PeerID) bool { return p == l.n.home.peer || l.peers[p] != nil }

// proposeCut asks the members to compare; false: not now.
func (l *loop) proposeCut() bool {
	if l.n.full() != nil {
		return false
	}
	body, ok := turn.ProposeCut(l.rep, l.roster())
	if !ok {
		l.log.Info("boards are not compared: there are too many logs", "most", protocol.CutMarksMax)
		return false
	}
	l.authorCut(body)
	return true
}

// compareTime is how long who asks for a comparison waits for the answers of those that are linked.
const compareTime = 30 * time.Second

// CompareBoards implements web.Backups: the members are asked now.
func (n *Node) CompareBoards(ctx context.Context) (out api.Compared, err error) {
	var no *protocol.Refusal
	var before board.Cut
	err = n.loop.call(ctx, func() {
		before, _, _ = n.loop.board.Cut()
		switch {
		case !n.loop.mayCompare():
			no = protocol.Refuse(protocol.CodeNotAllowed, "this node is no member of the inside, or its home was copied: nobody compares with it", "aster status")
		case len(n.loop.insideMembers()) < 2:
			no = protocol.Refuse(protocol.CodeNotAllowed, "no other node is inside: there is nothing to compare with", "aster invite")
		case !n.loop.proposeCut():
			no = protocol.Refuse(protocol.CodeNotAllowed, "the disk is full, or there are more logs than one comparison takes", "aster status")
		}
	})
	if err != nil {
		return out, err
	}
	if no != nil {
		return out, no
	}
	err = lookUntil(ctx, compareTime, func() (through bool, err error) {
		err = n.loop.call(ctx, func() {
			if now, _, _ := n.loop.board.Cut(); now.Log() == before.Log() && now.Seq() == before.Seq() {
				return
			}
			out = *n.loop.compared()
			through = !slices.ContainsFunc(n.loop.verdict().Open, func(p protocol.PeerID) bool { return p == n.home.peer || n.loop.peers[p] != nil })
		})
		return through, err
	})
	return out, err
}

// openCut is the newest cut, if this node owes an answer to it; else nil.
func (l *loop) openCut() *board.Cut {
	c, answers, ok := l.board.Cut()
	if !ok || !l.mayCompare() || slices.ContainsFunc(answers, func(a board.CutAnswer) bool { return a.By() == l.n.home.peer }) {
		return nil
	}
	return &c
}

// insideMembers are the members of the inside in office, this node included, by id.
func (l *loop) insideMembers() (out []protocol.PeerID) {
	for p, m := range l.known() {
		if m.Inside && !m.Revoked && m.Valid {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

// verdict is what the answers to the newest cut say.
func (l *loop) verdict() cut.Verdict {
	_, answers, _ := l.board.Cut()
	return cut.Judge(l.insideMembers(), board.ToJudge(answers))
}

// compared is how the boards of the members compare, as far as they have said; nil: nobody asked yet.
func (l *loop) compared() *api.Compared {
	c, answers, ok := l.board.Cut()
	if !ok {
		return nil
	}
	v := l.verdict()
	names := func(peers []protocol.PeerID) (out []string) {
		for _, p := range peers {
			out = append(out, l.n.nameOf(p))
		}
		return out
	}
	out := &api.Compared{At: c.Wall, By: l.n.nameOf(c.Log().Peer), Records: c.Records, Digest: v.Digest,
		Alike: names(v.Alike), Differ: names(v.Differ), Other: names(v.Other), Open: names(v.Open)}
	if len(v.Differ) > 0 {
		var parts []map[string]string
		for _, a := range answers {
			if slices.Contains(v.Differ, a.By()) || slices.Contains(v.Alike, a.By()) {
				parts = append(parts, a.Parts)
			}
		}
		out.In = cut.Differences(parts)
	}
	return out
}

// cutFolded tells whoever watches that members' boards differ.
func (l *loop) cutFolded() {
	for _, line := range l.cutWarnings() {
		l.log.Warn(line)
	}
	l.noteDiffer()
	l.peersChanged()
	select {
	case l.n.cutCame <- struct{}{}:
	default:
	}
}

// noteDiffer keeps the count for those who watch figures.
func (l *loop) noteDiffer() { l.n.differ.Store(int64(len(l.verdict().Differ))) }

// cutWarnings are the lines of members whose boards differ.
func (l *loop) cutWarnings() []string {
	c := l.compared()
	if c == nil || len(c.Differ) == 0 {
		return nil
	}
	who := protocol.CutText(strings.Join(c.Differ, ", "), 200)
	in := ""
	if len(c.In) > 0 {
		in = " (" + protocol.CutText(strings.Join(c.In, ", "), 200) + ")"
	}
	if c.Digest == "" {
		return []string{fmt.Sprintf("the boards of %s differ over the same %d records%s, and no majority says which is right: look for damage on each: aster doctor", who, c.Records, in)}
	}
	return []string{fmt.Sprintf("the board of %s is not what a majority makes of the same %d records%s: do not go by it, and look for damage there: aster doctor", who, c.Records, in)}
}

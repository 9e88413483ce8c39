package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/turn"
	"github.com/aster-mesh/aster/protocol"
)

// cutsAlike: what nodes of the inside make of the records up to a cut is the same, wherever it lies and in whatever order each
// of them got them; and a board that is folded on from there is the board that grew.
func (w *World) cutsAlike() *broken {
	if w.Plan.Seed%3 > 0 {
		return nil // it costs as much as the other judgements together
	}
	all := w.inside()
	heads := w.heads(all[0])
	logs := make([]protocol.LogID, 0, len(heads))
	for log := range heads {
		logs = append(logs, log)
	}
	slices.SortFunc(logs, func(a, b protocol.LogID) int { return strings.Compare(a.String(), b.String()) })
	dice := rand.New(rand.NewPCG(w.Plan.Seed, 0xC07))
	marks := map[protocol.LogID]uint64{}
	for _, log := range logs {
		seq := heads[log].Seq
		if dice.IntN(3) > 0 {
			seq = dice.Uint64N(seq + 1)
		}
		if seq > 0 {
			marks[log] = seq
		}
	}
	for _, n := range all {
		for _, b := range n.p.board.From().Bases() {
			marks[b.Log] = max(marks[b.Log], b.Seq)
		}
	}
	if b := w.cutsAreTaken(all); b != nil {
		return b
	}
	want := ""
	for _, n := range all {
		st := board.New(w.mesh.id)
		if from := n.p.board.From(); from != nil {
			st = from.State()
		}
		st, err := turn.FoldAt(n.disk, st, marks, nil)
		if err != nil {
			return &broken{"boards fold up to a cut", fmt.Sprintf("node %d: %v", n.i, err)}
		}
		switch got := string(st.Canonical()); {
		case want == "":
			want = got
		case got != want:
			return &broken{"boards are alike at a cut", fmt.Sprintf("of nodes %d and %d: %s", all[0].i, n.i, difference([]byte(want), []byte(got)))}
		}
		whole := map[protocol.LogID]uint64{}
		held, _ := n.disk.Heads()
		for _, h := range held {
			whole[h.Log] = h.Seq
		}
		if st, err = turn.FoldAt(n.disk, st, whole, nil); err != nil || st.Digest() != n.p.board.Digest() {
			return &broken{"the board goes on from a cut", fmt.Sprintf("node %d: %v", n.i, err)}
		}
	}
	return nil
}

// cutsAreTaken: at rest a cut that one node proposes is held by every other.
func (w *World) cutsAreTaken(all []*node) *broken {
	body, ok := turn.ProposeCut(all[0].p.rep, all[0].p.roster())
	if !ok {
		return &broken{"a cut is proposed", "there are too many logs"}
	}
	for _, n := range all {
		if _, held, err := turn.CutMarks(n.p.rep, n.p.roster(), &body); !held || err != nil {
			return &broken{"a cut is held by all at rest", fmt.Sprintf("node %d does not hold what node %d proposes: %v", n.i, all[0].i, err)}
		}
	}
	return nil
}

package board

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// withCuts is a random journal in whose logs members propose cuts and answer, some of them nonsense.
func withCuts(t testing.TB, seed uint64) *journal {
	j := randomJournal(t, seed, 120)
	dice := rand.New(rand.NewPCG(seed, 0xC07))
	type ref struct {
		log protocol.LogID
		seq uint64
	}
	refs := []ref{{j.logs[0].id, 1}} // no proposal
	for range 40 {
		l := j.logs[dice.IntN(len(j.logs))]
		body := protocol.CutBody{Step: []protocol.CutStep{protocol.CutPropose, protocol.CutAnswer, "new"}[min(dice.IntN(9)/3, 2)]}
		switch {
		case body.Step == protocol.CutPropose && dice.IntN(6) > 0:
			body.Marks = map[string]uint64{j.logs[0].id.String(): uint64(1 + dice.IntN(9))}
			refs = append(refs, ref{l.id, uint64(len(l.records) + 1)})
		case body.Step == protocol.CutAnswer:
			of := refs[dice.IntN(len(refs))]
			body.Log, body.Seq, body.Fold, body.Digest = of.log.String(), of.seq, 1, fmt.Sprintf("%064x", dice.IntN(2))
			if dice.IntN(6) == 0 {
				body.Digest = []string{"", "xx", "00", "zz" + body.Digest[2:]}[dice.IntN(4)]
			}
		}
		j.clock += protocol.HLC(dice.IntN(9))
		l.raw(j.clock-protocol.HLC(dice.IntN(60)), protocol.KindCut, protocol.EncodeBody(body))
	}
	j.clock += 100 // a proposal newer than all before, and answers to it
	inside := []*journalLog{j.logs[0], j.logs[1], j.logs[3], j.logs[6]}
	of := j.write(inside[dice.IntN(4)], protocol.KindCut, protocol.CutBody{Step: protocol.CutPropose, Marks: map[string]uint64{j.logs[0].id.String(): 3}})
	for _, l := range inside[dice.IntN(4):] {
		j.write(l, protocol.KindCut, protocol.CutBody{Step: protocol.CutAnswer, Log: of.Log.String(), Seq: of.Seq, Fold: 1, Digest: fmt.Sprintf("%064x", dice.IntN(2))})
	}
	return j
}

// TestTheNewestCutAndItsAnswersAreTheSameInEveryOrder compares the fold with a look at the whole journal, over checkpoints too.
func TestTheNewestCutAndItsAnswersAreTheSameInEveryOrder(t *testing.T) {
	found := 0
	for seed := range uint64(30) {
		j := withCuts(t, seed)
		w := twinOf(j)
		var newest *protocol.Record
		answers := map[protocol.PeerID]*protocol.Record{}
		for _, r := range w.records { // in order
			body, err := protocol.DecodeBody[protocol.CutBody](r)
			if err != nil || r.Kind != protocol.KindCut || r.Log.Scope != protocol.ScopeInside {
				continue
			}
			if body.Step == protocol.CutPropose && len(body.Marks) > 0 {
				newest = r
			}
			if body.Step == protocol.CutAnswer && len(body.Digest) == 64 && body.Digest[0] != 'z' {
				answers[r.Log.Peer] = r
			}
		}
		var want []string
		for peer, r := range answers {
			body, _ := protocol.DecodeBody[protocol.CutBody](r)
			if newest != nil && body.Log == newest.Log.String() && body.Seq == newest.Seq {
				want = append(want, fmt.Sprint(peer, body.Digest))
				found++
			}
		}
		slices.Sort(want)
		canonical := ""
		for order := range uint64(6) {
			records := j.merged(rand.New(rand.NewPCG(seed, order)))
			s := fold(t, emptyState(j, KeptTasks), records[:len(records)/2])
			s, err := Decode(s.Encode())
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records {
				if err := s.Apply(r, nil); err != nil {
					t.Fatal(err)
				}
			}
			if s.Stale() {
				s = fold(t, s.Restart(), records)
			}
			c, all, ok := s.Cut()
			if ok != (newest != nil) || ok && (c.Log() != newest.Log || c.Seq() != newest.Seq || c.Wall != newest.Wall) {
				t.Fatalf("seed %d: the newest cut is %v %v, want %v", seed, ok, c, newest)
			}
			var got []string
			for _, a := range all {
				got = append(got, fmt.Sprint(a.By(), a.Digest))
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Fatalf("seed %d: answers %v, want %v", seed, got, want)
			}
			if text := string(s.Canonical()); canonical == "" {
				canonical = text
			} else if text != canonical {
				t.Fatalf("seed %d: order %d gives another board", seed, order)
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d answers to newest cuts in all journals", found)
	}
}

// TestOnlyTheInsideComparesBoards: what a member outside says of cuts counts nothing.
func TestOnlyTheInsideComparesBoards(t *testing.T) {
	j := newJournal(t)
	in, out := j.open(0, protocol.ScopeInside), j.open(3, protocol.ScopeOutside(j.peers[3]))
	for i := range j.peers {
		j.write(in, protocol.KindMember, j.admits(i))
	}
	j.write(out, protocol.KindCut, protocol.CutBody{Step: protocol.CutPropose, Marks: map[string]uint64{in.id.String(): 1}})
	s := fold(t, emptyState(j, KeptTasks), j.merged(rand.New(rand.NewPCG(1, 1))))
	if _, _, ok := s.Cut(); ok {
		t.Error("a member outside has the inside compare")
	}
	many := map[string]uint64{}
	for i := range protocol.CutMarksMax + 1 {
		many[protocol.LogID{Peer: j.peers[0], Start: protocol.Start{At: 1, Rand: uint64(i)}, Scope: protocol.ScopeInside}.String()] = 1
	}
	j.write(in, protocol.KindCut, protocol.CutBody{Step: protocol.CutPropose, Marks: many})
	if raw := in.records[len(in.records)-1].Body; len(raw) > protocol.RecordBytesMax*3/4 {
		t.Errorf("the longest proposal has %d bytes", len(raw))
	}
	if s = fold(t, emptyState(j, KeptTasks), j.merged(rand.New(rand.NewPCG(1, 1)))); s.cut != nil {
		t.Error("a proposal of too many logs was taken")
	}
}

// TestPartsTellInWhatBoardsDiffer: one more agent is another board in its agents and in what is counted, and in nothing else.
func TestPartsTellInWhatBoardsDiffer(t *testing.T) {
	j := newJournal(t)
	in := j.open(0, protocol.ScopeInside)
	j.write(in, protocol.KindMember, j.admits(0))
	a := fold(t, emptyState(j, KeptTasks), in.records).Parts()
	j.bind(in, "ada")
	b := fold(t, emptyState(j, KeptTasks), in.records).Parts()
	var differ []string
	for name := range b {
		if a[name] != b[name] {
			differ = append(differ, name)
		}
	}
	slices.Sort(differ)
	if want := []string{"bindings", "count", "kinds", "marks", "sum"}; !slices.Equal(differ, want) || len(a) != len(b) || len(a) > protocol.CutPartsMax {
		t.Errorf("they differ in %v, want %v; %d and %d parts", differ, want, len(a), len(b))
	}
}

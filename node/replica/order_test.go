package replica

import (
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// checkOrder: whoever begins to hold a log holds all that its writer logged there before, unless somebody lost it.
func (n *node) checkOrder(id protocol.LogID, first uint64) {
	if first > 1 || n.w.older {
		return
	}
	for old, rs := range n.w.byID[id.Peer].logs {
		if old.Peer == id.Peer && old.Scope == id.Scope && compareStarts(old.Start, id.Start) < 0 && len(n.logs[old]) < len(rs) {
			n.w.fail("node %d takes %s/%d and holds %d of %d of %d, the start before", n.at, id.Peer.Short(), id.Start.At, len(n.logs[old]), len(rs), old.Start.At)
		}
	}
}

func sentOf(rd Ready) (logs []protocol.LogID) {
	for _, s := range rd.Send {
		logs = append(logs, s.Log)
	}
	return logs
}

// wantSent is what one Ready sends, in order; nothing that it waits for lies in the past.
func wantSent(t *testing.T, r *Replica, now time.Time, want ...protocol.LogID) {
	t.Helper()
	rd := r.Ready(now)
	got := sentOf(rd)
	same := len(got) == len(want)
	for i := range got {
		same = same && got[i] == want[i]
	}
	if !same {
		t.Fatalf("sends %v, want %v", got, want)
	}
	for _, s := range rd.Send {
		r.Sent(s.Peer, s.Log, s.To, 1)
	}
	if rd = r.Ready(now); len(rd.Send) > 0 {
		t.Fatalf("then sends %v", sentOf(rd))
	}
	if next := r.Next(); !next.IsZero() && !next.After(now) {
		t.Fatalf("waits for %v ago", now.Sub(next))
	}
}

func TestANewStartIsSentOnceTheOnesBeforeAreHeld(t *testing.T) {
	first, second, third := logOf(ada, 1), logOf(ada, 2), logOf(ada, 3)
	r := New(ada, []Head{{first, 4, protocol.Hash{1}}, {second, 9, protocol.Hash{2}}}, seeAll)
	r.LinkUp(start, bob, true)
	r.Ready(start)
	r.Compared(start, bob, Vector{Marks: []Mark{{Log: first, Seq: 4}, {Log: second, Seq: 5}}})
	r.Committed(start, commit(third, 2, 200, ""))
	wantSent(t, r, start, second)
	r.Confirmed(start, bob, []Mark{{Log: second, Seq: 7}})
	wantSent(t, r, start)
	r.Committed(start, commit(third, 3, 100, ""))
	wantSent(t, r, start)
	r.Wanted(start, bob, Need{Log: third, From: 1})
	wantSent(t, r, start)
	r.Confirmed(start, bob, []Mark{{Log: second, Seq: 9}})
	wantSent(t, r, start, third)
	r.Committed(start, commit(third, 4, 100, ""))
	wantSent(t, r, start, third) // from then on at once
}

func TestANewStartIsPassedOnOnceTheOnesBeforeAreHeld(t *testing.T) {
	first, second := logOf(cleo, 1), logOf(cleo, 2)
	r := New(ada, []Head{{first, 4, protocol.Hash{1}}}, seeAll)
	for _, p := range []protocol.PeerID{bob, cleo} {
		r.LinkUp(start, p, true)
	}
	r.Ready(start)
	r.Compared(start, cleo, Vector{Marks: []Mark{{Log: first, Seq: 4}}})
	r.Compared(start, bob, Vector{Marks: []Mark{{Log: first, Seq: 2}}})
	r.Committed(start, commit(second, 1, 100, cleo))
	now := start.Add(2 * protocol.PassOnAfter)
	wantSent(t, r, now, first)
	r.Confirmed(now, bob, []Mark{{Log: first, Seq: 4}})
	wantSent(t, r, now.Add(2*protocol.PassOnAfter), second)
}

// Before a peer has said which of many former starts it lacks, it is sent nothing of the new one.
func TestANewStartWaitsForAllMarksOfTheOnesBefore(t *testing.T) {
	first, second, third := logOf(ada, 1), logOf(ada, 2), logOf(ada, 3)
	r := New(ada, []Head{{first, 4, protocol.Hash{1}}, {second, 9, protocol.Hash{2}}}, seeAll)
	r.LinkUp(start, bob, true)
	r.Ready(start)
	r.Compared(start, bob, Vector{Marks: []Mark{{Log: second, Seq: 9}}, Past: []Past{{ada, [16]byte{1}}}})
	r.Committed(start, commit(third, 1, 100, ""))
	wantSent(t, r, start)
	r.Compared(start, bob, Vector{Of: []protocol.PeerID{ada}, Marks: []Mark{{Log: first, Seq: 3}, {Log: second, Seq: 9}}})
	wantSent(t, r, start, first)
	r.Confirmed(start, bob, []Mark{{Log: first, Seq: 4}})
	wantSent(t, r, start, third)
}

// What can never come holds up nothing: our store has lost it, it counts no more, or the peer will not have it.
func TestANewStartDoesNotWaitForWhatCannotCome(t *testing.T) {
	first, second := logOf(ada, 1), logOf(ada, 2)
	begin := func() *Replica {
		r := New(ada, []Head{{first, 4, protocol.Hash{1}}}, seeAll)
		r.LinkUp(start, bob, true)
		r.Ready(start)
		r.Compared(start, bob, Vector{Marks: []Mark{{Log: first, Seq: 2}}})
		r.Committed(start, commit(second, 1, 100, ""))
		return r
	}

	r := begin()
	wantSent(t, r, start, first)
	r.Cut(first, 2)
	wantSent(t, r, start, second)

	for _, readable := range []bool{true, false} {
		r, now := begin(), start
		for r.logs[second].replicated == 0 {
			if now.Sub(start) > 2*time.Minute {
				t.Fatalf("what can never come is waited for for ever: the peer refuses it: %v", readable)
			}
			for rd := r.Ready(now); len(rd.Send) > 0; rd = r.Ready(now) {
				for _, s := range rd.Send {
					switch {
					case s.Log == second && now.Sub(start) < 2*protocol.CompareEvery:
						t.Fatalf("not waited for after %v", now.Sub(start))
					case s.Log == second:
						r.Sent(s.Peer, s.Log, s.To, 1)
						r.Confirmed(now, bob, []Mark{{Log: second, Seq: 1}})
					case readable:
						r.Sent(s.Peer, s.Log, s.To, 1)
					default:
						r.Sent(s.Peer, s.Log, s.From-1, 0)
					}
				}
			}
			now = now.Add(protocol.CompareEvery)
			r.Compared(now, bob, Vector{Marks: []Mark{{Log: first, Seq: 2}}})
		}
	}
}

// A newcomer is given the logs of many starts one after another, which must not cost their square.
func TestANewcomerIsGivenManyStartsInTheirOrder(t *testing.T) {
	const starts = 500
	var heads []Head
	for i := range uint64(starts) {
		heads = append(heads, Head{logOf(ada, i+1), 1, protocol.Hash{1}})
	}
	r := linkedTo(t, heads, bob)
	for i := range uint64(starts) {
		rd := r.Ready(start)
		if len(rd.Send) != 1 || rd.Send[0].Log != logOf(ada, i+1) {
			t.Fatalf("after %d starts %d ranges", i, len(rd.Send))
		}
		r.Sent(bob, rd.Send[0].Log, 1, 100)
		if rd = r.Ready(start); len(rd.Send) > 0 {
			t.Fatalf("start %d before %d is held", rd.Send[0].Log.Start.At, i+1)
		}
		r.Confirmed(start, bob, []Mark{{Log: logOf(ada, i+1), Seq: 1}})
	}
}

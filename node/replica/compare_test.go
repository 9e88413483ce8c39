package replica

import (
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

func TestVectorsStayShortOverManyStarts(t *testing.T) {
	var heads []Head
	for author := range 3 {
		for i := range 1000 {
			heads = append(heads, Head{logOf(peerNames[author], uint64(i)+1), 9, protocol.Hash{byte(i), byte(i >> 8), 7}})
		}
	}
	a, b := New(ada, heads, seeAll), New(bob, heads[:2999], seeAll)
	a.LinkUp(start, bob, true)
	b.LinkUp(start, ada, true)
	v := a.Ready(start).Vectors[0].Vector
	if len(v.Marks) != 3 || len(v.Past) != 3 {
		t.Fatalf("%d marks, %d sums", len(v.Marks), len(v.Past))
	}
	b.Compared(start, ada, v)
	a.Compared(start, bob, b.Ready(start).Vectors[0].Vector)
	if logs, _ := a.Behind(bob); logs != 1 {
		t.Errorf("%d logs behind, want 1", logs)
	}
	if len(a.links[0].logs) > 10 || len(b.links[0].logs) > 10 {
		t.Errorf("%d and %d logs remembered of a peer that is alike", len(a.links[0].logs), len(b.links[0].logs))
	}
	if got := a.ReplicatedTo(logOf(ada, 5)); got != 9 {
		t.Errorf("a former log is replicated to %d", got)
	}
	if rd := a.Ready(start); len(rd.Vectors) != 0 {
		t.Errorf("details of what is alike: %d", len(rd.Vectors))
	}
}

func TestADifferenceAmongFormerStartsIsFound(t *testing.T) {
	w := newWorld(t, 5, 3, 0)
	for range 40 {
		w.nodes[0].write(protocol.ScopeInside, 2, 5)
		w.nodes[0].boot()
	}
	w.heal(3, 0, 1)
	w.run(5 * time.Second)
	w.checkSettled()
	n := w.nodes[2]
	w.down(2, 1)
	for id, rs := range n.logs { // an older copy of the home
		if id.Start.At == 7 {
			delete(n.logs, id)
		} else if id.Start.At == 9 {
			n.logs[id] = rs[:0]
			delete(n.logs, id)
		}
	}
	n.boot()
	w.up(2, 1)
	before := w.sent
	w.run(5 * time.Second)
	w.checkSettled()
	if w.sent-before != 4 {
		t.Errorf("%d records sent, 4 were missing", w.sent-before)
	}
}

func TestAComparisonIsDueEvery15Seconds(t *testing.T) {
	r := linkedTo(t, nil, bob)
	if next := r.Next(); !next.Equal(start.Add(protocol.CompareEvery)) {
		t.Errorf("next after %v", next.Sub(start))
	}
	if rd := r.Ready(start.Add(protocol.CompareEvery - 1)); len(rd.Vectors) != 0 {
		t.Error("too early")
	}
	if rd := r.Ready(start.Add(protocol.CompareEvery)); len(rd.Vectors) != 1 {
		t.Error("not due")
	}
	if next := New(ada, nil, seeAll).Next(); !next.IsZero() {
		t.Errorf("a lone node wakes at %v", next)
	}
}

func TestASumFollowsItsLogs(t *testing.T) {
	old, last := logOf(cleo, 1), logOf(cleo, 2)
	r := linkedTo(t, []Head{{old, 5, protocol.Hash{1}}, {last, 5, protocol.Hash{2}}}, bob)
	sum := func() [16]byte { return r.vector(r.links[0]).Past[0].Sum }
	before := sum()
	r.Committed(start, commit(last, 6, 1, bob))
	if sum() != before {
		t.Error("the last start is not of the past")
	}
	r.Committed(start, commit(old, 6, 1, bob))
	grown := sum()
	if grown == before {
		t.Error("a former log grew, the sum did not change")
	}
	r.Cut(old, 5)
	if sum() == grown {
		t.Error("a former log was cut, the sum did not change")
	}
	cut := sum()
	r.Committed(start, commit(logOf(cleo, 3), 1, 1, bob))
	if sum() == cut {
		t.Error("a new start made the last one former, the sum did not change")
	}
}

func TestWhatAPeerLacksIsNotGuessed(t *testing.T) {
	// bob holds former logs of cleo; which, we do not know yet. What another gives us of them is not passed on to him.
	r := linkedTo(t, nil, bob, olaf)
	now := start.Add(protocol.CompareEvery)
	r.Compared(now, bob, Vector{Marks: []Mark{{Log: logOf(cleo, 9), Seq: 1}}, Past: []Past{{Author: cleo, Sum: [16]byte{1}}}})
	r.Committed(now, commit(logOf(cleo, 1), 5, 100, ada))
	if _, ranges := drain(r, now.Add(time.Second), 100); len(ranges) != 0 {
		t.Errorf("got %+v", ranges)
	}
	r.Compared(now, bob, Vector{Of: []protocol.PeerID{cleo}, Marks: []Mark{{Log: logOf(cleo, 1), Seq: 3}}})
	if _, ranges := drain(r, now.Add(time.Second), 100); len(ranges) != 1 || ranges[0].From != 4 {
		t.Errorf("got %+v", ranges)
	}
}

func TestAPeerThatHoldsLessThanBeforeIsBelieved(t *testing.T) {
	log := logOf(ada, 1)
	r := linkedTo(t, []Head{{log, 10, protocol.Hash{1}}}, bob)
	r.Confirmed(start, bob, []Mark{{Log: log, Seq: 10}})
	drain(r, start, 100)
	r.Compared(start, bob, Vector{Marks: []Mark{{Log: log, Seq: 4}}})
	if _, ranges := drain(r, start, 100); len(ranges) != 1 || ranges[0].From != 5 {
		t.Errorf("got %+v", ranges)
	}
}

func TestARepeatIsConfirmedSinceItsSenderWaits(t *testing.T) {
	rs := written(logOf(cleo, 1), 4, 2, 0)
	r := holding(t, rs, 4)
	drain(r, start.Add(time.Second), 100)
	if o := r.Offered(start, bob, rs[:2]); o.Verdict != Repeat {
		t.Fatalf("got %v", o.Verdict)
	}
	if rd := r.Ready(start); len(rd.Have) != 1 || rd.Have[0].Marks[0].Seq != 4 {
		t.Errorf("got %+v", rd.Have)
	}
}

func TestNextIsNeverPastWhileAWindowIsFull(t *testing.T) {
	mine, others := logOf(ada, 1), logOf(cleo, 2)
	r := linkedTo(t, []Head{{mine, 1, protocol.Hash{1}}, {others, 1, protocol.Hash{2}}}, bob)
	drain(r, start, 1000) // mine is on its way, the other's has its time
	if next := r.Next(); !next.After(start) || !next.Before(start.Add(time.Second)) {
		t.Fatalf("next is %v", next.Sub(start))
	}
	live := logOf(ada, 3)
	live.Scope = protocol.ScopeOutside(olaf) // it waits for no other
	r.Committed(start, commit(live, 1, protocol.PushBacklogBytes-1000, ""))
	for _, s := range r.Ready(start).Send {
		r.Sent(s.Peer, s.Log, s.To, s.Bytes)
	}
	now := start.Add(time.Second)
	if rd := r.Ready(now); len(rd.Send) != 0 {
		t.Fatalf("over the window: %+v", rd.Send)
	}
	if next := r.Next(); !next.After(now) {
		t.Errorf("next is %v ago", now.Sub(next))
	}
}

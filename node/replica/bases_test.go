package replica

import (
	"slices"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// based is ada with two logs of hers, the first of which begins behind 6 here.
func based(t *testing.T, says Vector) (r *Replica, first, second protocol.LogID) {
	t.Helper()
	first, second = logOf(ada, 1), logOf(ada, 2)
	r = New(ada, []Head{{first, 9, protocol.Hash{1}}, {second, 3, protocol.Hash{2}}}, seeAll)
	r.Based(first, 6)
	r.LinkUp(start, bob, true)
	r.Ready(start)
	r.Compared(start, bob, says)
	return r, first, second
}

// TestAPeerThatAsksBelowABaseIsTold, with each comparison, and is sent nothing of that log.
func TestAPeerThatAsksBelowABaseIsTold(t *testing.T) {
	r, first, second := based(t, Vector{})
	now, sent := start, false
	for n := range 6 {
		rd := r.Ready(now)
		if !slices.Equal(rd.Based, []protocol.PeerID{bob}) || slices.Contains(sentOf(rd), first) {
			t.Fatalf("at comparison %d it tells %v and sends %v", n, rd.Based, sentOf(rd))
		}
		if n < givenUp && len(rd.Send) > 0 {
			t.Fatalf("at comparison %d it sends %v before what comes first was had from somebody", n, sentOf(rd))
		}
		for _, s := range rd.Send {
			sent = sent || s.Log == second
			r.Sent(s.Peer, s.Log, s.To, 1)
		}
		if rd = r.Ready(now); len(rd.Based) > 0 {
			t.Fatalf("it says it twice: %+v", rd)
		}
		now = now.Add(protocol.CompareEvery)
		r.Compared(now, bob, Vector{})
	}
	if !sent {
		t.Fatal("a log that is whole waits for what nobody can send")
	}
	if !r.Wanted(now, bob, Need{Log: first, From: 4}) {
		t.Fatal("a question is not heard")
	}
	if rd := r.Ready(now); !slices.Equal(rd.Based, []protocol.PeerID{bob}) || slices.Contains(sentOf(rd), first) {
		t.Fatalf("asked, it tells %v and sends %v", rd.Based, sentOf(rd))
	}
	if r.Wanted(now, bob, Need{Log: first, From: 6, To: 7}) || !r.Wanted(now, bob, Need{Log: first, From: 7, To: 8}) {
		t.Error("what has left is no proof, and what is here is")
	}
}

// TestAPeerAboveABaseIsServedAsEver: so is one that took the base.
func TestAPeerAboveABaseIsServedAsEver(t *testing.T) {
	r, first, second := based(t, Vector{Marks: []Mark{{Log: logOf(ada, 1), Seq: 6}}})
	rd := r.Ready(start)
	if len(rd.Based) > 0 || len(rd.Send) != 1 || rd.Send[0].Log != first || rd.Send[0].From != 7 || rd.Send[0].To != 9 {
		t.Fatalf("%+v", rd)
	}
	r.Sent(bob, first, 9, 1)
	r.Confirmed(start, bob, []Mark{{Log: first, Seq: 9}})
	wantSent(t, r, start, second)

	r, first, _ = based(t, Vector{})
	r.Ready(start)
	r.Compared(start, bob, Vector{Marks: []Mark{{Log: first, Seq: 6}}}) // it began there
	wantSent(t, r, start, first)
}

// TestALogBeginsAtABase: what follows is taken, what lies below is a repeat, and another branch is none of it.
func TestALogBeginsAtABase(t *testing.T) {
	log := logOf(bob, 1)
	rs := written(log, 12, 2, 0)
	other := written(log, 12, 2, 1)
	begin := func() *Replica {
		r := New(ada, []Head{{log, 6, rs[5].Hash()}}, seeAll)
		r.Based(log, 6)
		r.LinkUp(start, bob, true)
		return r
	}
	for _, c := range []struct {
		what string
		recs []protocol.Record
		want Verdict
		take int
	}{
		{"what follows", rs[6:8], Take, 2}, {"all of it", rs, Take, 6}, {"what lies below", rs[:4], Repeat, 0},
		{"what ends there", rs[2:6], Repeat, 0}, {"above a gap", rs[8:], Gap, 0}, {"another branch", other[6:8], Refused, 0},
	} {
		if o := begin().Offered(start, bob, c.recs); o.Verdict != c.want || len(o.Take) != c.take {
			t.Errorf("%s: %v, takes %d", c.what, o.Verdict, len(o.Take))
		}
	}
}

// TestLogsThatOthersMaySeeHaveNoBase: nobody outside could begin at one.
func TestLogsThatOthersMaySeeHaveNoBase(t *testing.T) {
	log := logOf(ada, 1)
	log.Scope = protocol.ScopeOutside(olaf)
	r := New(ada, []Head{{log, 9, protocol.Hash{1}}}, seeAll)
	r.Based(log, 6)
	r.LinkUp(start, olaf, false)
	r.Ready(start)
	r.Compared(start, olaf, Vector{})
	wantSent(t, r, start, log)
}

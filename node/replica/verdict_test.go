package replica

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// written makes n records of a log, signed at every commit-th and the last; branch tells two histories apart.
func written(log protocol.LogID, n, commit int, branch byte) []protocol.Record {
	rs := make([]protocol.Record, n)
	prev := protocol.Hash{}
	for i := range rs {
		rs[i] = protocol.Record{Log: log, Seq: uint64(i) + 1, Prev: prev, At: 1, Kind: "msg", Body: []byte{branch}}
		if (i+1)%commit == 0 || i == n-1 {
			rs[i].Sig = []byte{1}
		}
		prev = rs[i].Hash()
	}
	return rs
}

// holding is a replica of ada, linked to bob, that holds the first n of rs.
func holding(t *testing.T, rs []protocol.Record, n int) *Replica {
	t.Helper()
	return linkedTo(t, []Head{{rs[0].Log, uint64(n), rs[n-1].Hash()}}, bob)
}

func TestOnlyWhatFollowsOurHeadIsTaken(t *testing.T) {
	rs := written(logOf(cleo, 1), 20, 2, 0)
	other := written(logOf(cleo, 1), 20, 2, 9)
	broken := slices.Clone(rs)
	broken[13].Body = []byte("other")
	hole := append(slices.Clone(rs[10:12]), rs[14:16]...)
	mixed := append(slices.Clone(rs[10:12]), written(logOf(cleo, 2), 20, 2, 0)[12:14]...)
	unseen := written(protocol.LogID{Peer: cleo, Start: protocol.Start{At: 1}, Scope: protocol.ScopeInside}, 2, 2, 0)
	for name, c := range map[string]struct {
		recs []protocol.Record
		want Verdict
		from uint64 // of what is taken, or missing
	}{
		"next":             {rs[10:14], Take, 11},
		"known and next":   {rs[4:14], Take, 11},
		"from the first":   {rs, Take, 11},
		"known":            {rs[2:6], Repeat, 0},
		"known to the end": {rs[2:10], Repeat, 0},
		"above a gap":      {rs[12:14], Gap, 11},
		"none":             {nil, Refused, 0},
		"changed":          {broken[10:16], Refused, 0},
		"with a hole":      {hole, Refused, 0},
		"of two logs":      {mixed, Refused, 0},
		"other branch":     {other[10:12], Refused, 0},
		"other, longer":    {other[8:12], Refused, 0},
	} {
		r := holding(t, rs, 10)
		o := r.Offered(start, bob, c.recs)
		if o.Verdict != c.want {
			t.Errorf("%s: got %v, want %v", name, o.Verdict, c.want)
			continue
		}
		switch o.Verdict {
		case Take:
			if o.Take[0].Seq != c.from || o.Hash != c.recs[len(c.recs)-1].Hash() {
				t.Errorf("%s: takes from %d", name, o.Take[0].Seq)
			}
			if again := r.Offered(start, bob, c.recs); again.Verdict != Repeat {
				t.Errorf("%s: again, before it is durable: %v", name, again.Verdict)
			}
			if h := r.Head(c.recs[0].Log); h.Seq != 10 {
				t.Errorf("%s: stated as durable before it is: %d", name, h.Seq)
			}
		case Gap:
			if o.From != c.from {
				t.Errorf("%s: asks from %d, want %d", name, o.From, c.from)
			}
		case Refused:
			if o.Refusal == nil || len(o.Take) > 0 {
				t.Errorf("%s: %+v", name, o)
			}
		}
	}
	r := New(olaf, nil, seeAll)
	if o := r.Offered(start, bob, unseen); o.Verdict != Refused || o.Refusal.Code != protocol.CodeNotAllowed {
		t.Errorf("a log that an outsider may not see: %+v", o)
	}
}

func TestAGapIsAskedForOnceFromWhoSentWhatIsAboveIt(t *testing.T) {
	rs := written(logOf(cleo, 1), 20, 1, 0)
	r := holding(t, rs, 10)
	for i := 12; i < 20; i++ {
		r.Offered(start, bob, rs[i:i+1])
	}
	rd := r.Ready(start)
	if len(rd.Need) != 1 || rd.Need[0] != (NeedTo{bob, Need{Log: rs[0].Log, From: 11}}) {
		t.Fatalf("got %+v", rd.Need)
	}
	// The request may be lost: it is made again, but not while bob sends.
	if rd = r.Ready(start.Add(needEvery)); len(rd.Need) != 1 {
		t.Errorf("after %v: %+v", needEvery, rd.Need)
	}
	lacks := r.Lacking(start.Add(time.Minute))
	if len(lacks) != 1 || lacks[0] != (Lack{rs[0].Log, 10, 20, time.Minute, true}) {
		t.Errorf("got %+v", lacks)
	}
	r.LinkDown(bob)
	if lacks = r.Lacking(start); len(lacks) != 1 || lacks[0].Linked {
		t.Errorf("without a link: %+v", lacks)
	}
	r.LinkUp(start, bob, true)
	o := r.Offered(start, bob, rs[10:])
	r.Committed(start, Commit{Log: rs[0].Log, Seq: 20, Hash: o.Hash, From: bob})
	r.Ready(start.Add(2 * protocol.CompareEvery))
	if lacks = r.Lacking(start); len(lacks) != 0 {
		t.Errorf("filled, but reported: %+v", lacks)
	}
}

func TestAWantedRangeIsSentWhateverWasBelieved(t *testing.T) {
	log := logOf(cleo, 1)
	r := linkedTo(t, []Head{{log, 10, protocol.Hash{1}}}, bob)
	r.Confirmed(start, bob, []Mark{{Log: log, Seq: 10}})
	drain(r, start.Add(time.Minute), 100)
	if !r.Wanted(start, bob, Need{Log: log, From: 4}) {
		t.Error("not served")
	}
	if _, ranges := drain(r, start, 100); len(ranges) != 1 || ranges[0].From != 4 || ranges[0].To != 10 {
		t.Errorf("got %+v", ranges)
	}
	r.Wanted(start, bob, Need{Log: log, From: 4})
	if _, ranges := drain(r, start, 100); len(ranges) != 0 {
		t.Errorf("sent again while on its way: %+v", ranges)
	}
	if r.Wanted(start, olaf, Need{Log: log, From: 4}) || r.Wanted(start, bob, Need{Log: log, From: 11}) ||
		r.Wanted(start, bob, Need{Log: logOf(cleo, 9), From: 1}) || r.Wanted(start, bob, Need{Log: log}) {
		t.Error("served what is not linked, not held or not known")
	}
	r.LinkUp(start, olaf, false)
	if r.Wanted(start, olaf, Need{Log: log, From: 4}) || r.Wanted(start, olaf, Need{Log: log, From: 4, To: 5}) {
		t.Error("served to one who may not see it")
	}
}

func TestAnOutsiderPassesOnOnlyWhenAsked(t *testing.T) {
	log := logOf(ada, 1)
	log.Scope = protocol.ScopeOutside(olaf)
	r := New(olaf, []Head{{log, 5, protocol.Hash{1}}}, seeAll)
	r.LinkUp(start, bob, true)
	r.Compared(start, bob, Vector{})
	for _, wait := range []time.Duration{0, time.Second, time.Minute} {
		if _, ranges := drain(r, start.Add(wait), 10); len(ranges) != 0 {
			t.Fatalf("unasked: %+v", ranges)
		}
	}
	r.Wanted(start, bob, Need{Log: log, From: 1})
	if _, ranges := drain(r, start, 10); len(ranges) != 1 || ranges[0].To != 5 {
		t.Errorf("asked: %+v", ranges)
	}
	r.Committed(start, commit(log, 6, 10, cleo))
	if _, ranges := drain(r, start.Add(time.Minute), 10); len(ranges) != 0 {
		t.Errorf("asked once, for what there was: %+v", ranges)
	}
}

func TestAForkIsReportedOnceAndCutsItsLog(t *testing.T) {
	log := logOf(cleo, 1)
	rs, other := written(log, 20, 2, 0), written(log, 20, 2, 9)
	for name, recs := range map[string][]protocol.Record{"over our head": other[9:10], "after it": other[10:14], "round it": other[4:16]} {
		r := holding(t, rs, 10)
		drain(r, start.Add(time.Second), 10)
		for range 3 {
			if o := r.Offered(start, bob, recs); o.Verdict != Refused || o.Fork == nil && o.Refusal.Code != protocol.CodeRevoked {
				t.Errorf("%s: %+v", name, o)
			}
		}
		rd := r.Ready(start)
		if len(rd.Forks) != 1 {
			t.Fatalf("%s: %d forks", name, len(rd.Forks))
		}
		f := rd.Forks[0]
		if f.Log != log || f.Seq != 10 || f.Ours != rs[9].Hash() || f.Theirs != other[9].Hash() || f.Peer != bob {
			t.Errorf("%s: %+v", name, f)
		}
		if o := r.Offered(start, bob, rs[10:12]); o.Verdict != Refused {
			t.Errorf("%s: our own branch goes on beyond the cut: %v", name, o.Verdict)
		}
		r.Cut(log, 100)
		if o := r.Offered(start, bob, rs[10:12]); o.Verdict != Refused {
			t.Errorf("%s: a higher cut undoes the fork: %v", name, o.Verdict)
		}
		r.LinkUp(start, bob, true)
		if rd = r.Ready(start); rd.Vectors[0].Vector.Marks[0] != (Mark{Log: log, Seq: 9}) {
			t.Errorf("%s: states %+v", name, rd.Vectors[0].Vector.Marks)
		}
	}
}

func TestAnotherHashInAVectorIsNoProofButAskedFor(t *testing.T) {
	log := logOf(cleo, 1)
	rs, other := written(log, 10, 2, 0), written(log, 10, 2, 9)
	r := holding(t, rs, 10)
	theirs := Mark{Log: log, Seq: 10}
	hash := other[9].Hash()
	copy(theirs.Hash[:], hash[:])
	r.Compared(start, bob, Vector{Marks: []Mark{theirs}})
	rd := r.Ready(start)
	if len(rd.Forks) != 0 || len(rd.Need) != 1 || rd.Need[0].Need != (Need{log, 10, 10}) {
		t.Fatalf("got %+v, %+v", rd.Forks, rd.Need)
	}
	// The other side answers with the commit that holds it,
	q := New(bob, []Head{{log, 10, other[9].Hash()}}, seeAll)
	q.LinkUp(start, ada, true)
	q.Wanted(start, ada, rd.Need[0].Need)
	if rd = q.Ready(start); len(rd.Send) != 1 || !rd.Send[0].Proof || rd.Send[0].From != 10 {
		t.Fatalf("got %+v", rd.Send)
	}
	// which proves it.
	if o := r.Offered(start, bob, other[9:]); o.Fork == nil {
		t.Errorf("got %+v", o)
	}
}

func TestNothingBeyondACutIsSentOrTaken(t *testing.T) {
	log := logOf(cleo, 1)
	rs := written(log, 20, 3, 0)
	r := holding(t, rs, 6)
	r.Cut(log, 10)
	o := r.Offered(start, bob, rs[6:15])
	if o.Verdict != Take || len(o.Take) != 3 || o.Hash != rs[8].Hash() {
		t.Fatalf("up to the commit before the cut: %v %d", o.Verdict, len(o.Take))
	}
	r.Committed(start, Commit{Log: log, Seq: 9, Hash: o.Hash, From: bob})
	for _, part := range [][]protocol.Record{rs[9:15], rs[12:15]} {
		if o = r.Offered(start, bob, part); o.Verdict != Refused || o.Refusal.Code != protocol.CodeRevoked {
			t.Errorf("got %v", o.Verdict)
		}
	}
	r = linkedTo(t, []Head{{log, 20, rs[19].Hash()}}, bob)
	r.Cut(log, 9)
	r.Cut(log, 6) // of two cuts the higher
	if _, ranges := drain(r, start.Add(time.Second), 10); len(ranges) != 1 || ranges[0].To != 9 {
		t.Errorf("got %+v", ranges)
	}
	if r.Wanted(start, bob, Need{Log: log, From: 10}) {
		t.Error("beyond the cut, but asked for")
	}
}

func TestNobodyElseWritesOurLog(t *testing.T) {
	log := logOf(ada, 1)
	rs := written(log, 4, 1, 0)
	r := linkedTo(t, nil, bob)
	r.Committed(start, Commit{Log: log, Seq: 2, Hash: rs[1].Hash()})
	if o := r.Offered(start, bob, rs[2:]); o.Verdict != Refused {
		t.Errorf("got %v", o.Verdict)
	}
	r.Confirmed(start, bob, []Mark{{Log: log, Seq: 900}})
	if lacks := r.Lacking(start); len(lacks) != 0 {
		t.Errorf("lacks of our own log: %+v", lacks)
	}
	// A former start is anybody's to give back.
	r = New(ada, []Head{{log, 2, rs[1].Hash()}}, seeAll)
	r.LinkUp(start, bob, true)
	if o := r.Offered(start, bob, rs[2:]); o.Verdict != Take {
		t.Errorf("our own lost tail: %v", o.Verdict)
	}
}

func TestWhatAPeerNamesIsBounded(t *testing.T) {
	r := linkedTo(t, nil, bob, olaf)
	for i := range strangeLogsOutside + 100 {
		r.Confirmed(start, olaf, []Mark{{Log: logOf(olaf, uint64(i)+1), Seq: 5}, {Log: logOf(bob, uint64(i)+1), Seq: 5}})
	}
	if len(r.logs) != strangeLogsOutside {
		t.Errorf("%d logs named by an outsider", len(r.logs))
	}
	r.LinkDown(olaf)
	if len(r.logs) != 0 || r.strange != 0 || len(r.Lacking(start)) != 0 {
		t.Errorf("%d logs kept after it left", len(r.logs))
	}
	marks := []Mark{}
	for i := range strangeLogsMax + 100 {
		marks = append(marks, Mark{Log: logOf(cleo, uint64(i)+1), Seq: ^uint64(0) >> 11})
	}
	r.Compared(start, bob, Vector{Marks: marks})
	if len(r.logs) != strangeLogsMax {
		t.Errorf("%d logs named by an insider", len(r.logs))
	}
}

func ExampleReplica() {
	now := time.UnixMilli(0)
	see := func(protocol.PeerID, protocol.Scope) bool { return true }
	log := protocol.LogID{Peer: "ada", Scope: protocol.ScopeInside}
	r := New("ada", nil, see)
	r.LinkUp(now, "bob", true)
	r.Compared(now, "bob", Vector{})                       // bob holds nothing
	r.Committed(now, Commit{Log: log, Seq: 2, Bytes: 500}) // we wrote two records
	rd := r.Ready(now)                                     // what is owed
	for _, s := range rd.Send {                            // read it, queue it,
		fmt.Println("send", s.Peer, s.From, s.To) //
		r.Sent(s.Peer, s.Log, s.To, 500)          // and say so
	} //
	r.Confirmed(now, "bob", []Mark{{Log: log, Seq: 2}}) // bob has it on disk
	fmt.Println("replicated to", r.ReplicatedTo(log))
	// Output:
	// send bob 1 2
	// replicated to 2
}

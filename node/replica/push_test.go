package replica

import (
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

var (
	start = time.UnixMilli(1_700_000_000_000)
	ada   = peerNames[0]
	bob   = peerNames[1]
	cleo  = peerNames[2]
	olaf  = peerNames[3] // outside
)

func seeAll(viewer protocol.PeerID, s protocol.Scope) bool {
	if viewer != olaf {
		return true
	}
	p, ok := s.Outsider()
	return ok && p == olaf
}

func logOf(p protocol.PeerID, at uint64) protocol.LogID {
	return protocol.LogID{Peer: p, Start: protocol.Start{At: protocol.HLC(at)}, Scope: protocol.ScopeInside}
}

// linkedTo is a replica of ada with links over which empty vectors have come.
func linkedTo(t *testing.T, heads []Head, peers ...protocol.PeerID) *Replica {
	t.Helper()
	r := New(ada, heads, seeAll)
	for _, p := range peers {
		r.LinkUp(start, p, p != olaf)
	}
	if rd := r.Ready(start); len(rd.Vectors) != len(peers) {
		t.Fatalf("%d vectors for %d links", len(rd.Vectors), len(peers))
	}
	for _, p := range peers {
		r.Compared(start, p, Vector{})
	}
	return r
}

func commit(log protocol.LogID, seq uint64, bytes int, from protocol.PeerID) Commit {
	return Commit{Log: log, Seq: seq, Hash: protocol.Hash{byte(seq), byte(seq >> 8), 1}, Bytes: bytes, From: from}
}

func TestOwnRecordsArePushedAtOnceToAllWhoMaySee(t *testing.T) {
	r := linkedTo(t, nil, bob, cleo, olaf)
	log := logOf(ada, 1)
	r.Committed(start, commit(log, 3, 300, ""))
	rd := r.Ready(start)
	if len(rd.Send) != 2 {
		t.Fatalf("got %+v", rd.Send)
	}
	for _, s := range rd.Send {
		if s.Peer == olaf || s.From != 1 || s.To != 3 || !s.Live {
			t.Errorf("got %+v", s)
		}
	}
	log.Scope = protocol.ScopeOutside(olaf)
	r.Committed(start, commit(log, 1, 100, ""))
	if rd = r.Ready(start); len(rd.Send) != 3 {
		t.Errorf("a log for an outsider goes to %d of 3", len(rd.Send))
	}
	if rd = r.Ready(start); !rd.Empty() {
		t.Errorf("sent twice: %+v", rd)
	}
}

func TestNothingIsPushedBeforeTheFirstComparison(t *testing.T) {
	r := New(ada, nil, seeAll)
	r.LinkUp(start, bob, true)
	r.Committed(start, commit(logOf(ada, 1), 2, 100, ""))
	if rd := r.Ready(start); len(rd.Send) != 0 || len(rd.Vectors) != 1 || rd.Vectors[0].Vector.Marks[0].Seq != 2 {
		t.Errorf("got %+v", rd)
	}
	r.Compared(start, bob, Vector{Marks: []Mark{{Log: logOf(ada, 1), Seq: 1}}})
	if rd := r.Ready(start); len(rd.Send) != 1 || rd.Send[0].From != 2 || rd.Send[0].To != 2 {
		t.Errorf("got %+v", rd.Send)
	}
}

func TestOthersRecordsArePassedOnOnlyToWhoStillLacksThem(t *testing.T) {
	r := linkedTo(t, nil, bob, cleo)
	log := logOf(bob, 1)
	now := start.Add(time.Second)
	r.Committed(now, commit(log, 2, 200, bob))
	rd := r.Ready(now)
	if len(rd.Send) != 0 {
		t.Errorf("passed on at once: %+v", rd.Send)
	}
	if len(rd.Have) != 2 {
		t.Errorf("Have goes to %d of 2 inside peers", len(rd.Have))
	}
	due := r.Next()
	if wait := due.Sub(now); wait < protocol.PassOnAfter || wait >= 2*protocol.PassOnAfter {
		t.Errorf("passed on after %v", wait)
	}
	r.Confirmed(now, cleo, []Mark{{Log: log, Seq: 2}})
	if rd = r.Ready(due); len(rd.Send) != 0 {
		t.Errorf("passed on to one that has it: %+v", rd.Send)
	}

	r.Committed(due, commit(log, 5, 300, bob))
	if rd = r.Ready(due); len(rd.Send) != 0 {
		t.Errorf("passed on at once: %+v", rd.Send)
	}
	now = due.Add(2 * protocol.PassOnAfter)
	rd = r.Ready(now)
	if len(rd.Send) != 1 || rd.Send[0].Peer != cleo || rd.Send[0].From != 3 || rd.Send[0].To != 5 {
		t.Fatalf("got %+v", rd.Send)
	}
	if rd = r.Ready(now.Add(time.Second)); len(rd.Send) != 0 {
		t.Errorf("the same range a second time: %+v", rd.Send)
	}
}

func TestAChainIsAsFastAsAMeshOnceItIsKnown(t *testing.T) {
	w := newWorld(t, 1, 4, 0)
	for i := range 3 {
		w.up(i, i+1)
	}
	w.run(time.Second)
	for i := range 20 {
		w.nodes[0].write(protocol.ScopeInside, 1, 10)
		w.run(100 * time.Millisecond)
		if i == 10 {
			w.run(2 * time.Second)
		}
		if got := len(w.nodes[3].logs[w.nodes[0].log(protocol.ScopeInside)]); i > 10 && got != i+1 {
			t.Fatalf("after 100 ms the end of the chain has %d of %d", got, i+1)
		}
	}
	if w.taken != 3*20 || w.sent != w.taken {
		t.Errorf("%d records sent for %d taken", w.sent, w.taken)
	}
}

func TestAFullMeshSendsNothingTwice(t *testing.T) {
	w := newWorld(t, 1, 6, 1)
	w.heal(6, 1, 0)
	w.run(time.Second)
	for i := range 300 {
		w.nodes[i%6].write(protocol.ScopeInside, 1+i%3, 100)
		w.run(time.Duration(i%7) * time.Millisecond)
	}
	w.run(20 * time.Second)
	w.checkSettled()
	if w.sent != w.taken {
		t.Errorf("%d records sent for %d taken", w.sent, w.taken)
	}
}

func TestANewcomerGetsLittleTwiceFromMany(t *testing.T) {
	w := newWorld(t, 1, 5, 0)
	for a := range 4 {
		for b := range a {
			w.up(a, b)
		}
	}
	w.run(time.Second)
	for round := range 12 {
		for _, n := range w.nodes[:4] {
			for range 10 {
				n.write(protocol.ScopeInside, 5, 4000)
			}
		}
		w.run(time.Second)
		if round < 8 { // former starts
			n := w.nodes[round%4]
			for b := range 4 {
				w.down(n.at, b)
			}
			n.boot()
			for b := range 4 {
				w.up(n.at, b)
			}
		}
	}
	w.run(20 * time.Second)
	sent, taken := w.sent, w.taken
	for b := range 4 {
		w.up(4, b)
	}
	w.run(20 * time.Second)
	w.checkSettled()
	if sent, taken = w.sent-sent, w.taken-taken; sent > taken*13/10 {
		t.Errorf("%d records sent to a newcomer who lacked %d", sent, taken)
	}
}

// drain does what Ready says for one peer as a store of commits of size bytes each would, and counts.
func drain(r *Replica, now time.Time, size int) (bytes int, ranges []Range) {
	for {
		rd := r.Ready(now)
		if rd.Empty() {
			return bytes, ranges
		}
		for _, s := range rd.Send {
			to := s.To
			if !s.Live {
				to = min(s.To, s.From+uint64(max(s.Bytes/size, 1))-1)
			}
			sent := int(to-s.From+1) * size
			r.Sent(s.Peer, s.Log, to, sent)
			bytes += sent
			s.To = to
			ranges = append(ranges, s)
		}
	}
}

func TestAPeersWindowHolds(t *testing.T) {
	const size = 10_000
	past, live := logOf(ada, 1), logOf(ada, 2)
	live.Scope = protocol.ScopeOutside(olaf) // it waits for no other
	r := linkedTo(t, []Head{{Log: past, Seq: 1_000, Hash: protocol.Hash{1}}}, bob)
	sent := map[protocol.LogID]uint64{}
	more := func() (bytes int, ranges []Range) {
		bytes, ranges = drain(r, start, size)
		for _, s := range ranges {
			if s.From != sent[s.Log]+1 {
				t.Fatalf("range from %d after %d", s.From, sent[s.Log])
			}
			sent[s.Log] = s.To
		}
		return bytes, ranges
	}
	bytes, _ := more()
	if bytes > storeBytesMax+size || bytes < storeBytesMax-size {
		t.Fatalf("%d bytes of catching up before anything is confirmed", bytes)
	}
	// What is said now is not starved by it,
	for seq := uint64(1); seq <= 10; seq++ {
		r.Committed(start, commit(live, seq, size, ""))
		n, got := more()
		if n != size || !got[0].Live {
			t.Fatalf("live record %d: %+v", seq, got)
		}
		bytes += n
	}
	// but has its bound too.
	for seq := uint64(11); seq <= 200; seq++ {
		r.Committed(start, commit(live, seq, size, ""))
		n, _ := more()
		bytes += n
	}
	if bytes > protocol.PushBacklogBytes+size || bytes < protocol.PushBacklogBytes-2*size {
		t.Fatalf("%d bytes unconfirmed, at most %d", bytes, protocol.PushBacklogBytes)
	}
	// A confirmation makes room; in the end all is sent, in order.
	for range 100 {
		for log, seq := range sent {
			r.Confirmed(start, bob, []Mark{{Log: log, Seq: seq}})
		}
		if n, _ := more(); n > protocol.PushBacklogBytes+size {
			t.Fatalf("%d bytes at once", n)
		}
	}
	if sent[past] != 1_000 || sent[live] != 200 {
		t.Errorf("sent to %d and %d", sent[past], sent[live])
	}
	if r.ReplicatedTo(live) != 200 {
		t.Errorf("replicated to %d", r.ReplicatedTo(live))
	}
}

// TestWhatIsPassedOnLeavesTheWindowToOthers: the peer keeps nothing of a log of another node's that never ends. A part of the window
// is in flight of it at most; what is said here meanwhile goes at once.
func TestWhatIsPassedOnLeavesTheWindowToOthers(t *testing.T) {
	const size = 10_000
	flood, ours := logOf(cleo, 1), logOf(ada, 2)
	r := linkedTo(t, nil, bob)
	now, passed := start, 0
	for seq := uint64(1); seq <= 300; seq++ {
		now = now.Add(10 * time.Millisecond)
		r.Committed(now, commit(flood, seq, size, cleo))
		bytes, ranges := drain(r, now, size)
		if passed += bytes; passed > storeBytesMax+passBytesMax+2*size {
			t.Fatalf("%d bytes of it in flight after %d records", passed, seq)
		}
		if len(ranges) > 0 && ranges[0].From == 1 { // from here on it is passed on at once
			r.Confirmed(now, bob, []Mark{{Log: flood, Seq: ranges[0].To}})
			passed = 0
		}
		if seq%10 != 0 {
			continue
		}
		r.Committed(now, commit(ours, seq/10, size, ""))
		if n, got := drain(r, now, size); n != size || got[0].Log != ours {
			t.Fatalf("our record %d: %+v", seq/10, got)
		}
		r.Confirmed(now, bob, []Mark{{Log: ours, Seq: seq / 10}})
	}
	if passed == 0 {
		t.Error("nothing is passed on")
	}
}

func TestASingleLargeCommitPassesTheWindow(t *testing.T) {
	r := linkedTo(t, []Head{{Log: logOf(ada, 1), Seq: 3, Hash: protocol.Hash{1}}}, bob)
	for seq := uint64(1); seq <= 3; seq++ {
		if bytes, ranges := drain(r, start, 2*protocol.PushBacklogBytes); len(ranges) != 1 || ranges[0].To != seq {
			t.Fatalf("%d bytes in %+v", bytes, ranges)
		}
		r.Confirmed(start, bob, []Mark{{Log: logOf(ada, 1), Seq: seq}})
	}
}

func TestARangeThatTheStoreCannotServeWaitsForTheNextComparison(t *testing.T) {
	log, other := logOf(ada, 1), logOf(ada, 2)
	other.Scope = protocol.ScopeOutside(olaf) // it waits for no other
	r := linkedTo(t, []Head{{Log: log, Seq: 9, Hash: protocol.Hash{1}}, {Log: other, Seq: 1, Hash: protocol.Hash{2}}}, bob)
	rd := r.Ready(start)
	if len(rd.Send) != 1 || rd.Send[0].Log != log {
		t.Fatalf("got %+v", rd.Send)
	}
	r.Sent(bob, log, 0, 0)
	if rd = r.Ready(start); len(rd.Send) != 1 || rd.Send[0].Log != other {
		t.Fatalf("the next log has to wait: %+v", rd.Send)
	}
	r.Sent(bob, other, 1, 10)
	if rd = r.Ready(start.Add(time.Second)); len(rd.Send) != 0 {
		t.Errorf("asked again at once: %+v", rd.Send)
	}
	r.Compared(start.Add(2*time.Second), bob, Vector{})
	if rd = r.Ready(start.Add(2 * time.Second)); len(rd.Send) != 1 || rd.Send[0].From != 1 {
		t.Errorf("got %+v", rd.Send)
	}
}

func TestALostFrameIsSentAgainAfterAComparison(t *testing.T) {
	w := newWorld(t, 3, 2, 0)
	w.up(0, 1)
	w.run(time.Second)
	w.loss = 1
	w.nodes[0].write(protocol.ScopeInside, 3, 10)
	w.loss = 0
	w.run(3 * protocol.CompareEvery)
	w.checkSettled()
	if w.sent != 6 {
		t.Errorf("%d records sent, want 3 twice", w.sent)
	}
}

func TestARangeSentInVainIsSentEverMoreSeldom(t *testing.T) {
	r := linkedTo(t, []Head{{Log: logOf(ada, 1), Seq: 1, Hash: protocol.Hash{1}}}, bob)
	sent := 0
	for now := start; now.Before(start.Add(time.Hour)); now = now.Add(protocol.CompareEvery) {
		_, ranges := drain(r, now, 100)
		sent += len(ranges)
		r.Compared(now, bob, Vector{})
	}
	if sent < 5 || sent > 16 {
		t.Errorf("sent %d times in an hour to a peer that never takes it", sent)
	}
}

func TestOneHaveAPeerACommit(t *testing.T) {
	r := linkedTo(t, nil, bob, cleo, olaf)
	out := logOf(olaf, 1)
	r.Committed(start, commit(logOf(bob, 1), 3, 1, bob))
	r.Committed(start, commit(logOf(bob, 1), 5, 1, bob))
	r.Committed(start, commit(out, 2, 1, olaf))
	r.Committed(start, commit(logOf(ada, 1), 2, 1, ""))
	rd := r.Ready(start)
	got := map[protocol.PeerID]int{}
	for _, h := range rd.Have {
		got[h.Peer] += len(h.Marks)
		for _, m := range h.Marks {
			if m.Log == logOf(bob, 1) && m.Seq != 5 {
				t.Errorf("states %d", m.Seq)
			}
		}
	}
	if len(rd.Have) != 3 || got[bob] != 2 || got[cleo] != 2 || got[olaf] != 1 {
		t.Errorf("marks by peer: %v in %d frames", got, len(rd.Have))
	}
}

func TestWhatNobodyWaitsForIsConfirmedTogetherALittleLater(t *testing.T) {
	r := linkedTo(t, nil, bob, cleo)
	quiet := func(seq uint64, bytes int) Commit {
		c := commit(logOf(bob, 1), seq, bytes, bob)
		c.Quiet = true
		return c
	}
	r.Committed(start, quiet(3, 1))
	r.Committed(start.Add(quietFor/2), quiet(5, 1))
	if rd := r.Ready(start.Add(quietFor / 2)); len(rd.Have) > 0 {
		t.Errorf("receipts are confirmed at once: %v", rd.Have)
	}
	at := start.Add(quietFor)
	if next := r.Next(); !next.Equal(at) {
		t.Errorf("next is %s after the first, want %s", next.Sub(start), quietFor)
	}
	if rd := r.Ready(at); len(rd.Have) != 2 || len(rd.Have[0].Marks) != 1 || rd.Have[0].Marks[0].Seq != 5 {
		t.Errorf("confirmed %v, want one mark at 5 for each", rd.Have)
	}
	if rd := r.Ready(at.Add(quietFor)); len(rd.Have) > 0 {
		t.Errorf("confirmed again: %v", rd.Have)
	}

	r.Committed(at, quiet(6, 1))
	r.Committed(at, commit(logOf(cleo, 1), 1, 1, cleo)) // a message: its sender waits, and the rest goes with it
	if rd := r.Ready(at); len(rd.Have) != 2 || len(rd.Have[0].Marks) != 2 {
		t.Errorf("confirmed %v, want both logs for each", rd.Have)
	}
	r.Committed(at, quiet(7, quietBytes))
	if rd := r.Ready(at); len(rd.Have) != 2 {
		t.Errorf("a large commit is not confirmed at once: %v", rd.Have)
	}
}

func TestOnlyInsideNodesMakeARecordReplicated(t *testing.T) {
	r := linkedTo(t, nil, bob, olaf)
	log := logOf(ada, 1)
	log.Scope = protocol.ScopeOutside(olaf)
	r.Committed(start, commit(log, 4, 1, ""))
	r.Confirmed(start, olaf, []Mark{{Log: log, Seq: 4}})
	if got := r.ReplicatedTo(log); got != 0 {
		t.Errorf("an outsider's Have replicates to %d", got)
	}
	r.Confirmed(start, bob, []Mark{{Log: log, Seq: 3}})
	r.LinkDown(bob)
	if got := r.ReplicatedTo(log); got != 3 {
		t.Errorf("got %d, want 3, also after the link", got)
	}
	r.Confirmed(start, bob, []Mark{{Log: log, Seq: 4}})
	if got := r.ReplicatedTo(log); got != 3 {
		t.Errorf("a peer without a link counts: %d", got)
	}
}

func BenchmarkPushToSevenPeers(b *testing.B) {
	r := New(ada, nil, seeAll)
	peers := peerNames[4:11]
	for _, p := range peers {
		r.LinkUp(start, p, true)
		r.Compared(start, p, Vector{})
	}
	r.Ready(start)
	log := logOf(ada, 1)
	for seq := uint64(1); b.Loop(); seq++ {
		r.Committed(start, commit(log, seq, 1000, ""))
		rd := r.Ready(start)
		for _, s := range rd.Send {
			r.Sent(s.Peer, s.Log, s.To, 1000)
		}
		for _, p := range peers {
			r.Confirmed(start, p, []Mark{{Log: log, Seq: seq}})
		}
	}
}

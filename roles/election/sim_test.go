package election

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// seeds runs f for many seeds, or for the one of -seed.
func seeds(t *testing.T, n int64, f func(t *testing.T, seed int64)) {
	t.Helper()
	if *seedFlag >= 0 {
		f(t, *seedFlag)
		return
	}
	for seed := range n {
		if !t.Run("", func(t *testing.T) { f(t, seed) }) {
			t.Fatalf("replay with: go test ./roles/election -run %s -seed %d -v", t.Name(), seed)
		}
	}
}

// formed is a mesh in which every node has a vote.
func formed(t *testing.T, seed int64, n int) *world {
	w := newWorld(t, seed, n)
	ok := w.until(30*time.Second, func() bool {
		for _, nd := range w.nodes {
			if len(nd.core.kept.Voters.Set) != n {
				return false
			}
		}
		m := w.main()
		return m != nil && m.core.office.decided
	})
	if !ok {
		w.fail("%d nodes do not become %d voters", n, n)
	}
	w.run(2 * time.Second)
	return w
}

// Whatever happens to network, disks, clocks and machines, no two nodes act as main at one instant, no two are elected
// under one number, and once a majority is together for long enough there is one main that all agree on.
func TestNeverTwoMainsAndAlwaysOneInTheEnd(t *testing.T) {
	n := int64(2000)
	if testing.Short() {
		n = 500
	}
	seeds(t, n, func(t *testing.T, seed int64) {
		n := 2 + int(seed%6)
		w := newWorld(t, seed, n)
		if w.rng.Intn(2) == 0 {
			w = formed(t, seed, n)
		}
		w.run(time.Duration(w.rng.Intn(2000)) * time.Millisecond)
		for i := range 14 {
			if seed%20 == 0 && i == 7 {
				w.run(protocol.VoterAbsence + 10*time.Second) // who is away loses its vote
			}
			w.mishap()
			w.run(time.Duration(w.rng.Intn(6000)) * time.Millisecond)
		}
		w.heal()
		w.until(30*time.Second, func() bool { return !slices.ContainsFunc(w.nodes, func(nd *node) bool { return nd.asleep }) })
		w.run(protocol.HandoffWait) // what was begun ends
		if slices.ContainsFunc(w.nodes, func(nd *node) bool { return nd.core.mute(w.moment(nd)) }) {
			w.run(protocol.VoterAbsence + protocol.VoterAbsence/20) // whoever has forgotten its votes has waited
		}
		if !w.until(60*time.Second, func() bool { return w.main() != nil }) {
			w.fail("no main that all agree on, a minute after everything is well")
		}
		w.run(3 * time.Second)
		if w.main() == nil {
			w.fail("the main does not last")
		}
	})
}

// mishap does one thing to the world.
func (w *world) mishap() {
	n := len(w.nodes)
	nd := w.nodes[w.rng.Intn(n)]
	switch w.rng.Intn(15) {
	case 0, 1:
		if !nd.down {
			w.crash(nd)
		}
	case 2, 3:
		if nd.down {
			w.logf("%s starts", nd.peer)
			w.boot(nd)
		}
	case 4:
		side := w.rng.Intn(1 << n)
		w.split(func(i int) bool { return side>>i&1 == 1 })
	case 5:
		for range 1 + w.rng.Intn(n) {
			w.cut[[2]int{w.rng.Intn(n), w.rng.Intn(n)}] = true
		}
		w.logf("one-way cuts: %v", w.cut)
	case 6:
		clear(w.cut)
		w.logf("links are whole")
	case 7:
		w.loss = w.rng.Float64() * 0.5
	case 8:
		w.loss, w.slow = 0, time.Duration(1+w.rng.Intn(3000))*time.Millisecond
	case 9:
		if !nd.down && !nd.asleep {
			w.sleep(nd, time.Duration(w.rng.Intn(20000))*time.Millisecond)
		}
	case 10:
		nd.wallOff += time.Duration(w.rng.Intn(1200)-600) * time.Second
		w.logf("%s sets its clock", nd.peer)
	case 11:
		if main := w.main(); main != nil {
			if main.core.Handoff(w.moment(main), nd.peer, "", "") == nil {
				w.logf("%s hands over to %s", main.peer, nd.peer)
				if w.rng.Intn(2) == 0 {
					main.core.HandoffReady(w.moment(main))
				}
				w.flush(main)
			}
		}
	case 12:
		if main := w.main(); main != nil && !main.down {
			w.crash(main)
		}
	case 13:
		w.loses(nd)
	case 14:
		w.ends(nd, w.nodes[w.rng.Intn(n)])
	}
}

// loses takes a node's store from it: what it has kept, and its copies of records, which come again from others.
func (w *world) loses(nd *node) {
	if w.lost || w.ended != nil || w.rng.Intn(4) > 0 {
		return // the records must be somewhere
	}
	w.lost = true
	if !nd.down {
		w.crash(nd)
	}
	w.logf("%s loses its store", nd.peer)
	nd.kept, nd.lost = nil, true
	nd.terms, nd.voters, nd.rev = map[protocol.Term]protocol.TermBody{}, nil, 0
	if w.rng.Intn(2) == 0 {
		w.boot(nd)
	}
}

// ends has one node revoke another, which the others hear of later.
func (w *world) ends(by, nd *node) {
	if w.ended != nil || w.lost || by == nd || by.down || by.asleep || len(by.core.kept.Voters.Set) < 3 {
		return
	}
	w.logf("%s revokes %s", by.peer, nd.peer)
	w.ended = nd
	by.gone[nd.id] = true
	w.membership(by)
	w.flush(by)
}

func (w *world) heal() {
	w.logf("all is well")
	clear(w.cut)
	w.loss, w.slow = 0, 60*time.Millisecond
	for _, nd := range w.nodes {
		if nd.down {
			w.boot(nd)
		}
	}
}

// A voter whose store was lost may have voted, and promises nothing until that is long over.
func TestWhoHasForgottenItsVotesWaits(t *testing.T) {
	seeds(t, 50, func(t *testing.T, seed int64) {
		w := formed(t, seed, 3)
		nd := w.nodes[seed%3]
		w.crash(nd)
		nd.kept, nd.lost = nil, true
		w.boot(nd)
		for range 560 {
			w.run(time.Second)
			if nd.core.sure(w.moment(nd)) || nd.core.office != nil && nd.id != 0 {
				w.fail("it is main again after %v", w.now)
			}
			if nd.core.wouldVote(w.moment(nd), &Received{From: w.peer((nd.id + 1) % 3), Message: Message{Number: 1e6, Stamp: protocol.Stamp{Number: 1e6, Term: protocol.Term{Number: 1e6}}}}) {
				w.fail("it would vote after %v", w.now)
			}
		}
		if m := w.main(); m == nil || m == nd {
			w.fail("the other two are a majority, and have no main")
		}
		w.run(2 * time.Minute)
		w.crash(w.nodes[(nd.id+1)%3])
		if !w.until(20*time.Second, func() bool { return w.main() != nil }) {
			w.fail("its vote does not count again")
		}
	})
}

func TestMainsDeathGivesOneSuccessorWithinTenSeconds(t *testing.T) {
	for n := 3; n <= 5; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			longest := time.Duration(0)
			seeds(t, 200, func(t *testing.T, seed int64) {
				w := formed(t, seed, n)
				w.run(time.Duration(w.rng.Intn(1000)) * time.Millisecond)
				w.crash(w.nodes[0])
				died := w.now
				if !w.until(10*time.Second, func() bool { return w.main() != nil }) {
					w.fail("no successor after 10 s")
				}
				longest = max(longest, w.now-died)
				before := w.main()
				w.boot(w.nodes[0]) // back, it follows
				w.run(10 * time.Second)
				if w.main() != before {
					w.fail("the office moved again when the former main came back")
				}
			})
			t.Logf("%d nodes: at most %v", n, longest)
		})
	}
}

func TestOfTwoTheSittingMainGoesOnAndTheOtherNeverElectsItself(t *testing.T) {
	seeds(t, 100, func(t *testing.T, seed int64) {
		w := formed(t, seed, 2)
		w.crash(w.nodes[1])
		for range 600 {
			w.run(time.Second)
			if !w.nodes[0].core.sure(w.moment(w.nodes[0])) {
				w.fail("the sitting main does not go on alone")
			}
		}
		w.boot(w.nodes[1])
		w.run(5 * time.Second)
		w.crash(w.nodes[0])
		w.run(10 * time.Minute)
		if w.nodes[1].core.office != nil {
			w.fail("one of two elected itself")
		}
		w.forced = true
		if r := w.nodes[1].core.Force(w.moment(w.nodes[1]), nil); r != nil {
			w.fail("force: %v", r)
		}
		w.flush(w.nodes[1])
		if !w.nodes[1].core.sure(w.moment(w.nodes[1])) {
			w.fail("it took the office and may not use it")
		}
		w.boot(w.nodes[0])
		if !w.until(5*time.Second, func() bool { return w.main() == w.nodes[1] }) {
			w.fail("the former main does not follow")
		}
	})
}

func TestTwoForcedTakesInTwoHalvesSettleAlike(t *testing.T) {
	seeds(t, 200, func(t *testing.T, seed int64) {
		w := formed(t, seed, 4)
		w.crash(w.nodes[0])
		w.split(func(i int) bool { return i == 1 })
		w.run(8 * time.Second)
		w.forced = true
		for _, i := range []int{1, 2} {
			nd := w.nodes[i]
			var reach []protocol.PeerID
			if i == 2 {
				reach = []protocol.PeerID{w.peer(3)}
			}
			if r := nd.core.Force(w.moment(nd), reach); r != nil {
				w.fail("force: %v", r)
			}
			w.flush(nd)
			w.run(time.Second)
			if !nd.core.sure(w.moment(nd)) {
				w.fail("%s took the office and may not use it", nd.peer)
			}
		}
		w.run(20 * time.Second)
		w.heal()
		if !w.until(20*time.Second, func() bool { return w.main() != nil }) {
			w.fail("the halves do not settle on one main")
		}
		w.run(5 * time.Second)
		mains := 0
		for _, nd := range w.nodes {
			if nd.core.office != nil {
				mains++
			}
		}
		if w.main() == nil || mains != 1 {
			w.fail("%d mains", mains)
		}
	})
}

func TestSleepersThatWakeTogetherElectNobody(t *testing.T) {
	seeds(t, 30, func(t *testing.T, seed int64) {
		w := formed(t, seed, 5)
		for _, i := range []int{4, 3, 2} {
			w.crash(w.nodes[i]) // to the others a sleeper is silent, that is all
			if !w.until(20*time.Minute, func() bool { return len(w.nodes[0].core.kept.Voters.Set) == i && w.nodes[0].core.office.decided }) {
				w.fail("%d are still voters", len(w.nodes[0].core.kept.Voters.Set))
			}
			w.run(time.Minute)
		}
		w.split(func(i int) bool { return i < 2 })
		for _, i := range []int{2, 3, 4} {
			w.boot(w.nodes[i])
		}
		w.run(10 * time.Minute)
		for _, nd := range w.nodes[2:] {
			if nd.core.office != nil {
				w.fail("%s was elected by sleepers", nd.peer)
			}
		}
		w.heal()
		if !w.until(30*time.Second, func() bool { return w.main() == w.nodes[0] && len(w.nodes[0].core.kept.Voters.Set) == 5 }) {
			w.fail("the sleepers do not get their votes back")
		}
	})
}

func TestRevokedMainIsFollowedByTheOtherOfTwo(t *testing.T) {
	seeds(t, 100, func(t *testing.T, seed int64) {
		w := formed(t, seed, 2)
		w.nodes[1].gone[0] = true
		w.membership(w.nodes[1])
		w.flush(w.nodes[1])
		w.crash(w.nodes[0])
		if !w.until(10*time.Second, func() bool { return w.main() == w.nodes[1] }) {
			w.fail("nobody follows a revoked main")
		}
	})
}

func TestHandoverTakesTheOfficeToWhomItWasAskedFor(t *testing.T) {
	longest := time.Duration(0)
	seeds(t, 200, func(t *testing.T, seed int64) {
		w := formed(t, seed, 2+int(seed%4))
		w.slow = 5 * time.Millisecond
		if r := w.nodes[1].core.Handoff(w.moment(w.nodes[1]), w.peer(0), "a", ""); r == nil {
			w.fail("a node that is not main handed over")
		}
		if r := w.nodes[0].core.HandoffReady(w.moment(w.nodes[0])); r == nil {
			w.fail("a hand-over that nobody asked for")
		}
		if r := w.nodes[0].core.Handoff(w.moment(w.nodes[0]), w.peer(1), "a", "why"); r != nil {
			w.fail("hand over: %v", r)
		}
		w.flush(w.nodes[0])
		if seed%2 == 0 {
			if r := w.nodes[0].core.HandoffReady(w.moment(w.nodes[0])); r != nil {
				w.fail("ready: %v", r)
			}
		} else {
			w.run(9 * time.Second)
			if w.main() != w.nodes[0] {
				w.fail("the office moved before its main was ready")
			}
			w.run(1500 * time.Millisecond)
		}
		w.flush(w.nodes[0])
		began := w.now
		if !w.until(3*time.Second, func() bool { return w.main() == w.nodes[1] }) {
			w.fail("the office did not move")
		}
		longest = max(longest, w.now-began)
	})
	t.Logf("at most %v from ready to the new main", longest)
}

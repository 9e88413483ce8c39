package room

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

func log(n int) protocol.LogID {
	return protocol.LogID{Peer: protocol.PeerID(fmt.Sprint("p", n)), Start: protocol.Start{At: 1, Rand: uint64(n)}, Scope: protocol.ScopeInside}
}

// step is one record or message of a room, with its place.
type step struct {
	at   Pos
	wall int64
	body protocol.RoomBody
	env  *protocol.Envelope
}

func (s step) into(r *Room) {
	if s.env != nil {
		r.Said(s.at, s.wall, s.env)
	} else {
		r.Apply(s.at, s.wall, s.body)
	}
}

// TestARoomIsTheSameInEveryOrder: nodes that hold the same records agree, whatever came first.
func TestARoomIsTheSameInEveryOrder(t *testing.T) {
	agents := []protocol.AgentID{"a", "A", "b", "c"}
	ops := []protocol.RoomOp{protocol.RoomCreated, protocol.RoomJoined, protocol.RoomLeft, protocol.RoomArtifacts, protocol.RoomFloor, protocol.RoomStall, protocol.RoomShared}
	for seed := range uint64(30) {
		dice := rand.New(rand.NewPCG(seed, 1))
		var all []step
		for i := range 300 {
			s := step{at: At(protocol.HLC(1+dice.IntN(200)), log(dice.IntN(3)), uint64(i+1)), wall: int64(i)}
			if dice.IntN(3) > 0 {
				s.env = &protocol.Envelope{ID: protocol.MsgID(fmt.Sprint(i)), From: append(agents, "")[dice.IntN(5)], Notice: dice.IntN(2) == 0}
			} else {
				s.body = protocol.RoomBody{Op: ops[dice.IntN(len(ops))], Agent: agents[dice.IntN(4)], By: agents[dice.IntN(4)], Participants: agents[:dice.IntN(4)],
					Intent: []string{"request", "release"}[dice.IntN(2)], Header: &protocol.RoomText{Text: fmt.Sprint(i)}, Decision: &protocol.RoomText{Text: fmt.Sprint(i)}}
				if dice.IntN(400) == 0 {
					s.body.Op = protocol.RoomClosed
				}
			}
			all = append(all, s)
		}
		var want string
		for shuffle := range 20 {
			r := &Room{ID: "rt-1"}
			for _, i := range dice.Perm(len(all)) {
				all[i].into(r)
			}
			raw, err := json.Marshal(r)
			if err != nil || !r.Valid() {
				t.Fatal(err, r.Valid())
			}
			if shuffle == 0 {
				want = string(raw)
			} else if string(raw) != want {
				t.Fatalf("seed %d: two orders, two rooms:\n%s\n%s", seed, want, raw)
			}
		}
	}
}

// TestBudgetsAreClampedWhateverIsAsked. Guards: KD8.
func TestBudgetsAreClampedWhateverIsAsked(t *testing.T) {
	if got, want := Clamp(protocol.RoomBudgets{}), (protocol.RoomBudgets{MaxConsecutive: 2, RatePerMin: 10, MaxAutoHop: 6, StallRounds: 3}); got != want {
		t.Errorf("defaults are %+v, want %+v", got, want)
	}
	if got, want := Clamp(protocol.RoomBudgets{MaxConsecutive: 1e9, RatePerMin: 1e9, MaxAutoHop: 1e9, StallRounds: 1e9}), (protocol.RoomBudgets{MaxConsecutive: 10, RatePerMin: 60, MaxAutoHop: 32, StallRounds: 20}); got != want {
		t.Errorf("the most is %+v, want %+v", got, want)
	}
	if got, want := Clamp(protocol.RoomBudgets{MaxConsecutive: -1, RatePerMin: -5, MaxAutoHop: -9, StallRounds: -2}), (protocol.RoomBudgets{MaxConsecutive: 1, RatePerMin: 1, MaxAutoHop: 1, StallRounds: 1}); got != want {
		t.Errorf("the least is %+v, want %+v", got, want)
	}
	r := &Room{ID: "rt-1"}
	r.Apply(At(1, log(0), 1), 0, protocol.RoomBody{Op: protocol.RoomCreated, Budgets: protocol.RoomBudgets{RatePerMin: 1e9}})
	if got := r.Budgets().RatePerMin; got != 60 {
		t.Errorf("a record of another node sets the rate to %d", got)
	}
}

// TestRulesInTheirOrder: each limit is met at its edge, and a minute or a person's word lifts what they lift.
func TestRulesInTheirOrder(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	r := &Room{ID: "rt-1"}
	if got := r.Breaks(now, "a"); got != NoSuchRoom {
		t.Errorf("no room: %q", got)
	}
	r.Apply(At(1, log(0), 1), 0, protocol.RoomBody{Op: protocol.RoomCreated, Participants: []protocol.AgentID{"a", "b", "c"},
		Budgets: protocol.RoomBudgets{MaxConsecutive: 2, RatePerMin: 3, MaxAutoHop: 4}})
	n := uint64(1)
	say := func(from protocol.AgentID) {
		n++
		r.Said(At(protocol.HLC(n), log(0), n), now.UnixMilli(), &protocol.Envelope{ID: protocol.MsgID(fmt.Sprint(n)), From: from})
	}
	expect := func(from protocol.AgentID, want Rule) {
		t.Helper()
		if got := r.Breaks(now, from); got != want {
			t.Errorf("%s breaks %q, want %q", from, got, want)
		}
	}
	expect("x", NotParticipant)
	say("a")
	expect("A", "") // one name
	say("A")
	expect("a", Consecutive)
	expect("b", "")
	say("b")
	say("a")
	expect("a", Rate)
	expect("c", AutoHop)
	say("")
	expect("c", "")
	expect("a", Rate)
	now = now.Add(time.Minute)
	expect("a", "")
	if r.Hops() != 0 {
		t.Errorf("%d hops after a person's word", r.Hops())
	}
}

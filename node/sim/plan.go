package sim

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Plan is a run before it happens: its seed, its size, how bad its network is, and what is done when. Whoever shrinks a
// failure drops actions from it.
type Plan struct {
	Seed    uint64
	Nodes   int // inside and outside, newcomers included
	Outside int // of Nodes, the last ones
	Late    int // of Nodes, those that join during the run
	Clients int
	Length  time.Duration

	Delay    time.Duration // of a frame, about
	Loss     float64       // of frames on a living link
	Twice    float64
	Reorder  float64
	SyncTime time.Duration // at most
	Skew     time.Duration // of clocks, at most
	Drift    float64       // of clocks, at most
	Lazy     float64       // how many clients acknowledge late
	Codec    bool          // frames go through the real encoding
	Office   bool          // there are elections and claims
	Forces   bool          // a person may take the office
	Aged     bool          // a month goes by at the end, and records leave

	Actions []Action
}

// Action is one thing that somebody or something does.
type Action struct {
	At      time.Duration
	Do      Verb
	A, B, N int // whom it concerns; what they are is the verb's business
	For     time.Duration
}

func (a Action) String() string {
	return fmt.Sprintf("%v %s %d %d %d %v", a.At, a.Do, a.A, a.B, a.N, a.For)
}

// Verb names an action.
type Verb string

// What clients and persons do, then what fails.
const (
	Say      Verb = "say"      // client A to client B, intent by N
	Person   Verb = "person"   // a person at node A to client B
	Again    Verb = "again"    // message N so far is said again, through node A if a person said it
	Report   Verb = "report"   // client A reports on something it was delegated
	Away     Verb = "away"     // client A is not connected for a while
	Back     Verb = "back"     // client A connects anew at once
	Rename   Verb = "rename"   // client A
	Twin     Verb = "twin"     // a client takes the name of client B at node A
	RoomOpen Verb = "roomopen" // client A with client B
	RoomSay  Verb = "roomsay"  // client A in room N
	RoomEnd  Verb = "roomend"  // a person at node A ends room N
	Join     Verb = "join"     // the next newcomer, invited by node A
	Revoke   Verb = "revoke"   // node B by node A

	Crash   Verb = "crash"   // node A at point N, down for a while
	Stop    Verb = "stop"    // node A ends in order, down for a while
	Suspend Verb = "suspend" // node A
	Jump    Verb = "jump"    // the clock of node A, to N hundredths of Skew
	Cut     Verb = "cut"     // nothing goes from node A to node B
	Split   Verb = "split"   // the nodes of mask N are apart from the others
	Slow    Verb = "slow"    // links of node A
	Drop    Verb = "drop"    // the link of nodes A and B breaks
	Full    Verb = "full"    // disk of node A
	Fail    Verb = "fail"    // the next sync of node A fails
	Drag    Verb = "drag"    // disk of node A is slow
	Short   Verb = "short"   // reads of node A's disk come short
	Restore Verb = "restore" // node A is started from a copy of its disk that is For old
)

// What concerns who is main and who holds what.
const (
	Claim    Verb = "claim"    // client A asks for scope N
	Unclaim  Verb = "unclaim"  // node A releases one of its claims
	EndProc  Verb = "endproc"  // a process that may hold a claim ends
	HandOver Verb = "handover" // a person at node A asks main to hand over to client B
	Take     Verb = "take"     // node A takes the office without an election
	KillMain Verb = "killmain" // main's node dies, down for a while
	Wipe     Verb = "wipe"     // node A loses its store, and keeps its home
)

// contests says how often each of them is drawn.
var contests = []struct {
	do     Verb
	weight int
}{{Claim, 40}, {Unclaim, 8}, {EndProc, 6}, {HandOver, 12}, {KillMain, 12}, {Crash, 6}, {Suspend, 5}, {Split, 6}, {Jump, 4}, {Wipe, 1}}

// weights says how often each verb is drawn.
var weights = []struct {
	do     Verb
	weight int
}{
	{Say, 40}, {Person, 14}, {Again, 8}, {Report, 12}, {Away, 5}, {Back, 4}, {Rename, 3}, {Twin, 3}, {RoomOpen, 2}, {RoomSay, 6},
	{RoomEnd, 1}, {Join, 2}, {Revoke, 1},
	{Crash, 8}, {Stop, 2}, {Suspend, 2}, {Jump, 2}, {Cut, 4}, {Split, 3}, {Slow, 2}, {Drop, 3}, {Full, 2}, {Fail, 2}, {Drag, 2},
	{Short, 2}, {Restore, 2},
}

// PlanOf draws the plan of a seed.
func PlanOf(seed uint64) Plan {
	p := stillPlanOf(seed)
	p.contend()
	return p
}

// stillPlanOf is the plan of a seed without elections and claims.
func stillPlanOf(seed uint64) Plan {
	r := rand.New(rand.NewPCG(seed, 0xA57E6))
	p := Plan{
		Seed: seed, Nodes: 3 + r.IntN(4), Length: time.Duration(20+r.IntN(60)) * time.Second,
		Delay: time.Duration(1+r.IntN(40)) * time.Millisecond, SyncTime: time.Duration(r.IntN(8)) * time.Millisecond,
		Codec: r.IntN(8) == 0,
	}
	if r.IntN(40) == 0 {
		p.Nodes = 7 + r.IntN(10)
	}
	if r.IntN(2) == 0 {
		p.Loss, p.Twice, p.Reorder = r.Float64()*0.15, r.Float64()*0.1, r.Float64()*0.1
	}
	if r.IntN(2) == 0 {
		p.Skew, p.Drift = 5*time.Minute, 0.002 // of two clocks 10 min: what certificates are given
	}
	if p.Skew > 0 && rand.New(rand.NewPCG(seed, 0xC10C)).IntN(3) == 0 {
		p.Skew = 30 * time.Minute // dice of its own: no other plan changes
	}
	if p.Nodes > 3 {
		p.Late = r.IntN(p.Nodes - 2)
		p.Outside = r.IntN(min(p.Nodes-2, 3))
	}
	p.Lazy = r.Float64() * 0.6
	p.Clients = p.Nodes + r.IntN(p.Nodes+1)
	total := 0
	for _, w := range weights {
		total += w.weight
	}
	for range 30 + r.IntN(90) {
		p.Actions = append(p.Actions, p.draw(r, total))
	}
	return p
}

func (p *Plan) draw(r *rand.Rand, total int) Action {
	a := Action{At: time.Duration(r.Int64N(int64(p.Length))), A: r.IntN(64), B: r.IntN(64), N: r.IntN(1 << 16)}
	a.For = time.Duration(r.Int64N(int64(20 * time.Second)))
	if r.IntN(3) == 0 {
		a.For /= 20
	}
	n := r.IntN(total)
	for _, w := range weights {
		if n -= w.weight; n < 0 {
			a.Do = w.do
			break
		}
	}
	return a
}

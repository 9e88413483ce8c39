package room

import (
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// Rule is what a message would break; the contract's names (wire 7.1), and empty for none.
type Rule string

// The rules, in the order in which they are looked at.
const (
	NoSuchRoom     Rule = "no-such-room"
	NotParticipant Rule = "not-participant"
	Rate           Rule = "rate"
	Consecutive    Rule = "consecutive"
	AutoHop        Rule = "autoHop-cap"
	NoticeReply    Rule = "notice-reply"
)

// Clamp keeps budgets within what no room may exceed, whatever its maker asks for (fault KD8); zero means the default.
func Clamp(b protocol.RoomBudgets) protocol.RoomBudgets {
	in := func(n, normal, most int) int {
		if n == 0 {
			return normal
		}
		return min(max(n, 1), most)
	}
	return protocol.RoomBudgets{
		MaxConsecutive: in(b.MaxConsecutive, 2, 10), RatePerMin: in(b.RatePerMin, 10, 60),
		MaxAutoHop: in(b.MaxAutoHop, 6, 32), StallRounds: in(b.StallRounds, 3, 20),
	}
}

// Budgets are the room's limits.
func (r *Room) Budgets() protocol.RoomBudgets {
	if !r.Open() {
		return Clamp(protocol.RoomBudgets{})
	}
	return Clamp(r.Created.Body.Budgets)
}

// Hops is how many messages agents have said since a person last spoke: the next one is Hops()+1.
func (r *Room) Hops() int {
	n := 0
	for i := len(r.Lines) - 1; i >= 0 && r.Lines[i].From != ""; i-- {
		n++
	}
	return n
}

// Silent is how many messages in a row named nobody, since a person spoke or somebody was named.
func (r *Room) Silent() int {
	n := 0
	for i := len(r.Lines) - 1; i >= 0 && r.Lines[i].From != "" && !r.Lines[i].Named; i-- {
		n++
	}
	return n
}

// Breaks says which rule an agent's next message would break. Its own messages enter where it lives, so now and the walls
// of its lines are one clock.
func (r *Room) Breaks(now time.Time, from protocol.AgentID) Rule {
	switch {
	case !r.Open():
		return NoSuchRoom
	case !r.In(from):
		return NotParticipant
	}
	b, key := r.Budgets(), protocol.FoldAgentID(from)
	minute, run, running := 0, 0, true
	for i := len(r.Lines) - 1; i >= 0; i-- {
		mine := protocol.FoldAgentID(r.Lines[i].From) == key
		if running = running && mine; running {
			run++
		}
		if mine && r.Lines[i].Wall > now.Add(-time.Minute).UnixMilli() {
			minute++
		}
	}
	switch {
	case minute >= b.RatePerMin:
		return Rate
	case run >= b.MaxConsecutive:
		return Consecutive
	case r.Hops() >= b.MaxAutoHop:
		return AutoHop
	}
	return ""
}

// Stalled says that the newest message completes another round in which nobody was named.
func (r *Room) Stalled() bool {
	n := r.Silent()
	return n > 0 && n%r.Budgets().StallRounds == 0
}

// StallTold says whether the end of the present chain was told already.
func (r *Room) StallTold() bool {
	for i := len(r.Lines) - 1; i >= 0; i-- {
		if r.Lines[i].From == "" {
			return r.Stall > r.Lines[i].Pos
		}
	}
	return r.Stall != ""
}

// Notice says whether a message of the room needs no reply.
func (r *Room) Notice(id string) bool {
	for i := len(r.Lines) - 1; i >= 0; i-- {
		if string(r.Lines[i].ID) == id {
			return r.Lines[i].Notice
		}
	}
	return false
}

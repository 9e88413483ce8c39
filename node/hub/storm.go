package hub

import (
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// Storm says that two agents have answered each other too often without a person: shown to people until StormOver.
type Storm struct {
	A, B  protocol.AgentID
	Turns int
}

// StormOver says that a person has spoken to one of them, or that they have stopped.
type StormOver struct{ A, B protocol.AgentID }

func (Storm) isOut()     {}
func (StormOver) isOut() {}

// talk is what two agents say to each other, as far as it wakes them.
type talk struct {
	speaker protocol.AgentID // folded: who spoke last
	turns   int              // how often that changed
	last    time.Time
	calm    time.Time // neither is woken by the other before
}

// talkKey is a pair, the smaller name first. Folded.
type talkKey struct{ a, b protocol.AgentID }

// talksMax bounds how many talks are followed at once.
const talksMax = 16_384

func talkOf(a, b protocol.AgentID) talkKey {
	a, b = protocol.FoldAgentID(a), protocol.FoldAgentID(b)
	if strings.Compare(string(a), string(b)) > 0 {
		a, b = b, a
	}
	return talkKey{a, b}
}

// talks notes a message that this node has let in or taken, and returns before when it should wake nobody (zero: it may at
// once). A report is no answer that asks for another, and what is said in rooms has the rooms' own budgets.
func (c *Core) talks(now time.Time, env *protocol.Envelope) time.Time {
	if env.Room != "" || env.To == "" || env.Intent == protocol.WorkerReport || env.Source == protocol.SourceServer {
		return time.Time{}
	}
	if env.From == "" {
		c.personSpoke(now, env.To)
		return time.Time{}
	}
	if env.NoWake || !protocol.Lookup(env.Intent).Wakes || protocol.FoldAgentID(env.From) == protocol.FoldAgentID(env.To) {
		return time.Time{}
	}
	key, from := talkOf(env.From, env.To), protocol.FoldAgentID(env.From)
	t := c.talking[key]
	if t == nil && len(c.talking) >= talksMax {
		return time.Time{}
	}
	if t == nil {
		t = &talk{speaker: from}
		c.talking[key] = t
	}
	t.last = now
	c.due(now.Add(protocol.StormOver))
	if t.speaker == from {
		return t.calm
	}
	t.speaker = from
	t.turns++
	if t.turns < protocol.StormTurns {
		return time.Time{}
	}
	if t.turns == protocol.StormTurns {
		c.out(Storm{A: env.From, B: env.To, Turns: t.turns})
	}
	space := protocol.StormSpace << min((t.turns-protocol.StormTurns)/protocol.StormStep, 10)
	t.calm = now.Add(min(space, protocol.StormSpaceMax))
	return t.calm
}

// personSpoke lets an agent answer freely again: a person looks after it.
func (c *Core) personSpoke(now time.Time, to protocol.AgentID) {
	to = protocol.FoldAgentID(to)
	for key := range c.talking {
		if key.a == to || key.b == to {
			c.endTalk(now, key)
		}
	}
}

// endTalk forgets a talk. What was to wake nobody yet wakes with the next look.
func (c *Core) endTalk(now time.Time, key talkKey) {
	t := c.talking[key]
	delete(c.talking, key)
	if t.turns < protocol.StormTurns {
		return
	}
	c.out(StormOver{A: key.a, B: key.b})
	for _, id := range []protocol.AgentID{key.a, key.b} {
		if a := c.home(id); a != nil && a.box != nil {
			for _, l := range a.box.items {
				if talkOf(id, l.From) == key {
					l.calm = time.Time{}
				}
			}
		}
	}
	c.due(now)
}

// tickTalks ends the talks that have come to rest.
func (c *Core) tickTalks(now time.Time) {
	for key, t := range c.talking {
		if over := t.last.Add(protocol.StormOver); now.Before(over) {
			c.due(over)
		} else {
			c.endTalk(now, key)
		}
	}
}

package hub

import (
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// An announced message that stays unacknowledged is announced again after announceAgain, announceMax times in all
// (DESIGN 8, wait).
const (
	announceAgain = 5 * time.Minute
	announceMax   = 3
)

func (c *Core) wait(now time.Time, in Wait) {
	a := c.home(in.Agent)
	if a == nil {
		c.tell(Told{Token: in.Token, Refusal: c.notHere(in.Agent)})
		return
	}
	c.waits[in.Token] = protocol.FoldAgentID(a.bind.Agent)
	if len(a.conns) == 0 {
		c.setState(now, a, protocol.StateIdle)
		a.wakes = "aster wait"
	}
	c.wakeWaiters(now, a)
	c.tickWaits(now, a)
}

func (c *Core) unwait(now time.Time, t Token) {
	key, ok := c.waits[t]
	delete(c.waits, t)
	if a := c.agents[key]; ok && a != nil {
		c.waitEnded(now, a)
	}
}

func (c *Core) waitEnded(now time.Time, a *agent) {
	for _, key := range c.waits {
		if key == protocol.FoldAgentID(a.bind.Agent) {
			return
		}
	}
	if a.wakes == "aster wait" {
		a.wakes = ""
	}
	if len(a.conns) == 0 {
		c.setState(now, a, c.calmState(a))
	}
}

// wakeWaiters answers the waits of an agent if something is unread that was not announced, or is due again.
func (c *Core) wakeWaiters(now time.Time, a *agent) {
	key := protocol.FoldAgentID(a.bind.Agent)
	var tokens []Token
	for t, k := range c.waits {
		if k == key {
			tokens = append(tokens, t)
		}
	}
	if len(tokens) == 0 {
		return
	}
	w := Waited{Agent: a.bind.Agent, Unread: a.box.unread()}
	var due []*letter
	for _, l := range a.box.items {
		if l.done || !l.Wakes {
			continue
		}
		if now.Before(l.calm) {
			c.due(l.calm)
			continue
		}
		fresh := l.announces == 0
		again := !fresh && l.announces < announceMax && !now.Before(l.announced.Add(announceAgain))
		if fresh || again {
			due = append(due, l)
			w.Again = w.Again || again
		}
	}
	if len(due) == 0 {
		return
	}
	for _, l := range due {
		l.announces++
		l.announced = now
		c.due(now.Add(announceAgain))
		if len(w.IDs) < 20 {
			w.IDs = append(w.IDs, l.ID)
		}
	}
	for _, t := range tokens {
		delete(c.waits, t)
		answer := w
		c.tell(Told{Token: t, Wait: &answer})
	}
	c.waitEnded(now, a)
}

// tickWaits arranges the moment at which an announced message is announced again.
func (c *Core) tickWaits(now time.Time, a *agent) {
	c.wakeWaiters(now, a)
	for _, l := range a.box.items {
		if again := l.announced.Add(announceAgain); !l.done && l.announces > 0 && l.announces < announceMax && now.Before(again) {
			c.due(again) // what is due already waits for the next wait, not for time
		}
	}
}

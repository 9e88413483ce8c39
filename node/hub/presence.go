package hub

import (
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// presenceEvery is how often at most an agent's presence becomes a record: a record is for ever.
const presenceEvery = time.Minute

// Noted is the last presence of an agent here that is a record.
type Noted struct {
	State protocol.AgentState
	At    time.Time
}

// restorePresence goes on from the last records: an agent that is as it was then has been so since, and one that is not
// has PresenceSettles to come back.
func (c *Core) restorePresence(b Boot) {
	c.notes = b.Presence != nil
	for id, n := range b.Presence {
		a := c.home(id)
		if a == nil {
			continue
		}
		a.noted = n
		if a.since = b.Now; n.State == a.state {
			a.since = n.At
		}
		c.settle(a)
	}
}

// settle arranges for a record of a presence that differs from the last one.
func (c *Core) settle(a *agent) {
	if !c.notes || a.state == a.noted.State {
		return
	}
	c.due(a.settles())
}

// settles is when the present state of an agent becomes a record, if it holds.
func (a *agent) settles() time.Time {
	at := a.since.Add(protocol.PresenceSettles)
	if paced := a.noted.At.Add(presenceEvery); paced.After(at) {
		at = paced
	}
	return at
}

// settleAll makes records of what has held.
func (c *Core) settleAll(now time.Time) {
	if !c.notes {
		return
	}
	var held []*agent
	for _, a := range c.agents {
		if a.box == nil || a.arrives != nil || a.state == a.noted.State {
			continue
		}
		if at := a.settles(); now.Before(at) {
			c.due(at)
		} else {
			held = append(held, a)
		}
	}
	slices.SortFunc(held, func(a, b *agent) int { return strings.Compare(string(a.bind.Agent), string(b.bind.Agent)) })
	scope := c.scopeTo("")
	for _, a := range held {
		c.author.name(&c.ready, now, scope, a)
		c.author.add(&c.ready, now, scope, protocol.KindPresence,
			protocol.EncodeBody(protocol.PresenceBody{Agent: a.bind.Agent, State: string(a.state)}), nil)
		a.noted = Noted{a.state, now}
	}
}

package election

import (
	"slices"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// handing is a hand-over that its main agent has not yet agreed to.
type handing struct {
	to    protocol.PeerID
	agent protocol.AgentID
	until time.Duration
}

// Handoff asks the main agent to hand the office over to an agent of another node. It is refused where that node could
// not be elected: a main that resigned for nothing would leave the mesh without one.
func (c *Core) Handoff(now protocol.Moment, to protocol.PeerID, agent protocol.AgentID, reason string) *protocol.Refusal {
	if c.office == nil || c.ended {
		return protocol.Refuse(protocol.CodeNotAllowed, "this node is not main", "ask the main node: aster main show names it")
	}
	electors := c.electors()
	switch missing := c.missing(now); {
	case to == c.self:
	case !c.sure(now):
		return protocol.Refuse(protocol.CodeNotAllowed, "this node cannot know whether another is main by now: it does not reach enough of the others", "aster main show lists them")
	case !slices.Contains(electors, to):
		return protocol.Refuse(protocol.CodeNotAllowed, "%s has no vote yet", "try again in a few seconds", to.Short())
	case slices.Contains(missing, to):
		return protocol.Refuse(protocol.CodeNotAllowed, "the main node does not reach %s", "hand over when it is linked: aster peers", to.Short())
	case len(electors)-len(missing) < c.quorum():
		return protocol.Refuse(protocol.CodeNotAllowed, "too few nodes are reachable to elect another main", "aster main show lists them")
	}
	c.office.handing = &handing{to, agent, now.Up + protocol.HandoffWait}
	c.ready.Asked = &Asked{agent, reason}
	return nil
}

// HandoffReady is the main agent's word that it has handed over. Without a hand-over that was asked for it is refused.
func (c *Core) HandoffReady(now protocol.Moment) *protocol.Refusal {
	if c.office == nil || c.office.handing == nil {
		return protocol.Refuse(protocol.CodeNotAllowed, "nobody asked for a hand-over", "")
	}
	c.resign(now)
	return nil
}

// resign ends the term by its own main: from here on it decides nothing, and others may vote at once.
func (c *Core) resign(now protocol.Moment) {
	h := c.office.handing
	c.office.handing = nil
	if h.to == c.self { // the same main in the same term, with another agent
		c.ready.Resigned = &Resigned{Term: c.term, To: h.to, ToAgent: h.agent}
		return
	}
	if !c.sure(now) || slices.Contains(c.missing(now), h.to) {
		return // nobody could follow; the office stays here
	}
	c.ready.Resigned = &Resigned{Term: c.term, To: h.to, ToAgent: h.agent}
	c.resigned(now, 0, h.to)
	c.office.beatAt = now.Up
}

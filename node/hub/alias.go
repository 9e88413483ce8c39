package hub

import (
	"maps"
	"slices"

	"github.com/aster-mesh/aster/protocol"
)

// Aliases are the names that agents lost to others in a clash, each with the one that it is called by now. What such an
// agent had said before stays said, and is shown under the name that it has now. A value never changes.
type Aliases map[SaidBy]protocol.AgentID

// SaidBy is a name as one node's logs have it.
type SaidBy struct {
	Home  protocol.PeerID
	Agent protocol.AgentID // folded
}

// Name is whom the words of from in a log of author are by.
func (a Aliases) Name(author protocol.PeerID, from protocol.AgentID) protocol.AgentID {
	if now, ok := a[SaidBy{author, protocol.FoldAgentID(from)}]; ok {
		return now
	}
	return from
}

// Shown is a message of a log of author as people and agents are shown it.
func (a Aliases) Shown(author protocol.PeerID, env *protocol.Envelope) *protocol.Envelope {
	now := a.Name(author, env.From)
	if now == env.From {
		return env
	}
	shown := *env
	shown.From = now
	return &shown
}

// Aliases are those of now.
func (c *Core) Aliases() Aliases { return c.aliases }

// alias notes who is called otherwise than its first home bound it. A name that its bearer brought to that very home is the
// bearer's there.
func (c *Core) alias() {
	now := Aliases{}
	for id, a := range c.bound {
		if id.id == protocol.FoldAgentID(a.bind.Agent) {
			continue
		}
		if b := c.agents[id.id]; b == nil || !slices.Contains(b.homes, id.first) {
			now[SaidBy{id.first, id.id}] = a.bind.Agent
		}
	}
	if !maps.Equal(now, c.aliases) {
		c.aliases = now
	}
}

// disbelieved tells who sent a message for an agent here that it does not count: a member outside said it under a name that
// is another's here.
func (c *Core) disbelieved(ref Ref, env *protocol.Envelope) {
	if a := c.takes(env.To); a != nil && env.Room == "" {
		c.receipts.add(protocol.Refused, a.bind.Agent, protocol.CodeIdentityMismatch, c.receiptScope(ref), ref)
	}
}

package hub

import (
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// Missed is mail for an agent here that came before this node knew the agent: its store was lost, and is given back by
// others in any order.
type Missed struct {
	Agent protocol.AgentID
	Mail  []Arrived
}

func (Missed) isInput() {}

func (c *Core) missed(now time.Time, in Missed) {
	a := c.takes(in.Agent)
	if a == nil {
		return
	}
	for i := range in.Mail {
		if m := &in.Mail[i]; a.box.byRef[m.Ref] == nil && !c.settledNow(m.Ref, m.Env, a) {
			c.take(now, a, m.Ref, m.Env, m.Parent, m.Seen)
		}
	}
}

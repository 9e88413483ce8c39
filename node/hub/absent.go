package hub

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// sent is a message of an agent here whose recipient's node has not taken it, or whose recipient was away when it did.
type sent struct {
	from, to protocol.AgentID
	id       protocol.MsgID
	at       time.Time
	kept     bool // its recipient's home has it
	told     bool
}

// follow remembers a message of an agent here until somebody has it, unless its recipient is here to read it: after
// QueuedNoticeAfter its sender hears that nobody does. here says that its recipient lives here.
func (c *Core) follow(now time.Time, ref Ref, env *protocol.Envelope, here bool) {
	if env.From != "" && (!here || c.isAway(env.To)) {
		c.pend(ref, &sent{from: env.From, to: env.To, id: env.ID, at: now, kept: here})
	}
}

func (c *Core) pend(ref Ref, s *sent) {
	c.pending[ref] = s
	c.lookAbsent(s.at.Add(protocol.QueuedNoticeAfter))
}

func (c *Core) lookAbsent(at time.Time) {
	if c.absentAt.IsZero() || at.Before(c.absentAt) {
		c.absentAt = at
	}
	c.due(c.absentAt)
}

// isAway says whether an agent has nobody who takes its mail, here or at another node.
func (c *Core) isAway(id protocol.AgentID) bool {
	a := c.find(id)
	return a != nil && c.known(a).State == protocol.StateAway
}

// unread says whether nobody was given, or told of, a message of an agent that lives here; of others it is not known.
func (c *Core) unread(id protocol.AgentID, ref Ref) bool {
	a := c.home(id)
	if a == nil {
		return true
	}
	l := a.box.byRef[ref]
	return l != nil && !l.done && !l.Given && !l.Kept && l.announced.IsZero()
}

// settledFar forgets a message when it is delivered or settled, or kept at the home of a recipient who is there to read it, or of
// whose absence its sender has heard.
func (c *Core) settledFar(put TierPut) {
	if s := c.pending[put.Ref]; s != nil && !s.told && put.Tier == protocol.Persisted && c.isAway(put.Agent) {
		s.kept = true
		return
	}
	delete(c.pending, put.Ref)
}

// tickPending tells senders of what nobody has taken for too long, once. What is kept and whose recipient came meanwhile is
// that one's to read.
func (c *Core) tickPending(now time.Time) {
	if c.absentAt.IsZero() || now.Before(c.absentAt) {
		if !c.absentAt.IsZero() {
			c.due(c.absentAt)
		}
		return
	}
	c.absentAt = time.Time{}
	inOrder := slices.SortedFunc(maps.Keys(c.pending), func(a, b Ref) int {
		return cmp.Or(c.pending[a].at.Compare(c.pending[b].at), cmp.Compare(a.Seq, b.Seq))
	})
	for _, ref := range inOrder {
		s := c.pending[ref]
		switch at := s.at.Add(protocol.QueuedNoticeAfter); {
		case s.told:
			continue
		case now.Before(at):
			c.lookAbsent(at)
			continue
		case !s.kept || c.isAway(s.to) && c.unread(s.to, ref):
			s.told = true
			c.out(QueuedNotice{Ref: ref, Sender: s.from, Target: s.to, ID: s.id, Since: s.at})
		}
		if s.kept {
			delete(c.pending, ref)
		}
	}
}

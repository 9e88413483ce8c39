package hub

import (
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// tick does what time alone brings about.
func (c *Core) tick(now time.Time) {
	c.next = time.Time{}
	for ref, s := range c.pending {
		switch at := s.at.Add(protocol.QueuedNoticeAfter); {
		case s.told:
		case now.Before(at):
			c.due(at)
		default:
			s.told = true
			c.out(QueuedNotice{Ref: ref, Sender: s.from, Target: s.to, ID: s.id, Since: s.at})
		}
	}
	c.tickSelections(now)
	c.tickTalks(now)
	c.tickSeats(now)
	c.tickParked(now)
	c.settleAll(now)
	for _, a := range c.agents {
		if a.box != nil {
			c.tickBox(now, a)
		}
	}
}

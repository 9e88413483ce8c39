package hub

import "time"

// tick does what time alone brings about.
func (c *Core) tick(now time.Time) {
	c.next = time.Time{}
	c.tickPending(now)
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

package link

// uncorkBytes is up to where Uncork writes itself: what a socket takes at once.
const uncorkBytes = 32 << 10

// Cork holds back what Send takes from now on, until Uncork. A connection that ends meanwhile still writes it.
func (c *Conn) Cork() {
	c.mu.Lock()
	c.corked = true
	c.mu.Unlock()
}

// Uncork lets go what was held back and never waits. at once: it gives the socket what it takes of it right now, which
// spares the turn through the write loop; the rest is the write loop's, as it is all if something waited before. False says
// that the write loop has something to do.
func (c *Conn) Uncork(atOnce bool) bool {
	c.mu.Lock()
	c.corked = false
	if len(c.waiting) == 0 && !c.probe {
		c.mu.Unlock()
		return true
	}
	if !atOnce || c.state != open || c.writing || c.rest || c.over || c.bytes > uncorkBytes || !c.wire.try() {
		c.poke()
		c.mu.Unlock()
		return false
	}
	t := c.takeLocked(false)
	c.mu.Unlock()
	err := c.gather(&t)
	all := c.wire.offer() // whole frames, up to the one that failed
	if err != nil {
		// The frames from there on are gone with t, and the write loop would not notice: end it here. Only behind a close frame
		// that answers an offence the end is the read loop's. No ping names a frame that is gone, so none counts as read.
		c.writeFailed(err)
	}
	c.put(!all)
	return err == nil && all
}

package double

import (
	"slices"
	"sync"
	"time"
)

// clock is the time of a hub: the machine's, and as far ahead of it as it was stepped.
type clock struct {
	mu     sync.Mutex
	ahead  time.Duration
	alarms []*alarm
}

type alarm struct {
	at   time.Time
	real *time.Timer
	do   func()
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

// after calls do once, in a goroutine of its own, when d has passed on this clock.
func (c *clock) after(d time.Duration, do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &alarm{at: time.Now().Add(c.ahead + d), do: do}
	a.real = time.AfterFunc(d, func() {
		if c.drop(a) {
			do()
		}
	})
	c.alarms = append(c.alarms, a)
}

// drop says whether an alarm was still to go off.
func (c *clock) drop(a *alarm) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.alarms, a)
	if i >= 0 {
		c.alarms = slices.Delete(c.alarms, i, i+1)
	}
	return i >= 0
}

// step lets d pass at once. What is due meanwhile is done before it returns, each at its own time.
func (c *clock) step(d time.Duration) {
	c.mu.Lock()
	end := time.Now().Add(c.ahead + d)
	c.mu.Unlock()
	for {
		c.mu.Lock()
		now := time.Now().Add(c.ahead)
		var first *alarm
		for _, a := range c.alarms {
			if !a.at.After(end) && (first == nil || a.at.Before(first.at)) {
				first = a
			}
		}
		to := end
		if first != nil {
			to = first.at
		}
		c.ahead += max(to.Sub(now), 0)
		c.mu.Unlock()
		if first == nil {
			return
		}
		if first.real.Stop(); c.drop(first) {
			first.do()
		}
	}
}

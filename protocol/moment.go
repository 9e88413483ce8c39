package protocol

import (
	"math"
	"time"
)

// Moment is one instant by both clocks of a machine. No clock alone measures a lease: the wall clock can be set, and
// the other begins anew with every boot and, on some systems, sleeps with the machine (DESIGN 4 Clocks).
type Moment struct {
	Wall int64         `json:"wall"` // ms since 1970
	Up   time.Duration `json:"up"`   // since the machine was booted; counts sleep where the system can tell
	Boot string        `json:"boot"` // names the boot that Up counts from
}

// Forever is longer than anything that is measured here.
const Forever = time.Duration(math.MaxInt64)

// AtLeast is how long ago past surely was: what is given to others is taken back no sooner. 0 if the wall clock alone
// could tell and went backwards.
func (m Moment) AtLeast(past Moment) time.Duration {
	if m.Boot == past.Boot {
		return max(m.Up-past.Up, 0)
	}
	return max(m.wallSince(past), 0)
}

// AtMost is how long ago past may have been: what was given to us is used no longer. Forever if nothing can be said: the
// wall clock was set back, and the other may have slept.
func (m Moment) AtMost(past Moment) time.Duration {
	wall, up := m.wallSince(past), time.Duration(0)
	if m.Boot == past.Boot {
		up = m.Up - past.Up
	}
	if up < 0 || wall < up-clockSlack {
		return Forever
	}
	return max(up, wall)
}

// clockSlack is how far two clocks of one machine drift apart while a lease runs, with room to spare.
const clockSlack = 2 * time.Second

func (m Moment) wallSince(past Moment) time.Duration {
	const most = int64(Forever / time.Millisecond)
	return time.Duration(min(max(m.Wall-past.Wall, -most), most)) * time.Millisecond
}

// Add is m after d, by both clocks.
func (m Moment) Add(d time.Duration) Moment {
	return Moment{m.Wall + d.Milliseconds(), m.Up + d, m.Boot}
}

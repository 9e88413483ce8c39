package cut

import (
	"slices"
	"time"
)

// Moment says that a store held all up to a position when its own node's clock showed a time. What its author's clock showed says
// little of how old a record is: that clock may be wrong, or lie.
type Moment struct {
	Wall int64  `json:"wall"` // ms since 1970
	Pos  uint64 `json:"pos"`
}

// momentsKept are kept, over twice the age that is asked for.
const momentsKept = 240

// Note adds a moment if the last is not of just now. It takes moments over. What is of a time to come was noted by a clock that was
// wrong, and is forgotten.
func Note(moments []Moment, now time.Time, age time.Duration, pos uint64) (out []Moment, noted bool) {
	wall := now.UnixMilli()
	for len(moments) > 0 && moments[len(moments)-1].Wall > wall {
		moments = moments[:len(moments)-1]
	}
	every := 2 * max(age, BaseAge).Milliseconds() / momentsKept
	if n := len(moments); n > 0 && wall-moments[n-1].Wall < every {
		return moments, false
	}
	moments = append(moments, Moment{wall, pos})
	if extra := len(moments) - momentsKept; extra > 0 {
		moments = slices.Delete(moments, 0, extra)
	}
	return moments, true
}

// Held is up to where a store has held all for an age, as far as it knows.
func Held(moments []Moment, now time.Time, age time.Duration) (pos uint64) {
	for _, m := range moments {
		if now.UnixMilli()-m.Wall >= age.Milliseconds() {
			pos = max(pos, m.Pos)
		}
	}
	return pos
}

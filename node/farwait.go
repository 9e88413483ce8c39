package node

import (
	"time"

	"github.com/aster-mesh/aster/node/foreign"
	"github.com/aster-mesh/aster/protocol"
)

// lookLater has a room looked at when HoldMinute ends, or when its word is given again: by one timer each, however often its hub
// speaks of it.
func (v *visit) lookLater(id string, minute bool, after time.Duration) {
	if !v.rooms.times(id, minute) {
		return
	}
	v.s.b.n.later(after, func() {
		if more := v.rooms.timed(id, minute, time.Now()); more > 0 {
			v.lookLater(id, minute, more)
			return
		}
		v.lookAtRoom(id)
	})
}

// times says whether a timer is to begin: none runs.
func (sp *speaking) times(id string, minute bool) bool {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	runs := sp.room(id).timer(minute)
	if *runs || sp.rooms[id] == nil {
		return false
	}
	*runs = true
	return true
}

// timed notes that a timer is over, and says how long it is until what has come since then.
func (sp *speaking) timed(id string, minute bool, now time.Time) time.Duration {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	r := sp.room(id)
	*r.timer(minute) = false
	switch {
	case minute && r.hold == foreign.HoldMinute:
		return r.until.Sub(now)
	case !minute && r.word != "":
		return r.at.Add(protocol.RedeliverEvery).Sub(now)
	}
	return 0
}

func (r *wordIn) timer(minute bool) *bool {
	if minute {
		return &r.minute
	}
	return &r.again
}

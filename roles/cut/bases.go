package cut

import (
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// BaseAge is how old at least whatever lies below a base is: a message that nobody took has expired by then, and its id is
// remembered no longer.
const BaseAge = protocol.MessageLife + 24*time.Hour

// Rise finds how far the base of each log may rise: up to the end of a commit, as long as all is old enough and nobody owes
// anything for it. What holds up one log holds up no other. See NewRise.
type Rise struct {
	now   time.Time
	age   time.Duration
	base  func(protocol.LogID) uint64
	marks map[protocol.LogID]uint64
	young map[protocol.LogID]bool // nothing more of it is wanted
	owed  map[protocol.LogID]bool // what follows counts nothing
}

// NewRise begins at the base that is. What is younger than age, and than BaseAge in any case, stays above the next.
func NewRise(now time.Time, age time.Duration, base func(protocol.LogID) uint64) *Rise {
	return &Rise{now: now, age: max(age, BaseAge), base: base, marks: map[protocol.LogID]uint64{}, young: map[protocol.LogID]bool{}, owed: map[protocol.LogID]bool{}}
}

// Old says whether a record of that wall time may lie below the base. A time to come is of a clock that was wrong, and young.
func (r *Rise) Old(wall int64) bool { return r.now.UnixMilli()-wall >= r.age.Milliseconds() }

// Wants says whether the next record of a log may raise its base, so that it is worth looking whether somebody owes anything
// for it.
func (r *Rise) Wants(log protocol.LogID, seq uint64, wall int64) bool {
	if seq <= r.base(log) || r.young[log] || r.owed[log] {
		return false
	}
	if !r.Old(wall) {
		r.young[log] = true
	}
	return !r.young[log]
}

// Take takes a record that Wants wanted, then or later; those of one log come in order. owed: somebody is still to do something about it.
// last: it ends a commit. What comes after one that is owed is passed over.
func (r *Rise) Take(log protocol.LogID, seq uint64, owed, last bool) {
	switch {
	case r.owed[log]:
	case owed:
		r.owed[log] = true
	case last:
		r.marks[log] = seq
	}
}

// Marks are the bases that rise, at most limit of them, the first by name.
func (r *Rise) Marks(limit int) map[protocol.LogID]uint64 {
	logs := make([]protocol.LogID, 0, len(r.marks))
	for log := range r.marks {
		logs = append(logs, log)
	}
	slices.SortFunc(logs, func(a, b protocol.LogID) int { return strings.Compare(a.String(), b.String()) })
	out := map[protocol.LogID]uint64{}
	for _, log := range logs[:min(len(logs), limit)] {
		out[log] = r.marks[log]
	}
	return out
}

// Bears says whether the bases that another member proposes may be: each is higher than the one that is, and nowhere above
// what this one found.
func (r *Rise) Bears(marks map[protocol.LogID]uint64) bool {
	for log, seq := range marks {
		if seq <= r.base(log) || seq > r.marks[log] {
			return false
		}
	}
	return len(marks) > 0
}

// Raises says whether marks lie above the bases that are, for one log at least.
func Raises(base func(protocol.LogID) uint64, marks map[protocol.LogID]uint64) bool {
	for log, seq := range marks {
		if seq > base(log) {
			return true
		}
	}
	return false
}

// Holds says what a majority of the members answered alike; of two both, one alone is enough for itself. inside are those that
// the fold at the base knows, so that whoever comes later judges alike.
func Holds(inside []protocol.PeerID, answers []Answer) (a Answer, ok bool) {
	v := Judge(inside, answers)
	for _, a := range answers {
		if v.Digest != "" && a.Digest == v.Digest && slices.Contains(v.Alike, a.By) {
			return a, true
		}
	}
	return a, false
}

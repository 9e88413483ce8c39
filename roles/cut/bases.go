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
	held  uint64 // up to where the store has held all for so long
	base  func(protocol.LogID) uint64
	marks map[protocol.LogID]uint64
	young map[protocol.LogID]bool // nothing more of it is wanted
	owed  map[protocol.LogID]bool // what follows counts nothing
	first Owed                    // the oldest that is
	kept  int64                   // wall time of the oldest that is young; 0: none
}

// Owed is a record for which somebody is still to do something.
type Owed struct {
	Why  string // in words, such as "an open task"; empty: nobody is
	Wall int64  // when it was written, by its author's clock, ms; 0: unknown
}

// NewRise begins at the base that is. What is younger than age, and than BaseAge in any case, stays above the next. moments are of
// the store whose records it is shown.
func NewRise(now time.Time, age time.Duration, moments []Moment, base func(protocol.LogID) uint64) *Rise {
	age = max(age, BaseAge)
	return &Rise{now: now, age: age, held: Held(moments, now, age), base: base, marks: map[protocol.LogID]uint64{}, young: map[protocol.LogID]bool{}, owed: map[protocol.LogID]bool{}}
}

// Old says whether a record at a position may lie below the base, whose author's clock showed wall: if that is long ago, and this
// member has held it for as long by its own clock. So no author makes its record older than it is, and what a majority answers
// is older by most members' clocks. A time to come is of a clock that was wrong, and young.
func (r *Rise) Old(pos uint64, wall int64) bool {
	return pos <= r.held && r.now.UnixMilli()-wall >= r.age.Milliseconds()
}

// Wants says whether the next record of a log may raise its base, so that it is worth looking whether somebody owes anything
// for it.
func (r *Rise) Wants(log protocol.LogID, seq, pos uint64, wall int64) bool {
	if seq <= r.base(log) || r.young[log] || r.owed[log] {
		return false
	}
	if !r.Old(pos, wall) {
		r.young[log] = true
		if r.kept == 0 || wall < r.kept {
			r.kept = wall
		}
	}
	return !r.young[log]
}

// Take takes a record that Wants wanted, then or later; those of one log come in order.
// last: it ends a commit. What comes after one that is owed is passed over.
func (r *Rise) Take(log protocol.LogID, seq uint64, owed Owed, last bool) {
	switch {
	case r.owed[log]:
	case owed.Why != "":
		r.owed[log] = true
		if r.first.Why == "" || owed.Wall < r.first.Wall {
			r.first = owed
		}
	case last:
		r.marks[log] = seq
	}
}

// Holding is what keeps logs from rising: the oldest record that is old enough and for which somebody owes something, and when the oldest
// that is not old enough was written, by its author's clock, ms; 0: none is.
func (r *Rise) Holding() (owed Owed, young int64) { return r.first, r.kept }

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

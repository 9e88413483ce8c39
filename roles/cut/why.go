package cut

import (
	"fmt"
	"strings"
	"time"
)

// Standstill is what a node knows of why no base rises. Names are those of members.
type Standstill struct {
	Now time.Time     // in the zone of whoever reads it
	Age time.Duration // after which records leave here; 0: they stay

	Differs bool // a base holds, and this node makes something else of the records below it
	Clock   bool // one holds that is young by this node's clock
	Behind  bool // one holds, and not all below it is here

	By     string    // whose proposal waits for answers; empty: none does
	Since  time.Time // when it was made
	Others []string  // who answered it so differently that no majority comes about
	Never  []string  // of those who have not answered, who was never here
	Open   []string  // the others of them
	Enough bool      // a majority has answered

	Proposer string    // who is to propose the next: empty: nobody is up
	Mine     bool      // this node is
	Looked   time.Time // when it looked for a base last; zero: not yet
	Rose     bool      // it found one then
	Owed     Owed      // what it found of what holds logs back
	Young    int64     // when the oldest record that is too young was written, ms; 0: none was
}

// Why says in one line why no base rises now; empty: one does, or there is nothing to say.
func (s *Standstill) Why() string {
	switch {
	case s.Differs:
		return "differs: this node makes something else of the records below the base that the members agreed on. Look for damage: aster doctor"
	case s.Clock:
		return "the base that the members agreed on is young by this node's clock. Look at the clocks of all machines: aster doctor"
	case s.Behind:
		return "a base was agreed on, and not all that lies below it is here yet"
	case s.By != "":
		return s.waits()
	case s.Age <= 0:
		return "off: old records stay. They leave once [retention] records is set"
	case !s.Mine && s.Proposer != "":
		return s.Proposer + " is to propose the next base"
	case !s.Mine, s.Looked.IsZero():
		return "nobody has looked yet for what is old enough"
	case s.Rose:
		return ""
	case s.Owed.Why != "":
		return s.Owed.Why + s.from(s.Owed.Wall) + " holds it"
	case s.Young != 0:
		return fmt.Sprintf("nothing is old enough: the oldest record that is kept is%s, and records leave after %d days", s.from(s.Young), max(s.Age, BaseAge)/(24*time.Hour))
	}
	return "there are no records to leave"
}

func (s *Standstill) waits() string {
	switch {
	case s.Enough:
		return ""
	case len(s.Others) > 0:
		return "differs: " + list(s.Others) + " make different things of the same records. Look for damage on each: aster doctor"
	case len(s.Never) > 0 && len(s.Open) == 0:
		return fmt.Sprintf("waits for the answer of %s, a member that was never here. If it will not come: aster member revoke %s", list(s.Never), s.Never[0])
	case len(s.Open) > 0:
		return "waits for the answer of " + list(append(s.Open[:len(s.Open):len(s.Open)], s.Never...)) + " since " + s.clock(s.Since)
	}
	return ""
}

// listed is how many names a line has.
const listed = 3

func list(names []string) string {
	if len(names) > listed {
		return strings.Join(names[:listed], ", ") + fmt.Sprintf(" and %d more", len(names)-listed)
	}
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

func (s *Standstill) clock(t time.Time) string {
	if t = t.In(s.Now.Location()); t.Format(time.DateOnly) != s.Now.Format(time.DateOnly) {
		return t.Format("2006-01-02 15:04")
	}
	return t.Format("15:04")
}

func (s *Standstill) from(wall int64) string {
	if wall == 0 {
		return ""
	}
	return " from " + time.UnixMilli(wall).In(s.Now.Location()).Format(time.DateOnly)
}

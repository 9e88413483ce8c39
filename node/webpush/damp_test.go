package webpush

import (
	"fmt"
	"testing"
	"time"
)

// story plays what a Damper sees, second by second.
type story struct {
	d    Damper
	at   time.Time
	told []int // seconds at which the person was told
	zero time.Time
}

func newStory() *story {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	return &story{at: now, zero: now}
}

// goes lets seconds pass with the same things due; looking: a page is in sight all the while.
func (s *story) goes(seconds int, looking bool, due ...Due) {
	for range seconds {
		s.at = s.at.Add(time.Second)
		var seen time.Time
		if looking {
			seen = s.at
		}
		if s.d.Look(s.at, due, looking, seen) {
			s.told = append(s.told, int(s.at.Sub(s.zero)/time.Second))
		}
	}
}

func (s *story) want(t *testing.T, want ...int) {
	t.Helper()
	if fmt.Sprint(s.told) != fmt.Sprint(want) {
		t.Errorf("told at %v, want %v", s.told, want)
	}
}

func risk(id string) Due    { return Due{ID: id, Kind: "approval"} }
func blocked(id string) Due { return Due{ID: id, Kind: "blocked"} }
func clock(id string) Due   { return Due{ID: id, Kind: "choice", Clock: true} }

func TestWhatIsAnsweredAtOnceDisturbsNobody(t *testing.T) {
	s := newStory()
	s.goes(5, false, risk("a"))
	s.goes(30, false)
	s.want(t)
}

func TestABurstIsOneNote(t *testing.T) {
	s := newStory()
	var all []Due
	for i := range 40 {
		all = append(all, risk(fmt.Sprint(i)), blocked(fmt.Sprint("b", i)))
		if i%10 == 9 {
			s.goes(1, false, all...)
		}
	}
	s.goes(600, false, all...)
	s.want(t, 6) // of all 80: the count holds them
}

func TestAKindIsToldOnceAMinute(t *testing.T) {
	s := newStory()
	s.goes(10, false, risk("a"))
	s.goes(100, false, risk("a"), risk("b"))
	s.want(t, 6, 66)
	s = newStory()
	s.goes(10, false, risk("a"))
	s.goes(100, false, risk("a"), blocked("b")) // of another kind
	s.want(t, 6, 16)
}

func TestSixAnHourButForClocks(t *testing.T) {
	s := newStory()
	var all []Due
	for i := range 10 {
		all = append(all, risk(fmt.Sprint(i)))
		s.goes(100, false, all...)
	}
	if len(s.told) != 6 {
		t.Errorf("told at %v", s.told)
	}
	s.goes(10, false, append(all, clock("c"))...)
	if len(s.told) != 7 {
		t.Errorf("a clock was not told: %v", s.told)
	}
	s.goes(3600, false, append(all, clock("c"), risk("later"))...)
	if n := len(s.told); n != 8 || s.told[7] < 3606 {
		t.Errorf("after an hour: %v", s.told)
	}
}

func TestWhatAPageShowedIsNotPushed(t *testing.T) {
	s := newStory()
	s.goes(20, true, risk("a")) // in sight for long enough
	s.goes(300, false, risk("a"))
	s.want(t)
	s = newStory()
	s.goes(3, true, risk("a")) // the page went away before anybody can have read it
	s.goes(300, false, risk("a"))
	if len(s.told) != 1 {
		t.Errorf("told at %v", s.told)
	}
}

// A page that was in sight and is silent since may be a machine that sleeps: its person is told once that is sure.
func TestASilentPageTellsNobody(t *testing.T) {
	var d Damper
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	last, told := now.Add(-time.Second), 0
	for i := range 120 {
		at := now.Add(time.Duration(i) * time.Second)
		if d.Look(at, []Due{risk("a")}, at.Sub(last) < 75*time.Second, last) {
			told++
			if at.Sub(last) < 75*time.Second {
				t.Errorf("told after %s", at.Sub(now))
			}
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}

func TestWhatComesAgainIsToldAgain(t *testing.T) {
	s := newStory()
	s.goes(10, false, risk("a"))
	s.goes(60, false)
	s.goes(10, false, risk("a"))
	s.want(t, 6, 76)
	if len(s.d.waiting)+len(s.d.told) > 1 {
		t.Error("it remembers what is over")
	}
}

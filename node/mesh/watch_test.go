package mesh

import (
	"testing"
	"testing/synctest"
	"time"
)

// A process that was stopped is told from one that ran, whatever the wall clock was set to meanwhile. (A machine's sleep
// shows in the wall clock alone, which cannot be made here: time.Time keeps its two clocks together.)
func TestAStoppedProcessIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last := time.Now()
		time.Sleep(watchEvery + time.Second)
		if slept := asleep(last, time.Now()); slept > sleepMin {
			t.Errorf("a late look is called a sleep of %s", slept)
		}
		time.Sleep(20 * time.Second)
		if slept := asleep(last, time.Now()); slept <= sleepMin {
			t.Errorf("20 s without a look are called a sleep of %s", slept)
		}
		// Without a monotonic part the wall clock alone speaks: a look 20 s later by the wall, at once by the other clock.
		if slept := asleep(last.Round(0), last.Round(0).Add(watchEvery+20*time.Second)); slept <= sleepMin {
			t.Errorf("a wall clock that went on is called a sleep of %s", slept)
		}
	})
}

// A split of minutes is over within 10 s of its end: pauses stay short until then. A peer that is away is dialled seldom.
func TestPausesStayShortForMinutes(t *testing.T) {
	backoff, missing := backoffMin, time.Duration(0)
	for missing < soonFor {
		missing += backoff
		if backoff > 5*time.Second {
			t.Fatalf("a pause of %s after %s", backoff, missing)
		}
		backoff = nextBackoff(backoff, missing)
	}
	for range 10 {
		backoff = nextBackoff(backoff, soonFor)
	}
	if backoff != backoffMax {
		t.Errorf("a peer that is away is dialled every %s", backoff)
	}
}

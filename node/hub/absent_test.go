package hub

import (
	"strings"
	"testing"
	"time"
)

// TestWhatItsSenderHeardOfIsForgottenOnceItIsKept: a node that was away for long takes what waited for it, for an agent that stays away;
// of each such message its sender hears once, and nothing of it stays in memory.
func TestWhatItsSenderHeardOfIsForgottenOnceItIsKept(t *testing.T) {
	s := newStage()
	for _, line := range []string{"attach m main", "member there local", "from there bind far 5", "say main far Request r1"} {
		s.do(t, strings.Fields(line))
		s.core.Ready(s.now)
	}
	s.now = s.now.Add(11 * time.Minute)
	s.core.Step(s.now, Tick{})
	if len(s.core.pending) != 1 || len(s.core.Ready(s.now).Out) == 0 {
		t.Fatalf("%d pending, and its sender heard nothing", len(s.core.pending))
	}
	s.do(t, strings.Fields("from there receipt persisted far 2"))
	if !s.core.isAway("far") || len(s.core.pending) != 0 {
		t.Errorf("%d messages are still followed", len(s.core.pending))
	}
}

package sim

import (
	"os"
	"testing"
)

// claimRuns are the doses: of -short, of a full run, and of ASTER_LONG.
const (
	shortClaimRuns = 20
	claimRuns      = 1_000
	longClaimRuns  = 20_000
)

// Whatever becomes of mains, links and clocks: what a dead main granted is granted to nobody else while its lease runs.
func TestNothingIsHeldTwice(t *testing.T) {
	if *oneSeed >= 0 {
		replay(t, ClaimPlanOf(uint64(*oneSeed)))
		return
	}
	n := claimRuns
	switch {
	case *seeds > 0:
		n = *seeds
	case testing.Short():
		n = shortClaimRuns
	case os.Getenv("ASTER_LONG") != "":
		n = longClaimRuns
	}
	total := many(t, n, ClaimPlanOf)
	if total.Granted == 0 || total.Ungranted == 0 || total.Terms == 0 {
		t.Errorf("something never happened: %+v", total)
	}
}

// The control: without the waiting of a new main the same runs hold something twice.
func TestWithoutTheWaitingSomethingIsHeldTwice(t *testing.T) {
	for seed := range uint64(200) {
		w := New(ClaimPlanOf(seed))
		w.hasty = true
		if v := w.Run(); v != nil && v.Rule == "nothing is held twice" {
			t.Logf("seed %d: %v", seed, v)
			return
		}
	}
	t.Error("200 hasty runs and nothing was held twice: the plans try nothing")
}

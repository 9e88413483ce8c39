package sim

import (
	"os"
	"testing"
)

// agedRuns are the doses: of -short, of a full run, and of ASTER_LONG.
const (
	shortAgedRuns = 10
	agedRuns      = 100
	longAgedRuns  = 20_000
)

// AgedPlanOf is the plan of a seed, after which a month goes by and records leave.
func AgedPlanOf(seed uint64) Plan {
	p := stillPlanOf(seed)
	p.Aged = true
	return p
}

// Old records leave whole meshes, of whose nodes some keep theirs, one is away and others come anew: all show the same board, nothing
// acknowledged is lost, and nothing is handled twice.
func TestRecordsLeaveWholeMeshes(t *testing.T) {
	if *oneSeed >= 0 {
		replay(t, AgedPlanOf(uint64(*oneSeed)))
		return
	}
	n := agedRuns
	switch {
	case *seeds > 0:
		n = *seeds
	case testing.Short():
		n = shortAgedRuns
	case os.Getenv("ASTER_LONG") != "":
		n = longAgedRuns
	}
	total := many(t, n, AgedPlanOf)
	if !t.Failed() && (total.Bases == 0 || total.Leaves == 0 || n >= agedRuns && (total.Begins == 0 || total.Lies == 0)) {
		t.Errorf("something never happened: %+v", total)
	}
}

package sim

import (
	"os"
	"testing"
)

// orderRuns are the doses: of -short, of a full run, and of ASTER_LONG.
const (
	shortOrderRuns = 10
	orderRuns      = 120
	longOrderRuns  = 20_000
)

// However often a node starts anew, and whoever passes its words on: each recipient has them in the order in which the
// node logged them.
func TestOneNodesWordsComeInItsOrder(t *testing.T) {
	if *oneSeed >= 0 {
		replay(t, OrderPlanOf(uint64(*oneSeed)))
		return
	}
	n := orderRuns
	switch {
	case *seeds > 0:
		n = *seeds
	case testing.Short():
		n = shortOrderRuns
	case os.Getenv("ASTER_LONG") != "":
		n = longOrderRuns
	}
	total := many(t, n, OrderPlanOf)
	if total.Crashes == 0 || total.Handled == 0 {
		t.Errorf("something never happened: %+v", total)
	}
}

package journal_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/node/sim"
)

// TestTheStoreAnswersLikeItsModel: what the simulation's model disk promises, the real store does under power cuts and
// full disks, so that what the simulation finds good is good.
func TestTheStoreAnswersLikeItsModel(t *testing.T) {
	t.Parallel() // it waits for the disk
	seeds := uint64(6)
	switch {
	case os.Getenv("ASTER_LONG") != "":
		seeds = 60
	case testing.Short():
		seeds = 2
	}
	for seed := range seeds {
		dir := filepath.Join(t.TempDir(), "journal")
		f := journal.OpenFaulty(t, dir, sim.ContractSigner)
		sim.Contract(t, seed, sim.Rig{
			Store:  f.Store(),
			Power:  func(n int) { f.Power(n, n%3) },
			Full:   f.Full,
			Reopen: func() sim.Store { return f.Reopen(t, dir) },
		})
	}
}

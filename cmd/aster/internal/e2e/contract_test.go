package e2e

import (
	"strings"
	"testing"

	"github.com/aster-mesh/aster/spec/check"
)

// TestThreeNodesKeepTheContractTogether spreads the clients of every vector over a mesh.
func TestThreeNodesKeepTheContractTogether(t *testing.T) {
	var urls []string
	for _, n := range meshOf(t, nil, "a", "b", "c") {
		urls = append(urls, socketOf(n))
	}
	keepsTheContract(t, urls, check.Options{})
}

// TestWhatTakesTimeHoldsOnOneNodeAndOnThree: rules whose vectors wait, by the clock. Without ASTER_LONG=1 it is the one that
// waits for a quarter of a minute; with it all, and all others once more, as by aster check --slow.
func TestWhatTakesTimeHoldsOnOneNodeAndOnThree(t *testing.T) {
	opt := check.Options{Slow: true, Filter: "dead-connection"}
	if long {
		opt.Filter = ""
	}
	alone := []string{socketOf(meshOf(t, nil, "alone")[0])}
	var together []string
	for _, n := range meshOf(t, nil, "a", "b", "c") {
		together = append(together, socketOf(n))
	}
	t.Run("both", func(t *testing.T) {
		for name, urls := range map[string][]string{"one": alone, "three": together} {
			t.Run(name, func(t *testing.T) {
				t.Parallel() // they mostly wait
				keepsTheContract(t, urls, opt)
			})
		}
	})
}

func keepsTheContract(t *testing.T, urls []string, opt check.Options) {
	t.Helper()
	opt.Patience = patience
	report, err := check.Run(t.Context(), urls, opt)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Results {
		for _, f := range r.Failures {
			t.Errorf("%s: %s.txtar:%d %s: %s\n%s", r.Rule, f.Vector, f.Line, f.Step, f.Why, strings.Join(f.Got, "\n"))
		}
	}
	if !report.OK() || report.Ran == 0 {
		t.Errorf("not every rule holds: %d vectors ran", report.Ran)
	}
}

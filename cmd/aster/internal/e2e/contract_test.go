package e2e

import (
	"strings"
	"testing"

	"github.com/aster-mesh/aster/spec/check"
)

// TestThreeNodesKeepTheContractTogether spreads the clients of every vector over a mesh; with ASTER_LONG=1 also those of
// vectors that wait.
func TestThreeNodesKeepTheContractTogether(t *testing.T) {
	var urls []string
	for _, n := range meshOf(t, nil, "a", "b", "c") {
		urls = append(urls, socketOf(n))
	}
	report, err := check.Run(t.Context(), urls, check.Options{Slow: long, Patience: patience})
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

package main

import (
	"testing"
	"time"

	"github.com/aster-mesh/aster/spec"
	"github.com/aster-mesh/aster/spec/check"
)

// TestNodeAnswersAsTheEarlierHubDidButForListedDifferences replays the clients' side of each fixture against a fresh node.
func TestNodeAnswersAsTheEarlierHubDidButForListedDifferences(t *testing.T) {
	if testing.Short() {
		t.Skip("each step of a fixture waits until nothing more comes")
	}
	fixtures, err := spec.Fixtures()
	if err != nil || len(fixtures) == 0 {
		t.Fatal(err, "no fixtures")
	}
	differences, err := spec.Differences()
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]int{}
	for i := range fixtures {
		t.Run(fixtures[i].Name, func(t *testing.T) {
			got, err := check.Replay(t.Context(), alone(t), &fixtures[i], differences, 5*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range got.Wrong {
				t.Error(w)
			}
			for id, n := range got.Used {
				used[id] += n
			}
		})
	}
	for _, d := range differences {
		if used[d.ID] == 0 {
			t.Errorf("%s was never met: %s", d.ID, d.Why)
		}
		t.Logf("%-4s %3d times: %s", d.ID, used[d.ID], d.Why)
	}
}

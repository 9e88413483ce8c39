package e2e

import "testing"

// TestLeaveReturnsWhenTheNodeHasEnded: what leave says is true when it says it.
func TestLeaveReturnsWhenTheNodeHasEnded(t *testing.T) {
	n := meshOf(t, nil, "ada", "bee")[1]
	n.ok("leave", "--yes")
	if r := n.run("status"); r.code != 3 {
		t.Errorf("status right after: want exit 3: %s", r)
	}
}

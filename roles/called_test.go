package roles

import (
	"slices"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

func TestNamesDependOnTheSetOfBindingsAlone(t *testing.T) {
	all := []Bound{
		{Agent: "Bob", First: "b", Since: 4},
		{Agent: "bob", First: "a", Since: 9},
		{Agent: "bob-2", First: "c", Since: 90},
		{Agent: "bob", First: "g", Since: 1, Guest: true, Admitted: 20},
		{Agent: "bob", First: "h", Since: 0, Guest: true, Admitted: 30},
		{Agent: "zoe", First: "h", Since: 0, Guest: true, Admitted: 30},
	}
	want := []protocol.AgentID{"Bob", "bob-3", "bob-2", "bob-4", "bob-5", "zoe"}
	for turn := range all {
		turned := slices.Concat(all[turn:], all[:turn])
		got := Called(turned)
		if got = slices.Concat(got[len(all)-turn:], got[:len(all)-turn]); !slices.Equal(got, want) {
			t.Errorf("from %d: %q, want %q", turn, got, want)
		}
	}
}

// TestOutsiderTakesNoNameByItsOwnClock: of two members outside the one that the inside admitted first keeps a name, whatever
// they say of themselves.
func TestOutsiderTakesNoNameByItsOwnClock(t *testing.T) {
	got := Called([]Bound{
		{Agent: "bob", First: "late", Since: 1, Guest: true, Admitted: 2000},
		{Agent: "bob", First: "soon", Since: 99, Guest: true, Admitted: 1000},
	})
	if want := []protocol.AgentID{"bob-2", "bob"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestLongNameStaysAnAgentID(t *testing.T) {
	long := protocol.AgentID(strings.Repeat("é", 64))
	for _, id := range Called([]Bound{{Agent: long, First: "a"}, {Agent: long, First: "b"}}) {
		if protocol.CheckAgentID(id) != nil {
			t.Errorf("%q is no agent id", id)
		}
	}
}

func TestClaimsAreOrderedWhole(t *testing.T) {
	claims := []Claim{{0, false, "a"}, {1, false, "b"}, {1, false, "a"}, {1, true, "c"}, {1, true, "b"}, {2, false, "z"}}
	for i, a := range claims {
		for j, b := range claims {
			if a.Beats(b) != (i > j) {
				t.Errorf("%v beats %v: %v", a, b, a.Beats(b))
			}
		}
	}
}

package node

import (
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// TestWhatIsWarnedOfABoardGoesWithIt: a refused seat's warning says how to give the board up, and goes when the board is
// left or joined anew; so does what is warned of the board itself.
func TestWhatIsWarnedOfABoardGoesWithIt(t *testing.T) {
	one, two := founds(t, "one", "", ""), founds(t, "two", "", "")
	one.has(t, "yy")
	warned := func() (out []string) {
		t.Helper()
		st, err := one.n.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range st.Warnings {
			if strings.Contains(w, "bad") {
				out = append(out, w)
			}
		}
		return out
	}
	refused := func() {
		t.Helper()
		one.joins(t, api.BoardRequest{URL: two.url, Name: "bad", Key: "ck-of-nobody-at-all", Agents: []protocol.AgentID{"yy"}, As: "zz"})
		until(t, "it is refused for good", func() bool { return one.seatAt(t, "bad").State == api.SeatStopped })
		until(t, "that is warned of", func() bool {
			w := warned()
			return len(w) == 1 && strings.Contains(w[0], "aster join-board --leave bad")
		})
		one.n.warnings.set(boardWarning("bad"), "a name at the board bad is taken")
	}
	refused()
	one.joins(t, api.BoardRequest{URL: two.url, Name: "bad", Agents: []protocol.AgentID{"yy"}})
	until(t, "it is joined", func() bool { return one.seatAt(t, "bad").State == api.SeatJoined })
	if w := warned(); len(w) != 0 {
		t.Errorf("joined anew, and still: %q", w)
	}
	refused()
	if err := one.n.LeaveBoard(t.Context(), "bad"); err != nil {
		t.Fatal(err)
	}
	if w := warned(); len(w) != 0 {
		t.Errorf("left, and still: %q", w)
	}
}

package board

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

// TestACheckpointIsOfOneFold: a program that knew nothing of bases, or folded otherwise, left something out of its checkpoint, and
// nothing would put it there after an update: that board is folded anew.
func TestACheckpointIsOfOneFold(t *testing.T) {
	raw := New("mesh").Encode()
	if _, err := Decode(raw); err != nil {
		t.Fatal(err)
	}
	tag, rest, _ := bytes.Cut(raw, []byte(" "))
	for _, version := range []int{FoldVersion - 1, FoldVersion + 1} {
		other := fmt.Appendf(nil, "aster.board.%d %s", version, rest)
		if _, err := Decode(other); !errors.Is(err, ErrBadCheckpoint) {
			t.Errorf("version %d beside %s: %v", version, tag, err)
		}
	}
}

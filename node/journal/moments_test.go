package journal

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aster-mesh/aster/protocol"
)

// TestATimelineIsEvenAndHasBothEnds compares it with what all times give.
func TestATimelineIsEvenAndHasBothEnds(t *testing.T) {
	j := open(t, tempDir(t), Options{VFS: newDisk(t, &disk{})})
	a := newAuthor(1, 1)
	var all []protocol.HLC
	for i := range 61 {
		e := a.say(note(i))
		all = append(all, e.Record.At)
		commit(t, j, Batch{Entries: []Entry{e}})
	}
	for n := 2; n <= 62; n++ {
		want := all
		if len(all) > n {
			want = nil
			for k := range n {
				want = append(want, all[k*(len(all)-1)/(n-1)])
			}
		}
		got, err := j.Timeline(n)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d places: %s", n, diff)
		}
	}
}

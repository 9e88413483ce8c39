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

// TestMailOfATimeAndLaterIsListed: what an agent was sent before is left out, whether by its name or by its inbox.
func TestMailOfATimeAndLaterIsListed(t *testing.T) {
	j := open(t, tempDir(t), Options{VFS: newDisk(t, &disk{})})
	a := newAuthor(1, 1)
	var at []protocol.HLC
	for i := range 10 {
		env := note(i)
		if env.To = "ben"; i%2 == 1 {
			env.To = "bens-old-name"
		}
		e := a.say(env)
		at = append(at, e.Record.At)
		b := Batch{Entries: []Entry{e}}
		if i%2 == 1 {
			b.Inbox = []InboxPut{{Agent: "ben", Log: e.Record.Log, Seq: e.Record.Seq}}
		}
		commit(t, j, b)
	}
	for i, since := range append(at, at[9]+1) {
		got, err := j.Addressed("Ben", since)
		if err != nil || len(got) != 10-i {
			t.Errorf("since the %dth: %d of %d, %v", i, len(got), 10-i, err)
		}
	}
	if got, err := j.Addressed("ben", 0); err != nil || len(got) != 10 {
		t.Errorf("of all: %d, %v", len(got), err)
	}
}

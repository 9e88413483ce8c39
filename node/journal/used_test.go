package journal

import (
	"os"
	"testing"
)

// TestAStoreIsUsedOnceAnythingWasCommitted: however it is kept, and not before.
func TestAStoreIsUsedOnceAnythingWasCommitted(t *testing.T) {
	dir := tempDir(t)
	want := func(what string, used bool) {
		t.Helper()
		if Used(dir) != used {
			t.Errorf("%s: used %v", what, !used)
		}
	}
	want("no store", false)
	j := open(t, dir, Options{})
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	want("opened", false)
	j = open(t, dir, Options{})
	commit(t, j, Batch{Entries: []Entry{newAuthor(1, 1).say(note(1))}})
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	want("with a record", true)
	for i := range 2 {
		if err := os.Truncate(j.aheadPath(i), 0); err != nil {
			t.Fatal(err)
		}
	}
	want("with a record in the database alone", true)
	if err := os.WriteFile(j.dbPath(), []byte("no database, and long enough to look like something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	want("not readable", true)
	if err := os.Truncate(j.dbPath(), 0); err != nil {
		t.Fatal(err)
	}
	want("cut while it was made", false)
}

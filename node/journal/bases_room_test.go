package journal

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// TestContentOfWhatLeftGoesWithIt, but what a kept record or the snapshot speaks of stays.
func TestContentOfWhatLeftGoesWithIt(t *testing.T) {
	j := open(t, tempDir(t), Options{})
	a := newAuthor(1, 1)
	gone, kept, spoken := aged(t, j, []byte("gone")), aged(t, j, []byte("kept")), aged(t, j, []byte("spoken of"))
	commit(t, j, Batch{Entries: []Entry{a.say(naming(1, gone)), a.say(naming(2, kept)), a.say(naming(3, spoken)), a.say(naming(4, kept))}})
	sweep := func() int {
		t.Helper()
		n, _, err := j.SweepBlobs(t.Context(), time.Now().Add(-time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := sweep(); n != 0 {
		t.Fatalf("%d removed before anything left", n)
	}
	if err := j.Leave([]Base{baseAt(t, j, a.log, 3)}, []byte(`{"result":"`+spoken+`"}`)); err != nil {
		t.Fatal(err)
	}
	if named, _, err := j.Namings(t.Context(), kept); err != nil || len(named) != 1 || named[0].Seq != 4 {
		t.Errorf("named by %v, %v", named, err)
	}
	if n := sweep(); n != 1 || j.HasBlob(gone) || !j.HasBlob(kept) || !j.HasBlob(spoken) {
		t.Errorf("%d removed; here: %v %v %v", n, j.HasBlob(gone), j.HasBlob(kept), j.HasBlob(spoken))
	}
}

// TestACopyBeginsWhereItsStoreDoes, also when rows of what left were still there.
func TestACopyBeginsWhereItsStoreDoes(t *testing.T) {
	j := open(t, tempDir(t), Options{})
	a := newAuthor(1, 1)
	fillSteps(t, j, a, 1, 20)
	base := baseAt(t, j, a.log, 40)
	if err := j.Leave([]Base{base}, []byte("board")); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		must(j.Sweep(5))
	}
	dir := filepath.Join(t.TempDir(), "copy")
	if n, err := j.CopyTo(t.Context(), dir); err != nil || n != 20 {
		t.Fatalf("%d records, %v", n, err)
	}
	c := open(t, dir, Options{})
	if got, found, err := c.Snapshot(); err != nil || !found || string(got) != "board" {
		t.Errorf("snapshot %q, %v, %v", got, found, err)
	}
	if is, ok := c.Base(a.log); !ok || is != base || !there(baseFile(dir)) || must(c.Digest()) != must(j.Digest()) {
		t.Errorf("base %v", is)
	}
	sweepAll(t, c)
	commit(t, c, step(a, 21))
	if n := checkAbove(t, c, a.log, 21); n != 23 {
		t.Errorf("%d records above the base", n)
	}
}

// TestAFullStoreGoesOnWhenRecordsLeft: the bound of a store is of what it holds. A store that an earlier version made keeps the
// size of its file, and fills the room again.
func TestAFullStoreGoesOnWhenRecordsLeft(t *testing.T) {
	t.Parallel()
	for _, version := range []int{3, schemaVersion} {
		dir := tempDir(t)
		o := Options{BytesMax: 10 << 20, VFS: newDisk(t, &disk{})}
		j := open(t, dir, o)
		if version < schemaVersion {
			for _, sql := range []string{"DROP TABLE bases", "DROP TABLE snapshots", "PRAGMA auto_vacuum=NONE", "VACUUM", fmt.Sprintf("PRAGMA user_version=%d", version)} {
				if err := j.writer.db.Exec(sql); err != nil {
					t.Fatal(err)
				}
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			j = open(t, dir, o)
		}
		a := newAuthor(1, 1)
		n := 0
		fillUp := func() (taken int) {
			for ; ; n++ {
				env := note(n)
				env.Value = fmt.Appendf(nil, `{"text":"%s"}`, strings.Repeat("-", 88000))
				was := *a
				_, err := j.Commit(Batch{Entries: []Entry{a.say(env)}})
				if errors.Is(err, ErrFull) {
					*a = was
					return taken
				}
				if err != nil {
					t.Fatal(err)
				}
				taken++
			}
		}
		first := fillUp()
		for round := range 2 {
			if err := j.Leave([]Base{baseAt(t, j, a.log, a.seq-2)}, nil); err != nil {
				t.Fatal(err)
			}
			sweepAll(t, j)
			if err := errors.Join(j.shrinkWAL(), j.measure()); err != nil { // as Run and a full store do
				t.Fatal(err)
			}
			j.settleUsed()
			if used, _ := j.Size(); used > 5<<20 {
				t.Errorf("version %d: %d bytes are used by 2 records", version, used)
			}
			if again := fillUp(); again < first/2 {
				t.Errorf("version %d: round %d takes %d messages, the first %d", version, round, again, first)
			}
		}
		if bytes := storeBytes(t, j, dir); bytes > 12<<20 {
			t.Errorf("version %d: the store has grown to %d bytes", version, bytes)
		}
	}
}

// TestRecordsLeaveWhileANodeWorks: commits, questions, leaves and the sweep of Run at once.
func TestRecordsLeaveWhileANodeWorks(t *testing.T) {
	t.Parallel()
	j := open(t, tempDir(t), Options{VFS: newDisk(t, &disk{})})
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- j.Run(ctx) }()
	a := newAuthor(1, 1)
	fillSteps(t, j, a, 1, 10)
	var wait sync.WaitGroup
	over := make(chan struct{})
	wait.Go(func() {
		defer close(over)
		for n := 11; n <= 150; n++ {
			if _, err := j.Commit(step(a, n)); err != nil {
				t.Errorf("commit: %v", err)
				return
			}
		}
	})
	log := a.log
	wait.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-over:
				return
			default:
			}
			var top uint64
			for _, h := range must(j.Heads()) {
				top = h.Seq - 3
			}
			base, _ := j.Base(log)
			if top <= base.Seq {
				continue
			}
			st, ok, err := j.At(log, top)
			if err != nil || !ok {
				t.Errorf("record %d: %v, %v", top, ok, err)
				return
			}
			if err := j.Leave([]Base{{log, top, st.Hash}}, fmt.Append(nil, top)); err != nil && !errors.Is(err, ErrUndelivered) {
				t.Errorf("leave: %v", err)
				return
			}
			if _, err := j.Sweep(20); err != nil {
				t.Errorf("sweep: %v", err)
				return
			}
		}
	})
	wait.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			base, _ := j.Base(log)
			rs, err := j.Range(log, base.Seq+1, 1<<20)
			var below *BelowError
			if err != nil && !errors.As(err, &below) {
				t.Errorf("range: %v", err)
				return
			}
			if _, verr := protocol.VerifyCommits(rs, base.Hash); len(rs) > 0 && verr != nil {
				t.Errorf("range behind %d: %v", base.Seq, verr)
				return
			}
			if _, err := j.Search("message", 0, 5); err != nil {
				t.Errorf("search: %v", err)
				return
			}
		}
	})
	wait.Wait()
	sweepAll(t, j)
	if n := checkAbove(t, j, log, 150); n != j.Records() {
		t.Errorf("%d records counted, %d are there", j.Records(), n)
	}
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}

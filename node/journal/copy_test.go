package journal

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestACopyIsOneMomentOfAStoreInUse copies while commits go on: each copy opens, is whole, and holds a prefix of every log
// that has at least what was committed before the copy began.
func TestACopyIsOneMomentOfAStoreInUse(t *testing.T) {
	j := open(t, tempDir(t), Options{})
	a := newAuthor(1, 1)
	ref, err := j.PutBlob(t.Context(), strings.NewReader("an attachment"), "")
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	stop := make(chan struct{})
	var all []Entry
	var mu sync.Mutex
	wait.Go(func() {
		for i := 1; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			b := step(a, i)
			if _, err := j.Commit(b); err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			all = append(all, b.Entries...)
			mu.Unlock()
		}
	})
	for i := range 4 {
		mu.Lock()
		before := len(all)
		mu.Unlock()
		dir := filepath.Join(t.TempDir(), "copy")
		n, err := j.CopyTo(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		c := open(t, dir, Options{})
		if r := c.Recovery(); r.Reason != "" || r.TornBytes != 0 {
			t.Fatalf("copy %d is not whole: %+v", i, r)
		}
		if bad, err := c.Scrub(t.Context()); err != nil || len(bad) > 0 {
			t.Fatalf("copy %d: %v, %v", i, bad, err)
		}
		if c.Records() != n || n < uint64(before) {
			t.Fatalf("copy %d has %d records, said %d, and %d were committed before", i, c.Records(), n, before)
		}
		mu.Lock()
		checkHolds(t, c, all[:n])
		mu.Unlock()
		if !c.HasBlob(ref.SHA256) {
			t.Errorf("copy %d lacks the attachment", i)
		}
		other := newAuthor(2, 1)
		commit(t, c, step(other, 1)) // it goes on by itself
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wait.Wait()
}

// TestACopyKnowsWhatLeft: it says the same of content that is not here any more.
func TestACopyKnowsWhatLeft(t *testing.T) {
	j := open(t, tempDir(t), Options{})
	sha := aged(t, j, []byte("over"))
	commit(t, j, Batch{Entries: []Entry{newAuthor(1, 1).say(naming(1, sha))}})
	if gone, err := j.LetGo(sha, time.Now()); err != nil || !gone {
		t.Fatal(gone, err)
	}
	dir := filepath.Join(t.TempDir(), "copy")
	if _, err := j.CopyTo(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	c := open(t, dir, Options{})
	at, left := c.LeftAt(sha)
	if was, _ := j.LeftAt(sha); !left || !at.Equal(was) {
		t.Errorf("left %v at %s, not %s", left, at, was)
	}
}

func TestACopyThatIsGivenUpOrHasNoPlaceSaysSo(t *testing.T) {
	j := open(t, tempDir(t), Options{})
	commit(t, j, step(newAuthor(1, 1), 1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := j.CopyTo(ctx, filepath.Join(t.TempDir(), "copy")); err == nil {
		t.Error("a copy that was given up says nothing")
	}
	taken := t.TempDir()
	if _, err := j.CopyTo(t.Context(), taken); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a folder that is there: %v", err)
	}
}

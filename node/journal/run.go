package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/ncruces/go-sqlite3"
)

const (
	// calmAfter is how long no commit must have come for the write-ahead log to be moved into the database.
	calmAfter = time.Second
	// walPagesBusy moves it also under load (16 MiB), walPagesMax makes a commit do it itself (64 MiB), so that the file
	// stays bounded however busy the node is.
	walPagesBusy = 4096
	walPagesMax  = 16384

	// scrubDelay lets a starting node begin its work first; scrubEvery is the period of the whole round.
	scrubDelay = time.Minute
	scrubEvery = 24 * time.Hour
	// scrubBatch records are read at a time, then the scrubber rests scrubRest: some 2 % of a core.
	scrubBatch = 64
	scrubRest  = 50 * time.Millisecond
)

// Run does what may wait: it indexes for search, moves the write-ahead log into the database when commits pause, and
// reads everything again to find damaged bytes, a tenth of the records soon after the start and all of them once a
// day. It returns nil when ctx ends, or the error of a sync, which like Commit's is final.
func (j *Journal) Run(ctx context.Context) error {
	calm := time.NewTimer(calmAfter)
	defer calm.Stop()
	scrub := scrubber{j: j}
	rest := time.NewTimer(scrubDelay)
	defer rest.Stop()
	failing := false // the index could not be written; said once
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-j.done:
			return nil
		case <-j.grew:
			calm.Reset(calmAfter)
			if err := j.indexAll(ctx); err != nil && !failing && !errors.Is(err, ErrClosed) {
				j.log.Warn("search is behind", "err", err)
				failing = true
			} else if err == nil {
				failing = false
			}
			if j.walPages.Load() >= walPagesBusy {
				if err := j.moveWAL(); err != nil {
					return err
				}
			}
		case <-calm.C:
			if j.walPages.Load() > 0 {
				if err := j.moveWAL(); err != nil {
					return err
				}
			}
		case <-rest.C:
			rest.Reset(scrub.step(ctx))
		}
	}
}

func (j *Journal) indexAll(ctx context.Context) error {
	for ctx.Err() == nil {
		more, err := j.indexSome()
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// moveWAL moves the write-ahead log into the database on a reader's connection, while commits go on.
func (j *Journal) moveWAL() error {
	before := j.walPages.Load()
	var logged, moved int
	err := j.read(func(c *conn) (err error) {
		logged, moved, err = c.db.WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE)
		return err
	})
	switch {
	case err == nil:
		if logged == moved { // the next commit begins the file anew
			j.walPages.CompareAndSwap(before, 0)
		}
		return nil
	case errors.Is(err, ErrClosed), errors.Is(err, sqlite3.BUSY), isFull(err):
		return nil // the log stays, and commits go on at its end
	}
	return fmt.Errorf("move the write-ahead log: %w", err)
}

// boundWAL is moveWAL by the writer itself, when the log has grown to its bound. Called with wmu held.
func (j *Journal) boundWAL() error {
	if j.walPages.Load() < walPagesMax {
		return nil
	}
	_, _, err := j.writer.db.WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE)
	if err == nil || errors.Is(err, sqlite3.BUSY) || isFull(err) {
		return nil
	}
	return fmt.Errorf("move the write-ahead log: %w", err)
}

// scrubber reads stored bytes again. Owned by Run.
type scrubber struct {
	j     *Journal
	began bool
	next  uint64   // position to go on from
	end   uint64   // of this round
	blobs []string // still to read in this round
}

// step reads a little and says how long to rest.
func (s *scrubber) step(ctx context.Context) time.Duration {
	last := s.j.Position()
	if !s.began {
		s.began = true
		s.next, s.end = last-last/10, last // the newest tenth: what a crash may have hurt
	}
	if s.next >= s.end {
		if len(s.blobs) > 0 {
			s.blob(s.blobs[0])
			s.blobs = s.blobs[1:]
			return scrubRest
		}
		s.next, s.end = 0, last
		s.blobs = s.j.blobPaths()
		return scrubEvery
	}
	batch, err := s.j.Since(s.next, scrubBatch) // compares each with its hash and notes what differs
	if err != nil || len(batch) == 0 {
		if err != nil && ctx.Err() == nil && !errors.Is(err, ErrClosed) {
			s.j.log.Warn("scrubbing stopped", "err", err)
		}
		s.next = s.end
		return scrubRest
	}
	s.next = batch[len(batch)-1].Pos
	return scrubRest
}

func (s *scrubber) blob(path string) {
	if _, ok := s.j.blobPath(filepath.Base(path)); !ok {
		return
	}
	ok, err := s.j.checkBlob(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		s.j.log.Warn("content cannot be read", "blob", filepath.Base(path), "err", err)
	case !ok:
		s.j.log.Error("stored content is damaged; it was put aside and counts as absent", "blob", filepath.Base(path))
	}
}

// Scrub reads every record and every blob again at once and returns what is damaged (aster doctor).
func (j *Journal) Scrub(ctx context.Context) ([]Lost, error) {
	for pos := uint64(0); ctx.Err() == nil; {
		batch, err := j.Since(pos, scrubBatch)
		if err != nil {
			return nil, err
		}
		if len(batch) == 0 {
			break
		}
		pos = batch[len(batch)-1].Pos
	}
	s := scrubber{j: j}
	all, err := filepath.Glob(filepath.Join(j.blobDir(), "??", "*"))
	for _, path := range all {
		if ctx.Err() != nil {
			break
		}
		s.blob(path)
	}
	if err = errors.Join(err, ctx.Err()); err != nil {
		return nil, fmt.Errorf("scrub: %w", err)
	}
	return j.Damaged()
}

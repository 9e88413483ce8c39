package journal

import (
	"context"
	"errors"
	"fmt"
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
			rest.Reset(scrub.turn(ctx))
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

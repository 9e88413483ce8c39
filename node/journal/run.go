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
	// indexAfter is the same for indexing, which costs as much as the commits themselves; indexBehind records or
	// indexLate are as far as it stays behind a node that never pauses.
	indexAfter  = 300 * time.Millisecond
	indexBehind = 50_000
	indexLate   = 30 * time.Second
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

// Run does what may wait: it indexes for search when
// commits pause, removes rows of what left (Sweep), some at a time, moves the write-ahead log into the database when commits pause, and
// reads everything again to find damaged bytes, a tenth of the records soon after the start and all of them once a
// day. It returns nil when ctx ends, or the error of a sync, which like Commit's is final.
func (j *Journal) Run(ctx context.Context) error {
	calm := time.NewTimer(calmAfter)
	defer calm.Stop()
	scrub := scrubber{j: j}
	rest := time.NewTimer(scrubDelay)
	defer rest.Stop()
	index := time.NewTimer(indexAfter) // what a former process left
	defer index.Stop()
	sweep := time.NewTimer(sweepDelay)
	defer sweep.Stop()
	held := int64(0) // pages that a query under way kept from being moved, when that was last tried
	x := indexing{j: j, grew: time.Now()}
	sift := time.NewTimer(0)
	defer sift.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-j.done:
			return nil
		case <-j.grew:
			calm.Reset(calmAfter)
			x.grown(index)
			if j.sieve.missing() {
				sift.Reset(sieveRest)
			}
			if err := j.busy(&held); err != nil {
				return err
			}
		case <-j.swept:
			sweep.Reset(0)
		case <-sweep.C:
			if err := j.sweepTurn(sweep); err != nil {
				return err
			}
		case <-j.search.wanted:
			x.all(ctx)
		case <-index.C:
			if wait := x.calmIn(); wait > 0 {
				index.Reset(wait)
			} else {
				x.all(ctx)
			}
		case <-calm.C:
			if j.walPages.Load() > 0 {
				if err := j.moveWAL(); err != nil {
					return err
				}
			}
		case <-sift.C:
			if more, err := j.makeSieve(); more {
				sift.Reset(sieveRest)
			} else if err != nil && !errors.Is(err, ErrClosed) {
				j.log.Warn("each message is looked for in the database", "err", err)
			}
		case <-rest.C:
			rest.Reset(scrub.turn(ctx))
		}
	}
}

// busy fills the database and moves the write-ahead log while commits go on. held is how many pages a query kept from being
// moved when that was last tried.
func (j *Journal) busy(held *int64) error {
	if j.unfiledRecords.Load() >= fillAt {
		if err := j.fill(false); err != nil {
			return err
		}
	}
	n := j.walPages.Load()
	if n < *held {
		*held = 0
		return nil
	}
	if n < walPagesBusy || n-*held < walPagesBusy/4 {
		return nil
	}
	if err := j.moveWAL(); err != nil {
		return err
	}
	if err := j.restWAL(); err != nil {
		return err
	}
	*held = j.walPages.Load()
	return nil
}

// indexing is when the indexer of Run has its turns.
type indexing struct {
	j       *Journal
	since   time.Time // of the oldest commit that is not indexed; zero: none
	grew    time.Time // of the newest
	failing bool      // the index could not be written; said once
}

// grown notes a commit. The timer runs from the first of a burst; calmIn prolongs it.
func (x *indexing) grown(timer *time.Timer) {
	x.grew = time.Now()
	switch {
	case x.since.IsZero():
		x.since = x.grew
		timer.Reset(indexAfter)
	case x.grew.Sub(x.since) > indexLate, x.j.unindexed() > indexBehind:
		timer.Reset(0)
	}
}

// calmIn is how long commits must go on pausing before it is the indexer's turn.
func (x *indexing) calmIn() time.Duration {
	if x.since.IsZero() || time.Since(x.since) > indexLate || x.j.unindexed() > indexBehind {
		return 0
	}
	return indexAfter - time.Since(x.grew)
}

// all indexes until nothing is left.
func (x *indexing) all(ctx context.Context) {
	x.since = time.Time{}
	if err := x.j.fill(false); err != nil {
		return // final; the next commit says so
	}
	for ctx.Err() == nil {
		more, err := x.j.indexSome()
		switch {
		case err == nil && more:
			continue
		case err == nil:
			x.failing = false
		case !x.failing && !errors.Is(err, ErrClosed):
			x.j.log.Warn("search is behind", "err", err)
			x.failing = true
		}
		return
	}
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
	case errors.Is(err, ErrClosed), errors.Is(err, sqlite3.BUSY), errors.Is(err, sqlite3.LOCKED), isFull(err):
		return nil // a query, or what the disk has no room for, is under way: the log stays, and commits go on at its end
	}
	return fmt.Errorf("move the write-ahead log: %w", err)
}

// restWAL moves what was committed while moveWAL worked, so that the next commit begins the file anew. Under load it
// would otherwise never be empty, and grow, and each commit that makes it longer syncs slower than one that writes
// over it.
func (j *Journal) restWAL() error {
	j.fmu.Lock()
	defer j.fmu.Unlock()
	if j.closed.Load() || j.failure() != nil || j.held != nil || j.walPages.Load() == 0 {
		return nil
	}
	logged, moved, err := j.writer.db.WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE)
	switch {
	case err == nil:
		if logged == moved {
			j.walPages.Store(0)
		}
	case !errors.Is(err, sqlite3.BUSY) && !isFull(err):
		return j.fail(fmt.Errorf("move the write-ahead log: %w", j.suspect(err)))
	}
	return nil
}

// boundWAL is moveWAL by the writer itself, when the log has grown to its bound. Called with fmu held.
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

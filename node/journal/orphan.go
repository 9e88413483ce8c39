package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// ErrUnsure says that damaged records may name content, so that none can be called an orphan.
var ErrUnsure = errors.New("damaged records may name it")

// orphans knows which content records name, from the first record up to upTo.
type orphans struct {
	mu    sync.Mutex // one sweep at a time
	upTo  uint64
	named map[string][]uint64 // positions; 0: the snapshot speaks of it
	cuts  int64               // how often records had left when it began
}

// sweepBatch is how many records are looked at between two looks at the context, and sweepRest the pause then: some 2 ms of
// work, so a fifth of a core at most.
const (
	sweepBatch = 256
	sweepRest  = 8 * time.Millisecond
)

// SweepBlobs removes content that no record here names and that nobody put or kept (PutBlob, FinishPart, KeepBlob) since
// before, so the age must be longer than anything takes from content to its record. It looks at records only if there is
// content that old which none is known to name; then at each record once in the life of the process.
func (j *Journal) SweepBlobs(ctx context.Context, before time.Time) (removed int, bytes int64, err error) {
	o := &j.orphans
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.named != nil && o.cuts != j.cuts.Load() {
		o.named = nil
	}
	var old []string
	for _, path := range j.blobPaths() {
		fi, err := os.Lstat(path)
		if _, known := o.named[filepath.Base(path)]; err == nil && !known && fi.ModTime().Before(before) {
			old = append(old, path)
		}
	}
	if len(old) == 0 {
		return 0, 0, nil
	}
	if err := j.findNamed(ctx); err != nil {
		return 0, 0, fmt.Errorf("look for content that no record names: %w", err)
	}
	for _, path := range old {
		if _, known := o.named[filepath.Base(path)]; known {
			continue
		}
		n, err := j.removeOld(path, before)
		if err != nil {
			return removed, bytes, fmt.Errorf("remove content that no record names: %w", err)
		}
		if n >= 0 {
			removed, bytes = removed+1, bytes+n
		}
	}
	return removed, bytes, nil
}

// removeOld removes content unless it was kept meanwhile; -1: it was, or is gone.
func (j *Journal) removeOld(path string, before time.Time) (int64, error) {
	j.blobMu.Lock()
	defer j.blobMu.Unlock()
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !fi.ModTime().Before(before) {
		return -1, nil
	}
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		return -1, err
	}
	j.blobBytes.Add(-fi.Size())
	return fi.Size(), nil
}

// findNamed reads the records behind upTo. Called with orphans.mu held.
func (j *Journal) findNamed(ctx context.Context) error {
	o := &j.orphans
	if cuts := j.cuts.Load(); o.named == nil || o.cuts != cuts {
		o.named, o.upTo, o.cuts = map[string][]uint64{}, 0, cuts
		snapshot, _, err := j.Snapshot()
		if errors.Is(err, ErrDamaged) {
			return fmt.Errorf("%w: %w", ErrUnsure, err)
		} else if err != nil {
			return err
		}
		eachHash(snapshot, func(sha string) { o.named[sha] = []uint64{0} })
	}
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		batch, err := j.Since(o.upTo, sweepBatch)
		if err != nil || len(batch) == 0 {
			return err
		}
		for i := range batch {
			if batch[i].Damaged {
				return fmt.Errorf("%w: %s %d", ErrUnsure, batch[i].Record.Log, batch[i].Record.Seq)
			}
			eachHash(batch[i].Record.Body, func(sha string) {
				if at := o.named[sha]; len(at) == 0 || at[len(at)-1] != batch[i].Pos {
					o.named[sha] = append(at, batch[i].Pos)
				}
			})
			o.upTo = batch[i].Pos
		}
		if len(batch) < sweepBatch {
			continue
		}
		select {
		case <-time.After(sweepRest):
		case <-ctx.Done():
		}
	}
}

// eachHash calls f for everything in body that may be a hash of content, whatever the body means: exactly 64 lower-case
// hex digits in a row. To take too much for a name only keeps what could go.
func eachHash(body []byte, f func(string)) {
	run := 0
	for i := 0; i <= len(body); i++ {
		if i < len(body) && (body[i] >= '0' && body[i] <= '9' || body[i] >= 'a' && body[i] <= 'f') {
			run++
			continue
		}
		if run == 64 {
			f(string(body[i-64 : i]))
		}
		run = 0
	}
}

package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/ncruces/go-sqlite3"

	"github.com/aster-mesh/aster/protocol"
)

// reserveMax bounds what is kept back for receipts of already accepted messages: some 250,000 of them.
const reserveMax = 64 << 20

// measureEvery is how many written bytes may pass before the files are measured again.
const measureEvery = 1 << 20

// room says whether b may be written. Called with wmu held.
func (j *Journal) room(b *Batch) error {
	limit := j.opts.BytesMax
	for i := range b.Entries {
		if b.Entries[i].Record.Kind == protocol.KindMessage {
			limit -= min(j.opts.BytesMax/16, reserveMax)
			break
		}
	}
	if j.unmeasured < measureEvery && j.bytes() < limit {
		return nil
	}
	if err := j.measure(); err != nil {
		return fmt.Errorf("measure the journal: %w", err)
	}
	if j.bytes() >= limit && (j.walBytes() > 0 || j.waits.Load()) {
		if err := j.shrinkWAL(); err != nil {
			return err
		}
		if err := j.measure(); err != nil {
			return fmt.Errorf("measure the journal: %w", err)
		}
	}
	if j.bytes() >= limit {
		return fmt.Errorf("%w: %d of %d bytes are used", ErrFull, j.bytes(), j.opts.BytesMax)
	}
	return nil
}

// measure asks the file system for the size of the database files. Called with wmu held, or before Open returns.
func (j *Journal) measure() (err error) {
	var db, wal int64
	if db, err = fileSize(j.dbPath()); err == nil {
		wal, err = fileSize(j.dbPath() + "-wal")
	}
	j.mu.RLock()
	defer j.mu.RUnlock()
	j.dbBytes, j.walFile, j.unmeasured = max(db-j.freePages.Load()*pageBytes, 0), wal, j.unfiledBytes
	return err
}

// shrinkWAL moves the write-ahead log into the database and cuts it: it holds many pages several times.
func (j *Journal) shrinkWAL() error {
	j.fmu.Lock()
	defer j.fmu.Unlock()
	if err := j.fillLocked(false); err != nil || j.held != nil {
		return err
	}
	if _, _, err := j.writer.db.WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE); err == nil {
		j.walPages.Store(0)
	} else if !errors.Is(err, sqlite3.BUSY) && !isFull(err) {
		return fmt.Errorf("move the write-ahead log: %w", j.suspect(err))
	}
	return nil
}

// walBytes is the size of the write-ahead log. The file keeps its size when it is begun anew.
func (j *Journal) walBytes() int64 { return max(j.walFile, j.walPages.Load()*(4096+24)) }

// bytes is what the journal takes on the disk. Called with wmu held.
func (j *Journal) bytes() int64 { return j.settleUsed() + j.otherBytes() }

// settleUsed counts the files that commits grow, for those who do not want to wait for wmu.
func (j *Journal) settleUsed() int64 {
	n := j.dbBytes + j.unmeasured + j.walBytes() + j.ahead.bytes()
	j.used.Store(n)
	return n
}

func (j *Journal) otherBytes() int64 { return j.blobBytes.Load() + j.searchBytes.Load() }

func (j *Journal) usedBytes() int64 { return j.used.Load() + j.otherBytes() }

// Size returns the bytes of the journal on disk (database, logs before it, search, blobs; within 1 MiB), which may be a
// little above its bound, and how many it may still grow by.
func (j *Journal) Size() (used, free int64) {
	used = j.usedBytes()
	return used, max(j.opts.BytesMax-used, 0)
}

// Bound is what the journal may grow to, in bytes.
func (j *Journal) Bound() int64 { return j.opts.BytesMax }

// fileSize is 0 for a file that is not there.
func fileSize(path string) (int64, error) {
	fi, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}

package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

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
	if j.unmeasured >= measureEvery || j.used+j.unmeasured+j.otherBytes() >= limit {
		if err := j.measure(); err != nil {
			return fmt.Errorf("measure the journal: %w", err)
		}
	}
	if used := j.used + j.unmeasured + j.otherBytes(); used >= limit {
		return fmt.Errorf("%w: %d of %d bytes are used", ErrFull, used, j.opts.BytesMax)
	}
	return nil
}

// measure asks the file system for the size of the database files. Called with wmu held, or before Open returns.
func (j *Journal) measure() error {
	var sum int64
	for _, suffix := range []string{"", "-wal"} {
		n, err := fileSize(j.dbPath() + suffix)
		if err != nil {
			return err
		}
		sum += n
	}
	j.used, j.unmeasured = sum, 0
	return nil
}

func (j *Journal) otherBytes() int64 { return j.blobBytes.Load() + j.searchBytes.Load() }

func (j *Journal) usedBytes() int64 {
	j.wmu.Lock()
	defer j.wmu.Unlock()
	return j.used + j.unmeasured + j.otherBytes()
}

// Size returns the bytes of the journal on disk (database, write-ahead log, search, blobs; within 1 MiB) and how many
// it may still grow by.
func (j *Journal) Size() (used, free int64) {
	used = j.usedBytes()
	return used, max(j.opts.BytesMax-used, 0)
}

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

package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/aster-mesh/aster/protocol"
)

// Content that is over leaves the disk; the records that name it stay. A file of no bytes beside its place then says when
// it left, so that who asks for it is told, and other nodes do not wait for it. The mark is on stable storage before the
// content goes: after a crash between the two both are there, and content that is there is there.

// leftEnding ends the names of such marks, so that no hash can be one.
const leftEnding = ".left"

// Store names this database, new for every fresh one: positions mean nothing in another.
func (j *Journal) Store() string { return j.storeID }

// Content is what is here under a hash.
type Content struct {
	SHA256 string
	Bytes  int64
	Since  time.Time // when it came, or was last put or kept again
}

// Contents lists what came before, and has not been put or kept since, oldest first.
func (j *Journal) Contents(before time.Time) ([]Content, error) {
	if j.closed.Load() {
		return nil, ErrClosed
	}
	var out []Content
	for _, path := range j.blobPaths() {
		if fi, err := os.Lstat(path); err == nil && fi.Mode().IsRegular() && fi.ModTime().Before(before) {
			out = append(out, Content{filepath.Base(path), fi.Size(), fi.ModTime()})
		}
	}
	slices.SortFunc(out, func(a, b Content) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.SHA256, b.SHA256))
	})
	return out, nil
}

// Naming is a message that names content.
type Naming struct {
	Message
	Unread bool // in an inbox here
}

// Namings returns the messages that name content, in order of position, as far as they count here. damaged: so may records
// that cannot be read. It reads each record once in the life of the process, some of them with each call.
func (j *Journal) Namings(ctx context.Context, sha string) (named []Naming, damaged bool, err error) {
	o := &j.orphans
	o.mu.Lock()
	err = j.findNamed(ctx)
	at := slices.Clone(o.named[sha])
	o.mu.Unlock()
	if errors.Is(err, ErrUnsure) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("who names %s: %w", sha, err)
	}
	err = j.read(func(c *conn) error {
		all, err := j.load(c, at)
		if err != nil {
			return err
		}
		for i := range all {
			if !slices.ContainsFunc(all[i].Envelope.AllBlobs(), func(b protocol.BlobRef) bool { return b.SHA256 == sha }) {
				continue // it only speaks of the hash
			}
			n := Naming{Message: all[i]}
			if n.Unread, err = c.one("SELECT 1 FROM inbox WHERE pos=? AND state=0", []any{all[i].Pos}, func(*sqlite3.Stmt) {}); err != nil {
				return err
			}
			named = append(named, n)
		}
		return nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("who names %s: %w", sha, err)
	}
	return named, false, nil
}

// LetGo removes content, unless it was put or kept since before, and marks that it was here. It says whether it did.
// Whoever reads it reads on. After a crash it is gone or wholly there.
func (j *Journal) LetGo(sha string, before time.Time) (bool, error) {
	path, ok := j.blobPath(sha)
	if !ok {
		return false, fmt.Errorf("%w: %q", ErrNoBlob, protocol.CutText(sha, 80))
	}
	if err := j.dropWholes(sha); err != nil {
		return false, err
	}
	j.blobMu.Lock()
	defer j.blobMu.Unlock()
	if j.closed.Load() {
		return false, ErrClosed
	}
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !fi.ModTime().Before(before) {
		return false, nil
	}
	if err == nil {
		err = j.mark(path + leftEnding)
	}
	if err == nil {
		err = j.step("remove content", func() error { return os.Remove(path) })
	}
	if err != nil {
		return false, fmt.Errorf("let content go: %w", err)
	}
	j.blobBytes.Add(-fi.Size())
	return true, j.step("sync its folder", func() error { return syncDir(filepath.Dir(path)) })
}

// dropWholes forgets who gave content: whoever wants to name it again gives it again.
func (j *Journal) dropWholes(sha string) error {
	var wholes []partKey
	j.parts.mu.Lock()
	for key, p := range j.parts.rows {
		if key.sha == sha && p.row.Whole {
			wholes = append(wholes, key)
		}
	}
	j.parts.mu.Unlock()
	for _, key := range wholes {
		if err := j.dropPart(key); err != nil {
			return err
		}
	}
	return nil
}

// MarkLeft notes that content left elsewhere before it came here. It does nothing when the content is here.
func (j *Journal) MarkLeft(sha string) error {
	path, ok := j.blobPath(sha)
	if !ok {
		return fmt.Errorf("%w: %q", ErrNoBlob, protocol.CutText(sha, 80))
	}
	j.blobMu.Lock()
	defer j.blobMu.Unlock()
	if j.HasBlob(sha) {
		return nil
	}
	err := os.Mkdir(filepath.Dir(path), 0o700)
	if err == nil {
		err = syncDir(j.blobDir())
	} else if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if err = errors.Join(err, j.mark(path+leftEnding)); err != nil {
		return fmt.Errorf("mark content as gone: %w", err)
	}
	return nil
}

// mark makes a mark and its name durable. Called with blobMu held.
func (j *Journal) mark(file string) error {
	err := j.step("mark content", func() error {
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		now := time.Now()
		return errors.Join(f.Close(), os.Chtimes(file, now, now))
	})
	if err != nil {
		return err
	}
	return j.step("sync its folder", func() error { return syncDir(filepath.Dir(file)) })
}

// LeftAt says when content left, here or elsewhere; false: it is here, or was never known to be.
func (j *Journal) LeftAt(sha string) (time.Time, bool) {
	path, ok := j.blobPath(sha)
	if !ok || j.HasBlob(sha) {
		return time.Time{}, false
	}
	fi, err := os.Lstat(path + leftEnding)
	if err != nil || !fi.Mode().IsRegular() {
		return time.Time{}, false
	}
	return fi.ModTime(), true
}

// step runs one change of the disk; tests end the process before any of them.
func (j *Journal) step(name string, f func() error) error {
	if j.opts.beforeStep != nil {
		j.opts.beforeStep(name)
	}
	return f()
}

package journal

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

var (
	// ErrHash says that content is not what its hash promised. Nothing was kept.
	ErrHash = errors.New("content does not match its hash")
	// ErrTooLarge says that content is larger than protocol.BlobBytesMax. Nothing was kept.
	ErrTooLarge = errors.New("content is too large")
	// ErrNoBlob says that content of that hash is not here.
	ErrNoBlob = errors.New("no such content")
)

func (j *Journal) blobDir() string { return filepath.Join(j.dir, "blobs") }

// tmpPrefix begins the names of unfinished files, so that no hash can be one.
const tmpPrefix = "tmp-"

// blobPath returns where content lives. False: sha is not 64 lower-case hex digits, so no path can escape.
func (j *Journal) blobPath(sha string) (string, bool) {
	if len(sha) != 2*sha256.Size {
		return "", false
	}
	for _, c := range []byte(sha) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return "", false
		}
	}
	return filepath.Join(j.blobDir(), sha[:2], sha), true
}

// PutBlob keeps the content of r under its hash. When it returns nil the content is on stable storage under its name,
// so a record that names it may follow. want is the hash that it must have, or empty. It reads at most
// protocol.BlobBytesMax (ErrTooLarge above) and returns ErrHash, ErrFull, ErrClosed, or the errors of r, of ctx and of
// the disk; after an error nothing is kept.
func (j *Journal) PutBlob(ctx context.Context, r io.Reader, want string) (protocol.BlobRef, error) {
	if j.closed.Load() {
		return protocol.BlobRef{}, ErrClosed
	}
	if want != "" {
		if _, ok := j.blobPath(want); !ok {
			return protocol.BlobRef{}, fmt.Errorf("%w: %q is no SHA-256", ErrHash, protocol.CutText(want, 80))
		}
	}
	ref, err := j.putBlob(ctx, r, want)
	if isFull(err) {
		err = fmt.Errorf("%w: %w", ErrFull, err)
	}
	if err != nil {
		return protocol.BlobRef{}, fmt.Errorf("keep content: %w", err)
	}
	return ref, nil
}

func (j *Journal) putBlob(ctx context.Context, r io.Reader, want string) (ref protocol.BlobRef, err error) {
	tmp := filepath.Join(j.blobDir(), tmpPrefix+rand.Text())
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return ref, err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(tmp) // Open removes it otherwise
		}
	}()
	h := sha256.New()
	room := j.opts.BytesMax - j.usedBytes()
	limit := min(room, protocol.BlobBytesMax)
	n, err := io.Copy(io.MultiWriter(f, h), io.LimitReader(&patientReader{ctx, r}, max(limit, 0)+1))
	switch {
	case err != nil:
		return ref, err
	case n > protocol.BlobBytesMax:
		return ref, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, protocol.BlobBytesMax)
	case n > limit:
		return ref, fmt.Errorf("%w: %d bytes are left", ErrFull, max(room, 0))
	}
	sum := hex.EncodeToString(h.Sum(nil))
	if want != "" && sum != want {
		return ref, fmt.Errorf("%w: it is %s", ErrHash, sum)
	}
	ref = protocol.BlobRef{SHA256: sum, Bytes: n}
	if err = errors.Join(f.Sync(), f.Close()); err != nil {
		return ref, err
	}
	fresh, err := j.place(tmp, sum, n)
	if fresh {
		j.blobBytes.Add(n)
	}
	return ref, err
}

// place moves a whole, synced file to where content of its hash lives. What is there already stays, as new as if it had
// come now; fresh: nothing was. The sweep of what no record names stands aside meanwhile.
func (j *Journal) place(file, sha string, bytes int64) (fresh bool, err error) {
	j.blobMu.Lock()
	defer j.blobMu.Unlock()
	path, _ := j.blobPath(sha)
	if fi, statErr := os.Lstat(path); statErr == nil && fi.Size() == bytes {
		now := time.Now()
		return false, errors.Join(os.Chtimes(path, now, now), os.Remove(file))
	}
	dir := filepath.Dir(path)
	if err = os.Mkdir(dir, 0o700); err == nil {
		err = syncDir(j.blobDir())
	} else if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if err != nil {
		return false, err
	}
	if err = os.Rename(file, path); err != nil {
		return false, err
	}
	if err = os.Remove(path + leftEnding); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return true, errors.Join(err, syncDir(dir))
}

// KeepBlob is HasBlob for whoever is about to write a record that names the content: no sweep takes it for a day.
func (j *Journal) KeepBlob(sha string) bool {
	j.blobMu.Lock()
	defer j.blobMu.Unlock()
	if !j.HasBlob(sha) {
		return false
	}
	path, _ := j.blobPath(sha)
	now := time.Now()
	return os.Chtimes(path, now, now) == nil
}

// patientReader ends a copy when its context does.
type patientReader struct {
	ctx context.Context
	r   io.Reader
}

func (p *patientReader) Read(b []byte) (int, error) {
	if p.ctx.Err() != nil {
		return 0, context.Cause(p.ctx)
	}
	return p.r.Read(b)
}

// OpenBlob opens content for reading and says how long it is, or returns ErrNoBlob. The caller closes it. What it
// reads is not checked here: the scrubber does, and whoever takes it over a link.
func (j *Journal) OpenBlob(sha string) (io.ReadSeekCloser, int64, error) {
	path, ok := j.blobPath(sha)
	if !ok {
		return nil, 0, fmt.Errorf("%w: %q", ErrNoBlob, protocol.CutText(sha, 80))
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, fmt.Errorf("%w: %s", ErrNoBlob, sha)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("open content: %w", err)
	}
	fi, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("open content: %w", err)
	}
	return f, fi.Size(), nil
}

// HasBlob says whether content of that hash is here.
func (j *Journal) HasBlob(sha string) bool {
	path, ok := j.blobPath(sha)
	if !ok {
		return false
	}
	fi, err := os.Lstat(path)
	return err == nil && fi.Mode().IsRegular()
}

// countBlobs adds up what is there and removes what a former process left unfinished.
func (j *Journal) countBlobs() error {
	var sum int64
	err := filepath.WalkDir(j.blobDir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if name := d.Name(); len(name) > len(tmpPrefix) && name[:len(tmpPrefix)] == tmpPrefix {
			return os.Remove(path)
		}
		fi, err := d.Info()
		if err == nil {
			sum += fi.Size()
		}
		return err
	})
	j.blobBytes.Store(sum)
	return errors.Join(err, j.loadParts())
}

// blobPaths lists the content that is there.
func (j *Journal) blobPaths() (out []string) {
	filepath.WalkDir(j.blobDir(), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if _, ok := j.blobPath(d.Name()); ok {
				out = append(out, path)
			}
		}
		return nil // what cannot be listed cannot be checked
	})
	return out
}

// checkBlob reads content again. Damaged content is renamed, so that it counts as absent and is fetched again.
func (j *Journal) checkBlob(path string) (ok bool, err error) {
	sum, err := sumOf(path)
	if err != nil || sum == filepath.Base(path) {
		return err == nil, err
	}
	return false, os.Rename(path, path+damagedEnding)
}

// damagedEnding ends the names of content that was put aside.
const damagedEnding = ".damaged"

func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// DamagedBlobs lists content that was put aside and has not come again.
func (j *Journal) DamagedBlobs() (out []string) {
	filepath.WalkDir(j.blobDir(), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if sha, aside := strings.CutSuffix(d.Name(), damagedEnding); aside && !j.HasBlob(sha) {
				out = append(out, sha)
			}
		}
		return nil // what cannot be listed cannot be fetched either
	})
	return out
}

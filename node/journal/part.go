package journal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// ErrPlace says that a piece does not continue what is here: Part.Have says where to go on.
var ErrPlace = errors.New("the piece does not continue what is here")

// Part is content on its way: what one owner has given of it so far, always from its beginning. It survives the process.
// Once whole it is content like any other, and the part says, until it is dropped, that this owner gave it: whoever only
// knows its hash did not.
type Part struct {
	Owner  string
	SHA256 string
	Bytes  int64 // of the whole, as announced
	Have   int64
	Whole  bool
	At     time.Time // last change
	Sent   bool      // a message that names it was taken
}

// partKey is what a part is filed under; its owner's hash, so that no owner's name becomes a path.
type partKey struct{ owner, sha string }

// part is one row of the index.
type part struct {
	mu   sync.Mutex // held across I/O: pieces of one part come one after the other
	gone bool       // guarded by mu: it was dropped while somebody waited for it

	file string // its name without an ending; fixed

	// Guarded by parts.mu. Bytes, Have and Whole change with mu held as well, so who holds it may read them.
	row Part
}

// parts is the index of what lies in parts/.
type parts struct {
	mu   sync.Mutex
	rows map[partKey]*part
}

const (
	partEnding = ".part"
	heldEnding = ".held" // whole
	sentEnding = ".sent" // whole, and a message that names it was taken
)

func (j *Journal) partDir() string { return filepath.Join(j.dir, "parts") }

func ownerHash(owner string) string {
	sum := sha256.Sum256([]byte(owner))
	return hex.EncodeToString(sum[:16])
}

// parsePartName reads OWNER-SHA-BYTES of a file's name. It is ours, but lies where others may write.
func (j *Journal) parsePartName(name string) (p *part, key partKey, ok bool) {
	ending := filepath.Ext(name)
	stem, whole := strings.TrimSuffix(name, ending), ending == heldEnding || ending == sentEnding
	if !whole && ending != partEnding {
		return nil, key, false
	}
	owner, rest, _ := strings.Cut(stem, "-")
	sha, size, _ := strings.Cut(rest, "-")
	bytes, err := strconv.ParseInt(size, 10, 64)
	if _, isSHA := j.blobPath(sha); !isSHA || len(owner) != 32 || err != nil || bytes < 0 || bytes > protocol.BlobBytesMax {
		return nil, key, false
	}
	return &part{file: stem, row: Part{SHA256: sha, Bytes: bytes, Whole: whole, Sent: ending == sentEnding}}, partKey{owner, sha}, true
}

// loadParts finds again what former processes left. Called before Open returns.
func (j *Journal) loadParts() error {
	j.parts.rows = map[partKey]*part{}
	if err := os.MkdirAll(j.partDir(), 0o700); err != nil {
		return err
	}
	files, err := os.ReadDir(j.partDir())
	if err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(j.partDir(), f.Name())
		p, key, ok := j.parsePartName(f.Name())
		fi, err := f.Info()
		if !ok || err != nil || !fi.Mode().IsRegular() {
			continue // not ours
		}
		p.row.At, p.row.Have = fi.ModTime(), fi.Size()
		if p.row.Whole {
			p.row.Have = p.row.Bytes
		}
		if p.row.Have > p.row.Bytes || p.row.Whole && !j.HasBlob(key.sha) {
			if err := os.Remove(path); err != nil {
				return err
			}
			continue
		}
		if old := j.parts.rows[key]; old != nil && old.row.Whole {
			continue // the mark stands for it; the sweep takes the file
		}
		j.parts.rows[key] = p
		if !p.row.Whole {
			j.blobBytes.Add(p.row.Have)
		}
	}
	return nil
}

// PartOf says what an owner has given of some content.
func (j *Journal) PartOf(owner, sha string) (Part, bool) {
	j.parts.mu.Lock()
	defer j.parts.mu.Unlock()
	p := j.parts.rows[partKey{ownerHash(owner), sha}]
	if p == nil {
		return Part{}, false
	}
	row := p.row
	row.Owner = owner
	return row, true
}

// Parts lists what there is, of all owners or of one; Owner is set in the rows of one.
func (j *Journal) Parts(owner string) []Part {
	j.parts.mu.Lock()
	defer j.parts.mu.Unlock()
	var out []Part
	for key, p := range j.parts.rows {
		if owner == "" || key.owner == ownerHash(owner) {
			row := p.row
			row.Owner = owner
			out = append(out, row)
		}
	}
	return out
}

// BeginPart makes room in the index for content of a size, unless the owner has a part of it already; of another size it
// is begun anew. Nothing is written: a part of no bytes does not survive the process.
func (j *Journal) BeginPart(owner, sha string, bytes int64) (Part, error) {
	if j.closed.Load() {
		return Part{}, ErrClosed
	}
	if _, ok := j.blobPath(sha); !ok || bytes < 0 {
		return Part{}, fmt.Errorf("%w: %q is no SHA-256", ErrHash, protocol.CutText(sha, 80))
	}
	if bytes > protocol.BlobBytesMax {
		return Part{}, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, protocol.BlobBytesMax)
	}
	if row, ok := j.PartOf(owner, sha); ok && row.Bytes == bytes && (!row.Whole || j.KeepBlob(sha)) {
		return row, nil
	} else if ok {
		if err := j.DropPart(owner, sha); err != nil {
			return Part{}, err
		}
	}
	key := partKey{ownerHash(owner), sha}
	j.parts.mu.Lock()
	defer j.parts.mu.Unlock()
	p := j.parts.rows[key]
	if p == nil {
		p = &part{file: fmt.Sprintf("%s-%s-%d", key.owner, sha, bytes), row: Part{SHA256: sha, Bytes: bytes, At: time.Now()}}
		j.parts.rows[key] = p
	}
	row := p.row
	row.Owner = owner
	return row, nil
}

// lockPart finds a part and keeps others from it; nil: there is none. The caller unlocks mu.
func (j *Journal) lockPart(key partKey) *part {
	j.parts.mu.Lock()
	p := j.parts.rows[key]
	j.parts.mu.Unlock()
	if p == nil {
		return nil
	}
	p.mu.Lock()
	if p.gone {
		p.mu.Unlock()
		return nil
	}
	return p
}

// setPart changes a row and returns it as it is then.
func (j *Journal) setPart(p *part, change func(*Part)) Part {
	j.parts.mu.Lock()
	defer j.parts.mu.Unlock()
	change(&p.row)
	return p.row
}

// AddPart appends a piece that begins at offset. What is here already is passed over; a gap or too much is ErrPlace, and
// without a part it is ErrNoBlob. ErrFull leaves what was there.
func (j *Journal) AddPart(owner, sha string, offset int64, data []byte) (Part, error) {
	p := j.lockPart(partKey{ownerHash(owner), sha})
	if p == nil {
		return Part{}, fmt.Errorf("%w: nothing of %s was begun", ErrNoBlob, protocol.CutText(sha, 80))
	}
	defer p.mu.Unlock()
	row := j.setPart(p, func(*Part) {})
	if offset < 0 || offset > row.Have || offset+int64(len(data)) > row.Bytes {
		return row, fmt.Errorf("%w: %d bytes at %d, %d of %d are here", ErrPlace, len(data), offset, row.Have, row.Bytes)
	}
	if row.Whole || offset+int64(len(data)) <= row.Have {
		return row, nil
	}
	data = data[row.Have-offset:]
	if room := j.opts.BytesMax - j.usedBytes(); int64(len(data)) > room {
		return row, fmt.Errorf("%w: %d bytes are left", ErrFull, max(room, 0))
	}
	if err := j.writePart(p, data); err != nil {
		if isFull(err) {
			err = fmt.Errorf("%w: %w", ErrFull, err)
		}
		return row, fmt.Errorf("keep a piece: %w", err)
	}
	j.blobBytes.Add(int64(len(data)))
	return j.setPart(p, func(r *Part) { r.Have, r.At = r.Have+int64(len(data)), time.Now() }), nil
}

// writePart writes behind what is known to be there, whatever a former failure left. It does not sync: if the power fails
// the hash of the whole tells.
func (j *Journal) writePart(p *part, data []byte) error {
	f, err := os.OpenFile(filepath.Join(j.partDir(), p.file+partEnding), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, p.row.Have)
	return errors.Join(err, f.Close())
}

// FinishPart makes a part that has all its bytes content, on stable storage when it returns nil. ErrHash: it was other
// content, and nothing of it is kept. ErrPlace: bytes are missing.
func (j *Journal) FinishPart(ctx context.Context, owner, sha string) (Part, error) {
	key := partKey{ownerHash(owner), sha}
	p := j.lockPart(key)
	if p == nil {
		return Part{}, fmt.Errorf("%w: nothing of %s was begun", ErrNoBlob, protocol.CutText(sha, 80))
	}
	defer p.mu.Unlock()
	row := j.setPart(p, func(*Part) {})
	switch {
	case row.Whole:
		return row, nil
	case row.Have < row.Bytes:
		return row, fmt.Errorf("%w: %d of %d bytes are here", ErrPlace, row.Have, row.Bytes)
	}
	err := j.writePart(p, nil) // of no bytes there is no file yet
	if err == nil {
		err = j.adopt(ctx, filepath.Join(j.partDir(), p.file+partEnding), sha, row.Bytes)
	}
	if errors.Is(err, ErrHash) {
		err = errors.Join(err, j.forget(key, p))
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(j.partDir(), p.file+heldEnding), nil, 0o600)
	}
	if err != nil {
		return row, fmt.Errorf("complete content: %w", err)
	}
	return j.setPart(p, func(r *Part) { r.Whole, r.At = true, time.Now() }), nil
}

// adopt gives a whole file its name among content, if its hash is right.
func (j *Journal) adopt(ctx context.Context, path, sha string, bytes int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(&patientReader{ctx, f}, bytes+1))
	if err != nil {
		return err
	}
	if sum := hex.EncodeToString(h.Sum(nil)); sum != sha || n != bytes {
		return fmt.Errorf("%w: it is %s", ErrHash, sum)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	fresh, err := j.place(path, sha, bytes)
	if err == nil && !fresh {
		j.blobBytes.Add(-bytes)
	}
	return err
}

// SentPart notes that a message which names the content was taken: it does not count against its owner any more. If the
// power fails it may.
func (j *Journal) SentPart(owner, sha string) error {
	p := j.lockPart(partKey{ownerHash(owner), sha})
	if p == nil {
		return nil
	}
	defer p.mu.Unlock()
	if row := j.setPart(p, func(*Part) {}); row.Whole && !row.Sent {
		file := filepath.Join(j.partDir(), p.file)
		if err := os.Rename(file+heldEnding, file+sentEnding); err != nil {
			return fmt.Errorf("mark a part: %w", err)
		}
	}
	j.setPart(p, func(r *Part) { r.Sent = true })
	return nil
}

// DropPart forgets what an owner gave of some content; what became whole stays as content until it is swept.
func (j *Journal) DropPart(owner, sha string) error {
	return j.dropPart(partKey{ownerHash(owner), sha})
}

func (j *Journal) dropPart(key partKey) error {
	p := j.lockPart(key)
	if p == nil {
		return nil
	}
	defer p.mu.Unlock()
	if err := j.forget(key, p); err != nil {
		return fmt.Errorf("drop a part: %w", err)
	}
	return nil
}

// forget removes a part. Called with p.mu held.
func (j *Journal) forget(key partKey, p *part) error {
	p.gone = true
	j.parts.mu.Lock()
	delete(j.parts.rows, key)
	j.parts.mu.Unlock()
	if !p.row.Whole {
		j.blobBytes.Add(-p.row.Have)
	}
	var errs []error
	for _, ending := range []string{partEnding, heldEnding, sentEnding} {
		if err := os.Remove(filepath.Join(j.partDir(), p.file+ending)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// SweepParts drops what has not changed since before.
func (j *Journal) SweepParts(before time.Time) (dropped int, err error) {
	j.parts.mu.Lock()
	keys := slices.Collect(maps.Keys(j.parts.rows))
	keys = slices.DeleteFunc(keys, func(k partKey) bool { return !j.parts.rows[k].row.At.Before(before) })
	j.parts.mu.Unlock()
	for _, k := range keys {
		dropped++
		err = errors.Join(err, j.dropPart(k))
	}
	return dropped, err
}

// YieldPart drops the half of any owner that rested longest, if that was since before; it says whether there was one.
func (j *Journal) YieldPart(before time.Time) (bool, error) {
	return j.yield(func(_ partKey, p *Part) bool { return !p.Whole && p.At.Before(before) })
}

// YieldSent forgets of what an owner, or any, has sent in a message that it gave the oldest; it says whether there was one.
// The content stays: messages name it.
func (j *Journal) YieldSent(owner string) (bool, error) {
	return j.yield(func(k partKey, p *Part) bool { return p.Sent && (owner == "" || k.owner == ownerHash(owner)) })
}

// yield drops the oldest of the parts that may go.
func (j *Journal) yield(may func(partKey, *Part) bool) (bool, error) {
	j.parts.mu.Lock()
	var oldest partKey
	var at time.Time
	for k, p := range j.parts.rows {
		if may(k, &p.row) && (oldest == (partKey{}) || p.row.At.Before(at)) {
			oldest, at = k, p.row.At
		}
	}
	j.parts.mu.Unlock()
	if oldest == (partKey{}) {
		return false, nil
	}
	return true, j.dropPart(oldest)
}

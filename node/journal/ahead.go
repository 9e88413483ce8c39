package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sort"

	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/aster-mesh/aster/protocol"
)

// A commit is durable once its frame is in one of two files, with one write and one sync. The database is filled behind
// them (fill.go). Each file is written from its beginning up to aheadMax and then the other, which begins anew when the
// database has all of it: so what is written over is never still needed, and as both keep their size a sync has no
// length to write.

const (
	aheadName = "journal.ahead-%d"
	// aheadMax is how long each file may become, and aheadStep what it grows by.
	aheadMax  = 2 << 20
	aheadStep = 256 << 10
	// frameBytesMax is up to where a commit goes by the files. A larger one is written to the database at once.
	frameBytesMax = aheadMax / 2
)

// aheadFile is what is asked of a file. Sync makes what was written before durable.
type aheadFile interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Sync() error
}

// aheadDisk is a file layer for tests that has these files too.
type aheadDisk interface {
	openAhead(path string) (aheadFile, error)
}

type plainFile struct{ *os.File }

func (f plainFile) Sync() error { return datasync(f.File) }

// ahead is both files. Guarded by the journal's wmu.
type ahead struct {
	files  [2]aheadHalf
	active int
	tag    storeTag
	next   uint64 // number of the next frame
	buf    []byte
}

type aheadHalf struct {
	aheadFile
	path string
	size int64
	end  int64 // behind the last frame
}

// openAhead opens or makes both files and returns what they hold.
func (j *Journal) openAhead() (raw [2][]byte, err error) {
	for i := range j.ahead.files {
		h := &j.ahead.files[i]
		h.path = fmt.Sprintf("%s/"+aheadName, j.dir, i)
		if err := h.open(j.opts.VFS); err != nil {
			return raw, err
		}
		if h.size, err = fileSize(h.path); err != nil {
			return raw, err
		}
		raw[i] = make([]byte, h.size)
		if n, err := h.ReadAt(raw[i], 0); err != nil && !errors.Is(err, io.EOF) {
			return raw, fmt.Errorf("read %s: %w", h.path, err)
		} else {
			raw[i] = raw[i][:n]
		}
	}
	return raw, syncDir(j.dir)
}

func (h *aheadHalf) open(layer string) (err error) {
	if d, ok := vfs.Find(layer).(aheadDisk); ok && layer != "" {
		h.aheadFile, err = d.openAhead(h.path)
		return err
	}
	f, err := os.OpenFile(h.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		h.aheadFile = plainFile{f}
	}
	return err
}

func (a *ahead) close() (err error) {
	for i := range a.files {
		if f := a.files[i].aheadFile; f != nil {
			err = errors.Join(err, f.Close())
			a.files[i].aheadFile = nil
		}
	}
	return err
}

func (a *ahead) bytes() int64 { return a.files[0].size + a.files[1].size }

// put makes the frame of a batch durable and says in which file. Called with wmu held. free says whether the database has
// all of a file. ErrFull: nothing was written; another error is final.
func (a *ahead) put(b *Batch, text func(protocol.LogID) string, free func(int) bool) (half int, err error) {
	a.buf = appendFrame(a.buf[:0], a.tag, a.next, b, text)
	if cap(a.buf) > 2*frameBytesMax {
		defer func() { a.buf = nil }()
	}
	if len(a.buf) > frameBytesMax {
		return 0, errLarge
	}
	h := &a.files[a.active]
	other := 1 - a.active
	switch {
	case free(a.active) && free(other):
		h.end = 0
	case h.end+int64(len(a.buf)) > aheadMax:
		if !free(other) {
			return 0, errBehind
		}
		a.active, h = other, &a.files[other]
		h.end = 0
	}
	if err := h.write(a.buf); err != nil {
		return 0, err
	}
	a.next++
	return a.active, nil
}

var (
	errLarge  = errors.New("too large for a frame")
	errBehind = errors.New("the database has neither file")
)

func (h *aheadHalf) write(p []byte) error {
	end := h.end + int64(len(p))
	size := h.size
	if end > size { // zeros first, so that all it is made of is allocated
		size = min((end+aheadStep-1)/aheadStep*aheadStep, aheadMax)
		if _, err := h.WriteAt(make([]byte, size-h.size), h.size); err != nil {
			return roomOr("lengthen", h.path, err)
		}
	}
	if _, err := h.WriteAt(p, h.end); err != nil {
		return roomOr("write", h.path, err)
	}
	if err := h.Sync(); err != nil {
		return fmt.Errorf("sync %s: %v", h.path, err) // no room for a sync is no ErrFull: what is on the disk is unknown
	}
	h.size, h.end = size, end
	return nil
}

func roomOr(what, path string, err error) error {
	if isFull(err) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return fmt.Errorf("%s %s: %w", what, path, err)
}

// forget writes over the beginning of both files what is no frame, when all they hold is in the database. It needs no
// sync: what is in the database is left out by its number too.
func (a *ahead) forget() {
	for i := range a.files {
		if h := &a.files[i]; h.aheadFile != nil && h.end > 0 {
			_, _ = h.WriteAt(make([]byte, frameHead), 0)
			h.end = 0
		}
	}
}

// found is what the files hold.
type found struct {
	frames []frame  // by number, those above what the database has
	half   []int    // in which file each is
	ends   [2]int64 // behind the last one of each file
	torn   int64    // bytes of a commit that was not finished
}

// look finds the frames of a store with numbers above filled; strays: also those behind bytes that are no frame. What was
// being written when the power went is the last frame of all, so one that is missing below another is damage.
func look(raw [2][]byte, tag storeTag, filled uint64, strays bool) (f found) {
	highest := filled
	var tails [2]int
	for i, half := range raw {
		last, at := uint64(0), 0
		add := func(one frame) {
			last, f.ends[i] = one.number, int64(at+one.size)
			if highest = max(highest, last); last > filled {
				f.frames, f.half = append(f.frames, one), append(f.half, i)
			}
		}
		for at < len(half) {
			one, ok := readFrame(half[at:])
			if !ok || one.tag != tag || last > 0 && one.number != last+1 {
				break
			}
			add(one)
			at += one.size
		}
		for tails[i] = at; strays && at < len(half); at += frameAlign { // behind a damaged one
			if one, ok := readFrame(half[at:]); ok && one.tag == tag && one.number > max(last, filled) {
				add(one)
			}
		}
	}
	for i, half := range raw {
		if n, begun := begunFrame(half[min(tails[i], len(half)):], tag, highest+1); begun {
			f.torn += n
		}
	}
	sort.Sort(&f)
	return f
}

func (f *found) Len() int           { return len(f.frames) }
func (f *found) Less(a, b int) bool { return f.frames[a].number < f.frames[b].number }
func (f *found) Swap(a, b int) {
	f.frames[a], f.frames[b] = f.frames[b], f.frames[a]
	f.half[a], f.half[b] = f.half[b], f.half[a]
}

package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"strings"
	"time"
)

// Form is the newest form of the archive that this version knows.
const Form = 1

const (
	folder    = "aster-export/"
	headPart  = folder + "export.json"
	homeParts = folder + "home/"
	listPart  = folder + "parts.json"
	// listBytesMax bounds the two parts that are read whole: some 100,000 attempts and attachments.
	listBytesMax = 64 << 20
)

// Head says whose home it is. It is the first part, so that a person sees it at once.
type Head struct {
	Form    int       `json:"form"`
	Version string    `json:"version"` // of the aster that wrote it
	Peer    string    `json:"peer"`
	Name    string    `json:"name"`
	Mesh    string    `json:"mesh"`
	At      time.Time `json:"at"` // of the copy of the store
	Records uint64    `json:"records"`
	MeshKey bool      `json:"meshKey"` // the mesh key is inside
	Fenced  bool      `json:"fenced,omitempty"`
	Warning string    `json:"warning"`
}

// Part is one file of the home.
type Part struct {
	Name   string `json:"name"` // below the home, with slashes
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

type list struct {
	Parts []Part `json:"parts"`
}

// ErrDamaged says that an archive is not what was written.
var ErrDamaged = errors.New("damaged")

// ErrNewer says that a later version wrote the archive.
var ErrNewer = errors.New("of a newer version")

// Writer writes one archive. Each part is a member of its own in the gzip stream, with its own checksum.
type Writer struct {
	out   io.Writer
	zip   *gzip.Writer
	tar   *tar.Writer
	at    time.Time
	parts []Part
}

// NewWriter begins an archive.
func NewWriter(out io.Writer, h Head) (*Writer, error) {
	h.Form = Form
	zip, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	w := &Writer{out: out, zip: zip, tar: tar.NewWriter(zip), at: h.At}
	return w, w.json(headPart, h)
}

func (w *Writer) json(name string, v any) error {
	raw, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return w.part(name, int64(len(raw)), strings.NewReader(string(raw)))
}

// Add writes one file of the home, of exactly size bytes.
func (w *Writer) Add(name string, size int64, r io.Reader) error {
	if !plain(name) {
		return fmt.Errorf("part %q leads out of the home", name)
	}
	h := sha256.New()
	if err := w.part(homeParts+name, size, io.TeeReader(r, h)); err != nil {
		return fmt.Errorf("part %s: %w", name, err)
	}
	w.parts = append(w.parts, Part{name, size, hex.EncodeToString(h.Sum(nil))})
	return nil
}

func (w *Writer) part(name string, size int64, r io.Reader) error {
	if err := w.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: w.at, Typeflag: tar.TypeReg, Format: tar.FormatPAX}); err != nil {
		return err
	}
	if _, err := io.CopyN(w.tar, r, size); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it became shorter while it was read")
		}
		return err
	}
	if err := errors.Join(w.tar.Flush(), w.zip.Close()); err != nil {
		return err
	}
	w.zip.Reset(w.out)
	return nil
}

// Close writes the list of parts and the end. It does not close what it writes to.
func (w *Writer) Close() ([]Part, error) {
	if err := w.json(listPart, list{w.parts}); err != nil {
		return nil, err
	}
	return w.parts, errors.Join(w.tar.Close(), w.zip.Close())
}

// Read reads a whole archive: head is called once, then each for every file of the home, whose reader it must read to its
// end. Nothing that each was given may count before Read has returned nil.
func Read(in io.Reader, head func(Head) error, each func(name string, size int64, r io.Reader) error) ([]Part, error) {
	seen := &tail{}
	zip, err := gzip.NewReader(io.TeeReader(in, seen))
	if err != nil {
		return nil, fmt.Errorf("%w: it does not begin like an export: %w", ErrDamaged, err)
	}
	r := &reading{tar: tar.NewReader(zip), last: "its beginning", seen: seen}
	if err := r.head(head); err != nil {
		return nil, err
	}
	for {
		h, err := r.next()
		if err != nil {
			return nil, err
		}
		if h.Name == listPart {
			return r.parts, r.end(zip, h)
		}
		if err := r.file(h, each); err != nil {
			return nil, err
		}
	}
}

type reading struct {
	tar   *tar.Reader
	last  string // the part that was read last
	parts []Part
	seen  *tail
}

// tail keeps the last bytes of what was read.
type tail struct{ last []byte }

// memberMin is the least that a member of a gzip stream begins with, its header; the checksum and size that end one follow.
const (
	memberMin = 10
	memberEnd = 8
)

func (t *tail) Write(p []byte) (int, error) {
	t.last = append(t.last, p[max(0, len(p)-memberMin-memberEnd):]...)
	t.last = t.last[max(0, len(t.last)-memberMin-memberEnd):]
	return len(p), nil
}

// goesOn says whether fewer bytes than a member begins with stand behind the one that ends each archive: the two blocks of
// zeros that end a tar.
func (t *tail) goesOn() bool {
	end := binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(make([]byte, 1024)))
	end = binary.LittleEndian.AppendUint32(end, 1024)
	at := bytes.LastIndex(t.last, end)
	return at >= 0 && at+memberEnd < len(t.last)
}

// next goes to the next part. Whatever the reader finds wrong here belongs to the one before or to its end.
func (r *reading) next() (*tar.Header, error) {
	h, err := r.tar.Next()
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("%w: it ends behind part %s, without its list of parts: it was cut short", ErrDamaged, r.last)
	case err != nil:
		return nil, fmt.Errorf("%w in part %s, or right behind it: %w", ErrDamaged, r.last, err)
	case h.Typeflag != tar.TypeReg:
		return nil, fmt.Errorf("%w: part %q is no plain file", ErrDamaged, h.Name)
	}
	r.last = strings.TrimPrefix(strings.TrimPrefix(h.Name, homeParts), folder)
	return h, nil
}

// broken names the part in which reading ended.
func (r *reading) broken(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: it ends in the middle of part %s: it was cut short", ErrDamaged, r.last)
	}
	return fmt.Errorf("%w in part %s: %w", ErrDamaged, r.last, err)
}

func (r *reading) json(h *tar.Header, v any) error {
	if h.Size > listBytesMax {
		return fmt.Errorf("%w: part %s is too large", ErrDamaged, r.last)
	}
	raw, err := io.ReadAll(r.tar)
	if err != nil {
		return r.broken(err)
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%w in part %s: %w", ErrDamaged, r.last, err)
	}
	return nil
}

func (r *reading) head(f func(Head) error) error {
	h, err := r.next()
	if err != nil {
		return err
	}
	if h.Name != headPart {
		return fmt.Errorf("%w: it begins with %q: this is no export of aster", ErrDamaged, h.Name)
	}
	var head Head
	if err := r.json(h, &head); err != nil {
		return err
	}
	if head.Form > Form {
		return fmt.Errorf("%w: aster %s wrote it in form %d, this version knows %d", ErrNewer, head.Version, head.Form, Form)
	}
	return f(head)
}

func (r *reading) file(h *tar.Header, each func(string, int64, io.Reader) error) error {
	name, ok := strings.CutPrefix(h.Name, homeParts)
	if !ok || !plain(name) {
		return fmt.Errorf("%w: part %q has no place in a home", ErrDamaged, h.Name)
	}
	sum := sha256.New()
	in := &counted{r: io.TeeReader(r.tar, sum)}
	err := each(name, h.Size, in)
	switch {
	case in.err != nil:
		return r.broken(in.err)
	case err != nil:
		return fmt.Errorf("part %s: %w", name, err)
	case in.n != h.Size:
		return fmt.Errorf("part %s was not read to its end", name)
	}
	r.parts = append(r.parts, Part{name, in.n, hex.EncodeToString(sum.Sum(nil))})
	return nil
}

// end compares the list with what came, and reads on to the end, where the last checksum is.
func (r *reading) end(zip io.Reader, h *tar.Header) error {
	var l list
	if err := r.json(h, &l); err != nil {
		return err
	}
	for i, want := range l.Parts {
		switch {
		case i >= len(r.parts):
			return fmt.Errorf("%w: part %s is missing", ErrDamaged, want.Name)
		case r.parts[i].Name != want.Name:
			return fmt.Errorf("%w: part %s stands where %s should", ErrDamaged, r.parts[i].Name, want.Name)
		case r.parts[i] != want:
			return fmt.Errorf("%w: part %s is not what was written (%d bytes with hash %s, want %d with %s)", ErrDamaged,
				want.Name, r.parts[i].Bytes, short(r.parts[i].SHA256), want.Bytes, short(want.SHA256))
		}
	}
	if len(r.parts) > len(l.Parts) {
		return fmt.Errorf("%w: part %s is not in the list of parts", ErrDamaged, r.parts[len(l.Parts)].Name)
	}
	if _, err := r.tar.Next(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w in part %s, or right behind it", ErrDamaged, r.last)
	}
	n, err := io.Copy(io.Discard, zip)
	switch {
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, io.ErrUnexpectedEOF) && r.seen.goesOn(), err == nil && n > 0:
		return fmt.Errorf("%w: something follows behind its end, which is no part of it", ErrDamaged)
	case err != nil:
		return r.broken(err)
	}
	return nil
}

func short(hash string) string { return hash[:min(len(hash), 12)] }

// counted remembers the error of a reader, to tell it from the one of whoever read, and how much it gave.
type counted struct {
	r   io.Reader
	n   int64
	err error
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	return n, err
}

// plain says whether a name stays below the folder it is put into, on every system.
func plain(name string) bool {
	return name != "" && path.Clean(name) == name && !path.IsAbs(name) && name != "." && name != ".." && !strings.HasPrefix(name, "../") &&
		!strings.ContainsAny(name, "\\:\x00")
}

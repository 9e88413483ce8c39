package journal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// scrubber reads stored bytes again. Owned by Run, or by one Scrub.
type scrubber struct {
	j     *Journal
	began bool
	page  int64    // number of pages of the database read in this round
	next  uint64   // position of a record to go on from
	end   uint64   // last position of this round
	blobs []string // still to read in this round
}

// begin starts a round over everything.
func (s *scrubber) begin() {
	s.began, s.page, s.next, s.end, s.blobs = true, 0, 0, s.j.Position(), s.j.blobPaths()
}

// step reads a little, and says whether there is more in this round.
func (s *scrubber) step() (more bool, err error) {
	if s.page >= 0 {
		more, err := s.pages()
		if !more {
			s.page = -1
		}
		return true, err
	}
	if s.next < s.end {
		batch, err := s.j.Since(s.next, scrubBatch) // compares each with its hash and notes what differs
		if err != nil || len(batch) == 0 {
			s.next = s.end
			return true, err
		}
		s.next = batch[len(batch)-1].Pos
		return true, nil
	}
	if len(s.blobs) == 0 {
		return false, nil
	}
	s.blob(s.blobs[0])
	s.blobs = s.blobs[1:]
	return len(s.blobs) > 0, nil
}

// turn is step at Run's pace: it says how long to rest. The first round is over the newest tenth of the records, which
// are what a crash may have hurt.
func (s *scrubber) turn(ctx context.Context) time.Duration {
	if !s.began {
		s.began, s.page, s.end = true, -1, s.j.Position()
		s.next = s.end - s.end/10
	}
	more, err := s.step()
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrClosed) {
		s.j.log.Error("scrubbing met an error", "err", err)
	}
	if more {
		return scrubRest
	}
	s.begin()
	return scrubEvery
}

const pageBytes = 4096

// pages checks the next pages of the database file against the checksums in their last eight bytes.
func (s *scrubber) pages() (more bool, err error) {
	f, err := os.Open(s.j.dbPath())
	if err != nil {
		return false, fmt.Errorf("scrub: %w", err)
	}
	defer f.Close()
	buf := make([]byte, scrubBatch*pageBytes)
	n, err := f.ReadAt(buf, s.page*pageBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("scrub: %w", err)
	}
	for at := 0; at+pageBytes <= n; at += pageBytes {
		number := s.page + int64(at/pageBytes)
		if !pageWhole(buf[at:at+pageBytes]) && !s.rereads(f, number) {
			return false, s.j.suspect(fmt.Errorf("page %d of the database: %w", number+1, sqlite3.IOERR_DATA))
		}
	}
	s.page += int64(n / pageBytes)
	return n == len(buf), nil
}

// rereads says whether a page is whole after all: it may have been read while it was written.
func (s *scrubber) rereads(f *os.File, number int64) bool {
	buf := make([]byte, pageBytes)
	for range 3 {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-s.j.done:
			return true
		}
		if _, err := f.ReadAt(buf, number*pageBytes); err == nil && pageWhole(buf) {
			return true
		}
	}
	return false
}

// pageWhole computes the checksum of SQLite's checksum file layer, which go-sqlite3 keeps too (sqlite.org/cksumvfs.html).
func pageWhole(page []byte) bool {
	var s1, s2 uint32
	end := len(page) - 8
	for i := 0; i < end; i += 8 {
		s1 += binary.LittleEndian.Uint32(page[i:]) + s2
		s2 += binary.LittleEndian.Uint32(page[i+4:]) + s1
	}
	return binary.LittleEndian.Uint32(page[end:]) == s1 && binary.LittleEndian.Uint32(page[end+4:]) == s2
}

func (s *scrubber) blob(path string) {
	if _, ok := s.j.blobPath(filepath.Base(path)); !ok {
		return
	}
	ok, err := s.j.checkBlob(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		s.j.log.Warn("content cannot be read", "blob", filepath.Base(path), "err", err)
	case !ok:
		s.j.log.Error("stored content is damaged; it was put aside and counts as absent", "blob", filepath.Base(path))
	}
}

// Scrub reads every page, record and blob again at once and returns what is damaged (aster doctor). ErrDamaged: a part
// of the database is damaged that only a restart mends.
func (j *Journal) Scrub(ctx context.Context) ([]Lost, error) {
	s := scrubber{j: j}
	s.begin()
	for more := true; more; {
		var err error
		if more, err = s.step(); err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, fmt.Errorf("scrub: %w", err)
		}
	}
	return j.Damaged()
}

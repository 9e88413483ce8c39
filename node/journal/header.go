package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// headerBytes is how much of page 1 is the header of the file; the root of its schema follows (section 1.3 of SQLite's
// file format).
const headerBytes = 100

// headedEnding is that of a copy that got a new header.
const headedEnding = ".headed"

// header is what a store's file of that many pages begins with, as far as reading needs it.
func header(pages uint32) []byte {
	h := make([]byte, headerBytes)
	copy(h, "SQLite format 3\x00")
	binary.BigEndian.PutUint16(h[16:], pageBytes)
	copy(h[18:], []byte{2, 2, 8, 64, 32, 32}) // write-ahead log; eight bytes of each page are its checksum
	binary.BigEndian.PutUint32(h[24:], 1)
	binary.BigEndian.PutUint32(h[28:], pages)
	binary.BigEndian.PutUint32(h[40:], 1)
	binary.BigEndian.PutUint32(h[44:], 4)
	binary.BigEndian.PutUint32(h[56:], 1) // UTF-8
	binary.BigEndian.PutUint32(h[60:], schemaVersion)
	binary.BigEndian.PutUint32(h[68:], applicationID)
	binary.BigEndian.PutUint32(h[92:], 1)
	return h
}

// headed makes a copy of the database at path with a new header if its own is damaged and the root of the schema behind it
// looks like one, so that the other pages are read. It returns path itself otherwise. What is read of the copy is
// verified like anything else that is taken over. The caller ends its use with unheaded.
func headed(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return path, nil // the engine says why
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() < pageBytes {
		return path, nil
	}
	page := make([]byte, pageBytes)
	if _, err := io.ReadFull(f, page); err != nil || pageWhole(page) {
		return path, nil
	}
	want := header(uint32(info.Size() / pageBytes))
	same := func(from, to int) bool { return bytes.Equal(page[from:to], want[from:to]) }
	if same(0, 24) && same(44, 48) && same(56, 60) || page[headerBytes] != 0x0d && page[headerBytes] != 0x05 {
		return path, nil
	}
	to := path + headedEnding
	if err := errors.Join(unheaded(path, to), copyFile(path, to)); err != nil {
		return "", fmt.Errorf("copy a damaged store: %w", errors.Join(err, unheaded(path, to)))
	}
	if err := copyFile(path+"-wal", to+"-wal"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("copy a damaged store: %w", errors.Join(err, unheaded(path, to)))
	}
	w, err := os.OpenFile(to, os.O_WRONLY, 0o600)
	if err == nil {
		_, err = w.WriteAt(want, 0)
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		return "", errors.Join(err, unheaded(path, to))
	}
	return to, nil
}

// unheaded removes a copy that headed made of the database at path.
func unheaded(path, made string) (err error) {
	if made == path {
		return nil
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if gone := os.Remove(made + suffix); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// copyFile makes a copy, which is on the disk when it returns.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// damagedPages counts the pages of a database file, and those that do not match their checksums.
func damagedPages(path string) (bad, all int) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0
	}
	defer f.Close()
	page := make([]byte, pageBytes)
	for {
		n, err := io.ReadFull(f, page)
		if n == 0 {
			return bad, all
		}
		all++
		if err != nil || !pageWhole(page) {
			bad++
		}
	}
}

package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// copyPages is how many pages go over between two looks at the context.
const copyPages = 4096

// CopyTo makes a store in dir, which must not exist, of all that was committed before the call, as of one moment, while
// commits go on. Content comes along without room where the file system has hard links; what can be made anew, as
// checkpoints and the search index, and what is only on its way, as uploads, is left out. It returns how many records the
// copy has. Every page is checked as it is read: ErrDamaged says that the store itself is damaged. After an error dir
// holds nothing of use. The copy is synced.
func (j *Journal) CopyTo(ctx context.Context, dir string) (records uint64, err error) {
	if j.closed.Load() {
		return 0, ErrClosed
	}
	if err := j.fill(true); err != nil {
		return 0, err
	}
	if err := j.allIn(); err != nil {
		return 0, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return 0, fmt.Errorf("copy the store: %w", err)
	}
	if records, err = j.copyDatabase(ctx, dir); err == nil {
		err = j.copyBlobs(ctx, dir)
	}
	if err == nil {
		err = syncDir(dir)
	}
	if isFull(err) {
		err = fmt.Errorf("%w: %w", ErrFull, err)
	}
	if err != nil {
		return 0, fmt.Errorf("copy the store: %w", j.suspect(err))
	}
	return records, nil
}

// allIn says whether the database itself has all that is promised; not so while a full disk keeps it waiting.
func (j *Journal) allIn() error {
	j.fmu.Lock()
	defer j.fmu.Unlock()
	if j.held != nil {
		return fmt.Errorf("%w: there is no room in the database", ErrFull)
	}
	return nil
}

func (j *Journal) copyDatabase(ctx context.Context, dir string) (records uint64, err error) {
	from, err := j.openReader()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, from.close()) }()
	if err := from.exec("BEGIN"); err != nil { // one moment, however long it takes
		return 0, err
	}
	n, err := from.number("SELECT count(*) FROM records LEFT JOIN bases ON bases.log=records.log WHERE records.seq>coalesce(bases.seq, 0)")
	if err != nil {
		return 0, err
	}
	path := filepath.Join(dir, storeName)
	if err := emptyStore(path); err != nil {
		return 0, err
	}
	b, err := from.db.BackupInit("main", fileURI(path, ""))
	if err != nil {
		return 0, err
	}
	for done := false; !done && err == nil; {
		if done, err = b.Step(copyPages); err == nil {
			err = ctx.Err()
		}
	}
	if err = errors.Join(err, b.Close(), from.exec("ROLLBACK")); err != nil {
		return 0, err
	}
	if err := checkCopy(path); err != nil {
		return 0, err
	}
	for i := range 2 { // a store without them lost what only they had
		if err := emptyFile(filepath.Join(dir, fmt.Sprintf(aheadName, i))); err != nil {
			return 0, err
		}
	}
	return uint64(n), syncFile(path)
}

// checkCopy reads the copy's pages again, as a scrubber would.
func checkCopy(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, pageBytes)
	for page := 1; ; page++ {
		switch _, err := io.ReadFull(f, buf); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case !pageWhole(buf):
			return fmt.Errorf("page %d of the copy is not what was written", page)
		}
	}
}

// emptyStore makes a database whose header already says that each page holds its checksum. Without it the engine's file layer
// learns that from the first page alone, which it may be given behind others; those then keep the checksums of former content.
func emptyStore(path string) error {
	if err := emptyFile(path); err != nil {
		return err
	}
	c, err := openConn(path, "")
	if err != nil {
		return err
	}
	err = errors.Join(c.db.EnableChecksums("main"), c.close())
	if gone := os.Remove(path + "-shm"); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}

func emptyFile(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// copyBlobs takes over the content that is here; a record whose content was swept or put aside meanwhile has none here
// either.
func (j *Journal) copyBlobs(ctx context.Context, dir string) error {
	to := filepath.Join(dir, "blobs")
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for _, path := range j.blobPaths() {
		if err := ctx.Err(); err != nil {
			return err
		}
		sha := filepath.Base(path)
		if _, ok := j.blobPath(sha); !ok {
			continue
		}
		if err := os.Mkdir(filepath.Join(to, sha[:2]), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := linkOrCopy(path, filepath.Join(to, sha[:2], sha)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return j.copyMarks(ctx, to)
}

// copyMarks takes over what says that content left.
func (j *Journal) copyMarks(ctx context.Context, to string) error {
	return filepath.WalkDir(j.blobDir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		sha, left := strings.CutSuffix(d.Name(), leftEnding)
		if _, ok := j.blobPath(sha); !left || !ok {
			return nil
		}
		fi, err := d.Info()
		if err != nil {
			return nil // the content is here again
		}
		mark := filepath.Join(to, sha[:2], sha+leftEnding)
		if err := os.Mkdir(filepath.Dir(mark), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return errors.Join(os.WriteFile(mark, nil, 0o600), os.Chtimes(mark, fi.ModTime(), fi.ModTime()))
	})
}

func linkOrCopy(from, to string) error {
	if err := os.Link(from, to); err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return copyFile(from, to)
}

package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ncruces/go-sqlite3"
)

// rebuild sets the database aside and makes a new one of what is readable in it. A crash on the way leaves the note
// that brings the next Open here again.
func (j *Journal) rebuild(cause string) error {
	aside, err := j.setAside(j.dbPath(), cause == missingStore)
	if err != nil {
		return fmt.Errorf("set a damaged store aside: %w", err)
	}
	j.recovery.SetAside, j.recovery.Reason = aside, cause
	j.log.Error("the store is damaged; it was set aside and what is readable in it is taken over", "files", aside, "err", cause)
	j.dbName = rebuildName
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(j.dbPath() + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := j.openWriter(); err != nil {
		return err
	}
	// Closing would move the write-ahead log into the file too, and would not say when it could not.
	var was former
	if cause != missingStore {
		err = j.salvage(aside[0], &was)
	} else {
		err = j.takeBases(nil)
	}
	if err == nil {
		err = j.takeAhead(was)
	}
	if err == nil {
		_, _, err = j.writer.db.WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE)
	}
	if err = errors.Join(err, j.writer.close()); err != nil {
		return fmt.Errorf("take over the readable part of %s: %w", aside[0], err)
	}
	from := j.dbPath()
	j.dbName = storeName
	if err := errors.Join(os.Rename(from, j.dbPath()), syncDir(j.dir)); err != nil {
		return err
	}
	// The new store's frames have another tag, so from here on what the files hold is no more taken for commits.
	j.ahead.forget()
	if err := errors.Join(j.ahead.close(), j.openWriter()); err != nil {
		return err
	}
	if err := j.catchUp(); err != nil {
		return err
	}
	allLeft := was.known && j.cut.number > 0 && len(j.recovery.Lost) == 0
	if j.count == 0 && !(was.known && was.filled == 0) && !allLeft {
		if err := j.noteLoss(aside); err != nil {
			return err
		}
	}
	return j.clearSuspicion()
}

// takeAhead takes over what the files ahead of a damaged database hold and it did not. If not even its name is readable
// it is the files that say it, and what they hold from their beginnings is all taken.
func (j *Journal) takeAhead(was former) error {
	raw, err := j.openAhead()
	if err != nil {
		return err
	}
	if !was.known {
		newest := uint64(0)
		for i := range raw {
			one, ok := readFrame(raw[i])
			if !ok {
				raw[i] = nil
			} else if one.number > newest {
				newest, was.tag = one.number, one.tag
			}
		}
	}
	f := look(raw, was.tag, was.filled, was.known)
	if !was.known && len(f.frames) > 0 {
		was.filled = f.frames[0].number - 1
	}
	for i := range j.ahead.files {
		j.ahead.files[i].end = f.ends[i]
	}
	if err := j.replay(f, raw, was.filled); err != nil {
		return err
	}
	if err := j.fill(true); err != nil || j.held == nil {
		return err
	}
	return fmt.Errorf("%w: there is no room in the database", ErrFull)
}

// setAside renames a database and its side files to names that are free, and returns the new names. When there is no
// database, a former try has renamed it already and the newest of those names is returned. gone: there was none from the
// beginning, and only what is beside it is renamed.
func (j *Journal) setAside(path string, gone bool) ([]string, error) {
	n := 1
	for ; ; n++ {
		if _, err := os.Lstat(asideName(path, n)); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return nil, err
		}
	}
	to := asideName(path, n)
	switch err := os.Rename(path, to); {
	case gone && errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, fs.ErrNotExist) && n > 1:
		to = asideName(path, n-1)
	case err != nil:
		return nil, err
	}
	// The engine finds the write-ahead log of a renamed database only under the new name.
	if err := os.Rename(path+"-wal", to+"-wal"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := os.Remove(path + "-shm"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	if there(to) {
		names = append(names, to)
	}
	if _, err := os.Lstat(to + "-wal"); err == nil {
		names = append(names, to+"-wal")
	}
	return names, syncDir(filepath.Dir(path))
}

func asideName(path string, n int) string { return fmt.Sprintf("%s.damaged-%d", path, n) }

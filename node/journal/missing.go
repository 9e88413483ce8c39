package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// missingStore is why a store is rebuilt of which not even the damaged database is there.
const missingStore = "journal.db is missing"

// missing says that the database was here and is not: a store that was ever opened has files ahead of it.
func (j *Journal) missing() string {
	if !there(j.dbPath()) && j.usedBefore() {
		return missingStore
	}
	return ""
}

// usedBefore says whether anything was ever committed here.
func (j *Journal) usedBefore() bool {
	for i := range 2 {
		if n, err := fileSize(j.aheadPath(i)); err == nil && n > 0 {
			return true
		}
	}
	return false
}

// missingAhead says that a file is not here that every opened store has; what only that held is gone.
func (j *Journal) missingAhead() string {
	for i := range 2 {
		if !there(j.aheadPath(i)) {
			return fmt.Sprintf(aheadName+" is missing: what the database did not have yet is gone", i)
		}
	}
	return ""
}

func (j *Journal) dbPath() string { return filepath.Join(j.dir, j.dbName) }

func (j *Journal) aheadPath(i int) string { return j.dir + "/" + fmt.Sprintf(aheadName, i) }

func there(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

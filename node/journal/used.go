package journal

import (
	"errors"
	"os"

	"github.com/ncruces/go-sqlite3"
)

// Used says whether the store in dir ever had a record or another commit, and changes nothing. A store that cannot be read
// counts as used: who asks is about to begin anew in its place. The caller sees to it that nobody opens it meanwhile.
func Used(dir string) bool {
	j := &Journal{dir: dir, dbName: storeName}
	if j.usedBefore() {
		return true
	}
	if n, err := fileSize(j.dbPath()); err != nil || n == 0 { // none, or cut while it was made
		return err != nil && there(j.dbPath())
	}
	shm, wal := j.dbPath()+"-shm", j.dbPath()+"-wal"
	had, hadLog := there(shm), there(wal)
	defer func() { // what looking makes
		if !had {
			os.Remove(shm)
		}
		if n, err := fileSize(wal); err == nil && n == 0 && !hadLog {
			os.Remove(wal)
		}
	}()
	db, err := openConn(j.dbPath(), "", "PRAGMA trusted_schema=OFF", "PRAGMA query_only=1")
	if err != nil {
		return true
	}
	defer db.close()
	if _, err := db.db.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true); err != nil {
		return true
	}
	n, err := db.number("SELECT EXISTS(SELECT 1 FROM logs)")
	if errors.Is(err, sqlite3.ERROR) && !isDamage(err) { // cut before its tables were made
		return false
	}
	return err != nil || n != 0
}

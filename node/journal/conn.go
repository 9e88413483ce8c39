package journal

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// conn is one connection with its prepared statements. One goroutine at a time.
type conn struct {
	db    *sqlite3.Conn
	stmts map[string]*sqlite3.Stmt
}

// openConn opens path, which is made if absent. It and its -wal and -shm files have mode 0600; the engine would make
// the last one for everybody.
func openConn(path, vfsName string, setup ...string) (*conn, error) {
	for _, name := range []string{path, path + "-shm"} {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	registerLayer()
	db, err := sqlite3.Open(fileURI(path, vfsName))
	if err != nil {
		return nil, err
	}
	c := &conn{db: db, stmts: map[string]*sqlite3.Stmt{}}
	if err := db.BusyTimeout(5 * time.Second); err != nil {
		return nil, errors.Join(err, c.close())
	}
	for _, sql := range setup {
		if err := db.Exec(sql); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", sql, err), c.close())
		}
	}
	return c, nil
}

// fileURI names a database to the engine.
func fileURI(path, vfsName string) string {
	query := url.Values{"modeof": {path}, "vfs": {cmp.Or(vfsName, layerName)}}
	name := (&url.URL{Path: "/" + filepath.ToSlash(path)}).EscapedPath()[1:]     // the slash keeps a colon from being escaped
	return "file:" + name + "?" + strings.ReplaceAll(query.Encode(), "+", "%20") // the engine knows no plus
}

// openReader opens a connection for queries.
func (j *Journal) openReader() (*conn, error) {
	c, err := openConn(j.dbPath(), j.opts.VFS, "PRAGMA cache_size=-1024", "PRAGMA temp_store=MEMORY",
		"PRAGMA trusted_schema=OFF", "PRAGMA query_only=1")
	if err != nil {
		return nil, fmt.Errorf("open a reader: %w", err)
	}
	return c, nil
}

func (c *conn) close() error {
	if c == nil {
		return nil
	}
	for _, s := range c.stmts {
		s.Close() // repeats the last error of its run, which was handled then
	}
	return c.db.Close()
}

// stmt returns the statement of sql, prepared once a connection.
func (c *conn) stmt(sql string) (*sqlite3.Stmt, error) {
	if s := c.stmts[sql]; s != nil {
		return s, nil
	}
	s, _, err := c.db.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", sql, err)
	}
	c.stmts[sql] = s
	return s, nil
}

// exec runs sql to its end.
func (c *conn) exec(sql string, args ...any) error {
	s, err := c.stmt(sql)
	if err != nil {
		return err
	}
	if err := bind(s, args); err != nil {
		return err
	}
	return s.Exec()
}

// each runs sql and calls row for every row until it returns false.
func (c *conn) each(sql string, args []any, row func(*sqlite3.Stmt) bool) error {
	s, err := c.stmt(sql)
	if err != nil {
		return err
	}
	if err := bind(s, args); err != nil {
		return err
	}
	for s.Step() {
		if !row(s) {
			break
		}
	}
	return errors.Join(s.Err(), s.Reset())
}

// one is each for at most one row; it says whether there was one.
func (c *conn) one(sql string, args []any, row func(*sqlite3.Stmt)) (bool, error) {
	found := false
	err := c.each(sql, args, func(s *sqlite3.Stmt) bool {
		row(s)
		found = true
		return false
	})
	return found, err
}

// number returns the single integer that sql answers, 0 for NULL.
func (c *conn) number(sql string, args ...any) (int64, error) {
	var n int64
	_, err := c.one(sql, args, func(s *sqlite3.Stmt) { n = s.ColumnInt64(0) })
	return n, err
}

// inTransaction runs f between BEGIN IMMEDIATE and COMMIT, or rolls back.
func inTransaction(c *conn, f func() error) error {
	if err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := f()
	if err == nil {
		err = c.exec("COMMIT")
	}
	if err != nil && !c.db.GetAutocommit() {
		err = errors.Join(err, c.exec("ROLLBACK"))
	}
	return err
}

func bind(s *sqlite3.Stmt, args []any) error {
	for i, a := range args {
		var err error
		switch v := a.(type) {
		case int64:
			err = s.BindInt64(i+1, v)
		case uint64:
			err = s.BindInt64(i+1, int64(v))
		case int:
			err = s.BindInt64(i+1, int64(v))
		case string:
			err = s.BindText(i+1, v)
		case []byte:
			err = s.BindBlob(i+1, v)
		case nil:
			err = s.BindNull(i + 1)
		default:
			panic(fmt.Sprintf("journal: binds a %T", a))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// orNull keeps empty texts out of partial indexes.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// isFull says whether err means that there was no room and nothing else went wrong. An error of a sync never does:
// what it left on the disk is unknown.
func isFull(err error) bool {
	if errors.Is(err, sqlite3.IOERR_FSYNC) || errors.Is(err, sqlite3.IOERR_DIR_FSYNC) {
		return false
	}
	return errors.Is(err, sqlite3.FULL) || errors.Is(err, sqlite3.IOERR_SHMSIZE) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// isDamage says whether err means that bytes of the store are not what was written.
func isDamage(err error) bool {
	return errors.Is(err, sqlite3.CORRUPT) || errors.Is(err, sqlite3.NOTADB) ||
		errors.Is(err, sqlite3.IOERR_DATA) || errors.Is(err, sqlite3.IOERR_SHORT_READ) ||
		errors.Is(err, sqlite3.IOERR_CORRUPTFS)
}

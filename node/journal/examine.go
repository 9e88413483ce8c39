package journal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/aster-mesh/aster/protocol"
)

// Fault is one thing that is wrong with a store.
type Fault struct {
	Code string // FaultFile, FaultPage, FaultRecord, FaultCommit, FaultContent, FaultNoted, FaultMissing or FaultLost
	What string
}

// Codes of faults.
const (
	FaultFile    = "file-missing"
	FaultPage    = "page-damaged"
	FaultRecord  = "record-damaged"
	FaultCommit  = "commit-damaged"
	FaultContent = "content-damaged"
	FaultNoted   = "damage-noted"    // met while a node ran
	FaultMissing = "records-missing" // their places are kept, and they come again from other nodes
	FaultLost    = "all-lost"        // see Loss
)

// faultsMax bounds what one examination lists.
const faultsMax = 64

// Examine looks at a store that nobody has open: every file that should be there, every page, record, waiting commit and
// content. It changes nothing. A store that was never opened has no faults. The caller sees to it that nobody opens it meanwhile.
func Examine(ctx context.Context, dir string) ([]Fault, error) {
	e := &examining{ctx: ctx, j: &Journal{dir: dir, dbName: storeName}}
	if !there(dir) {
		return nil, nil
	}
	if why := e.j.suspected(); why != "" {
		e.found(FaultNoted, "%s", why)
	}
	if l, is := LossIn(dir); is {
		e.found(FaultLost, "%s", l)
	}
	if why := e.j.missing(); why != "" {
		e.found(FaultFile, "%s", why)
	}
	if !there(e.j.dbPath()) {
		return e.faults, e.contents()
	}
	if err := errors.Join(e.pages(), e.records(), e.contents()); err != nil {
		return e.faults, fmt.Errorf("examine %s: %w", dir, err)
	}
	return e.faults, nil
}

type examining struct {
	ctx    context.Context
	j      *Journal
	faults []Fault
}

func (e *examining) found(code, format string, args ...any) {
	if len(e.faults) < faultsMax {
		e.faults = append(e.faults, Fault{code, fmt.Sprintf(format, args...)})
	}
}

// pages checks each page of the database file that the write-ahead log has no newer form of.
func (e *examining) pages() error {
	newer, pagesSaid := e.inLog()
	f, err := os.Open(e.j.dbPath())
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, pageBytes)
	for page := uint32(1); ; page++ {
		n, err := io.ReadFull(f, buf)
		if errors.Is(err, io.EOF) {
			if page == 1 && !newer[1] {
				e.found(FaultPage, "journal.db is empty")
			}
			for missing := page; missing <= pagesSaid; missing++ {
				if !newer[missing] {
					e.found(FaultPage, "journal.db ends after %d of %d pages", page-1, pagesSaid)
					break
				}
			}
			return e.ctx.Err()
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		if page == 1 && pagesSaid == 0 && n == pageBytes && pageWhole(buf) {
			pagesSaid = binary.BigEndian.Uint32(buf[28:])
		}
		if !newer[page] && (n < pageBytes || !pageWhole(buf)) {
			e.found(FaultPage, "page %d of journal.db", page)
		}
	}
}

// inLog tells which pages the write-ahead log holds, and how many the database has according to its last commit.
func (e *examining) inLog() (pages map[uint32]bool, size uint32) {
	pages = map[uint32]bool{}
	path := e.j.dbPath() + "-wal"
	frames, bytes := walFrames(path)
	f, err := os.Open(path)
	if err != nil {
		return pages, 0
	}
	defer f.Close()
	var head [24]byte
	for i := range frames {
		if _, err := f.ReadAt(head[:], 32+i*(24+bytes)); err != nil {
			break
		}
		pages[binary.BigEndian.Uint32(head[:])] = true
		if n := binary.BigEndian.Uint32(head[4:]); n > 0 {
			size = n
		}
	}
	return pages, size
}

// records reads all of them in the order of their logs, and the commits that the database does not have yet.
func (e *examining) records() error {
	shm := e.j.dbPath() + "-shm"
	had, hadLog := there(shm), there(e.j.dbPath()+"-wal")
	defer func() { // what looking makes
		if !had {
			os.Remove(shm)
		}
		if n, err := fileSize(e.j.dbPath() + "-wal"); err == nil && n == 0 && !hadLog {
			os.Remove(e.j.dbPath() + "-wal")
		}
	}()
	db, err := openConn(e.j.dbPath(), e.j.opts.VFS, "PRAGMA cache_size=-4096", "PRAGMA temp_store=MEMORY", "PRAGMA trusted_schema=OFF", "PRAGMA query_only=1")
	if err != nil {
		e.found(FaultPage, "journal.db cannot be opened: %v", err)
		return nil
	}
	defer db.close()
	if _, err := db.db.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true); err != nil {
		return err
	}
	s := &salvager{j: &Journal{dir: e.j.dir, log: slog.New(slog.DiscardHandler)}, old: db, logs: map[int64]*logState{}}
	if err := e.readable(func() error {
		return db.each("SELECT id, name, seq, hash FROM logs", nil, func(st *sqlite3.Stmt) bool {
			id, err := protocol.ParseLogID(st.ColumnText(1))
			if err != nil {
				e.found(FaultRecord, "the name of a log")
				return true
			}
			l := &logState{row: st.ColumnInt64(0), id: id, seq: uint64(st.ColumnInt64(2))}
			fill(l.hash[:], st.ColumnRawBlob(3))
			s.logs[l.row] = l
			return true
		})
	}); err != nil {
		return err
	}
	if err := e.readable(func() error { return e.bases(db, s.logs) }); err != nil {
		return err
	}
	for _, l := range s.logs {
		if err := e.readable(func() error { return e.log(db, l) }); err != nil {
			return err
		}
	}
	return e.readable(func() error { return e.waiting(db) })
}

// readable notes what the engine calls damage, and goes on.
func (e *examining) readable(f func() error) error {
	err := f()
	if err != nil && (isDamage(err) || errors.Is(err, sqlite3.ERROR)) { // the latter: a table is not there
		e.found(FaultPage, "journal.db: %v", err)
		return e.ctx.Err()
	}
	return errors.Join(err, e.ctx.Err())
}

// bases reads where logs begin, in the database and beside it.
func (e *examining) bases(db *conn, logs map[int64]*logState) error {
	if version, err := db.number("PRAGMA user_version"); err != nil || version < schemaVersion {
		return err // none yet
	}
	err := db.each("SELECT log, seq, hash FROM bases", nil, func(st *sqlite3.Stmt) bool {
		l := logs[st.ColumnInt64(0)]
		if l == nil {
			e.found(FaultRecord, "the base of a log that is not here")
			return true
		}
		if l.base = uint64(st.ColumnInt64(1)); !fill(l.baseHash[:], st.ColumnRawBlob(2)) || l.base > l.seq {
			e.found(FaultRecord, "the base of %s", l.id)
		}
		return true
	})
	if err != nil {
		return err
	}
	now, err := readCut(db)
	if errors.Is(err, ErrDamaged) {
		e.found(FaultRecord, "%v", err)
		return nil
	}
	if err != nil || now.number == 0 {
		return err
	}
	if _, err := readSnapshot(db, &now); errors.Is(err, ErrDamaged) {
		e.found(FaultRecord, "%v", err)
	} else if err != nil {
		return err
	}
	if why := baseFault(e.j.dir, &now); why != "" {
		e.found(FaultFile, "%s", why)
	}
	return nil
}

// log checks that each record matches its hash, follows the one before, and that the last is the one that the log ends with.
func (e *examining) log(db *conn, l *logState) error {
	prev, next := l.baseHash, l.base+1
	absent := uint64(0) // the first of those right before next whose places alone are here
	come := func() {
		if absent > 0 {
			e.found(FaultMissing, "records %d to %d of %s", absent, next-1, l.id)
		}
		absent = 0
	}
	err := db.each("SELECT "+recordColumns+" FROM records WHERE log=? AND seq>? ORDER BY seq", []any{l.row, l.base}, func(st *sqlite3.Stmt) bool {
		r, whole := scanOf(st, l.id)
		place := !whole && r.Record.Seq == next && isPlace(st)
		if !place {
			come()
		}
		switch {
		case place:
			if absent == 0 {
				absent = next
			}
		case !whole:
			e.found(FaultRecord, "record %d of %s", r.Record.Seq, l.id)
		case r.Record.Seq != next:
			e.found(FaultRecord, "records %d to %d of %s", next, r.Record.Seq-1, l.id)
		case next > 1 && prev != (protocol.Hash{}) && r.Record.Prev != prev:
			e.found(FaultRecord, "record %d of %s does not follow the one before", next, l.id)
		}
		prev, next = r.Hash, r.Record.Seq+1
		return e.ctx.Err() == nil
	})
	come()
	if err == nil && e.ctx.Err() == nil && (next != l.seq+1 || l.seq > 0 && prev != l.hash) {
		e.found(FaultRecord, "%s ends with record %d, and should with %d", l.id, next-1, l.seq)
	}
	return err
}

// isPlace says whether a row is what a rebuilt store has in the place of a record that it lacks.
func isPlace(st *sqlite3.Stmt) bool {
	return st.ColumnInt64(5) == 0 && st.ColumnInt64(6) == 0 && st.ColumnText(7) == "" && len(st.ColumnRawBlob(9)) == 0
}

// waiting looks through the files ahead of the database for commits that it lacks.
func (e *examining) waiting(db *conn) error {
	filled, err := filledTo(db)
	if err != nil {
		return err
	}
	var id string
	if _, err := db.one("SELECT value FROM meta WHERE key='store'", nil, func(st *sqlite3.Stmt) { id = st.ColumnText(0) }); err != nil {
		return err
	}
	if filled > 0 {
		if why := e.j.missingAhead(); why != "" {
			e.found(FaultFile, "%s", why)
		}
	}
	var raw [2][]byte
	for i := range raw {
		if raw[i], err = os.ReadFile(e.j.aheadPath(i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	f := look(raw, tagOf(id), filled, true)
	for i := range f.frames {
		if n := f.frames[i].number; n != filled+1 {
			e.found(FaultCommit, "commits %d to %d of those that the database did not have yet", filled+1, n-1)
		} else if _, err := readBatch(f.frames[i].batch); err != nil {
			e.found(FaultCommit, "commit %d of those that the database did not have yet: %v", n, err)
		}
		filled = f.frames[i].number
	}
	return nil
}

// contents compares each file of content with its hash, and names what was put aside before.
func (e *examining) contents() error {
	if !there(e.j.blobDir()) {
		return nil
	}
	return filepath.WalkDir(e.j.blobDir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return errors.Join(err, e.ctx.Err())
		}
		if sha, aside := strings.CutSuffix(d.Name(), damagedEnding); aside {
			if !e.j.HasBlob(sha) {
				e.found(FaultContent, "content %.12s…, put aside before", sha)
			}
			return nil
		}
		if _, ok := e.j.blobPath(d.Name()); !ok {
			return nil
		}
		sum, err := sumOf(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			e.found(FaultContent, "content %.12s…: %v", d.Name(), err)
		} else if err == nil && sum != d.Name() {
			e.found(FaultContent, "content %.12s…", d.Name())
		}
		return e.ctx.Err()
	})
}

// NoteDamage has the next Open rebuild the store in dir if faults say that its database is damaged: not all that Examine
// finds is met by opening, such as a page of an index.
func NoteDamage(dir string, faults []Fault) error {
	for _, f := range faults {
		if f.Code == FaultPage || f.Code == FaultRecord {
			return os.WriteFile((&Journal{dir: dir}).suspectPath(), []byte(f.What+"\n"), 0o600)
		}
	}
	return nil
}

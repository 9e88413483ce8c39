package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/ext/fts5"

	"github.com/aster-mesh/aster/protocol"
)

// searchIndex is the full-text index of messages. It lives in a database of its own, which is rebuilt from the records
// whenever it is damaged or belongs to another store; a crash may cost it its last seconds, which are then indexed
// again. It keeps no text, only words and positions.
type searchIndex struct {
	// Guarded by mu: one connection for the indexer and for searches. The indexer takes it for a few milliseconds at a
	// time.
	mu     sync.Mutex
	c      *conn
	upTo   uint64 // every record to this position is indexed
	closed bool

	done   atomic.Uint64 // upTo, for those who do not want to wait for mu
	wanted chan struct{} // capacity 1: a search met an index that is behind
}

func (x *searchIndex) close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	c := x.c
	x.c = nil
	return c.close()
}

// reached notes that every record to a position is indexed. Called with mu held, or before Open returns.
func (x *searchIndex) reached(pos uint64) {
	x.upTo = pos
	x.done.Store(pos)
}

// unindexed is how many records the index is behind.
func (j *Journal) unindexed() uint64 {
	done := j.search.done.Load() // first: the other only grows
	return j.last.Load() - min(done, j.last.Load())
}

// Unindexed is how many records a search may not see yet.
func (j *Journal) Unindexed() uint64 { return j.unindexed() }

// Indexed says whether every record is in the search index.
func (j *Journal) Indexed() bool { return j.unindexed() == 0 }

const searchSchema = `
CREATE TABLE state(store TEXT NOT NULL, upto INTEGER NOT NULL);
CREATE VIRTUAL TABLE words USING fts5(text, content='', columnsize=0, prefix='1 2 3',
	tokenize="unicode61 remove_diacritics 2");
`

func (j *Journal) searchPath() string { return filepath.Join(j.dir, "search.db") }

// openSearch opens the index or begins it anew. Search is never a reason not to start: without it Search returns an
// error.
func (j *Journal) openSearch() {
	err := j.loadSearch()
	if err != nil {
		j.log.Warn("the search index is begun anew", "err", err)
		j.recovery.SearchRebuilt = true
		err = errors.Join(j.dropSearch(), j.loadSearch())
	}
	if err != nil {
		j.log.Error("there is no search", "err", err)
	}
}

func (j *Journal) dropSearch() error {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(j.searchPath() + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// loadSearch opens the file; called by Open, and with search.mu held.
func (j *Journal) loadSearch() (err error) {
	c, err := openConn(j.searchPath(), j.opts.VFS, "PRAGMA cache_size=-2048", "PRAGMA temp_store=MEMORY",
		"PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL", "PRAGMA wal_autocheckpoint=1000", "PRAGMA journal_size_limit=8388608")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if err := fts5.Register(c.db); err != nil {
		return err
	}
	version, err := c.number("PRAGMA user_version")
	if err != nil {
		return err
	}
	if version == 0 {
		if err := inTransaction(c, func() error {
			if err := c.db.Exec(searchSchema); err != nil {
				return err
			}
			if err := c.exec("INSERT INTO state VALUES(?, 0)", j.storeID); err != nil {
				return err
			}
			return c.db.Exec(fmt.Sprintf("PRAGMA user_version=%d", searchVersion))
		}); err != nil {
			return err
		}
	} else if version != searchVersion {
		return fmt.Errorf("it has schema %d, this version knows %d", version, searchVersion)
	}
	var store string
	var upTo uint64
	if _, err := c.one("SELECT store, upto FROM state", nil, func(s *sqlite3.Stmt) {
		store, upTo = s.ColumnText(0), uint64(s.ColumnInt64(1))
	}); err != nil {
		return err
	}
	if store != j.storeID || upTo >= j.next {
		return errors.New("it belongs to another store")
	}
	j.search.c = c
	j.search.reached(upTo)
	size, err := fileSize(j.searchPath())
	j.searchBytes.Store(size)
	return err
}

// indexBatch is how many records the indexer takes at a time: some 8 ms, for which a search may wait. Each time the engine
// writes a piece of the index, which it joins with others later: fewer and larger ones are less work.
const indexBatch = 512

// indexSome indexes the next batch of records and says whether there are more.
func (j *Journal) indexSome() (more bool, err error) {
	x := &j.search
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.c == nil {
		if x.closed {
			return false, ErrClosed
		}
		return false, errors.New("there is no search index")
	}
	batch, err := j.Since(x.upTo, indexBatch)
	if err != nil || len(batch) == 0 {
		return false, err
	}
	upTo := batch[len(batch)-1].Pos
	err = inTransaction(x.c, func() error {
		for i := range batch {
			runtime.Gosched() // whoever serves somebody comes first: else it waits until the scheduler takes the processor away
			r := &batch[i].Record
			if r.Kind != protocol.KindMessage {
				continue
			}
			var env protocol.Envelope
			if json.Unmarshal(r.Body, &env) != nil {
				continue
			}
			if err := x.c.exec("INSERT INTO words(rowid, text) VALUES(?, ?)", batch[i].Pos, indexText(&env)); err != nil {
				return err
			}
		}
		return x.c.exec("UPDATE state SET upto=?", upTo)
	})
	if err == nil {
		x.reached(upTo)
		var size int64
		if size, err = fileSize(j.searchPath()); err == nil {
			j.searchBytes.Store(size)
		}
		return len(batch) == indexBatch, err
	}
	return false, j.mendSearch(err)
}

// mendSearch begins the index anew if err says that it is damaged. Called with search.mu held.
func (j *Journal) mendSearch(err error) error {
	if !isDamage(err) {
		return fmt.Errorf("search index: %w", err)
	}
	j.log.Warn("the search index is begun anew", "err", err)
	j.search.c.close()
	j.search.c = nil
	if err := errors.Join(j.dropSearch(), j.loadSearch()); err != nil {
		return fmt.Errorf("begin the search index anew: %w", err)
	}
	return nil
}

// catchUpFor is how long a search may index first, so that what was just said is found.
const catchUpFor = 500 * time.Millisecond

// Search returns messages that hold all the words, newest first, at most limit of them (0: 100) and below position
// before (0: all). Words are what a person types: case, accents and punctuation do not count, the last word may be a
// beginning, and nothing is syntax. A text that holds no word finds nothing. Values kept as blobs are not searched.
func (j *Journal) Search(words string, before uint64, limit int) ([]Message, error) {
	if j.closed.Load() {
		return nil, ErrClosed
	}
	match := matchExpression(words)
	if match == "" {
		return nil, nil
	}
	if limit <= 0 {
		limit = limitDefault
	}
	for began := time.Now(); ; {
		more, err := j.indexSome()
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		if time.Since(began) > catchUpFor {
			select {
			case j.search.wanted <- struct{}{}:
			default:
			}
			break
		}
	}
	var out []Message
	for {
		at, err := j.matches(match, before, limit-len(out))
		if err != nil {
			return nil, err
		}
		var some []Message
		err = j.read(func(c *conn) error {
			some, err = j.load(c, at)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("search: %w", err)
		}
		full := len(at) == limit-len(out)
		if out = append(out, some...); !full || len(out) == limit || !j.sweeping.Load() {
			return out, nil
		}
		before = at[len(at)-1] // what left is in the index until it is swept
	}
}

func (j *Journal) matches(match string, before uint64, limit int) ([]uint64, error) {
	j.search.mu.Lock()
	defer j.search.mu.Unlock()
	if j.search.c == nil {
		return nil, ErrClosed
	}
	sql, args := "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?", []any{match, limit}
	if before > 0 {
		sql, args = "SELECT rowid FROM words WHERE words MATCH ? AND rowid<? ORDER BY rowid DESC LIMIT ?", []any{match, before, limit}
	}
	at, err := positions(j.search.c, sql, args...)
	if err != nil {
		return nil, j.mendSearch(err)
	}
	return at, nil
}

package journal

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/aster-mesh/aster/protocol"
)

var (
	// ErrClosed says that the journal was closed before the call.
	ErrClosed = errors.New("journal is closed")
	// ErrFull says that there is no room. Nothing of the batch was written; reads and later commits go on.
	ErrFull = errors.New("journal is full")
	// ErrGap says that a record does not continue its log here. Nothing of the batch was written.
	ErrGap = errors.New("record does not continue its log")
	// ErrUnknownMessage says that a batch puts a message into an inbox that the journal does not hold. Nothing of it was
	// written.
	ErrUnknownMessage = errors.New("no such message in the journal")
	// ErrNewer says that a store was written by a later version of aster.
	ErrNewer = errors.New("store is of a newer version")
	// ErrDamaged says that bytes on the disk are not those that were written.
	ErrDamaged = errors.New("stored bytes are damaged")
)

// Options of Open. The zero value is ready.
type Options struct {
	// BytesMax bounds the bytes of the whole directory; 0 means 8 GiB. See Commit for what is refused when.
	BytesMax int64
	// Log takes diagnostics; nil discards them.
	Log  *slog.Logger
	Sign Signer // makes Entry.Sign's signatures, and again those that a crash left in a store; nil: there are none
	// VFS names a registered file layer of the engine, for tests with faulty disks; empty is the operating system's.
	VFS string

	beforeStep func(name string) // tests: before each change that lets content go
}

const bytesMaxDefault = 8 << 30

// Recovery says what Open found and did. The zero value: nothing out of order.
type Recovery struct {
	// TornBytes of the write-ahead log came after its last whole commit and were left out: an end of the process in
	// mid-commit, of which nothing was promised.
	TornBytes int64
	// SetAside names the files of a damaged store that were put out of the way; they are never deleted.
	SetAside []string
	// Reason says why.
	Reason string
	// Salvaged counts the records that were taken over from them, Lost the ranges that were there and could not be; they
	// come from other nodes, or Repair fills them.
	Salvaged uint64
	Lost     []Lost
	// SearchRebuilt says that the search index was begun anew.
	SearchRebuilt bool
}

// Lost is a range of records, both ends included, whose bytes are damaged or gone. Held ones keep their place and
// hash in the log and may be filled by Repair; from the first that is not held on, the log is short.
type Lost struct {
	Log      protocol.LogID
	From, To uint64
	Held     bool
}

// readersMax: one for pages and commands, one for pushes to peers. Each costs about 1 MiB once used.
const readersMax = 2

// logState is what is known of one log without asking the database.
type logState struct {
	row  int64 // logs.id
	id   protocol.LogID
	text string
	seq  uint64 // 0: only spoken of by receipts
	hash protocol.Hash

	base     uint64 // what is at or below it has left; see Base
	baseHash protocol.Hash
}

// Journal is the store. Safe for concurrent use.
type Journal struct {
	// Fixed at creation.
	dir      string
	opts     Options
	log      *slog.Logger
	recovery Recovery
	dbName   string
	former   bool   // the store has an earlier version's number; see raise
	storeID  string // 32 hex digits, new for every fresh database: checkpoints of another one do not count
	done     chan struct{}
	grew     chan struct{} // capacity 1: a commit wakes Run
	swept    chan struct{} // capacity 1: so does a Leave

	readers chan *conn // readersMax tokens; nil: not opened yet

	blobBytes   atomic.Int64
	searchBytes atomic.Int64
	walPages    atomic.Int64  // in the write-ahead log, not yet moved into the database
	used        atomic.Int64  // of the files that commits grow, when last counted
	last        atomic.Uint64 // position of the last record, for those who do not want to wait for wmu
	waits       atomic.Bool   // the database lacks commits
	sweeping    atomic.Bool   // rows of what left are still there
	cuts        atomic.Int64  // how often records have left since Open
	freePages   atomic.Int64  // of the database file, to be used again
	closed      atomic.Bool

	unfiledRecords atomic.Int64 // of unfiled

	search searchIndex
	sieve  sieve

	badMu   sync.Mutex // held while what is damaged is written down
	blobMu  sync.Mutex // held while content gets its name, is kept, or is swept
	parts   parts
	orphans orphans

	leaveMu sync.Mutex // comes before wmu: one Leave or step of Sweep at a time
	sweeper sweeper    // guarded by leaveMu

	// Guarded by wmu, which comes before fmu, which comes before mu. Held across I/O on purpose: it is the queue of those who
	// commit.
	wmu              sync.Mutex
	ahead            ahead
	next             uint64    // position of the next record
	nextRow          int64     // of the next log
	dbBytes, walFile int64     // of the files when last measured
	unmeasured       int64     // bytes of records and rows since then
	grewAt           time.Time // when Run was woken last

	// Guarded by fmu: the writer's connection. Held across I/O too: it is the queue of those who fill the database.
	fmu        sync.Mutex
	writer     *conn
	held       *held           // a transaction that finds no room
	places     places          // of the newest messages
	early      map[msgRef]bool // messages not here yet that receipts already speak of
	left       []filing        // messages that an earlier version left to be filed
	rowsFilled int64           // rows of logs up to it are in the database

	// Guarded by lmu: a connection for the loop's question about each message, which must not wait for pages of others.
	lmu    sync.Mutex
	lookup *conn

	// Guarded by mu: what queries read without the database.
	mu           sync.RWMutex
	failed       error // the first final error; every later commit repeats it
	logs         map[protocol.LogID]*logState
	rows         map[int64]*logState
	bad          map[int64]bool // positions of records known to be damaged
	count        uint64
	cut          cut         // the last Leave
	unfiled      []*accepted // what the database lacks, in order
	unfiledSaid  map[protocol.Digest]said
	unfiledBytes int64
	inHalf       [2]int // how many of unfiled are in each file of ahead
}

// fail notes a final error, of which the first stays, and returns that.
func (j *Journal) fail(err error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed == nil {
		j.failed = err
	}
	return j.failed
}

func (j *Journal) failure() error {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.failed
}

// msgRef names a message by its log's row and seq.
type msgRef struct {
	log int64
	seq uint64
}

// Open opens or makes the journal in dir (mode 0700, its files 0600). It reads the heads of the logs and what a crash
// kept from the database, a few thousand records at most, so its time does not grow with the records. A database that cannot be
// opened is set aside and what is readable in it is taken over: see Recovery. It returns ErrNewer for a store of a later
// version, and other errors when the directory cannot be used at all.
func Open(dir string, o Options) (_ *Journal, err error) {
	if o.BytesMax <= 0 {
		o.BytesMax = bytesMaxDefault
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	j := &Journal{
		dir: dir, opts: o, log: o.Log, done: make(chan struct{}), grew: make(chan struct{}, 1), swept: make(chan struct{}, 1),
		search: searchIndex{wanted: make(chan struct{}, 1)},
		dbName: storeName, readers: make(chan *conn, readersMax), early: map[msgRef]bool{}, unfiledSaid: map[protocol.Digest]said{},
		logs: map[protocol.LogID]*logState{}, rows: map[int64]*logState{}, bad: map[int64]bool{},
	}
	for range readersMax {
		j.readers <- nil
	}
	for _, d := range []string{dir, j.blobDir(), j.checkpointDir()} {
		if err := cmp.Or(os.MkdirAll(d, 0o700), os.Chmod(d, 0o700)); err != nil {
			return nil, fmt.Errorf("open journal: %w", err)
		}
	}
	if err := syncDir(filepath.Dir(dir)); err != nil { // dir itself may be new
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if err := j.openStore(); err != nil {
		return nil, fmt.Errorf("open journal %s: %w", dir, err)
	}
	if err := errors.Join(j.countBlobs(), j.countFree(), j.measure()); err != nil {
		return nil, errors.Join(fmt.Errorf("open journal %s: %w", dir, err), j.writer.close(), j.ahead.close())
	}
	j.settleUsed()
	j.readBad()
	j.openSearch()
	if err := j.besideNow(); err != nil {
		j.log.Warn("the bases are in the database alone; they are written beside it before records go", "err", err)
	}
	return j, nil
}

const (
	storeName   = "journal.db"
	rebuildName = "journal.db.rebuild" // see rebuild
)

// openStore opens the database, or sets a damaged one aside and takes over what is readable.
func (j *Journal) openStore() error {
	cause := cmp.Or(j.suspected(), j.missing())
	if cause == "" {
		frames, pageBytes := walFrames(j.dbPath() + "-wal")
		err := j.openWriter()
		if err == nil {
			// Without work done this only tells how many frames the engine accepted.
			accepted, _, noop := j.writer.db.WALCheckpoint("main", sqlite3.CHECKPOINT_NOOP)
			if n := frames - int64(accepted); noop == nil && accepted >= 0 && n > 0 {
				j.recovery.TornBytes = n * (24 + pageBytes)
			}
			if err = j.catchUp(); err == nil {
				return nil
			}
			err = errors.Join(err, j.writer.close())
			j.forgetAll() // a rebuild begins with a writer of its own
		}
		if !isDamage(err) && !errors.Is(err, ErrDamaged) {
			return err
		}
		cause = err.Error()
		if err := os.WriteFile(j.suspectPath(), []byte(cause+"\n"), 0o600); err != nil {
			return err
		}
	}
	return j.rebuild(cause)
}

// openWriter opens the writer's connection, checks what it can without reading everything, and reads the heads.
func (j *Journal) openWriter() (err error) {
	setup := []string{
		"PRAGMA locking_mode=NORMAL", "PRAGMA cache_size=-4096", "PRAGMA temp_store=MEMORY",
		"PRAGMA foreign_keys=OFF", "PRAGMA trusted_schema=OFF",
		"PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "PRAGMA wal_autocheckpoint=0",
	}
	if runtime.GOOS == "darwin" {
		setup = append(setup, "PRAGMA fullfsync=1", "PRAGMA checkpoint_fullfsync=1")
	}
	registerLayer()
	c, err := openConn(j.dbPath(), gathered(cmp.Or(j.opts.VFS, layerName)), setup...)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	version, err := c.number("PRAGMA user_version")
	if err != nil {
		return err
	}
	app, err := c.number("PRAGMA application_id")
	if err != nil {
		return err
	}
	switch {
	case version > schemaVersion:
		return fmt.Errorf("%w: it has schema %d, this version knows %d", ErrNewer, version, schemaVersion)
	case version == 0 && app == 0 && j.dbName == storeName && j.usedBefore():
		return fmt.Errorf("%w: it has lost its beginning", ErrDamaged)
	case version == 0 && app == 0:
		// Eight bytes a page hold a checksum of it, so that damage in an index is met as damage and not as an answer.
		// Pages that are free go back to the file system when Sweep says so; the setting holds from the first table on.
		if err := errors.Join(c.db.Exec(fmt.Sprintf("PRAGMA auto_vacuum=%d", autoVacuum)), c.db.EnableChecksums("main"), makeStore(c)); err != nil {
			return err
		}
	case app != applicationID:
		return fmt.Errorf("%w: not a journal (application id %#x)", ErrDamaged, app)
	}
	if err := j.raise(c, version); err != nil {
		return err
	}
	j.writer = c
	c.db.WALHook(func(_ *sqlite3.Conn, _ string, pages int) error {
		j.walPages.Store(int64(pages))
		return nil
	})
	return j.readHeads()
}

func makeStore(c *conn) error {
	id := rand.Text()
	return inTransaction(c, func() error {
		if err := c.db.Exec(schema); err != nil {
			return err
		}
		if err := c.exec("INSERT INTO meta VALUES('store', ?)", []byte(id)); err != nil {
			return err
		}
		if err := c.db.Exec(fmt.Sprintf("PRAGMA application_id=%d", applicationID)); err != nil {
			return err
		}
		return c.db.Exec(fmt.Sprintf("PRAGMA user_version=%d", schemaVersion))
	})
}

// Recovery says what Open found.
func (j *Journal) Recovery() Recovery { return j.recovery }

// Close ends the use of the files. Run must have returned. It waits for queries under way; later calls return
// ErrClosed. What Commit returned nil for stays.
func (j *Journal) Close() error {
	if j.closed.Swap(true) {
		return nil
	}
	close(j.done)
	j.wmu.Lock()
	defer j.wmu.Unlock()
	j.fmu.Lock()
	defer j.fmu.Unlock()
	err := j.search.close()
	for range readersMax {
		err = errors.Join(err, (<-j.readers).close())
	}
	j.lmu.Lock()
	err = errors.Join(err, j.lookup.close())
	j.lookup = nil
	j.lmu.Unlock()
	w := j.writer
	if j.failure() == nil {
		if err = errors.Join(err, j.fillLocked(true)); len(j.waiting()) == 0 {
			j.ahead.forget()
		}
		j.writer = nil
		return errors.Join(err, w.close(), j.ahead.close())
	}
	j.writer = nil
	w.close() // its error is the one that Commit returned
	j.ahead.close()
	return err
}

// read lends one reader's connection to f, once the database has all that is committed.
func (j *Journal) read(f func(*conn) error) error {
	if j.closed.Load() {
		return ErrClosed
	}
	if j.waits.Load() {
		if err := j.fill(false); err != nil {
			return err
		}
		if done, err := j.readHeld(f); done {
			return err
		}
	}
	return j.readFiled(f)
}

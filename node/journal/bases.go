package journal

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/ncruces/go-sqlite3"

	"github.com/aster-mesh/aster/protocol"
)

// A log may begin at a base: what lies at or below it has left, and what those records came to is in the snapshot that was
// given with it. Leave makes bases and snapshot durable in one transaction, and from then on no query finds what left. Its rows
// are removed by Sweep, in steps. Bases and snapshot are in a file beside the database too (beside.go), before any row goes.

// Base is where a log begins here: at the record behind Seq, which follows Hash.
type Base struct {
	Log  protocol.LogID
	Seq  uint64
	Hash protocol.Hash
}

// BelowError says that what was asked for has left: it lies at or below the base of its log.
type BelowError struct{ Base Base }

func (e *BelowError) Error() string {
	return fmt.Sprintf("%s begins behind record %d here: what came before has left", e.Base.Log, e.Base.Seq)
}

var (
	// ErrBase says that a base is not a record of its log here, or lies below the one that the log has. Nothing changed.
	ErrBase = errors.New("that is no base for the log")
	// ErrUndelivered says that a base would take a message that waits in an inbox here. Nothing changed.
	ErrUndelivered = errors.New("a message is not delivered yet")
)

// Leave has the records at or below bases leave, of which snapshot is what they came to. When it returns nil, bases and
// snapshot are on stable storage and in force, all at once: Range, At and Since give nothing from below them, no message, inbox
// row, receipt or search hit of there is found, and Records counts what is above. Heads, Digest and Position stay. Their rows
// are still on the disk: see Sweep. Logs that bases do not name stay as they are; the snapshot takes the place of the last one.
//
// Content that only those records name, and the snapshot does not, may be swept as what no record names.
//
// ErrBase, ErrUndelivered, ErrFull and ErrClosed mean that nothing changed. Any other error is final, as Commit's are. Commits
// wait while it looks at the bases, not while the snapshot is written.
func (j *Journal) Leave(bases []Base, snapshot []byte) error { return j.rebase(bases, snapshot, false) }

// Begin is Leave for a store that begins at a snapshot of others: a base may also lie above what its log has here, or be of a log
// of which nothing is here. The log's head is then the base, and what was here of it leaves.
func (j *Journal) Begin(bases []Base, snapshot []byte) error { return j.rebase(bases, snapshot, true) }

// Bases returns the bases of all logs that have one, by the text of the log.
func (j *Journal) Bases() []Base {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return basesOf(j.logs)
}

func basesOf(logs map[protocol.LogID]*logState) []Base {
	var all []*logState
	for _, l := range logs {
		if l.base > 0 {
			all = append(all, l)
		}
	}
	slices.SortFunc(all, func(a, b *logState) int { return cmp.Compare(a.text, b.text) })
	out := make([]Base, len(all))
	for i, l := range all {
		out[i] = Base{l.id, l.base, l.baseHash}
	}
	return out
}

// Base returns the base of a log; false when it begins at its first record. It reads no disk.
func (j *Journal) Base(log protocol.LogID) (Base, bool) {
	l := j.logOf(log)
	if l == nil || l.base == 0 {
		return Base{}, false
	}
	return Base{l.id, l.base, l.baseHash}, true
}

// Snapshot returns what was given with the last bases; false when there are none. ErrDamaged: neither place has it whole.
func (j *Journal) Snapshot() (snapshot []byte, found bool, err error) {
	j.mu.RLock()
	now := j.cut
	j.mu.RUnlock()
	if now.number == 0 {
		return nil, false, nil
	}
	err = j.read(func(c *conn) (err error) {
		snapshot, err = readSnapshot(c, &now)
		return err
	})
	if err == nil {
		return snapshot, true, nil
	}
	if errors.Is(err, ErrClosed) {
		return nil, false, err
	}
	if kept, ok := readBaseFile(j.dir); ok && kept.cut.snapshot == now.snapshot {
		return kept.snapshot, true, nil
	}
	return nil, false, fmt.Errorf("snapshot: %w", err)
}

// cut is what the database says of the last Leave.
type cut struct {
	number   uint64 // of it, from 1; 0: there was none
	position uint64 // of the newest record then: none lower is given again
	bytes    uint64 // of the snapshot
	snapshot [sha256.Size]byte
	bases    [sha256.Size]byte // over all that were in force
	stage    sweepStage
}

type sweepStage byte

const (
	sweepNone  sweepStage = iota // the bases may be in the database alone
	sweepBegun                   // they are beside it too, and rows go
	sweepOver
)

const cutBytes = 3*8 + 2*sha256.Size + 1

func (c *cut) append(out []byte) []byte {
	for _, n := range []uint64{c.number, c.position, c.bytes} {
		out = binary.BigEndian.AppendUint64(out, n)
	}
	return append(append(append(out, c.snapshot[:]...), c.bases[:]...), byte(c.stage))
}

func parseCut(raw []byte) (c cut, ok bool) {
	if len(raw) != cutBytes {
		return c, false
	}
	c.number, c.position, c.bytes = binary.BigEndian.Uint64(raw), binary.BigEndian.Uint64(raw[8:]), binary.BigEndian.Uint64(raw[16:])
	n := copy(c.snapshot[:], raw[24:]) + 24
	n += copy(c.bases[:], raw[n:])
	c.stage = sweepStage(raw[n])
	return c, c.number > 0 && c.stage <= sweepOver
}

// basesSum stands for bases that are sorted as Bases returns them.
func basesSum(all []Base) (sum [sha256.Size]byte) {
	h := sha256.New()
	for i := range all {
		fmt.Fprintf(h, "%s %d %x\n", all[i].Log, all[i].Seq, all[i].Hash)
	}
	h.Sum(sum[:0])
	return sum
}

// snapshotPart is how much of a snapshot is in one row.
const snapshotPart = 256 << 10

func readSnapshot(c *conn, now *cut) ([]byte, error) {
	var out []byte
	err := c.each("SELECT bytes FROM snapshots WHERE cut=? ORDER BY part", []any{now.number}, func(s *sqlite3.Stmt) bool {
		out = append(out, s.ColumnRawBlob(0)...)
		return true
	})
	if err == nil && (uint64(len(out)) != now.bytes || sha256.Sum256(out) != now.snapshot) {
		err = fmt.Errorf("%w: the snapshot is not what was written", ErrDamaged)
	}
	return orEmpty(out), err
}

// readBases reads what is in force, after the heads.
func (j *Journal) readBases() error {
	var bad error
	if err := j.writer.each("SELECT log, seq, hash FROM bases", nil, func(s *sqlite3.Stmt) bool {
		l := j.rows[s.ColumnInt64(0)]
		if l == nil || !fill(l.baseHash[:], s.ColumnRawBlob(2)) {
			bad = fmt.Errorf("%w: base of log %d", ErrDamaged, s.ColumnInt64(0))
			return false
		}
		if l.base = uint64(s.ColumnInt64(1)); l.base > l.seq {
			bad = fmt.Errorf("%w: %s has a base above its head", ErrDamaged, l.text)
		}
		return bad == nil
	}); err != nil || bad != nil {
		return errors.Join(err, bad)
	}
	now, err := readCut(j.writer)
	if err != nil {
		return err
	}
	// A Leave that a crash ended before it was in force has left its snapshot behind, also where the one before is swept.
	staged, err := j.writer.number("SELECT count(*) FROM snapshots WHERE cut<>?", now.number)
	if err != nil {
		return err
	}
	j.cut = now
	j.sweeping.Store(now.number > 0 && (now.stage != sweepOver || staged > 0))
	return nil
}

// readCut returns what a database says of its last Leave; the zero cut: nothing.
func readCut(c *conn) (now cut, err error) {
	ok := true
	_, err = c.one("SELECT value FROM meta WHERE key='cut'", nil, func(s *sqlite3.Stmt) { now, ok = parseCut(s.ColumnRawBlob(0)) })
	if err == nil && !ok {
		err = fmt.Errorf("%w: what it says of its bases", ErrDamaged)
	}
	return now, err
}

// based returns the logs that have a base, by their rows.
func (j *Journal) based() map[int64]*logState {
	j.mu.RLock()
	defer j.mu.RUnlock()
	out := map[int64]*logState{}
	for row, l := range j.rows {
		if l.base > 0 {
			out[row] = l
		}
	}
	return out
}

// hasLeft says whether a record lies at or below the base of its log.
func (j *Journal) hasLeft(row int64, seq uint64) bool {
	l := j.logOfRow(row)
	return l != nil && seq <= l.base
}

// leftOf says the same of a stored record.
func (j *Journal) leftOf(st *Stored) bool {
	l := j.logOf(st.Record.Log)
	return l != nil && st.Record.Seq <= l.base
}

// kept is a condition on positions of records while rows of what left are still there: that they are not of those.
func (j *Journal) kept(pos string) string {
	if !j.sweeping.Load() {
		return ""
	}
	return " AND NOT EXISTS (SELECT 1 FROM records lr JOIN bases lb ON lb.log=lr.log WHERE lr.pos=" + pos + " AND lr.seq<=lb.seq)"
}

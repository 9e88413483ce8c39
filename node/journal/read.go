package journal

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/ncruces/go-sqlite3"

	"github.com/aster-mesh/aster/protocol"
)

// Head is the end of a log: its last seq (all before it are here) and that record's hash.
type Head struct {
	Log  protocol.LogID
	Seq  uint64
	Hash protocol.Hash
}

// Stored is a record with its place here.
type Stored struct {
	Pos    uint64
	Record protocol.Record
	Hash   protocol.Hash
	// Damaged: the bytes on the disk are not those that were written. Record then has only Log and Seq; Hash is right.
	// Repair takes the record from another node.
	Damaged bool
}

// Heads returns the heads of all logs, in no order.
func (j *Journal) Heads() ([]Head, error) {
	if j.closed.Load() {
		return nil, ErrClosed
	}
	j.mu.RLock()
	defer j.mu.RUnlock()
	out := make([]Head, 0, len(j.logs))
	for _, l := range j.logs {
		if l.seq > 0 {
			out = append(out, Head{l.id, l.seq, l.hash})
		}
	}
	return out, nil
}

// Records is how many records there are above the bases.
func (j *Journal) Records() uint64 {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.count
}

// Digest is the hex SHA-256 over (log text, last seq, that record's hash) of all logs sorted by their text: two
// journals of the same digest hold the same records, since each hash covers all before it. The text has its length
// before it; numbers are big endian, 8 bytes. It reads no disk.
func (j *Journal) Digest() (string, error) {
	if j.closed.Load() {
		return "", ErrClosed
	}
	j.mu.RLock()
	all := make([]*logState, 0, len(j.logs))
	for _, l := range j.logs {
		if l.seq > 0 {
			all = append(all, l)
		}
	}
	j.mu.RUnlock()
	slices.SortFunc(all, func(a, b *logState) int { return cmp.Compare(a.text, b.text) })
	h := sha256.New()
	for _, l := range all { // a logState is never changed once it is visible
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(l.text))))
		h.Write([]byte(l.text))
		h.Write(binary.BigEndian.AppendUint64(nil, l.seq))
		h.Write(l.hash[:])
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// readFiled is read for what the database has now.
func (j *Journal) readFiled(f func(*conn) error) error {
	if j.closed.Load() {
		return ErrClosed
	}
	select {
	case <-j.done:
		return ErrClosed
	case c := <-j.readers:
		defer func() { j.readers <- c }()
		if c == nil {
			var err error
			if c, err = j.openReader(); err != nil {
				return err
			}
		}
		return j.suspect(f(c))
	}
}

func (j *Journal) logOf(id protocol.LogID) *logState {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.logs[id]
}

func (j *Journal) logOfRow(row int64) *logState {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.rows[row]
}

// recordOverhead is counted for the fields of a record beside its body when a range is measured.
const recordOverhead = 256

// Range returns records of one log from seq on, without a gap, ending at a signed record (whole commits), in at most
// maxBytes of bodies and overhead; the first commit is returned whole even above it. It is empty when there is nothing
// from that seq on, and it ends before a damaged record: that one is never handed on. A commit above
// protocol.MeshFrameBytesMax is an error, since it could not travel. *BelowError: from lies at or below the log's base.
func (j *Journal) Range(log protocol.LogID, from uint64, maxBytes int) ([]protocol.Record, error) {
	l := j.logOf(log)
	if l == nil || from > l.seq {
		if j.closed.Load() {
			return nil, ErrClosed
		}
		return nil, nil
	}
	if max(from, 1) <= l.base {
		return nil, &BelowError{Base{l.id, l.base, l.baseHash}}
	}
	r := ranged{max: maxBytes, next: max(from, 1)}
	waiting := j.waiting() // before the database is read: what it does not have yet is among them, and nobody waits for it to get them
	r.addWaiting(waiting, log)
	var err error
	if len(r.out) == 0 && !r.over {
		err = j.readFiled(func(c *conn) error {
			return c.each("SELECT "+recordColumns+" FROM records WHERE log=? AND seq>=? ORDER BY seq", []any{l.row, r.next},
				func(s *sqlite3.Stmt) bool {
					st, ok := j.scanRecord(s)
					if st.Record.Seq != r.next {
						r.over = true // it leaves meanwhile
						return false
					}
					if !ok {
						j.noteBad(int64(st.Pos))
						r.over = true
						return false
					}
					return r.add(&st.Record)
				})
		})
		r.addWaiting(waiting, log)
	}
	if err == nil && r.tooLarge && r.whole == 0 {
		err = fmt.Errorf("the commit is larger than %d bytes", protocol.MeshFrameBytesMax)
	}
	if err != nil {
		return nil, fmt.Errorf("range of %s from %d: %w", log, from, err)
	}
	if now := j.logOf(log); len(r.out) == 0 && max(from, 1) <= now.base {
		return nil, &BelowError{Base{now.id, now.base, now.baseHash}}
	}
	return r.out[:r.whole], nil
}

// ranged gathers a range.
type ranged struct {
	next     uint64 // seq
	max      int
	out      []protocol.Record
	whole    int // of out, up to the last signature
	bytes    int
	over     bool
	tooLarge bool // there is more, and it could not travel
}

// add says whether there is room for more.
func (r *ranged) add(rec *protocol.Record) bool {
	r.bytes += len(rec.Body) + recordOverhead
	r.tooLarge = r.bytes > protocol.MeshFrameBytesMax
	if r.over = r.tooLarge || r.whole > 0 && r.bytes > r.max; r.over {
		return false
	}
	r.out, r.next = append(r.out, *rec), rec.Seq+1
	if len(rec.Sig) > 0 {
		r.whole = len(r.out)
	}
	return true
}

// addWaiting goes on with commits that the database did not have, if the next record is among them.
func (r *ranged) addWaiting(all []*accepted, log protocol.LogID) {
	for _, c := range all {
		l := c.logs[log]
		if l == nil || r.over || l.seq < r.next {
			continue
		}
		first := l.seq - uint64(len(l.entries)) + 1
		if r.next < first {
			return
		}
		for _, i := range l.entries[r.next-first:] {
			if !r.add(&c.b.Entries[i].Record) {
				return
			}
		}
	}
}

// At returns one record; false when it is not here. *BelowError: it has left.
func (j *Journal) At(log protocol.LogID, seq uint64) (st Stored, found bool, err error) {
	l := j.logOf(log)
	if l == nil || seq == 0 || seq > l.seq {
		if j.closed.Load() {
			return st, false, ErrClosed
		}
		return st, false, nil
	}
	if seq <= l.base {
		return st, false, &BelowError{Base{l.id, l.base, l.baseHash}}
	}
	err = j.read(func(c *conn) error {
		found, err = c.one("SELECT "+recordColumns+" FROM records WHERE log=? AND seq=?", []any{l.row, seq},
			func(s *sqlite3.Stmt) { st = j.scanStored(s) })
		return err
	})
	if err != nil {
		return st, false, fmt.Errorf("record %s seq %d: %w", log, seq, err)
	}
	return st, found, nil
}

// Since returns at most limit records after position pos (0: from the first that has not left), in order of position.
func (j *Journal) Since(pos uint64, limit int) ([]Stored, error) {
	if limit == 0 {
		return nil, nil
	}
	var out []Stored
	err := j.read(func(c *conn) error {
		return c.each("SELECT "+recordColumns+" FROM records WHERE pos>? ORDER BY pos", []any{pos},
			func(s *sqlite3.Stmt) bool {
				if !j.hasLeft(s.ColumnInt64(1), uint64(s.ColumnInt64(2))) {
					out = append(out, j.scanStored(s))
				}
				return len(out) != limit
			})
	})
	if err != nil {
		return nil, fmt.Errorf("records since %d: %w", pos, err)
	}
	return out, nil
}

// Position is the position of the newest record, 0 when there is none.
func (j *Journal) Position() uint64 { return j.last.Load() }

const recordColumns = "pos, log, seq, prev, hash, at, wall, kind, sig, body"

// scanStored is scanRecord for callers to whom a damaged record is a Stored.
func (j *Journal) scanStored(s *sqlite3.Stmt) Stored {
	st, ok := j.scanRecord(s)
	if !ok {
		j.noteBad(int64(st.Pos))
	}
	return st
}

// scanRecord reads recordColumns and checks the record against its hash. False: it is damaged.
func (j *Journal) scanRecord(s *sqlite3.Stmt) (Stored, bool) {
	l := j.logOfRow(s.ColumnInt64(1))
	if l == nil {
		return Stored{Pos: uint64(s.ColumnInt64(0)), Damaged: true}, false
	}
	return scanOf(s, l.id)
}

func scanOf(s *sqlite3.Stmt, log protocol.LogID) (Stored, bool) {
	st := Stored{Pos: uint64(s.ColumnInt64(0))}
	r := &st.Record
	r.Log, r.Seq = log, uint64(s.ColumnInt64(2))
	okPrev, okHash := fill(r.Prev[:], s.ColumnRawBlob(3)), fill(st.Hash[:], s.ColumnRawBlob(4))
	r.At, r.Wall = protocol.HLC(s.ColumnInt64(5)), s.ColumnInt64(6)
	r.Kind = protocol.Kind(s.ColumnText(7))
	sig, okSig := unpackSig(s.ColumnRawBlob(8))
	r.Sig = sig
	r.Body = s.ColumnBlob(9, nil)
	if !okPrev || !okHash || !okSig || r.Hash() != st.Hash {
		st.Record = protocol.Record{Log: r.Log, Seq: r.Seq}
		st.Damaged = true
		return st, false
	}
	return st, true
}

func fill(to, from []byte) bool {
	return copy(to, from) == len(to) && len(from) == len(to)
}

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// packSig adds a checksum to a signature, which a record's hash does not cover.
func packSig(sig []byte) any {
	if len(sig) == 0 {
		return nil
	}
	return binary.BigEndian.AppendUint32(slices.Clone(sig), crc32.Checksum(sig, crcTable))
}

func unpackSig(packed []byte) ([]byte, bool) {
	if len(packed) == 0 {
		return nil, true
	}
	n := len(packed) - 4
	if n <= 0 || crc32.Checksum(packed[:n], crcTable) != binary.BigEndian.Uint32(packed[n:]) {
		return nil, false
	}
	return slices.Clone(packed[:n]), true
}

// IdentityRow is the first message here under an identity.
type IdentityRow struct {
	Content protocol.Digest
	Log     protocol.LogID
	Seq     uint64
	Pos     uint64
}

// Identity returns the first message under an identity (protocol.Envelope.Identity). It waits neither for commits nor for
// other queries: the loop asks for every message.
func (j *Journal) Identity(id protocol.Digest) (row IdentityRow, found bool, err error) {
	if j.closed.Load() {
		return row, false, ErrClosed
	}
	j.mu.RLock()
	s, waits := j.unfiledSaid[id]
	j.mu.RUnlock() // whatever left the map since then is in the database before the next line looks there
	if !waits && !j.sieve.perhaps(&id) {
		return row, false, nil
	}
	if waits {
		row = IdentityRow{s.env.Content(), s.log, s.seq, s.pos}
	}
	ok := true
	err = j.look(func(c *conn) (err error) {
		var had IdentityRow
		if had, found, ok, err = j.identity(c, &id); found {
			row = had
		}
		return err
	})
	if err == nil && !ok {
		err = fmt.Errorf("%w: identity %s", ErrDamaged, id)
	}
	if err != nil {
		return row, false, fmt.Errorf("identity: %w", j.suspect(err))
	}
	return row, found || waits, nil
}

// identity asks the database. ok: it is not damaged.
func (j *Journal) identity(c *conn, id *protocol.Digest) (row IdentityRow, found, ok bool, err error) {
	ok = true
	left := false
	if found, err = c.one("SELECT content, log, seq, pos FROM identities WHERE id=?", []any{id[:]}, func(s *sqlite3.Stmt) {
		row.Seq, row.Pos = uint64(s.ColumnInt64(2)), uint64(s.ColumnInt64(3))
		l := j.logOfRow(s.ColumnInt64(1))
		if ok = fill(row.Content[:], s.ColumnRawBlob(0)) && l != nil; ok {
			row.Log, left = l.id, row.Seq <= l.base
		}
	}); err != nil || !left {
		return row, found, ok, err
	}
	env, pos, err := j.keptCopy(c, id, int64(row.Pos))
	if err != nil || env == nil {
		return IdentityRow{}, false, true, err
	}
	st := Stored{}
	found, err = c.one("SELECT "+recordColumns+" FROM records WHERE pos=?", []any{pos}, func(s *sqlite3.Stmt) { st = j.scanStored(s) })
	return IdentityRow{env.Content(), st.Record.Log, st.Record.Seq, st.Pos}, found, true, err
}

// look lends the loop's own connection to f. It does not bring the database up to date.
func (j *Journal) look(f func(*conn) error) (err error) {
	j.lmu.Lock()
	defer j.lmu.Unlock()
	if j.closed.Load() {
		return ErrClosed
	}
	if j.lookup == nil {
		if j.lookup, err = j.openReader(); err != nil {
			return err
		}
	}
	return f(j.lookup)
}

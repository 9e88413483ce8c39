package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/aster-mesh/aster/protocol"
)

// suspectPath is a note to the next Open that the engine met damage; the database is then set aside and what is
// readable in it taken over, since an index or a page of it cannot be mended in place.
func (j *Journal) suspectPath() string { return filepath.Join(j.dir, "damaged.note") }

// suspect leaves the note if err says damage. It returns err, with ErrDamaged if so.
func (j *Journal) suspect(err error) error {
	if err == nil || !isDamage(err) {
		return err
	}
	j.log.Error("the store is damaged; the next start rebuilds it", "err", err)
	if werr := os.WriteFile(j.suspectPath(), []byte(err.Error()+"\n"), 0o600); werr != nil {
		err = errors.Join(err, werr)
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// suspected returns what the note says, empty if there is none.
func (j *Journal) suspected() string {
	raw, err := os.ReadFile(j.suspectPath())
	if err != nil {
		return ""
	}
	if text := strings.TrimSpace(string(raw)); text != "" {
		return text
	}
	return "damage was noted"
}

// Suspicion says what damage was met that only a restart mends; empty when there is none.
func (j *Journal) Suspicion() string { return j.suspected() }

func (j *Journal) clearSuspicion() error {
	if err := os.Remove(j.suspectPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// noteBad remembers a record whose bytes do not match its hash.
func (j *Journal) noteBad(pos int64) {
	j.mu.Lock()
	known := j.bad[pos]
	j.bad[pos] = true
	j.mu.Unlock()
	if !known {
		j.log.Error("a stored record is damaged; it is not served until another node has given it again", "pos", pos)
		j.keepBad()
	}
}

// HasDamaged says whether any record is known to be damaged. It reads no disk.
func (j *Journal) HasDamaged() bool {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return len(j.bad) > 0
}

// Damaged lists the records that were found damaged, by reading or by the scrubber, and are not repaired yet: one
// range each, Held set.
func (j *Journal) Damaged() ([]Lost, error) {
	j.mu.RLock()
	all := make([]int64, 0, len(j.bad))
	for pos := range j.bad {
		all = append(all, pos)
	}
	j.mu.RUnlock()
	slices.Sort(all)
	var out []Lost
	err := j.read(func(c *conn) error {
		for _, pos := range all {
			if _, err := c.one("SELECT log, seq FROM records WHERE pos=?", []any{pos}, func(s *sqlite3.Stmt) {
				if l := j.logOfRow(s.ColumnInt64(0)); l != nil {
					seq := uint64(s.ColumnInt64(1))
					out = append(out, Lost{l.id, seq, seq, true})
				}
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("damaged records: %w", err)
	}
	return out, nil
}

// Repair puts records from another node in the place of damaged ones and returns how many it took. It takes only what
// has the very hash that the log has there, as its successor or the log's head says; anything else is left alone, so
// the records need not be verified before. A range should come whole: of neighbours only the last one's hash may be
// known. Errors are those of Commit.
func (j *Journal) Repair(rs []protocol.Record) (taken int, err error) {
	j.fmu.Lock()
	defer j.fmu.Unlock()
	if j.closed.Load() {
		return 0, ErrClosed
	}
	if err := j.fillLocked(true); err != nil {
		return 0, err
	}
	if j.held != nil {
		return 0, fmt.Errorf("%w: there is no room in the database", ErrFull)
	}
	t := j.transaction()
	var mended []int64
	err = inTransaction(j.writer, func() error {
		for i := len(rs) - 1; i >= 0; i-- { // each says what hash the one before it has
			pos, err := t.repair(&rs[i])
			if err != nil {
				return err
			}
			if pos != 0 {
				mended = append(mended, pos)
			}
		}
		return t.flush()
	})
	if err != nil && isFull(err) && j.writer.db.GetAutocommit() {
		return 0, fmt.Errorf("%w: %w", ErrFull, err)
	}
	if err != nil {
		return 0, j.fail(fmt.Errorf("repair: %w", j.suspect(err)))
	}
	j.mu.Lock()
	for _, pos := range mended {
		delete(j.bad, pos)
	}
	j.mu.Unlock()
	if len(mended) > 0 {
		j.keepBad()
	}
	return len(mended), nil
}

// repair writes r over the damaged record in its place and returns its position, or 0 when there is none or r is not
// the record that stood there.
func (t *transaction) repair(r *protocol.Record) (int64, error) {
	j, c, l := t.j, t.c, t.j.logOf(r.Log)
	if l == nil || r.Seq <= l.base || r.Seq > l.seq {
		return 0, nil
	}
	want := l.hash
	if r.Seq < l.seq {
		found, whole := false, false
		if _, err := c.one("SELECT "+recordColumns+" FROM records WHERE log=? AND seq=?", []any{l.row, r.Seq + 1}, func(s *sqlite3.Stmt) {
			var next Stored
			next, whole = j.scanRecord(s)
			want, found = next.Record.Prev, true
		}); err != nil {
			return 0, err
		}
		if !found || !whole { // its own hash column is the best witness left
			if _, err := c.one("SELECT hash FROM records WHERE log=? AND seq=?", []any{l.row, r.Seq}, func(s *sqlite3.Stmt) {
				fill(want[:], s.ColumnRawBlob(0))
			}); err != nil {
				return 0, err
			}
		}
	}
	var old Stored
	whole := false
	if found, err := c.one("SELECT "+recordColumns+" FROM records WHERE log=? AND seq=?", []any{l.row, r.Seq}, func(s *sqlite3.Stmt) {
		old, whole = j.scanRecord(s)
	}); err != nil || !found || whole || r.Hash() != want {
		return 0, err
	}
	if err := c.exec("UPDATE records SET prev=?, hash=?, at=?, wall=?, kind=?, sig=?, body=? WHERE pos=?",
		r.Prev[:], want[:], uint64(r.At), r.Wall, string(r.Kind), packSig(r.Sig), orEmpty(r.Body), old.Pos); err != nil {
		return 0, err
	}
	if r.Kind != protocol.KindMessage {
		return int64(old.Pos), nil
	}
	filed, err := c.number("SELECT count(*) FROM msgs WHERE pos=?", old.Pos)
	if env := decode(r.Body); err == nil && filed == 0 && env != nil {
		ref := msgRef{l.row, r.Seq}
		t.putMessage(old.Pos, ref, r, env)
		if err = t.file(t.filings); err == nil {
			t.filings, err = nil, t.settleByTiers(old.Pos, ref)
		}
	}
	return int64(old.Pos), err
}

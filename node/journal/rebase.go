package journal

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/ncruces/go-sqlite3"

	"github.com/aster-mesh/aster/protocol"
)

// rebase is Leave, and with jump Begin.
func (j *Journal) rebase(bases []Base, snapshot []byte, jump bool) error {
	if len(bases) == 0 {
		return fmt.Errorf("leave: %w: there is none", ErrBase)
	}
	j.leaveMu.Lock()
	defer j.leaveMu.Unlock()
	j.mu.RLock()
	next := cut{number: j.cut.number + 1, bytes: uint64(len(snapshot)), snapshot: sha256.Sum256(snapshot)}
	j.mu.RUnlock()
	if err := j.stage(next.number, snapshot); err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	if err := j.inForce(bases, next, jump); err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	if err := j.writeBaseFile(snapshot); err != nil {
		j.log.Warn("the bases are in the database alone; they are written beside it before records go", "err", err)
	}
	return nil
}

// changing runs f in a transaction of the writer once all that was committed is in the database. What it returns is ErrFull or
// final.
func (j *Journal) changing(f func(*conn) error) error {
	if j.closed.Load() || j.writer == nil {
		return ErrClosed
	}
	if err := j.fillLocked(true); err != nil {
		return err
	}
	if j.held != nil {
		return fmt.Errorf("%w: there is no room in the database", ErrFull)
	}
	refused := error(nil)
	err := inTransaction(j.writer, func() error {
		err := f(j.writer)
		if errors.Is(err, ErrBase) || errors.Is(err, ErrUndelivered) {
			refused = err
		}
		return err
	})
	switch {
	case err == nil:
		if err := j.boundWAL(); err != nil {
			return j.fail(err)
		}
		return nil
	case j.writer.db.GetAutocommit() && refused != nil:
		return refused
	case j.writer.db.GetAutocommit() && isFull(err):
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return j.fail(j.suspect(err))
}

// stage writes a snapshot that is not in force yet, in place of what a process left that ended here.
func (j *Journal) stage(number uint64, snapshot []byte) error {
	if err := j.unstage(number - 1); err != nil {
		return err
	}
	part := 0
	for piece := range slices.Chunk(snapshot, snapshotPart) {
		j.fmu.Lock()
		err := j.changing(func(c *conn) error {
			return c.exec("INSERT INTO snapshots VALUES(?,?,?)", number, part, piece)
		})
		j.fmu.Unlock()
		if err != nil {
			return err
		}
		part++
	}
	return nil
}

// unstage removes all snapshots but one.
func (j *Journal) unstage(but uint64) error {
	j.wmu.Lock() // for former
	defer j.wmu.Unlock()
	j.fmu.Lock()
	defer j.fmu.Unlock()
	if j.former && j.writer != nil {
		if err := j.raise(j.writer, schemaVersion-1); err != nil || j.former {
			return cmp.Or(err, fmt.Errorf("%w: there is no room to raise the store's version", ErrFull))
		}
	}
	return j.changing(func(c *conn) error { return c.exec("DELETE FROM snapshots WHERE cut<>?", but) })
}

// inForce is the step in which records leave.
func (j *Journal) inForce(bases []Base, next cut, jump bool) error {
	j.wmu.Lock()
	defer j.wmu.Unlock()
	j.fmu.Lock()
	defer j.fmu.Unlock()
	if err := j.failure(); err != nil {
		return err
	}
	next.position, next.stage = j.next-1, sweepNone
	r := &rebasing{j: j, jump: jump, row: j.nextRow}
	err := j.changing(func(c *conn) error {
		r.c, r.logs = c, map[protocol.LogID]*logState{}
		for i := range bases {
			if err := r.take(&bases[i]); err != nil {
				return err
			}
		}
		if err := r.undelivered(); err != nil {
			return err
		}
		all := map[protocol.LogID]*logState{}
		for id, l := range j.logs { // who holds wmu alone changes it
			all[id] = l
		}
		for id, l := range r.logs {
			all[id] = l
			if err := r.write(l); err != nil {
				return err
			}
		}
		next.bases = basesSum(basesOf(all))
		return putCut(c, &next)
	})
	if err == nil {
		r.accept(&next)
	}
	return err
}

func putCut(c *conn, now *cut) error {
	return c.exec("INSERT INTO meta VALUES('cut', ?) ON CONFLICT DO UPDATE SET value=excluded.value", now.append(nil))
}

// rebasing is one step of inForce.
type rebasing struct {
	j    *Journal
	c    *conn
	jump bool
	row  int64
	logs map[protocol.LogID]*logState // as they will be
	gone []int64                      // damaged records that leave
}

// take checks one base.
func (r *rebasing) take(b *Base) error {
	if r.logs[b.Log] != nil || b.Seq == 0 {
		return fmt.Errorf("%w: %s record %d, which is named twice or none", ErrBase, b.Log, b.Seq)
	}
	var l logState
	if held := r.j.logOf(b.Log); held != nil {
		l = *held
	} else {
		l = logState{row: r.row, id: b.Log, text: b.Log.String()}
		r.row++
	}
	hash, known := l.hash, true
	switch {
	case b.Seq < l.base:
		return fmt.Errorf("%w: %s begins behind record %d, which is above %d", ErrBase, b.Log, l.base, b.Seq)
	case b.Seq == l.base:
		hash = l.baseHash
	case b.Seq > l.seq && !r.jump:
		return fmt.Errorf("%w: %s has %d records here, not %d", ErrBase, b.Log, l.seq, b.Seq)
	case b.Seq > l.seq:
		hash, l.seq, l.hash = b.Hash, b.Seq, b.Hash
	case b.Seq < l.seq:
		var err error
		if known, err = r.c.one("SELECT hash FROM records WHERE log=? AND seq=?", []any{l.row, b.Seq}, func(s *sqlite3.Stmt) {
			hash = protocol.Hash{}
			copy(hash[:], s.ColumnRawBlob(0))
		}); err != nil {
			return err
		}
	}
	if !known || hash != b.Hash || hash == (protocol.Hash{}) {
		return fmt.Errorf("%w: record %d of %s is another one here", ErrBase, b.Seq, b.Log)
	}
	l.base, l.baseHash = b.Seq, b.Hash
	r.logs[b.Log] = &l
	return nil
}

// undelivered refuses bases that would take what waits in an inbox, and notes what is damaged and leaves.
func (r *rebasing) undelivered() error {
	leaves := map[int64]uint64{}
	for _, l := range r.logs {
		leaves[l.row] = l.base
	}
	var refused error
	err := r.c.each("SELECT i.agent, r.log, r.seq FROM inbox i JOIN records r ON r.pos=i.pos WHERE i.state=0", nil, func(s *sqlite3.Stmt) bool {
		if seq := uint64(s.ColumnInt64(2)); seq <= leaves[s.ColumnInt64(1)] {
			l := r.j.logOfRow(s.ColumnInt64(1))
			refused = fmt.Errorf("%w: record %d of %s waits in the inbox of %s", ErrUndelivered, seq, l.text, s.ColumnText(0))
		}
		return refused == nil
	})
	if err = cmp.Or(err, refused); err != nil {
		return err
	}
	r.j.mu.RLock()
	bad := make([]int64, 0, len(r.j.bad))
	for pos := range r.j.bad {
		bad = append(bad, pos)
	}
	r.j.mu.RUnlock()
	for _, pos := range bad {
		if _, err := r.c.one("SELECT log, seq FROM records WHERE pos=?", []any{pos}, func(s *sqlite3.Stmt) {
			if uint64(s.ColumnInt64(1)) <= leaves[s.ColumnInt64(0)] {
				r.gone = append(r.gone, pos)
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

func (r *rebasing) write(l *logState) error {
	err := r.c.exec("INSERT INTO logs(id, name, seq, hash) VALUES(?,?,?,?) ON CONFLICT(id) DO UPDATE SET seq=excluded.seq, hash=excluded.hash",
		l.row, l.text, l.seq, bytes.Clone(l.hash[:]))
	if err == nil {
		err = r.c.exec("INSERT INTO bases VALUES(?,?,?) ON CONFLICT(log) DO UPDATE SET seq=excluded.seq, hash=excluded.hash",
			l.row, l.base, bytes.Clone(l.baseHash[:]))
	}
	if err != nil {
		return fmt.Errorf("base of %s: %w", l.text, err)
	}
	return nil
}

// accept lets queries see what is committed.
func (r *rebasing) accept(next *cut) {
	j := r.j
	j.nextRow, j.rowsFilled = r.row, max(j.rowsFilled, r.row-1)
	j.places = places{}
	j.mu.Lock()
	for id, l := range r.logs {
		j.logs[id], j.rows[l.row] = l, l
	}
	j.count = 0
	for _, l := range j.logs {
		j.count += l.seq - l.base
	}
	for _, pos := range r.gone {
		delete(j.bad, pos)
	}
	j.cut = *next
	j.mu.Unlock()
	j.cuts.Add(1)
	j.sweeping.Store(true)
	select {
	case j.swept <- struct{}{}:
	default:
	}
	if len(r.gone) > 0 {
		j.keepBad()
	}
}

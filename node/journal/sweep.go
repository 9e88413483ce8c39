package journal

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/aster-mesh/aster/protocol"
)

// What left is out of force at once; its rows go in steps. Each step is one transaction, and what is to be done is found by
// looking, so one that a crash ended is done again, and nothing is remembered of how far it got. The words of a record leave the
// search index in an earlier transaction than the record, which alone knows them.

// sweeper is where Sweep goes on. Guarded by leaveMu.
type sweeper struct {
	cut      uint64 // of which; 0: it begins
	key      string // inboxes below it are done
	at       int64  // positions of an inbox up to it are done
	pos, end int64  // records up to pos are done, and none above end leaves
	phase    int
}

// Sweep removes rows of what left, at most about max records of them, and gives the room back to the file system as far as the store's
// file can. more: there is more to do. It goes on after a crash, and does nothing in a store that nothing has left. It may be called
// beside commits, which wait for one step at most. Errors are those of Leave.
func (j *Journal) Sweep(max int) (more bool, err error) {
	if !j.sweeping.Load() {
		return false, nil
	}
	j.leaveMu.Lock()
	defer j.leaveMu.Unlock()
	j.mu.RLock()
	now := j.cut
	j.mu.RUnlock()
	s := &j.sweeper
	if s.cut != now.number {
		if err := j.beginSweep(now); err != nil {
			return true, fmt.Errorf("sweep what left: %w", err)
		}
		*s = sweeper{cut: now.number, end: s.end}
		if s.end, err = j.sweepEnd(); err != nil {
			*s = sweeper{}
			return true, fmt.Errorf("sweep what left: %w", err)
		}
	}
	steps := []func(int) (bool, error){j.sweepInboxes, j.sweepRecords, j.sweepTiers, j.sweepPages}
	if s.phase < len(steps) {
		more, err := steps[s.phase](cmp.Or(max, sweepBatch))
		if err == nil && !more {
			s.phase++
		}
		if err != nil {
			err = fmt.Errorf("sweep what left: %w", err)
		}
		return true, err
	}
	if err := j.endSweep(now); err != nil {
		return true, fmt.Errorf("sweep what left: %w", err)
	}
	return false, nil
}

const (
	sweepDelay = 5 * time.Second // a node that starts has other things to do
	sweepSome  = 128
	sweepAgain = time.Minute // after an error
)

// sweepTurn is Sweep at Run's pace, about a fifth of a core. It returns what is final.
func (j *Journal) sweepTurn(again *time.Timer) error {
	more, err := j.Sweep(sweepSome)
	switch {
	case err == nil && more:
		again.Reset(sweepRest)
	case err != nil && j.failure() != nil:
		return j.failure()
	case err != nil && !errors.Is(err, ErrClosed):
		j.log.Warn("rows of what left are still there", "err", err)
		again.Reset(sweepAgain)
	}
	return nil
}

// Sweeping says whether Sweep has something to do.
func (j *Journal) Sweeping() bool { return j.sweeping.Load() }

func (j *Journal) beginSweep(now cut) error {
	if err := j.beside(); err != nil {
		return err
	}
	if err := j.unstage(now.number); err != nil {
		return err
	}
	return j.setStage(sweepBegun)
}

func (j *Journal) setStage(stage sweepStage) error {
	j.fmu.Lock()
	defer j.fmu.Unlock()
	j.mu.RLock()
	now := j.cut
	j.mu.RUnlock()
	if now.stage == stage {
		return nil
	}
	now.stage = stage
	if err := j.changing(func(c *conn) error { return putCut(c, &now) }); err != nil {
		return err
	}
	j.mu.Lock()
	j.cut = now
	j.mu.Unlock()
	return nil
}

func (j *Journal) endSweep(cut) error {
	if err := j.setStage(sweepOver); err != nil {
		return err
	}
	j.sweeping.Store(false)
	j.sweeper = sweeper{}
	select { // Run moves the write-ahead log
	case j.grew <- struct{}{}:
	default:
	}
	// A store that is full for messages would measure itself again only once more was written, and count the log of all that left.
	// It may take long, and a query holds it up: commits go on meanwhile.
	if err := j.shrinkWAL(); err != nil && !errors.Is(err, ErrClosed) {
		return err
	}
	j.wmu.Lock()
	defer j.wmu.Unlock()
	if j.closed.Load() {
		return nil
	}
	if err := j.measure(); err != nil {
		return err
	}
	j.settleUsed()
	return nil
}

// sweepEnd is the highest position of what is to be swept, 0 when there is nothing.
func (j *Journal) sweepEnd() (end int64, err error) {
	err = j.read(func(c *conn) error {
		for row, l := range j.based() {
			n, err := c.number("SELECT pos FROM records WHERE log=? AND seq<=? ORDER BY seq DESC LIMIT 1", row, l.base)
			if err != nil {
				return err
			}
			end = max(end, n)
		}
		return nil
	})
	return end, err
}

// sweepInboxes removes rows of inboxes, before the records by which they are known.
func (j *Journal) sweepInboxes(most int) (more bool, err error) {
	s := &j.sweeper
	var gone []inboxKey
	rows, key, at := 0, s.key, s.at
	err = j.read(func(c *conn) error {
		return c.each("SELECT i.key, i.pos, r.log, r.seq FROM inbox i JOIN records r ON r.pos=i.pos WHERE (i.key, i.pos)>(?,?) AND i.pos<=? ORDER BY i.key, i.pos LIMIT ?",
			[]any{s.key, s.at, s.end, most}, func(st *sqlite3.Stmt) bool {
				rows++
				key, at = st.ColumnText(0), st.ColumnInt64(1)
				if j.hasLeft(st.ColumnInt64(2), uint64(st.ColumnInt64(3))) {
					gone = append(gone, inboxKey{key, uint64(at)})
				}
				return true
			})
	})
	if err != nil {
		return true, err
	}
	if len(gone) > 0 {
		j.fmu.Lock()
		err = j.changing(func(c *conn) error {
			for _, k := range gone {
				if err := c.exec("DELETE FROM inbox WHERE key=? AND pos=?", k.key, k.pos); err != nil {
					return err
				}
			}
			return nil
		})
		j.fmu.Unlock()
		if err != nil {
			return true, err
		}
	}
	s.key, s.at = key, at
	return rows == most, nil
}

// leaver is a record that is to go.
type leaver struct {
	pos, row int64
	seq      uint64
	env      *protocol.Envelope // nil: no message, or not readable
}

func (j *Journal) sweepRecords(most int) (more bool, err error) {
	s := &j.sweeper
	var gone []leaver
	rows, pos := 0, s.pos
	err = j.read(func(c *conn) error {
		return c.each("SELECT "+recordColumns+" FROM records WHERE pos>? AND pos<=? ORDER BY pos LIMIT ?", []any{s.pos, s.end, most}, func(st *sqlite3.Stmt) bool {
			rows++
			pos = st.ColumnInt64(0)
			l := leaver{pos: pos, row: st.ColumnInt64(1), seq: uint64(st.ColumnInt64(2))}
			if !j.hasLeft(l.row, l.seq) {
				return true
			}
			if r, whole := j.scanRecord(st); whole && r.Record.Kind == protocol.KindMessage {
				l.env = decode(r.Record.Body)
			}
			gone = append(gone, l)
			return true
		})
	})
	if err == nil && len(gone) > 0 {
		err = cmp.Or(j.unindex(gone), j.remove(gone))
	}
	if err != nil {
		return true, err
	}
	s.pos = pos
	return rows == most, nil
}

// remove takes records and what is filed of them out of the database.
func (j *Journal) remove(gone []leaver) error {
	j.fmu.Lock()
	defer j.fmu.Unlock()
	return j.changing(func(c *conn) error {
		for i := range gone {
			if err := j.removeOne(c, &gone[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (j *Journal) removeOne(c *conn, l *leaver) error {
	if l.env != nil {
		id := l.env.Identity()
		if err := c.exec("DELETE FROM identities WHERE id=? AND log=? AND seq=?", id[:], l.row, l.seq); err != nil {
			return err
		}
		if c.db.Changes() > 0 {
			next, pos, err := j.keptCopy(c, &id, l.pos)
			if err != nil {
				return err
			}
			if next != nil {
				content := next.Content()
				if err := c.exec("INSERT INTO identities SELECT ?, ?, log, seq, pos FROM records WHERE pos=?", id[:], content[:], pos); err != nil {
					return err
				}
			}
		}
	}
	for _, sql := range []string{"DELETE FROM tiers WHERE log=? AND seq=?", "DELETE FROM tiers_early WHERE log=? AND seq=?"} {
		if err := c.exec(sql, l.row, l.seq); err != nil {
			return err
		}
	}
	for _, sql := range []string{"DELETE FROM msgs WHERE pos=?", "DELETE FROM records WHERE pos=?"} {
		if err := c.exec(sql, l.pos); err != nil {
			return err
		}
	}
	return nil
}

// keptCopy finds the first message above the bases that has the identity of one at pos that left; nil: there is none.
func (j *Journal) keptCopy(c *conn, id *protocol.Digest, pos int64) (found *protocol.Envelope, at int64, err error) {
	var copies []int64
	if err := c.each("SELECT m.pos FROM msgs l JOIN msgs m ON m.short=l.short AND m.sender IS l.sender AND m.pos<>l.pos WHERE l.pos=? ORDER BY m.pos", []any{pos}, func(s *sqlite3.Stmt) bool {
		copies = append(copies, s.ColumnInt64(0))
		return true
	}); err != nil {
		return nil, 0, err
	}
	for _, pos := range copies {
		if _, err := c.one("SELECT "+recordColumns+" FROM records WHERE pos=?", []any{pos}, func(s *sqlite3.Stmt) {
			if j.hasLeft(s.ColumnInt64(1), uint64(s.ColumnInt64(2))) {
				return
			}
			if st, whole := j.scanRecord(s); whole {
				if env := decode(st.Record.Body); env != nil && env.Identity() == *id {
					found, at = env, pos
				}
			}
		}); err != nil || found != nil {
			return found, at, err
		}
	}
	return nil, 0, nil
}

// sweepTiers removes receipts of what never came here, or cannot be read.
func (j *Journal) sweepTiers(most int) (more bool, err error) {
	j.fmu.Lock()
	defer j.fmu.Unlock()
	n := int64(0)
	err = j.changing(func(c *conn) error {
		n = 0
		for row, l := range j.based() {
			for _, table := range []string{"tiers", "tiers_early"} {
				if n >= int64(most) {
					return nil
				}
				if err := c.exec("DELETE FROM "+table+" WHERE log=?1 AND seq IN (SELECT DISTINCT seq FROM "+table+" WHERE log=?1 AND seq<=?2 LIMIT ?3)",
					row, l.base, int64(most)-n); err != nil {
					return err
				}
				n += c.db.Changes()
			}
		}
		return nil
	})
	if err == nil {
		for ref := range j.early {
			if j.hasLeft(ref.log, ref.seq) {
				delete(j.early, ref)
			}
		}
	}
	return n >= int64(most), err
}

// sweepPagesEach is how many pages Sweep gives back for each record that it may remove.
const sweepPagesEach = 2

// sweepPages gives free pages back to the file system. A store that an earlier version made keeps them, to be used again.
func (j *Journal) sweepPages(most int) (more bool, err error) {
	j.fmu.Lock()
	defer j.fmu.Unlock()
	var mode, free int64
	if err := j.changing(func(c *conn) (err error) {
		if mode, err = c.number("PRAGMA auto_vacuum"); err == nil {
			free, err = c.number("PRAGMA freelist_count")
		}
		return err
	}); err != nil {
		return true, err
	}
	j.freePages.Store(free)
	if mode != autoVacuum || free == 0 {
		return false, nil
	}
	err = j.changing(func(c *conn) error {
		return c.db.Exec(fmt.Sprintf("PRAGMA incremental_vacuum(%d)", max(most, 1)*sweepPagesEach))
	})
	if err == nil {
		err = j.countFree()
	}
	return true, err
}

// autoVacuum is the engine's number for giving pages back when told.
const autoVacuum = 2

// countFree notes how many pages of the database hold nothing. Called with fmu held.
func (j *Journal) countFree() error {
	n, err := j.writer.number("PRAGMA freelist_count")
	if err != nil {
		return j.fail(j.suspect(err))
	}
	j.freePages.Store(n)
	return nil
}

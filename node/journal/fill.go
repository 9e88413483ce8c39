package journal

import (
	"errors"
	"fmt"
	"time"
)

// The database is filled behind the commits, many in one transaction: when fillAt records wait, when commits pause, and
// before a query looks. A crash leaves the rest to Open.

const (
	// fillAt is how many records must wait for Run to fill while commits go on; at fillMax commits wait.
	fillAt  = 1024
	fillMax = 4 * fillAt
	// fillSome is about how many go into one transaction.
	fillSome = 1024
	// fillAgain is how long a disk that was full is left alone, unless a commit needs the room.
	fillAgain = time.Second
)

// behind says whether more waits than may.
func (j *Journal) behind() bool { return j.unfiledRecords.Load() >= fillMax }

// freeHalf says whether the database has all commits in one file of ahead.
func (j *Journal) freeHalf(i int) bool {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.inHalf[i] == 0
}

// waiting returns what the database does not have.
func (j *Journal) waiting() []*accepted {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.unfiled
}

// fill brings the database up to the last commit that returned. On a full disk the commits go on waiting, in a
// transaction that stays open so that queries see them; that is no error. at once: also if the disk was full just now.
func (j *Journal) fill(atOnce bool) error {
	j.fmu.Lock()
	defer j.fmu.Unlock()
	return j.fillLocked(atOnce)
}

func (j *Journal) fillLocked(atOnce bool) error {
	if j.writer == nil {
		return ErrClosed
	}
	if err := j.failure(); err != nil {
		return err
	}
	if j.held != nil {
		return j.fillHeld(atOnce)
	}
	for {
		all := j.waiting()
		if len(all) == 0 && j.left == nil {
			return nil
		}
		t := j.transaction()
		err := inTransaction(j.writer, func() error { return t.fill(some(all)) })
		switch {
		case err == nil:
			if err := j.filled(t); err != nil {
				return err
			}
		case isFull(err) && j.writer.db.GetAutocommit():
			j.log.Warn("no room to bring the database up to date; what was committed stays where it is", "err", err)
			return j.hold()
		default:
			return j.fail(fmt.Errorf("fill the database: %w", j.suspect(err)))
		}
	}
}

// some returns the first commits, about fillSome records of them.
func some(all []*accepted) []*accepted {
	n := 0
	for i, c := range all {
		if n += len(c.b.Entries); n >= fillSome {
			return all[:i+1]
		}
	}
	return all
}

// fillWith writes all that waits and one commit more, that is too large for a frame, in one transaction.
func (j *Journal) fillWith(c *accepted) error {
	j.fmu.Lock()
	defer j.fmu.Unlock()
	if err := j.fillLocked(true); err != nil {
		return err
	}
	if j.held != nil {
		return fmt.Errorf("%w: there is no room in the database", ErrFull)
	}
	c.half = -1
	j.mu.Lock()
	for _, l := range c.logs { // a reader may meet a row as soon as it is committed, which is before accept
		if j.rows[l.row] == nil {
			j.rows[l.row] = &logState{row: l.row, id: l.id, text: l.text}
		}
	}
	j.mu.Unlock()
	t := j.transaction()
	err := inTransaction(j.writer, func() error { return t.fill([]*accepted{c}) })
	switch {
	case err == nil:
		j.ahead.next++
		j.ahead.forget()
		j.accept(c)
		return j.filled(t)
	case isFull(err) && j.writer.db.GetAutocommit():
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return j.suspect(err)
}

// filled takes over what a transaction that was committed has learned.
func (j *Journal) filled(t *transaction) error {
	j.rowsFilled = max(j.rowsFilled, t.rows)
	for r := range t.earlyAdded {
		j.early[r] = true
	}
	for r := range t.earlyGone {
		delete(j.early, r)
	}
	for ref, at := range t.fresh {
		j.places.put(ref, at)
	}
	j.mu.Lock()
	for i := range j.left {
		delete(j.unfiledSaid, j.left[i].id)
	}
	j.left = nil
	n := 0
	for _, c := range t.commits {
		if c.half < 0 {
			continue
		}
		n++
		j.inHalf[c.half]--
		j.unfiledBytes -= c.bytes
		j.unfiledRecords.Add(-int64(len(c.b.Entries)))
		for i := range c.says {
			if row, ok := j.unfiledSaid[c.says[i].id]; ok && row.pos == c.says[i].pos {
				delete(j.unfiledSaid, c.says[i].id)
			}
		}
	}
	if j.unfiled = j.unfiled[n:]; len(j.unfiled) == 0 {
		j.unfiled = nil
	}
	j.waits.Store(len(j.unfiled) > 0)
	j.mu.Unlock()
	if j.freePages.Load() > 0 { // rows take them first
		if err := j.countFree(); err != nil {
			return err
		}
	}
	if err := j.boundWAL(); err != nil {
		return j.fail(err) // what was filled is safe, what follows is not
	}
	return nil
}

// held is a transaction that stays open since there is no room to commit it. Queries ask the writer's connection meanwhile.
type held struct {
	t     *transaction
	tried time.Time
}

// hold begins it. With the cache kept from spilling it needs no disk.
func (j *Journal) hold() error {
	if err := j.writer.exec("PRAGMA cache_spill=OFF"); err != nil {
		return j.fail(err)
	}
	t := j.transaction()
	err := j.writer.exec("BEGIN IMMEDIATE")
	if err == nil {
		err = t.fill(j.waiting())
	}
	if err != nil {
		err = errors.Join(err, j.letGo())
		return fmt.Errorf("hold what the disk has no room for: %w", j.suspect(err))
	}
	j.held = &held{t: t, tried: time.Now()}
	return nil
}

// letGo rolls a held transaction back.
func (j *Journal) letGo() (err error) {
	j.held = nil
	if !j.writer.db.GetAutocommit() {
		err = j.writer.exec("ROLLBACK")
	}
	return errors.Join(err, j.writer.exec("PRAGMA cache_spill=ON"))
}

// fillHeld adds to the held transaction what was committed since, and tries again to commit it.
func (j *Journal) fillHeld(atOnce bool) error {
	if h := j.held; !atOnce && time.Since(h.tried) < fillAgain {
		more := j.waiting()[len(h.t.commits):]
		if len(more) == 0 {
			return nil
		}
		if err := h.t.fill(more); err != nil {
			return errors.Join(fmt.Errorf("hold what the disk has no room for: %w", j.suspect(err)), j.letGo())
		}
		return nil
	}
	if err := j.letGo(); err != nil {
		return j.fail(err)
	}
	return j.fillLocked(atOnce)
}

// readHeld lets f ask the held transaction; done: there is one.
func (j *Journal) readHeld(f func(*conn) error) (done bool, err error) {
	j.fmu.Lock()
	defer j.fmu.Unlock()
	if j.held == nil || j.writer == nil {
		return false, nil
	}
	return true, j.suspect(f(j.writer))
}

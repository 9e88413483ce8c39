package journal

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/ncruces/go-sqlite3"

	"github.com/aster-mesh/aster/protocol"
)

// A message's rows in msgs and identities say nothing that its record does not, and they are most of the pages that a
// commit would write. So they are filed later, many at once: when fileAt of them wait, when commits pause, or before a
// query that needs them. Open files what a crash left.

// fileAt is how many messages may wait to be filed.
const fileAt = 256

// filing is a message's rows.
type filing struct {
	pos                        uint64
	ref                        msgRef
	at, short                  uint64
	sender, target, re, thread string
	intent                     string
	state                      int
	id, content                protocol.Digest
}

func filingOf(pos uint64, ref msgRef, r *protocol.Record, env *protocol.Envelope) filing {
	f := filing{
		pos: pos, ref: ref, at: uint64(r.At), short: shortKey(env.ID), sender: fold(env.From), target: fold(env.To), re: string(env.Re),
		thread: env.Thread, intent: string(env.Intent), id: env.Identity(), content: env.Content(),
	}
	if env.From == "" || (env.To == "" && env.Room == "") {
		f.state = stateNone
	}
	return f
}

// settle notes a tier: processed, or refused and not processed by anybody.
func (f *filing) settle(tier protocol.Tier) {
	switch {
	case tier == protocol.Processed && (f.state == stateOpen || f.state == stateDead):
		f.state = stateProcessed
	case tier == protocol.Refused && f.state == stateOpen:
		f.state = stateDead
	}
}

// settled is a tier of a message that is not filed yet.
type settled struct {
	pos  uint64
	tier protocol.Tier
}

// unfiledAt finds a waiting message by its position.
func unfiledAt(all []filing, pos uint64) (int, bool) {
	return slices.BinarySearchFunc(all, pos, func(f filing, pos uint64) int { return cmp.Compare(f.pos, pos) })
}

// waits says whether a message is not filed yet, as this transaction sees it.
func (t *transaction) waits(pos uint64) bool {
	if _, ok := unfiledAt(t.unfiled, pos); ok {
		return true
	}
	_, ok := unfiledAt(t.j.unfiled, pos)
	return ok && !t.filedAll
}

// fileAll files what waits.
func (t *transaction) fileAll() error {
	t.filedAll = true
	return t.file(t.j.unfiled)
}

// file writes rows. Those of identities go in their own order, so that neighbours are written together; of two messages
// of one identity the first stays.
func (t *transaction) file(all []filing) error {
	for i := range all {
		f := &all[i]
		err := t.c.exec("INSERT INTO msgs(pos, sender, target, intent, re, thread, short, at, state) VALUES(?,?,?,?,?,?,?,?,?)",
			f.pos, orNull(f.sender), orNull(f.target), f.intent, orNull(f.re), orNull(f.thread), f.short, f.at, f.state)
		if err != nil {
			return fmt.Errorf("file message at %d: %w", f.pos, err)
		}
		if !t.j.early[f.ref] {
			continue
		}
		t.earlyGone = append(t.earlyGone, f.ref)
		if err := t.c.exec("DELETE FROM tiers_early WHERE log=? AND seq=?", f.ref.log, f.ref.seq); err != nil {
			return err
		}
		if err := t.settleByTiers(f.pos, f.ref); err != nil {
			return err
		}
	}
	order := make([]*filing, len(all))
	for i := range all {
		order[i] = &all[i]
	}
	slices.SortFunc(order, func(a, b *filing) int {
		return cmp.Or(bytes.Compare(a.id[:], b.id[:]), cmp.Compare(a.pos, b.pos))
	})
	for _, f := range order {
		if err := t.c.exec("INSERT INTO identities VALUES(?,?,?,?,?) ON CONFLICT DO NOTHING", f.id[:], f.content[:], f.ref.log, f.ref.seq, f.pos); err != nil {
			return fmt.Errorf("identity of the message at %d: %w", f.pos, err)
		}
	}
	return nil
}

// fileVoid files a message whose words do not count: under its position alone. An intent is never empty.
func (t *transaction) fileVoid(pos uint64, r *protocol.Record) error {
	return t.c.exec("INSERT INTO msgs(pos, intent, short, at, state) VALUES(?,'',0,?,?)", pos, uint64(r.At), stateNone)
}

// fileNow files what waits in a commit of its own. On a full disk it goes on waiting: nothing is lost by it, and
// queries only lack the newest. Called with wmu held.
func (j *Journal) fileNow() error {
	if len(j.unfiled) == 0 || j.failed != nil || j.writer == nil {
		return nil
	}
	t := &transaction{j: j, c: j.writer, next: j.next, logs: map[protocol.LogID]*logState{}}
	err := inTransaction(j.writer, t.fileAll)
	switch {
	case err == nil:
		j.install(t)
		return nil
	case isFull(err) && j.writer.db.GetAutocommit():
		return nil
	}
	j.failed = fmt.Errorf("file messages: %w", j.suspect(err))
	return j.failed
}

// filed files what waits, for a query that is about to look.
func (j *Journal) filed() error {
	j.wmu.Lock()
	defer j.wmu.Unlock()
	if j.closed.Load() {
		return ErrClosed
	}
	return j.fileNow()
}

// fileLeft files what a former process had no time to: the messages behind the last filed one.
func (j *Journal) fileLeft() error {
	last, err := j.writer.number("SELECT max(pos) FROM msgs")
	if err != nil {
		return err
	}
	var left []filing
	if err := j.writer.each("SELECT "+recordColumns+" FROM records WHERE pos>? AND kind='msg' ORDER BY pos", []any{last},
		func(s *sqlite3.Stmt) bool {
			st, ok := j.scanRecord(s)
			if !ok {
				j.noteBad(int64(st.Pos)) // Repair files it
				return true
			}
			if env := decode(st.Record.Body); env != nil {
				left = append(left, filingOf(st.Pos, msgRef{s.ColumnInt64(1), st.Record.Seq}, &st.Record, env))
			}
			return true
		}); err != nil {
		return err
	}
	for i := range left {
		f := &left[i]
		if err := j.writer.each("SELECT tier FROM tiers WHERE log=? AND seq=?", []any{f.ref.log, f.ref.seq}, func(s *sqlite3.Stmt) bool {
			f.settle(protocol.Tier(s.ColumnText(0)))
			return true
		}); err != nil {
			return err
		}
	}
	j.unfiled = left
	return j.fileNow()
}

// unfiledIdentity looks for the first message of an identity among those that wait. Called with wmu held.
func (j *Journal) unfiledIdentity(id protocol.Digest) (IdentityRow, bool) {
	for i := range j.unfiled {
		if f := &j.unfiled[i]; f.id == id {
			if l := j.logOfRow(f.ref.log); l != nil {
				return IdentityRow{Content: f.content, Log: l.id, Seq: f.ref.seq, Pos: f.pos}, true
			}
		}
	}
	return IdentityRow{}, false
}

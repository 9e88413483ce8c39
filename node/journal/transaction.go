package journal

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"

	"github.com/ncruces/go-sqlite3"

	"github.com/aster-mesh/aster/protocol"
)

// transaction brings commits into the database. What it learns reaches the Journal only when it is committed. One
// transaction of the engine may take several calls of fill.
type transaction struct {
	j *Journal
	c *conn

	commits []*accepted // all that it has
	rows    int64       // the greatest row of a log among them

	fresh                 map[msgRef]place // messages of this transaction
	earlyAdded, earlyGone map[msgRef]bool
	spoken                map[msgRef]bool // messages that receipts of this transaction settle

	// Gathered, and written by flush: rows that change again within the transaction are written once.
	heads   map[int64]*logState
	filings []filing // by position
	inbox   map[inboxKey]*inboxRow
	values  map[string][]byte
}

type inboxKey struct {
	key string
	pos uint64
}

func (j *Journal) transaction() *transaction {
	return &transaction{
		j: j, c: j.writer, rows: j.rowsFilled, earlyAdded: map[msgRef]bool{}, earlyGone: map[msgRef]bool{}, spoken: map[msgRef]bool{}, filings: slices.Clone(j.left),
		heads: map[int64]*logState{}, inbox: map[inboxKey]*inboxRow{}, values: map[string][]byte{},
	}
}

// fill writes commits, in their order.
func (t *transaction) fill(all []*accepted) error {
	for _, c := range all {
		if err := t.put(c); err != nil {
			return err
		}
		t.commits = append(t.commits, c)
	}
	if len(all) > 0 {
		number := binary.BigEndian.AppendUint64(nil, all[len(all)-1].number)
		if err := t.c.exec("INSERT INTO meta VALUES('filled', ?) ON CONFLICT DO UPDATE SET value=excluded.value", number); err != nil {
			return err
		}
	}
	return t.flush()
}

func (t *transaction) put(c *accepted) error {
	had := t.rows // the new rows of one commit come in no order
	for _, l := range c.logs {
		if err := t.touch(&l.logState, len(l.entries) > 0, had); err != nil {
			return err
		}
	}
	for _, agent := range c.b.Left {
		if err := t.leaveInbox(agent); err != nil {
			return err
		}
	}
	for i := range c.b.Entries {
		runtime.Gosched() // as in indexSome
		e := &c.b.Entries[i]
		if err := t.putRecord(c.first+uint64(i), c.logs[e.Record.Log].row, e); err != nil {
			return err
		}
	}
	for i := range c.b.Inbox {
		p := &c.b.Inbox[i]
		if err := t.putInbox(msgRef{c.logs[p.Log].row, p.Seq}, p.Agent); err != nil {
			return err
		}
	}
	for i := range c.b.Tiers {
		p := &c.b.Tiers[i]
		if p.Seq <= c.logs[p.Log].base {
			continue
		}
		if err := t.putTier(msgRef{c.logs[p.Log].row, p.Seq}, p); err != nil {
			return err
		}
	}
	for i := range c.b.Renames {
		if err := t.renameInbox(&c.b.Renames[i]); err != nil {
			return err
		}
	}
	for k, v := range c.b.Values {
		t.values[k] = v
	}
	return nil
}

// touch sees to a log's row, of which those up to had are there; moved: the log has new records, of which l is the head.
func (t *transaction) touch(l *logState, moved bool, had int64) error {
	if moved {
		t.heads[l.row] = l
	}
	if l.row <= had {
		return nil
	}
	t.rows = max(t.rows, l.row)
	if err := t.c.exec("INSERT INTO logs(id, name, seq, hash) VALUES(?, ?, 0, ?) ON CONFLICT(id) DO NOTHING", l.row, l.text, make([]byte, len(l.hash))); err != nil {
		return fmt.Errorf("log %s: %w", l.text, err)
	}
	return nil
}

func (t *transaction) putRecord(pos uint64, row int64, e *Entry) error {
	r := &e.Record
	err := t.c.exec("INSERT INTO records(pos, log, seq, prev, hash, at, wall, kind, sig, body) VALUES(?,?,?,?,?,?,?,?,?,?)",
		pos, row, r.Seq, r.Prev[:], e.Hash[:], uint64(r.At), r.Wall, string(r.Kind), packSig(r.Sig), orEmpty(r.Body))
	if err != nil {
		return fmt.Errorf("record %s seq %d: %w", r.Log, r.Seq, err)
	}
	if r.Kind != protocol.KindMessage {
		return nil
	}
	ref := msgRef{row, r.Seq}
	if e.Void {
		return t.fileVoid(pos, r)
	}
	env := e.Envelope
	if env == nil {
		if env = decode(r.Body); env == nil {
			return nil
		}
	}
	t.putMessage(pos, ref, r, env)
	return nil
}

// flush writes what was gathered.
func (t *transaction) flush() error {
	for row, l := range t.heads {
		if err := t.c.exec("UPDATE logs SET seq=?, hash=? WHERE id=?", l.seq, l.hash[:], row); err != nil {
			return fmt.Errorf("log %s: %w", l.text, err)
		}
	}
	clear(t.heads)
	if err := t.flushInbox(); err != nil {
		return err
	}
	for k, v := range t.values {
		var err error
		if v == nil {
			err = t.c.exec("DELETE FROM vals WHERE key=?", k)
		} else {
			err = t.c.exec("INSERT INTO vals VALUES(?, ?) ON CONFLICT DO UPDATE SET value=excluded.value", k, v)
		}
		if err != nil {
			return fmt.Errorf("value %q: %w", k, err)
		}
	}
	clear(t.values)
	err := t.file(t.filings)
	t.filings = nil
	return err
}

// flushInbox writes the inbox rows of this transaction.
func (t *transaction) flushInbox() error {
	for at, r := range t.inbox {
		sql := "INSERT INTO inbox VALUES(?,?,?,?,?,?) ON CONFLICT DO NOTHING"
		if r.settled {
			sql = "INSERT INTO inbox VALUES(?,?,?,?,?,?) ON CONFLICT DO UPDATE SET state=excluded.state, reason=excluded.reason WHERE state=0 OR excluded.state=1"
		}
		if err := t.c.exec(sql, at.key, at.pos, string(r.agent), r.bytes, r.state, r.reason); err != nil {
			return fmt.Errorf("inbox of %s: %w", r.agent, err)
		}
	}
	clear(t.inbox)
	return nil
}

// waits finds a message that is not filed yet by its position.
func (t *transaction) waits(pos uint64) *filing {
	i, ok := slices.BinarySearchFunc(t.filings, pos, func(f filing, pos uint64) int { return cmp.Compare(f.pos, pos) })
	if !ok {
		return nil
	}
	return &t.filings[i]
}

// early says whether receipts spoke of a message before it was here.
func (t *transaction) early(ref msgRef) bool {
	return t.earlyAdded[ref] || t.j.early[ref] && !t.earlyGone[ref]
}

// filing is a message's rows in msgs and identities.
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

// putIdentity takes the place of a message that left.
const putIdentity = `INSERT INTO identities VALUES(?,?,?,?,?) ON CONFLICT DO UPDATE SET content=excluded.content, log=excluded.log,
	seq=excluded.seq, pos=excluded.pos WHERE seq<=(SELECT b.seq FROM bases b WHERE b.log=identities.log)`

// file writes rows. Those of identities go in their own order, so that neighbours are written together; of two messages
// of one identity the first stays.
func (t *transaction) file(all []filing) error {
	for i := range all {
		runtime.Gosched()
		f := &all[i]
		err := t.c.exec("INSERT INTO msgs(pos, sender, target, intent, re, thread, short, at, state) VALUES(?,?,?,?,?,?,?,?,?)",
			f.pos, orNull(f.sender), orNull(f.target), f.intent, orNull(f.re), orNull(f.thread), f.short, f.at, f.state)
		if err != nil {
			return fmt.Errorf("file message at %d: %w", f.pos, err)
		}
		if !t.early(f.ref) {
			continue
		}
		delete(t.earlyAdded, f.ref)
		t.earlyGone[f.ref] = true
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
		t.j.sieve.add(&f.id)
		if err := t.c.exec(putIdentity, f.id[:], f.content[:], f.ref.log, f.ref.seq, f.pos); err != nil {
			return fmt.Errorf("identity of the message at %d: %w", f.pos, err)
		}
	}
	return nil
}

// fileVoid files a message whose words do not count: under its position alone. An intent is never empty.
func (t *transaction) fileVoid(pos uint64, r *protocol.Record) error {
	return t.c.exec("INSERT INTO msgs(pos, intent, short, at, state) VALUES(?,'',0,?,?)", pos, uint64(r.At), stateNone)
}

// leftovers finds what an earlier version had no time to file: the messages behind the last filed one.
func (j *Journal) leftovers() error {
	last, err := j.writer.number("SELECT max(pos) FROM msgs")
	if err != nil {
		return err
	}
	if err := j.writer.each("SELECT "+recordColumns+" FROM records WHERE pos>? AND kind='msg' ORDER BY pos", []any{last},
		func(s *sqlite3.Stmt) bool {
			if j.hasLeft(s.ColumnInt64(1), uint64(s.ColumnInt64(2))) {
				return true
			}
			st, ok := j.scanRecord(s)
			if !ok {
				j.noteBad(int64(st.Pos)) // Repair files it
				return true
			}
			if env := decode(st.Record.Body); env != nil {
				f := filingOf(st.Pos, msgRef{s.ColumnInt64(1), st.Record.Seq}, &st.Record, env)
				j.heard(&said{f.id, st.Record.Log, st.Record.Seq, st.Pos, env})
				j.left = append(j.left, f)
			}
			return true
		}); err != nil {
		return err
	}
	for i := range j.left {
		f := &j.left[i]
		if err := j.writer.each("SELECT tier FROM tiers WHERE log=? AND seq=?", []any{f.ref.log, f.ref.seq}, func(s *sqlite3.Stmt) bool {
			f.settle(protocol.Tier(s.ColumnText(0)))
			return true
		}); err != nil {
			return err
		}
	}
	return nil
}

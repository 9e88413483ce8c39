package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/aster-mesh/aster/protocol"
)

// Entry is one record to append.
type Entry struct {
	Record protocol.Record
	// Hash is Record.Hash(), which the caller has computed when it made or verified the record.
	Hash protocol.Hash
	// Envelope is the decoded body of a msg record; when nil it is decoded here, and a body that is no envelope is kept
	// but not found by queries on messages.
	Envelope *protocol.Envelope
	// Void says of a msg record that its words do not count: it is kept and handed on like any record, but no query finds
	// it and no later message is taken for its repeat.
	Void bool
}

// InboxPut says that a message is now in an agent's inbox here.
type InboxPut struct {
	Agent protocol.AgentID
	Log   protocol.LogID
	Seq   uint64
}

// TierPut is what a receipt says of one message. Of two alike (message, agent, tier) the first stays. An empty Agent
// stands for the message's target.
type TierPut struct {
	Log    protocol.LogID
	Seq    uint64
	Tier   protocol.Tier
	Agent  protocol.AgentID
	At     protocol.HLC
	Wall   int64 // ms since 1970, by the receipt's author
	By     protocol.PeerID
	Reason string
}

// Batch is what one Commit writes: all of it or nothing.
type Batch struct {
	Entries []Entry
	Inbox   []InboxPut         // of messages held or among Entries, else ErrUnknownMessage
	Tiers   []TierPut          // of any message, also of one that has not arrived
	Renames []InboxRename      // after Inbox and Tiers
	Left    []protocol.AgentID // what is unread there is another node's now; before all else
	Values  map[string][]byte
}

// voids says whether b holds words that do not count. They are filed in the same commit as what waits before them, so that
// no crash makes Open take them for words that were not filed yet.
func (b *Batch) voids() bool {
	return slices.ContainsFunc(b.Entries, func(e Entry) bool { return e.Void })
}

func (b *Batch) empty() bool {
	return len(b.Entries) == 0 && len(b.Inbox) == 0 && len(b.Tiers) == 0 && len(b.Renames) == 0 && len(b.Left) == 0 && len(b.Values) == 0
}

// Commit writes b in one transaction with one sync. When it returns nil, all of b is on stable storage, and first is
// the position of its first record; positions are consecutive, follow the order of arrival here and are never given
// twice. Records must continue their logs (Seq is the head's plus one, Prev its hash), else ErrGap.
//
// A nil value in Values deletes the key. Processed, Refused and Handed tiers mark the message's inbox row of that agent done.
//
// ErrFull, ErrGap, ErrUnknownMessage and ErrClosed mean that nothing was written and that the journal goes on. Any
// other error is final: whether b is on disk is unknown, every later Commit returns the same error, and the caller
// ends the process and opens the journal again. A failed sync is never tried again.
//
// Room: batches with a msg record are refused from BytesMax less a reserve (a sixteenth of it, at most 64 MiB) on, so
// that receipts, terms and the like for what was already accepted may be written until BytesMax.
func (j *Journal) Commit(b Batch) (first uint64, err error) {
	j.wmu.Lock()
	defer j.wmu.Unlock()
	switch {
	case j.closed.Load():
		return 0, ErrClosed
	case j.failed != nil:
		return 0, j.failed
	}
	if b.empty() {
		return j.next, nil
	}
	t := &transaction{j: j, c: j.writer, next: j.next, logs: map[protocol.LogID]*logState{}, later: !b.voids()}
	if err := t.plan(&b); err != nil {
		return 0, err
	}
	if err := j.room(&b); err != nil {
		if !errors.Is(err, ErrFull) {
			j.failed = err
		}
		return 0, err
	}
	err = inTransaction(j.writer, func() error { return t.write(&b) })
	switch {
	case err == nil:
		first = j.next
		j.install(t)
		if err := j.boundWAL(); err != nil {
			j.failed = err // b is safe, what follows is not
		}
		return first, nil
	case errors.Is(err, ErrUnknownMessage) && j.writer.db.GetAutocommit():
		return 0, err
	case isFull(err) && j.writer.db.GetAutocommit():
		j.log.Warn("no room for a commit", "err", err)
		return 0, fmt.Errorf("%w: %w", ErrFull, err)
	}
	j.suspect(err)
	j.failed = fmt.Errorf("commit: %w", err)
	return 0, j.failed
}

// install makes a committed transaction visible to queries.
func (j *Journal) install(t *transaction) {
	j.mu.Lock()
	for id, l := range t.logs {
		j.logs[id], j.rows[l.row] = l, l
	}
	j.count += t.next - j.next
	j.mu.Unlock()
	j.next = t.next
	j.last.Store(t.next - 1)
	for _, r := range t.earlyAdded {
		j.early[r] = true
	}
	for _, r := range t.earlyGone {
		delete(j.early, r)
	}
	if t.filedAll {
		j.unfiled = nil
	}
	j.unfiled = append(j.unfiled, t.unfiled...)
	for _, s := range t.settled {
		if i, ok := unfiledAt(j.unfiled, s.pos); ok {
			j.unfiled[i].settle(s.tier)
		}
	}
	for ref, at := range t.fresh {
		j.places.put(ref, at)
	}
	j.unmeasured += t.bytes
	select {
	case j.grew <- struct{}{}:
	default:
	}
}

// transaction is one Commit under way. What it learns reaches the Journal only when it is committed.
type transaction struct {
	j     *Journal
	c     *conn
	next  uint64
	logs  map[protocol.LogID]*logState // touched logs as they will be
	bytes int64

	fresh map[msgRef]place // messages of this transaction

	later    bool      // messages are filed later
	unfiled  []filing  // those of this transaction
	filedAll bool      // what waited before it is filed by it
	settled  []settled // tiers of messages that wait

	earlyAdded, earlyGone []msgRef
}

// plan checks that the records continue their logs, before anything is written.
func (t *transaction) plan(b *Batch) error {
	for i := range b.Entries {
		e := &b.Entries[i]
		l := t.log(e.Record.Log)
		if e.Record.Seq != l.seq+1 || e.Record.Prev != l.hash {
			return fmt.Errorf("%w: %s has seq %d, the record is seq %d", ErrGap, l.text, l.seq, e.Record.Seq)
		}
		if e.Hash == (protocol.Hash{}) {
			e.Hash = e.Record.Hash()
		}
		l.seq, l.hash = e.Record.Seq, e.Hash
		t.bytes += int64(len(e.Record.Body)) + 512 // with its rows and index entries
	}
	t.bytes += int64(len(b.Inbox)+len(b.Tiers)) * 256
	for k, v := range b.Values {
		t.bytes += int64(len(k) + len(v))
	}
	return nil
}

// log returns this transaction's own state of a log; row 0 means that it has no row yet.
func (t *transaction) log(id protocol.LogID) *logState {
	if l := t.logs[id]; l != nil {
		return l
	}
	t.j.mu.RLock()
	held := t.j.logs[id]
	t.j.mu.RUnlock()
	l := &logState{id: id}
	if held != nil {
		*l = *held
	} else {
		l.text = id.String()
	}
	t.logs[id] = l
	return l
}

func (t *transaction) write(b *Batch) error {
	if len(t.j.unfiled) >= fileAt || !t.later {
		if err := t.fileAll(); err != nil {
			return err
		}
	}
	for _, l := range t.logs {
		if err := t.putHead(l); err != nil {
			return err
		}
	}
	for _, agent := range b.Left {
		if err := t.leaveInbox(agent); err != nil {
			return err
		}
	}
	for i := range b.Entries {
		if err := t.putRecord(&b.Entries[i]); err != nil {
			return err
		}
	}
	for i := range b.Inbox {
		if err := t.putInbox(&b.Inbox[i]); err != nil {
			return err
		}
	}
	for i := range b.Tiers {
		if err := t.putTier(&b.Tiers[i]); err != nil {
			return err
		}
	}
	for i := range b.Renames {
		if err := t.renameInbox(&b.Renames[i]); err != nil {
			return err
		}
	}
	for k, v := range b.Values {
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
	return nil
}

// putHead writes the head that the log will have, making the log's row when it has none.
func (t *transaction) putHead(l *logState) error {
	if l.row != 0 {
		return t.c.exec("UPDATE logs SET seq=?, hash=? WHERE id=?", l.seq, l.hash[:], l.row)
	}
	if err := t.c.exec("INSERT INTO logs(name, seq, hash) VALUES(?, ?, ?)", l.text, l.seq, l.hash[:]); err != nil {
		return fmt.Errorf("log %s: %w", l.text, err)
	}
	l.row = t.c.db.LastInsertRowID()
	// A reader may meet the row as soon as the transaction is committed, which is before install. Left there by a
	// transaction that is rolled back it does no harm: whoever gets the row next writes over it.
	t.j.mu.Lock()
	t.j.rows[l.row] = &logState{row: l.row, id: l.id, text: l.text}
	t.j.mu.Unlock()
	return nil
}

func (t *transaction) putRecord(e *Entry) error {
	r, l, pos := &e.Record, t.logs[e.Record.Log], t.next
	err := t.c.exec("INSERT INTO records(pos, log, seq, prev, hash, at, wall, kind, sig, body) VALUES(?,?,?,?,?,?,?,?,?,?)",
		pos, l.row, r.Seq, r.Prev[:], e.Hash[:], uint64(r.At), r.Wall, string(r.Kind), packSig(r.Sig), orEmpty(r.Body))
	if err != nil {
		return fmt.Errorf("record %s seq %d: %w", l.text, r.Seq, err)
	}
	t.next++
	if r.Kind != protocol.KindMessage {
		return nil
	}
	if e.Void {
		return t.fileVoid(pos, r)
	}
	env := e.Envelope
	if env == nil {
		if env = decode(r.Body); env == nil {
			return nil
		}
	}
	return t.putMessage(pos, l, r, env)
}

// decode returns the envelope in a body, nil when it is none.
func decode(body []byte) *protocol.Envelope {
	env := new(protocol.Envelope)
	if json.Unmarshal(body, env) != nil {
		return nil
	}
	return env
}

func orEmpty(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

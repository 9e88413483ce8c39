package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

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
	// Sign says that the record ends a commit of this node's and has no signature yet: Options.Sign makes it while the commit is
	// on its way to the disk, which takes longer. Record.Sig is there when Commit returns nil.
	Sign bool
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

func (b *Batch) empty() bool {
	return len(b.Entries) == 0 && len(b.Inbox) == 0 && len(b.Tiers) == 0 && len(b.Renames) == 0 && len(b.Left) == 0 && len(b.Values) == 0
}

// Commit makes b durable with one write and one sync. When it returns nil, all of b is on stable storage, and first is
// the position of its first record; positions are consecutive, follow the order of arrival here and are never given
// twice. Records must continue their logs (Seq is the head's plus one, Prev its hash), else ErrGap. b belongs to the
// journal afterwards.
//
// Signatures that are made meanwhile (Entry.Sign) may not be on the disk when Commit returns. What they sign is, so a start
// after a crash makes the same ones again, before anybody can ask for the records.
//
// Inbox rows and receipts of messages that left are nothing to do.
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
	if j.closed.Load() {
		return 0, ErrClosed
	}
	if err := j.failure(); err != nil {
		return 0, err
	}
	if b.empty() {
		return j.next, nil
	}
	c, err := j.plan(&b)
	if err != nil {
		return 0, err
	}
	if c.unsigned > 0 && j.opts.Sign == nil {
		return 0, errors.New("commit: nobody signs for this store")
	}
	if err := j.room(&b); err != nil {
		if !errors.Is(err, ErrFull) {
			j.fail(err)
		}
		return 0, err
	}
	if err := j.keep(c); err != nil {
		if errors.Is(err, ErrFull) {
			j.log.Warn("no room for a commit", "err", err)
			return 0, err
		}
		return 0, j.fail(fmt.Errorf("commit: %w", err))
	}
	j.settleUsed()
	j.grow()
	return c.first, nil
}

// grewEvery is how often commits wake Run, unless there is something for it to do at once: a wake-up costs as much as the
// rest of a commit. It is less than all that Run waits for.
const grewEvery = 100 * time.Millisecond

// grow wakes Run.
func (j *Journal) grow() {
	now := time.Now()
	if now.Sub(j.grewAt) < grewEvery && j.unfiledRecords.Load() < fillAt {
		return
	}
	select {
	case j.grew <- struct{}{}:
		j.grewAt = now
	default:
	}
}

// keep makes a commit durable and lets queries see it.
func (j *Journal) keep(c *accepted) error {
	if j.behind() { // whoever commits faster than the database is filled waits for it
		if err := j.fill(true); err != nil {
			return err
		}
		if j.behind() {
			return fmt.Errorf("%w: there is no room in the database", ErrFull)
		}
	}
	text := func(id protocol.LogID) string { return c.logs[id].text }
	signed := j.signBeside(c)
	half, err := j.ahead.put(&c.b, text, j.freeHalf)
	if errors.Is(err, errBehind) {
		if err = j.fill(true); err == nil {
			half, err = j.ahead.put(&c.b, text, j.freeHalf)
		}
	}
	signed()
	switch {
	case err == nil:
		c.half = half
		j.accept(c)
		return nil
	case errors.Is(err, errLarge):
		return j.fillWith(c)
	case errors.Is(err, errBehind):
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

// accepted is a commit that is durable and not in the database yet.
type accepted struct {
	number uint64
	first  uint64 // position of its first record
	b      Batch
	logs   map[protocol.LogID]*planned // what it touches, as it will be
	row    int64                       // the next free one
	bytes  int64                       // about, in the database
	half   int                         // of ahead; -1: in neither
	says   []said                      // its messages

	unsigned int // entries to sign
}

// said is a message that is not filed yet.
type said struct {
	id  protocol.Digest // its identity
	log protocol.LogID
	seq uint64
	pos uint64
	env *protocol.Envelope
}

// planned is a log as a commit will leave it.
type planned struct {
	logState
	entries []int // of the batch, in order of seq
}

// plan checks that b can be written, before anything is.
func (j *Journal) plan(b *Batch) (*accepted, error) {
	c := &accepted{number: j.ahead.next, first: j.next, b: *b, logs: map[protocol.LogID]*planned{}, row: j.nextRow}
	for i := range b.Entries {
		e := &b.Entries[i]
		l := c.log(j, e.Record.Log)
		if e.Record.Seq != l.seq+1 || e.Record.Prev != l.hash {
			return nil, fmt.Errorf("%w: %s has seq %d, the record is seq %d", ErrGap, l.text, l.seq, e.Record.Seq)
		}
		if e.Hash == (protocol.Hash{}) {
			e.Hash = e.Record.Hash()
		}
		if e.Sign {
			c.unsigned++
		}
		l.seq, l.hash, l.entries = e.Record.Seq, e.Hash, append(l.entries, i)
		c.bytes += int64(len(e.Record.Body)) + 512 // with its rows and index entries
		if e.Record.Kind != protocol.KindMessage || e.Void {
			continue
		}
		if e.Envelope == nil {
			if e.Envelope = decode(e.Record.Body); e.Envelope == nil {
				continue
			}
		}
		c.says = append(c.says, said{e.Envelope.Identity(), l.id, e.Record.Seq, c.first + uint64(i), e.Envelope})
	}
	c.b.Inbox = slices.DeleteFunc(c.b.Inbox, func(p InboxPut) bool { // what left is dealt with
		return p.Seq > 0 && p.Seq <= c.log(j, p.Log).base
	})
	for i := range c.b.Inbox {
		p := &c.b.Inbox[i]
		if ok, err := j.holds(c, p); err != nil || !ok {
			if err == nil {
				err = fmt.Errorf("%w: %s seq %d for %s", ErrUnknownMessage, p.Log, p.Seq, p.Agent)
			}
			return nil, err
		}
	}
	for i := range b.Tiers {
		c.log(j, b.Tiers[i].Log)
	}
	c.bytes += int64(len(b.Inbox)+len(b.Tiers)) * 256
	for k, v := range b.Values {
		c.bytes += int64(len(k) + len(v))
	}
	return c, nil
}

// log returns the commit's own state of a log, giving it a row when it has none.
func (c *accepted) log(j *Journal, id protocol.LogID) *planned {
	if l := c.logs[id]; l != nil {
		return l
	}
	l := &planned{}
	if held := j.logOf(id); held != nil {
		l.logState = *held
	} else {
		l.logState = logState{row: c.row, id: id, text: id.String()}
		c.row++
	}
	c.logs[id] = l
	return l
}

// holds says whether the message of an inbox row is in the batch or here already.
func (j *Journal) holds(c *accepted, p *InboxPut) (bool, error) {
	l := c.log(j, p.Log)
	if p.Seq == 0 || p.Seq > l.seq {
		return false, nil
	}
	if old := l.seq - uint64(len(l.entries)); p.Seq > old {
		return c.b.Entries[l.entries[p.Seq-old-1]].Record.Kind == protocol.KindMessage, nil
	}
	var n int64
	err := j.read(func(r *conn) (err error) {
		n, err = r.number("SELECT count(*) FROM records WHERE log=? AND seq=? AND kind='msg'", l.row, p.Seq)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("inbox of %s: %w", p.Agent, err)
	}
	return n > 0, nil
}

// accept lets queries see a commit that is durable.
func (j *Journal) accept(c *accepted) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for id, l := range c.logs {
		state := l.logState
		j.logs[id], j.rows[l.row] = &state, &state
	}
	j.count += uint64(len(c.b.Entries))
	j.next += uint64(len(c.b.Entries))
	j.nextRow = c.row
	j.last.Store(j.next - 1)
	j.unmeasured += c.bytes
	if c.half < 0 {
		return
	}
	for i := range c.says {
		j.heard(&c.says[i])
	}
	j.unfiled = append(j.unfiled, c)
	j.waits.Store(true)
	j.inHalf[c.half]++
	j.unfiledRecords.Add(int64(len(c.b.Entries)))
	j.unfiledBytes += c.bytes
}

// heard notes a message that the database does not have yet. Called with mu held, or before Open returns.
func (j *Journal) heard(s *said) {
	if _, earlier := j.unfiledSaid[s.id]; !earlier {
		j.unfiledSaid[s.id] = *s
	}
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

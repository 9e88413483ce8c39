package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
)

// errPower says that the process ended while it wrote: whether the batch is there shows at the next start.
var errPower = errors.New("the power is gone")

// Disk is a journal in memory. What Write wrote and Sync did not make durable is undone by Crash, or is all there: the
// real store promises no more and no less. Make one with NewDisk.
type Disk struct {
	logs    map[protocol.LogID]*shelf
	order   *shelf // by position, which begins at 1
	firsts  map[protocol.Digest]*diskRecord
	byID    map[protocol.MsgID][]*diskRecord
	inbox   map[protocol.AgentID][]*inboxRow // by folded id, in order of position
	tiers   map[placeKey][]journal.TierPut
	values  map[string][]byte
	folds   map[string]fold
	undo    []func()               // of what is written and not synced, in order
	pending map[protocol.LogID]int // records among it
	limbo   func()                 // a Leave whose sync failed

	bases    map[protocol.LogID]journal.Base
	snapshot []byte // nil: none
	sign     journal.Signer

	// Faults, set by the world.
	Full  bool // nothing finds room
	Fails bool // the next sync fails: that is final
	Short bool // reads come short, which the checksums show
	dead  error
}

type placeKey struct {
	log protocol.LogID
	seq uint64
}

type diskRecord struct {
	journal.Stored
	env *protocol.Envelope // of messages whose words count
}

type inboxRow struct {
	agent  protocol.AgentID
	rec    *diskRecord
	state  inboxState
	reason string
}

type inboxState int

const (
	open inboxState = iota
	processed
	dead
)

type fold struct {
	pos  uint64
	data []byte
}

// NewDisk is an empty store. What is to be signed is signed as soon as it is written: that the real store makes the same
// signature again after a crash is part of Contract.
func NewDisk(sign journal.Signer) *Disk {
	return &Disk{
		sign: sign,
		logs: map[protocol.LogID]*shelf{}, order: newShelf(), firsts: map[protocol.Digest]*diskRecord{}, byID: map[protocol.MsgID][]*diskRecord{},
		inbox: map[protocol.AgentID][]*inboxRow{}, tiers: map[placeKey][]journal.TierPut{}, values: map[string][]byte{}, folds: map[string]fold{}, pending: map[protocol.LogID]int{},
		bases: map[protocol.LogID]journal.Base{},
	}
}

// Commit writes and syncs.
func (d *Disk) Commit(b journal.Batch) (uint64, error) {
	first, err := d.Write(b)
	if err == nil {
		err = d.Sync()
	}
	return first, err
}

// Write is the first half of a Commit: all of b is on its way, and nothing of it is durable.
func (d *Disk) Write(b journal.Batch) (first uint64, err error) {
	if d.dead != nil {
		return 0, d.dead
	}
	if len(b.Entries)+len(b.Inbox)+len(b.Tiers)+len(b.Renames)+len(b.Left)+len(b.Values) == 0 {
		return d.Position() + 1, nil
	}
	if err := d.plan(b.Entries); err != nil {
		return 0, err
	}
	if d.Full {
		return 0, journal.ErrFull
	}
	first = d.Position() + 1
	mark := len(d.undo)
	for _, agent := range b.Left {
		d.leave(agent)
	}
	for i := range b.Entries {
		if e := &b.Entries[i]; e.Sign {
			d.sign(&e.Record, e.Hash)
		}
		d.putRecord(&b.Entries[i])
	}
	for _, p := range b.Inbox {
		if err := d.putInbox(p); err != nil {
			d.rollback(mark)
			return 0, err
		}
	}
	for _, t := range b.Tiers {
		d.putTier(t)
	}
	for _, r := range b.Renames {
		d.rename(r)
	}
	for k, v := range b.Values {
		d.putValue(k, v)
	}
	return first, nil
}

// Sync makes what was written durable, or fails for good.
func (d *Disk) Sync() error {
	if d.Fails {
		d.dead = errPower
	}
	if d.dead != nil {
		return d.dead
	}
	d.undo = nil
	clear(d.pending)
	return nil
}

// Durable is the last seq of a log that no crash can take.
func (d *Disk) Durable(log protocol.LogID) uint64 { return uint64(d.logs[log].len() - d.pending[log]) }

// Crash ends the process: what is not synced survives whole or not at all. The disk is then as the next start finds it.
func (d *Disk) Crash(survives bool) {
	if !survives {
		d.rollback(0)
	} else if d.limbo != nil {
		d.limbo()
	}
	d.limbo, d.undo, d.dead, d.Fails = nil, nil, nil, false
	clear(d.pending)
}

func (d *Disk) rollback(to int) {
	for i := len(d.undo) - 1; i >= to; i-- {
		d.undo[i]()
	}
	d.undo = d.undo[:to]
}

func (d *Disk) later(f func()) { d.undo = append(d.undo, f) }

func (d *Disk) plan(entries []journal.Entry) error {
	type end struct {
		seq  uint64
		hash protocol.Hash
	}
	ends := map[protocol.LogID]end{}
	for i := range entries {
		e := &entries[i]
		at, ok := ends[e.Record.Log]
		if !ok && d.logs[e.Record.Log].len() > 0 {
			head := d.head(e.Record.Log)
			at = end{head.Seq, head.Hash}
		}
		if e.Record.Seq != at.seq+1 || e.Record.Prev != at.hash {
			return fmt.Errorf("%w: %s has seq %d, the record is seq %d", journal.ErrGap, e.Record.Log, at.seq, e.Record.Seq)
		}
		if e.Hash == (protocol.Hash{}) {
			e.Hash = e.Record.Hash()
		}
		ends[e.Record.Log] = end{e.Record.Seq, e.Hash}
	}
	return nil
}

func (d *Disk) putRecord(e *journal.Entry) {
	r := &diskRecord{Stored: journal.Stored{Pos: uint64(d.order.len()) + 1, Record: e.Record, Hash: e.Hash}}
	log := e.Record.Log
	if d.logs[log] == nil {
		d.logs[log] = newShelf()
	}
	d.order.push(r)
	d.logs[log].push(r)
	d.pending[log]++
	d.later(func() {
		d.pending[log]--
		d.order.pop()
		d.logs[log].pop()
	})
	if e.Record.Kind != protocol.KindMessage || e.Void {
		return
	}
	if r.env = e.Envelope; r.env == nil {
		env, err := protocol.DecodeBody[protocol.Envelope](&e.Record)
		if err != nil {
			return
		}
		r.env = &env
	}
	if id := r.env.Identity(); d.firsts[id] == nil {
		d.firsts[id] = r
		d.later(func() { delete(d.firsts, id) })
	}
	id := r.env.ID
	d.byID[id] = append(d.byID[id], r)
	d.later(func() { d.byID[id] = d.byID[id][:len(d.byID[id])-1] })
}

func (d *Disk) record(log protocol.LogID, seq uint64) *diskRecord {
	if rs := d.logs[log]; seq > 0 && seq <= uint64(rs.len()) {
		return rs.at(int(seq - 1))
	}
	return nil
}

func (d *Disk) putInbox(p journal.InboxPut) error {
	r := d.record(p.Log, p.Seq)
	if p.Seq > 0 && p.Seq <= d.bases[p.Log].Seq {
		return nil
	}
	if r == nil || r.Record.Kind != protocol.KindMessage {
		return fmt.Errorf("%w: %s seq %d for %s", journal.ErrUnknownMessage, p.Log, p.Seq, p.Agent)
	}
	key := protocol.FoldAgentID(p.Agent)
	if slices.ContainsFunc(d.inbox[key], func(o *inboxRow) bool { return o.rec == r }) {
		return nil
	}
	row := &inboxRow{agent: p.Agent, rec: r}
	for _, t := range d.tiers[placeKey{p.Log, p.Seq}] {
		if folded := protocol.FoldAgentID(t.Agent); folded == key || folded == "" {
			row.settle(t.Tier, t.Reason)
		}
	}
	d.setInbox(key, insertRow(d.inbox[key], row))
	return nil
}

// leave drops what is unread in an inbox: it is another home's now.
func (d *Disk) leave(agent protocol.AgentID) {
	key := protocol.FoldAgentID(agent)
	d.setInbox(key, slices.DeleteFunc(slices.Clone(d.inbox[key]), func(r *inboxRow) bool { return r.state == open }))
}

func insertRow(rows []*inboxRow, row *inboxRow) []*inboxRow {
	at, _ := slices.BinarySearchFunc(rows, row.rec.Pos, func(o *inboxRow, pos uint64) int { return int(o.rec.Pos) - int(pos) })
	return slices.Insert(slices.Clone(rows), at, row)
}

func (d *Disk) setInbox(key protocol.AgentID, rows []*inboxRow) {
	old := d.inbox[key]
	d.inbox[key] = rows
	d.later(func() { d.inbox[key] = old })
}

func (r *inboxRow) settle(tier protocol.Tier, reason string) {
	switch {
	case tier == protocol.Processed:
		r.state, r.reason = processed, ""
	case tier == protocol.Refused && r.state == open:
		r.state, r.reason = dead, reason
	}
}

func (d *Disk) putTier(p journal.TierPut) {
	if p.Seq <= d.bases[p.Log].Seq {
		return
	}
	at := placeKey{p.Log, p.Seq}
	key := protocol.FoldAgentID(p.Agent)
	r := d.record(p.Log, p.Seq)
	if key == "" && r != nil && r.env != nil {
		key = protocol.FoldAgentID(r.env.To)
	}
	old := d.tiers[at]
	known := slices.ContainsFunc(old, func(t journal.TierPut) bool {
		return t.Tier == p.Tier && protocol.FoldAgentID(t.Agent) == protocol.FoldAgentID(p.Agent)
	})
	if !known {
		i := len(old)
		for i > 0 && old[i-1].At > p.At {
			i--
		}
		d.tiers[at] = slices.Insert(slices.Clone(old), i, p)
		d.later(func() { d.tiers[at] = old })
	}
	if p.Tier != protocol.Processed && p.Tier != protocol.Refused {
		return
	}
	for _, row := range d.inbox[key] {
		if row.rec == r {
			was := *row
			row.settle(p.Tier, p.Reason)
			d.later(func() { *row = was })
		}
	}
}

func (d *Disk) rename(r journal.InboxRename) {
	from, to := protocol.FoldAgentID(r.From), protocol.FoldAgentID(r.To)
	if from == to {
		return
	}
	rows := d.inbox[to]
	for _, row := range d.inbox[from] {
		if slices.ContainsFunc(rows, func(o *inboxRow) bool { return o.rec == row.rec }) {
			continue
		}
		moved := *row
		moved.agent = r.To
		rows = insertRow(rows, &moved)
	}
	d.setInbox(from, nil)
	d.setInbox(to, rows)
	for _, row := range rows {
		if row.state != open {
			continue
		}
		was := *row
		for _, t := range d.tiers[placeKey{row.rec.Record.Log, row.rec.Record.Seq}] {
			if protocol.FoldAgentID(t.Agent) == to {
				row.settle(t.Tier, was.reason)
			}
		}
		d.later(func() { *row = was })
	}
}

func (d *Disk) putValue(k string, v []byte) {
	old, had := d.values[k]
	if v == nil {
		delete(d.values, k)
	} else {
		d.values[k] = slices.Clone(v)
	}
	d.later(func() {
		if delete(d.values, k); had {
			d.values[k] = old
		}
	})
}

// Copy is the disk as a copy of its folder would be. It shares what never changes.
func (d *Disk) Copy() *Disk {
	c := NewDisk(d.sign)
	for log, rs := range d.logs {
		c.logs[log] = rs.copy()
	}
	c.order = d.order.copy()
	maps.Copy(c.firsts, d.firsts)
	for id, rs := range d.byID {
		c.byID[id] = slices.Clone(rs)
	}
	for key, rows := range d.inbox {
		for _, row := range rows {
			own := *row
			c.inbox[key] = append(c.inbox[key], &own)
		}
	}
	for at, ts := range d.tiers {
		c.tiers[at] = slices.Clone(ts)
	}
	maps.Copy(c.values, d.values)
	maps.Copy(c.folds, d.folds)
	maps.Copy(c.bases, d.bases)
	c.snapshot = d.snapshot
	return c
}

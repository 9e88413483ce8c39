package sim

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
)

// Heads returns the heads of all logs, in no order.
func (d *Disk) Heads() ([]journal.Head, error) {
	out := make([]journal.Head, 0, len(d.logs))
	for log, rs := range d.logs {
		if rs.len() > 0 {
			out = append(out, d.head(log))
		}
	}
	return out, nil
}

// Digest is the journal's.
func (d *Disk) Digest() (string, error) {
	heads, _ := d.Heads()
	return digestOf(heads), nil
}

func digestOf(heads []journal.Head) string {
	type named struct {
		text string
		journal.Head
	}
	all := make([]named, len(heads))
	for i, h := range heads {
		all[i] = named{h.Log.String(), h}
	}
	slices.SortFunc(all, func(a, b named) int { return cmp.Compare(a.text, b.text) })
	h := sha256.New()
	for _, l := range all {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(l.text))))
		h.Write([]byte(l.text))
		h.Write(binary.BigEndian.AppendUint64(nil, l.Seq))
		h.Write(l.Hash[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Range returns whole commits from seq on. While reads come short it returns what came whole.
func (d *Disk) Range(log protocol.LogID, from uint64, maxBytes int) ([]protocol.Record, error) {
	from = max(from, 1)
	if b := d.bases[log]; from <= b.Seq {
		return nil, &journal.BelowError{Base: b}
	}
	left := d.logs[log].len() - int(from-1)
	if d.Short {
		left /= 2
	}
	var out []protocol.Record
	whole, bytes := 0, 0
	for r := range d.logs[log].from(int(from - 1)) {
		if left--; left < 0 {
			break
		}
		bytes += len(r.Record.Body) + 256
		if whole > 0 && bytes > maxBytes {
			break
		}
		out = append(out, r.Record)
		if len(r.Record.Sig) > 0 {
			whole = len(out)
		}
	}
	return out[:whole], nil
}

// At returns one record.
func (d *Disk) At(log protocol.LogID, seq uint64) (journal.Stored, bool, error) {
	if r := d.record(log, seq); r != nil {
		return r.Stored, true, nil
	}
	if b := d.bases[log]; seq > 0 && seq <= b.Seq {
		return journal.Stored{}, false, &journal.BelowError{Base: b}
	}
	return journal.Stored{}, false, nil
}

// Since returns records after a position, in order.
func (d *Disk) Since(pos uint64, limit int) ([]journal.Stored, error) {
	var out []journal.Stored
	for r := range d.order.from(int(pos)) {
		if len(out) == limit {
			break
		}
		out = append(out, r.Stored)
	}
	return out, nil
}

// Position is that of the newest record.
func (d *Disk) Position() uint64 { return uint64(d.order.len()) }

// Identity returns the first message under an identity.
func (d *Disk) Identity(id protocol.Digest) (journal.IdentityRow, bool, error) {
	r := d.firsts[id]
	if r == nil {
		return journal.IdentityRow{}, false, nil
	}
	return journal.IdentityRow{Content: r.env.Content(), Log: r.Record.Log, Seq: r.Record.Seq, Pos: r.Pos}, true, nil
}

// Tiers returns what receipts say of a message, oldest first.
func (d *Disk) Tiers(log protocol.LogID, seq uint64) ([]journal.TierPut, error) {
	return slices.Clone(d.tiers[placeKey{log, seq}]), nil
}

func (d *Disk) message(r *diskRecord) journal.Message {
	tiers, _ := d.Tiers(r.Record.Log, r.Record.Seq)
	return journal.Message{Pos: r.Pos, Log: r.Record.Log, Seq: r.Record.Seq, At: r.Record.At, Wall: r.Record.Wall, Envelope: *r.env, Tiers: tiers}
}

// Message returns the message at a place; none while reads come short.
func (d *Disk) Message(log protocol.LogID, seq uint64) (journal.Message, bool, error) {
	r := d.record(log, seq)
	if r == nil || r.env == nil || d.Short {
		return journal.Message{}, false, nil
	}
	return d.message(r), true, nil
}

// MessageByID returns the message of a sender under an id; with an empty sender the newest of anybody.
func (d *Disk) MessageByID(from protocol.AgentID, id protocol.MsgID) (journal.Message, bool, error) {
	var r *diskRecord
	if from != "" {
		r = d.firsts[protocol.IdentityOf(from, id)]
	} else if all := d.byID[id]; len(all) > 0 {
		r = all[len(all)-1]
	}
	if r == nil {
		return journal.Message{}, false, nil
	}
	return d.message(r), true, nil
}

// Inbox returns rows of an agent's inbox, oldest first.
func (d *Disk) Inbox(agent protocol.AgentID, q journal.InboxQuery) (out []journal.InboxRow, err error) {
	for _, row := range d.inbox[protocol.FoldAgentID(agent)] {
		if row.rec.env == nil || row.rec.Pos <= q.After || q.Dead && row.state != dead || !q.Dead && !q.All && row.state != open {
			continue
		}
		r := journal.InboxRow{Message: d.message(row.rec), Processed: row.state == processed}
		if row.state == dead {
			r.Dead = cmp.Or(row.reason, "refused")
		}
		if out = append(out, r); len(out) == q.Limit {
			break
		}
	}
	return out, nil
}

// Outbox returns a sender's messages that somebody should still process; with dead, those that nobody will.
func (d *Disk) Outbox(from protocol.AgentID, deadOnes bool, limit int) (out []journal.Message, err error) {
	for r := range d.order.from(0) {
		if r.env == nil || r.env.From == "" || r.env.To == "" && r.env.Room == "" || protocol.FoldAgentID(r.env.From) != protocol.FoldAgentID(from) {
			continue
		}
		state := open
		for _, t := range d.tiers[placeKey{r.Record.Log, r.Record.Seq}] {
			switch {
			case t.Tier == protocol.Processed:
				state = processed
			case t.Tier == protocol.Refused && state == open:
				state = dead
			}
		}
		if (state == dead) != deadOnes || state == processed {
			continue
		}
		if out = append(out, d.message(r)); len(out) == limit {
			break
		}
	}
	return out, nil
}

// Value returns a named value.
func (d *Disk) Value(key string) ([]byte, bool, error) {
	v, ok := d.values[key]
	return v, ok, nil
}

// ValuesWithPrefix returns the values whose keys begin with prefix.
func (d *Disk) ValuesWithPrefix(prefix string) (map[string][]byte, error) {
	out := map[string][]byte{}
	for k, v := range d.values {
		if strings.HasPrefix(k, prefix) {
			out[k] = v
		}
	}
	return out, nil
}

// SaveCheckpoint keeps a fold, with a sync of its own.
func (d *Disk) SaveCheckpoint(name string, pos uint64, data []byte) error {
	if d.dead != nil || d.Full {
		return journal.ErrFull
	}
	d.folds[name] = fold{pos, slices.Clone(data)}
	return nil
}

// Checkpoint returns a fold, unless it is of records that are not here.
func (d *Disk) Checkpoint(name string) (uint64, []byte, bool, error) {
	f, ok := d.folds[name]
	if !ok || f.pos > d.Position() {
		return 0, nil, false, nil
	}
	return f.pos, f.data, true, nil
}

// Addressed lists all messages of a hybrid time and later that name an agent as their target or are in its inbox, oldest first.
func (d *Disk) Addressed(agent protocol.AgentID, since protocol.HLC) (out []journal.Place, err error) {
	key := protocol.FoldAgentID(agent)
	for r := range d.order.from(0) {
		to := r.env != nil && protocol.FoldAgentID(r.env.To) == key
		if r.Record.At >= since && (to || slices.ContainsFunc(d.inbox[key], func(row *inboxRow) bool { return row.rec == r })) {
			out = append(out, journal.Place{Log: r.Record.Log, Seq: r.Record.Seq, Pos: r.Pos})
		}
	}
	return out, nil
}

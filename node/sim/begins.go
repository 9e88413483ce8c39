package sim

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
)

// head is the end of a log; its seq is 0 when there is none.
func (d *Disk) head(log protocol.LogID) journal.Head {
	rs := d.logs[log]
	h := journal.Head{Log: log, Seq: uint64(rs.len())}
	if b := d.bases[log]; b.Seq == h.Seq {
		h.Hash = b.Hash
	} else {
		h.Hash = rs.last().Hash
	}
	return h
}

// Leave has records leave, durably.
func (d *Disk) Leave(bases []journal.Base, snapshot []byte) error {
	return d.rebase(bases, snapshot, false)
}

// Begin is Leave for a store that begins at a snapshot of others.
func (d *Disk) Begin(bases []journal.Base, snapshot []byte) error {
	return d.rebase(bases, snapshot, true)
}

// Sweep has nothing to do: what left is gone.
func (d *Disk) Sweep(int) (bool, error) { return false, d.dead }

// Bases returns those of all logs that have one, by the text of the log.
func (d *Disk) Bases() []journal.Base {
	out := make([]journal.Base, 0, len(d.bases))
	for _, b := range d.bases {
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b journal.Base) int { return cmp.Compare(a.Log.String(), b.Log.String()) })
	return out
}

// Base returns the base of a log.
func (d *Disk) Base(log protocol.LogID) (journal.Base, bool) {
	b, ok := d.bases[log]
	return b, ok
}

// Snapshot returns what was given with the last bases.
func (d *Disk) Snapshot() ([]byte, bool, error) { return d.snapshot, d.snapshot != nil, nil }

func (d *Disk) rebase(bases []journal.Base, snapshot []byte, jump bool) error {
	if d.dead != nil {
		return d.dead
	}
	if d.Full {
		return journal.ErrFull
	}
	if err := d.mayRebase(bases, jump); err != nil {
		return err
	}
	now := append([]byte{}, snapshot...)
	change := func() {
		for _, b := range bases {
			d.drop(b)
		}
		d.snapshot = now
	}
	if d.Fails {
		d.dead, d.limbo = errPower, change
		return d.dead
	}
	change()
	return nil
}

func (d *Disk) mayRebase(bases []journal.Base, jump bool) error {
	seen := map[protocol.LogID]bool{}
	for _, b := range bases {
		is := d.bases[b.Log]
		switch r := d.record(b.Log, b.Seq); {
		case b.Seq == 0 || seen[b.Log] || b.Seq < is.Seq:
			return journal.ErrBase
		case b.Seq == is.Seq && b == is, r != nil && r.Hash == b.Hash, r == nil && jump && b.Seq > uint64(d.logs[b.Log].len()):
		default:
			return fmt.Errorf("%w: %s %d", journal.ErrBase, b.Log, b.Seq)
		}
		seen[b.Log] = true
	}
	for agent, rows := range d.inbox {
		for _, row := range rows {
			r := &row.rec.Record
			if row.state == open && slices.ContainsFunc(bases, func(b journal.Base) bool { return b.Log == r.Log && r.Seq <= b.Seq }) {
				return fmt.Errorf("%w: %s %d for %s", journal.ErrUndelivered, r.Log, r.Seq, agent)
			}
		}
	}
	if len(bases) == 0 {
		return journal.ErrBase
	}
	return nil
}

// drop takes away what is at or below a base.
func (d *Disk) drop(b journal.Base) {
	rs := d.logs[b.Log]
	if rs == nil {
		rs = newShelf()
		d.logs[b.Log] = rs
	}
	gone := func(r *diskRecord) bool { return r.Record.Log == b.Log && r.Record.Seq <= b.Seq }
	for key, rows := range d.inbox {
		d.inbox[key] = slices.DeleteFunc(slices.Clone(rows), func(row *inboxRow) bool { return gone(row.rec) })
	}
	for at := range d.tiers {
		if at.log == b.Log && at.seq <= b.Seq {
			delete(d.tiers, at)
		}
	}
	from := d.bases[b.Log].Seq
	d.bases[b.Log] = b
	for seq := from; seq < min(b.Seq, uint64(rs.len())); seq++ {
		r := rs.at(int(seq))
		d.order.drop(int(r.Pos - 1))
		rs.drop(int(seq))
		if r.env == nil {
			continue
		}
		id := r.env.Identity()
		d.byID[r.env.ID] = slices.DeleteFunc(slices.Clone(d.byID[r.env.ID]), func(o *diskRecord) bool { return o == r })
		if d.firsts[id] == r {
			delete(d.firsts, id)
			for _, o := range d.byID[r.env.ID] { // in order of position
				if o.env.Identity() == id {
					d.firsts[id] = o
					break
				}
			}
		}
	}
	rs.skip(int(b.Seq))
}

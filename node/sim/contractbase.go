package sim

import (
	"cmp"
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
)

// contractStarts is how many logs each author has.
const contractStarts = 2

// heads are the ends of logs that have one, in an order.
func (c *contract) heads() []journal.Head {
	out := slices.Collect(maps.Values(c.ends))
	return slices.SortedFunc(slices.Values(out), func(a, b journal.Head) int { return cmp.Compare(a.Log.String(), b.Log.String()) })
}

// bases draws bases of some logs, and processes what waits below them or does not.
func (c *contract) bases(settle bool) (out []journal.Base) {
	for _, h := range c.heads() {
		is := c.want.bases[h.Log]
		if h.Seq == is.Seq || c.rng.IntN(2) == 0 {
			continue
		}
		b := journal.Base{Log: h.Log, Seq: is.Seq + 1 + c.rng.Uint64N(h.Seq-is.Seq)}
		st, _, _ := c.want.At(h.Log, b.Seq)
		b.Hash = st.Hash
		out = append(out, b)
	}
	if !settle {
		return out
	}
	done := journal.Batch{}
	for _, agent := range contractAgents {
		rows, _ := c.want.Inbox(agent, journal.InboxQuery{})
		for _, r := range rows {
			if slices.ContainsFunc(out, func(b journal.Base) bool { return b.Log == r.Log && r.Seq <= b.Seq }) {
				c.at++
				done.Tiers = append(done.Tiers, journal.TierPut{Log: r.Log, Seq: r.Seq, Tier: protocol.Processed, Agent: agent, At: 7<<16 + c.at, Wall: int64(c.at), By: r.Log.Peer})
			}
		}
	}
	if len(done.Tiers) > 0 {
		c.commit(done)
	}
	return out
}

// leave: bases are in force at once and wholly or not at all, also when the power goes or there is no room.
func (c *contract) leave() {
	bases := c.bases(c.rng.IntN(4) > 0)
	snapshot := make([]byte, c.rng.IntN(3000))
	for i := range snapshot {
		snapshot[i] = byte(c.rng.Uint32())
	}
	if c.rng.IntN(6) == 0 && len(bases) > 0 {
		wrong := slices.Clone(bases)
		wrong[0].Hash[0]++
		if err := c.rig.Store.Leave(wrong, snapshot); !errors.Is(err, journal.ErrBase) {
			c.t.Fatalf("a base that is another record: got %v", err)
		}
	}
	switch c.rng.IntN(5) {
	case 0:
		c.rig.Full(true)
	case 1:
		c.rig.Power(1 + c.rng.IntN(12))
	}
	c.rebase(bases, snapshot, Store.Leave)
}

func (c *contract) rebase(bases []journal.Base, snapshot []byte, how func(Store, []journal.Base, []byte) error) {
	err := how(c.rig.Store, bases, snapshot)
	c.rig.Full(false)
	switch {
	case err == nil:
		if err := how(c.want, bases, snapshot); err != nil {
			c.t.Fatalf("the model refuses to let records leave: %v", err)
		}
		c.rig.Power(0)
		c.compare("after a leave")
	case errors.Is(err, journal.ErrFull):
		c.rig.Power(0)
	case errors.Is(err, journal.ErrBase), errors.Is(err, journal.ErrUndelivered):
		c.rig.Power(0)
		if want := how(c.want, bases, snapshot); !errors.Is(err, cmp.Or(errors.Unwrap(want), want)) {
			c.t.Fatalf("records do not leave: %v, want %v", err, want)
		}
	default:
		c.rig.Store = c.rig.Reopen()
		if slices.Equal(c.rig.Store.Bases(), c.want.Bases()) {
			return
		}
		if err := how(c.want, bases, snapshot); err != nil {
			c.t.Fatalf("the model refuses to let records leave: %v", err)
		}
		c.compare("after a leave whose end was not seen")
	}
}

// sweep changes no answer, however it ends.
func (c *contract) sweep() {
	if c.rng.IntN(3) == 0 {
		c.rig.Power(1 + c.rng.IntN(12))
	}
	for range 40 {
		more, err := c.rig.Store.Sweep(1 + c.rng.IntN(20))
		if err != nil && !errors.Is(err, journal.ErrFull) {
			c.rig.Store = c.rig.Reopen()
		}
		if err == nil && !more {
			break
		}
	}
	c.rig.Power(0)
	c.compare("after a sweep")
}

// begin: a log of which nothing is here goes on behind a base.
func (c *contract) begin() {
	a := c.authors[c.rng.IntN(len(c.authors))]
	log := protocol.LogID{Peer: protocol.PeerIDOf(a.Public().(ed25519.PublicKey)), Start: protocol.Start{At: 7 << 16, Rand: uint64(c.rng.IntN(contractStarts))}, Scope: protocol.ScopeInside}
	b := journal.Base{Log: log, Seq: c.ends[log].Seq + 1 + c.rng.Uint64N(40)}
	b.Hash[0], b.Hash[1] = byte(b.Seq), 1
	c.rebase([]journal.Base{b}, []byte("begins"), Store.Begin)
	if is, ok := c.want.Base(log); ok && is == b {
		c.ends[log] = journal.Head{Log: log, Seq: b.Seq, Hash: b.Hash}
	}
}

// beginnings are the answers about where logs begin.
func beginnings(s Store) (out []answer) {
	bases := s.Bases()
	out = append(out, answer{"bases", fmt.Sprint(bases), nil})
	snapshot, found, err := s.Snapshot()
	out = append(out, answer{"snapshot", fmt.Sprintf("%v %x", found, snapshot), err})
	for _, b := range bases {
		is, ok := s.Base(b.Log)
		out = append(out, answer{"base", fmt.Sprint(is == b, ok), nil})
		for seq := b.Seq - min(b.Seq, 2); seq < b.Seq+2; seq++ {
			at, there, err := s.At(b.Log, seq)
			out = append(out, answer{fmt.Sprintf("record %d of a log that begins at %d", seq, b.Seq), fmt.Sprint(there, at.Hash), err})
			part, err := s.Range(b.Log, seq, 600)
			out = append(out, answer{fmt.Sprintf("range from %d of a log that begins at %d", seq, b.Seq), len(part), err})
			tiers, err := s.Tiers(b.Log, seq)
			out = append(out, answer{"its receipts", ordered(tiers), err})
		}
	}
	for n := range 40 * min(len(bases), 1) {
		id := protocol.MsgID(fmt.Sprintf("id-%d", n))
		for _, from := range append([]protocol.AgentID{""}, contractAgents...) {
			m, ok, err := s.MessageByID(from, id)
			out = append(out, answer{fmt.Sprintf("%s of %s", id, from), fmt.Sprint(ok, m.Pos), err})
		}
	}
	return out
}

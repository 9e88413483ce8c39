package sim

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
)

// Rig is a store over a disk whose faults the contract arranges.
type Rig struct {
	Store Store
	// Power has the power go in one of the next commits, at about the nth write from now on; 0: not any more.
	Power func(n int)
	// Full says whether there is room.
	Full func(bool)
	// Reopen ends the process, if the power has not yet, and opens what is left.
	Reopen func() Store
}

// Contract holds a store to what Store promises, by a seeded run of commits that fail in every way: what Commit returned
// nil for is there, what it refused is not, what was cut off is there whole or not at all, and every query answers as
// the plain model does.
func Contract(t testing.TB, seed uint64, rig Rig) {
	c := &contract{t: t, rng: rand.New(rand.NewPCG(seed, 1)), rig: rig, want: NewDisk(ContractSigner), ends: map[protocol.LogID]journal.Head{}}
	c.authors = contractAuthors
	for i := range 60 {
		switch c.rng.IntN(13) {
		case 0:
			c.powerLoss()
		case 1:
			c.noRoom()
		case 2:
			c.refused()
		case 3:
			c.leave()
		case 4:
			c.sweep()
		case 5:
			if c.rng.IntN(4) == 0 {
				c.begin()
			}
		default:
			c.commit(c.batch())
		}
		if i%6 == 5 {
			c.compare(fmt.Sprintf("seed %d step %d", seed, i))
		}
	}
	c.rig.Store = c.rig.Reopen()
	c.compare(fmt.Sprintf("seed %d at the end", seed))
	c.sweep()
	c.compare(fmt.Sprintf("seed %d, swept", seed))
}

var contractAuthors = []ed25519.PrivateKey{keyOf("contract 0"), keyOf("contract 1"), keyOf("contract 2")}

// ContractSigner signs for the authors of Contract. The store is opened with it each time.
var ContractSigner = signerOf(contractAuthors...)

type contract struct {
	t       testing.TB
	rng     *rand.Rand
	rig     Rig
	want    *Disk
	authors []ed25519.PrivateKey
	ends    map[protocol.LogID]journal.Head
	at      protocol.HLC
	ids     int
}

var contractAgents = []protocol.AgentID{"ben", "Cid", "dora"}

// batch draws what a turn could write; the heads move only when it is committed.
func (c *contract) batch() journal.Batch {
	b := journal.Batch{Values: map[string][]byte{}}
	ends := maps.Clone(c.ends)
	var messages []hubRef
	for range 1 + c.rng.IntN(4) {
		a := c.rng.IntN(len(c.authors))
		log := protocol.LogID{Peer: protocol.PeerIDOf(c.authors[a].Public().(ed25519.PublicKey)), Start: protocol.Start{At: 7 << 16, Rand: uint64(c.rng.IntN(contractStarts))}, Scope: protocol.ScopeInside}
		c.at++
		end := ends[log]
		rec := protocol.Record{Log: log, Seq: end.Seq + 1, Prev: end.Hash, At: 7<<16 + c.at, Wall: int64(c.at), Kind: "odd", Body: []byte(`{}`)}
		e := journal.Entry{}
		if c.rng.IntN(3) > 0 {
			env := c.message()
			rec.Kind, rec.Body, e.Envelope = protocol.KindMessage, protocol.EncodeBody(env), &env
			if e.Void = c.rng.IntN(12) == 0; e.Void {
				e.Envelope = nil
			} else {
				messages = append(messages, hubRef{log, rec.Seq})
			}
		}
		if e.Sign = c.rng.IntN(2) == 0; !e.Sign {
			rec.Sign(c.authors[a])
		}
		e.Record, e.Hash = rec, rec.Hash()
		ends[log] = journal.Head{Log: log, Seq: rec.Seq, Hash: e.Hash}
		b.Entries = append(b.Entries, e)
	}
	for _, m := range messages {
		if c.rng.IntN(4) > 0 {
			b.Inbox = append(b.Inbox, journal.InboxPut{Agent: c.agent(), Log: m.log, Seq: m.seq})
		}
	}
	for _, log := range slices.SortedFunc(maps.Keys(ends), func(x, y protocol.LogID) int { return cmp.Compare(x.String(), y.String()) }) {
		if end := ends[log]; end.Seq > 0 && c.rng.IntN(3) == 0 {
			b.Tiers = append(b.Tiers, c.tier(end))
		}
	}
	if from, to := c.agent(), c.agent(); c.rng.IntN(8) == 0 {
		b.Renames = []journal.InboxRename{{From: from, To: to}}
	}
	if key := fmt.Sprint("key/", c.rng.IntN(4)); c.rng.IntN(4) == 0 {
		b.Values[key] = nil
	} else {
		b.Values[key] = fmt.Append(nil, c.rng.Uint32())
	}
	return b
}

type hubRef struct {
	log protocol.LogID
	seq uint64
}

func (c *contract) agent() protocol.AgentID { return contractAgents[c.rng.IntN(len(contractAgents))] }

func (c *contract) message() protocol.Envelope {
	if c.ids == 0 || c.rng.IntN(6) > 0 {
		c.ids++
	}
	return protocol.Envelope{ID: protocol.MsgID(fmt.Sprintf("id-%d", c.ids)), From: c.agent(), To: c.agent(), Source: protocol.SourceAgent,
		Intent: "Note", Value: fmt.Appendf(nil, `{"text":"%d"}`, c.rng.IntN(3))}
}

// tier speaks of some message of a log, held or not yet.
func (c *contract) tier(end journal.Head) journal.TierPut {
	tiers := []protocol.Tier{protocol.Persisted, protocol.Processed, protocol.Refused}
	c.at++
	t := journal.TierPut{Log: end.Log, Seq: 1 + c.rng.Uint64N(end.Seq+2), Tier: tiers[c.rng.IntN(3)], Agent: c.agent(), At: 7<<16 + c.at, Wall: int64(c.at), By: end.Log.Peer}
	if t.Tier == protocol.Refused {
		t.Reason = "inbox-full"
	}
	return t
}

func (c *contract) keep(b journal.Batch) {
	if _, err := c.want.Commit(b); err != nil {
		c.t.Fatalf("the model refuses: %v", err)
	}
	for _, e := range b.Entries {
		c.ends[e.Record.Log] = journal.Head{Log: e.Record.Log, Seq: e.Record.Seq, Hash: e.Hash}
	}
}

func (c *contract) commit(b journal.Batch) {
	c.t.Helper()
	first, err := c.rig.Store.Commit(b)
	if err != nil {
		c.t.Fatalf("commit: %v", err)
	}
	if want := c.want.Position() + 1; first != want {
		c.t.Fatalf("the first record is at %d, want %d", first, want)
	}
	c.keep(b)
}

// refused: a gap and an unknown message leave no trace.
func (c *contract) refused() {
	gap := c.batch()
	gap.Entries[0].Record.Seq += 3
	if _, err := c.rig.Store.Commit(gap); !errors.Is(err, journal.ErrGap) {
		c.t.Fatalf("a gap: got %v", err)
	}
	strange := c.batch()
	last := strange.Entries[len(strange.Entries)-1].Record
	strange.Inbox = append(strange.Inbox, journal.InboxPut{Agent: "ben", Log: last.Log, Seq: last.Seq + 9})
	if _, err := c.rig.Store.Commit(strange); !errors.Is(err, journal.ErrUnknownMessage) {
		c.t.Fatalf("an unknown message: got %v", err)
	}
}

// noRoom: a commit is refused whole, reads go on, and commits do when there is room.
func (c *contract) noRoom() {
	c.rig.Full(true)
	b := c.batch()
	_, err := c.rig.Store.Commit(b)
	c.rig.Full(false)
	switch {
	case err == nil:
		c.keep(b)
	case !errors.Is(err, journal.ErrFull):
		c.t.Fatalf("no room: got %v", err)
	}
}

// powerLoss: all that was acknowledged is there, and what was under way is whole or not there.
func (c *contract) powerLoss() {
	c.rig.Power(1 + c.rng.IntN(12))
	for range 50 {
		b := c.batch()
		if _, err := c.rig.Store.Commit(b); err == nil {
			c.keep(b)
			continue
		}
		if _, err := c.rig.Store.Commit(c.batch()); err == nil {
			c.t.Fatal("a commit after a final error")
		}
		c.rig.Store = c.rig.Reopen()
		if len(b.Entries) == 0 {
			return
		}
		last := b.Entries[len(b.Entries)-1]
		if got, there, err := c.rig.Store.At(last.Record.Log, last.Record.Seq); err != nil {
			c.t.Fatalf("after a power loss: %v", err)
		} else if there && got.Hash == last.Hash {
			c.keep(b)
		}
		c.compare("after a power loss")
		return
	}
	c.t.Fatal("the power never went")
}

// compare asks everything of both.
func (c *contract) compare(when string) {
	c.t.Helper()
	got, want := answers(c.rig.Store), answers(c.want)
	for i := range want {
		if i >= len(got) || !reflect.DeepEqual(got[i], want[i]) {
			c.t.Fatalf("%s: %s, want %s", when, describe(got, i), describe(want, i))
		}
	}
}

type answer struct {
	of  string
	is  any
	err error
}

func describe(all []answer, i int) string {
	if i >= len(all) {
		return "no answer"
	}
	return fmt.Sprintf("%s is %+v (%v)", all[i].of, all[i].is, all[i].err)
}

// answers are what a store says to every question of a node.
func answers(s Store) (out []answer) {
	add := func(of string, is any, err error) { out = append(out, answer{of, is, err}) }
	digest, err := s.Digest()
	add("digest", digest, err)
	add("position", s.Position(), nil)
	all, err := s.Since(0, 1<<20)
	add("records", len(all), err)
	for _, r := range all {
		of := fmt.Sprintf("%d", r.Pos)
		add("record "+of, fmt.Sprintf("%s %x", r.Hash, r.Record.Sig), nil)
		part, err := s.Range(r.Record.Log, r.Record.Seq, 600)
		add("range "+of, len(part), err)
		tiers, err := s.Tiers(r.Record.Log, r.Record.Seq)
		add("tiers "+of, ordered(tiers), err)
		m, ok, err := s.Message(r.Record.Log, r.Record.Seq)
		add("message "+of, fmt.Sprint(ok, m.Pos, m.Envelope.ID, m.Envelope.To), err)
		if !ok {
			continue
		}
		row, ok, err := s.Identity(m.Envelope.Identity())
		add("identity "+of, fmt.Sprint(ok, row), err)
		same, ok, err := s.MessageByID(m.Envelope.From, m.Envelope.ID)
		add("by sender and id "+of, fmt.Sprint(ok, same.Pos), err)
		any, ok, err := s.MessageByID("", m.Envelope.ID)
		add("by id "+of, fmt.Sprint(ok, any.Pos), err)
	}
	for _, agent := range contractAgents {
		for _, q := range []journal.InboxQuery{{}, {All: true}, {Dead: true}, {After: 20, Limit: 2}} {
			rows, err := s.Inbox(agent, q)
			var text bytes.Buffer
			for _, r := range rows {
				fmt.Fprint(&text, r.Pos, r.Processed, r.Dead, "; ")
			}
			add(fmt.Sprintf("inbox of %s %+v", agent, q), text.String(), err)
		}
		for _, dead := range []bool{false, true} {
			ms, err := s.Outbox(agent, dead, 0)
			var at []uint64
			for _, m := range ms {
				at = append(at, m.Pos)
			}
			add(fmt.Sprintf("outbox of %s, dead %v", agent, dead), at, err)
		}
	}
	out = append(out, beginnings(s)...)
	values, err := s.ValuesWithPrefix("key/")
	add("values", values, err)
	return out
}

func ordered(tiers []journal.TierPut) []journal.TierPut {
	slices.SortFunc(tiers, func(a, b journal.TierPut) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.Agent, b.Agent))
	})
	if len(tiers) == 0 {
		return nil
	}
	return tiers
}

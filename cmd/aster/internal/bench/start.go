package bench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
)

// startTimes is how often each start is measured.
const startTimes = 7

// fillCommit is how many records a commit of the filled home has.
const fillCommit = protocol.CommitRecordsMax

func (b *Bench) start(ctx context.Context) ([]Row, error) {
	b.say("start: an empty home, %d times", startTimes)
	var empty, bare []float64
	for i := range startTimes {
		began := time.Now()
		if err := exec.CommandContext(ctx, b.Self, "version").Run(); err != nil {
			return nil, fmt.Errorf("run aster version: %w", err)
		}
		bare = append(bare, time.Since(began).Seconds())
		n, err := b.startNode(ctx, fmt.Sprintf("empty%d", i), "")
		if err != nil {
			return nil, err
		}
		empty = append(empty, n.took.Seconds())
		if err := n.stop(); err != nil {
			return nil, err
		}
	}
	process := median(bare)
	rows := []Row{Row{Bench: "start", Case: "to ready, empty home", Value: median(empty), Unit: "s", Bar: 0.5,
		Raw: []Raw{{"aster version", process, "s"}}}.judge()}
	if err := b.fill(ctx, "filled"); err != nil {
		return rows, err
	}
	b.say("start: a home with %d records, %d times", b.Records, startTimes)
	var filled []float64
	for range startTimes {
		n, err := b.startNode(ctx, "filled", "")
		if err != nil {
			return rows, err
		}
		filled = append(filled, n.took.Seconds())
		s, err := n.client.Status(ctx)
		if err = errors.Join(err, n.stop()); err != nil {
			return rows, err
		}
		if s.Records < uint64(b.Records) {
			return rows, fmt.Errorf("the node has %d records, %d were written", s.Records, b.Records)
		}
	}
	row := Row{Bench: "start", Case: fmt.Sprintf("to ready, %d records", b.Records), Value: median(filled), Unit: "s", Raw: []Raw{{"aster version", process, "s"}}, Bar: 1}
	if b.Records < 1_000_000 {
		row.Note = "the bar is for a million records: --records 1000000"
	}
	return append(rows, row.judge()), nil
}

// fill makes a home as a node leaves it that has run for long: messages between ten agents, all but the last taken and
// processed, its board's checkpoint written and everything indexed.
func (b *Bench) fill(ctx context.Context, name string) (err error) {
	n, err := b.startNode(ctx, name, "") // it makes the keys and founds the mesh
	if err != nil {
		return err
	}
	s, err := n.client.Status(ctx)
	if err = errors.Join(err, n.stop()); err != nil {
		return err
	}
	key, err := homeKey(n.home)
	if err != nil {
		return err
	}
	j, err := journal.Open(filepath.Join(n.home, "journal"), journal.Options{})
	if err != nil {
		return fmt.Errorf("open the home's journal: %w", err)
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	pos, raw, ok, err := j.Checkpoint("board")
	if err != nil || !ok {
		return errors.Join(errors.New("the node left no checkpoint of its board"), err)
	}
	state, err := board.Decode(raw)
	if err != nil {
		return fmt.Errorf("read the board's checkpoint: %w", err)
	}
	f := &filler{Bench: b, author: newAuthor(key), journal: j, state: state, pos: pos}
	if err := f.all(ctx, b.Records-int(s.Records)); err != nil {
		return fmt.Errorf("fill a home: %w", err)
	}
	b.say("start: indexing")
	return indexed(ctx, j, b.Records)
}

// filler writes a long life.
type filler struct {
	*Bench
	*author
	journal *journal.Journal
	state   *board.State
	pos     uint64
}

const fillAgents = 10

func fillAgent(i int) protocol.AgentID { return protocol.AgentID(fmt.Sprintf("agent-%d", i)) }

// all writes count records: bindings first, then messages with their receipts.
func (f *filler) all(ctx context.Context, count int) error {
	var batch journal.Batch
	for i := range fillAgents {
		batch.Entries = append(batch.Entries, f.entry(protocol.KindBind, protocol.BindBody{Agent: fillAgent(i), Home: f.log.Peer, Since: f.clock.Next(time.Now()), Role: protocol.RoleLocal, Client: "ws"}, nil))
	}
	said := time.Now()
	for written := 0; written < count; {
		for i := 0; len(batch.Entries) < min(fillCommit, count-written)-2; i++ {
			e := f.message(fillAgent(i%fillAgents), fillAgent((i+1)%fillAgents))
			batch.Entries = append(batch.Entries, e)
			batch.Inbox = append(batch.Inbox, journal.InboxPut{Agent: e.Envelope.To, Log: e.Record.Log, Seq: e.Record.Seq})
		}
		for _, tier := range []protocol.Tier{protocol.Persisted, protocol.Processed} {
			f.receipts(&batch, tier)
		}
		if err := f.put(batch); err != nil {
			return err
		}
		written += len(batch.Entries)
		batch = journal.Batch{}
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Since(said) > 5*time.Second {
			f.say("start: filling a home, %d of %d records", written, count)
			said = time.Now()
		}
	}
	return f.journal.SaveCheckpoint("board", f.pos, f.state.Encode())
}

// receipts adds, for the messages of the batch, that their recipients have them.
func (f *filler) receipts(batch *journal.Batch, tier protocol.Tier) {
	var ranges []uint64
	for _, e := range batch.Entries {
		if e.Envelope == nil {
			continue
		}
		if n := len(ranges); n > 0 && ranges[n-1] == e.Record.Seq-1 {
			ranges[n-1] = e.Record.Seq
		} else {
			ranges = append(ranges, e.Record.Seq, e.Record.Seq)
		}
	}
	e := f.entry(protocol.KindReceipts, protocol.ReceiptsBody{Tier: tier, Agent: fillAgent(0), Of: []protocol.LogRange{{Log: f.log.String(), Ranges: ranges}}}, nil)
	for _, m := range batch.Entries {
		if m.Envelope != nil {
			batch.Tiers = append(batch.Tiers, journal.TierPut{Log: m.Record.Log, Seq: m.Record.Seq, Tier: tier, Agent: m.Envelope.To, At: e.Record.At, Wall: e.Record.Wall, By: f.log.Peer})
		}
	}
	batch.Entries = append(batch.Entries, e)
}

func (f *filler) put(b journal.Batch) error {
	if err := f.commit(f.journal, b); err != nil {
		return err
	}
	for i := range b.Entries {
		f.pos++
		if err := f.state.Apply(&b.Entries[i].Record, b.Entries[i].Envelope); err != nil {
			return err
		}
	}
	return nil
}

package node

import (
	"bytes"
	"cmp"
	"compress/flate"
	"container/heap"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/member"
)

const (
	// pastEvery is how many records lie between two kept folds: as many as a moment before a kept one costs at most.
	pastEvery = 4096
	// pastBytesMax bounds the kept folds in memory, packed; above it every second one goes.
	pastBytesMax = 16 << 20
	// pastIdle is after how long without a question all of it is forgotten.
	pastIdle = 5 * time.Minute
	// pastRead is how much of a log is read at once.
	pastRead = 128 << 10
)

// past folds the journal up to a moment. The fold is a join in which each log counts from its beginning, so one that
// holds nothing of after a moment can be carried on to it, also by records of before it that arrived since. One question
// is answered at a time.
type past struct {
	store *journal.Journal
	mesh  member.MeshID
	base  func() *board.Snapshot // where the store begins; nil: with the first records
	every int                    // records between two kept folds: pastEvery
	turn  chan struct{}          // holds one token; who has it owns what follows

	state *board.State // the last fold, all that was logged up to upto; nil: none
	upto  protocol.HLC
	kept  []keptFold      // by time
	from  *board.Snapshot // that state and kept stand on

	mu     sync.Mutex
	forget *time.Timer
}

type keptFold struct {
	at  protocol.HLC // the latest record in it
	raw []byte       // packed
}

func newPast(store *journal.Journal, mesh member.MeshID, base func() *board.Snapshot) *past {
	p := &past{store: store, mesh: mesh, base: base, every: pastEvery, turn: make(chan struct{}, 1)}
	p.turn <- struct{}{}
	return p
}

// at lets look see the fold of what was logged up to a hybrid time. look keeps nothing of it.
func (p *past) at(ctx context.Context, until protocol.HLC, look func(*board.State)) error {
	select {
	case <-p.turn:
	case <-ctx.Done():
		return fmt.Errorf("wait for another moment: %w", ctx.Err())
	}
	defer func() { p.turn <- struct{}{} }()
	p.forgetLater()
	if err := p.begin(until); err != nil {
		return err
	}
	if err := p.advance(ctx, until); err != nil {
		p.state = nil
		return err
	}
	look(p.state)
	return nil
}

// forgetLater lets memory go when nobody looks back any more.
func (p *past) forgetLater() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.forget != nil {
		p.forget.Stop()
	}
	p.forget = time.AfterFunc(pastIdle, func() {
		select {
		case <-p.turn:
			p.state, p.kept = nil, nil
			p.turn <- struct{}{}
		default: // somebody is at it
		}
	})
}

// begin takes the latest fold that holds nothing of after until.
func (p *past) begin(until protocol.HLC) error {
	if from := p.base(); from != p.from {
		p.state, p.kept, p.from = nil, nil, from
	}
	if until < p.from.At() {
		return protocol.Refuse(protocol.CodeUnknownID, "what was before %s is no longer here: only what it came to", "aster status says from when on history is kept",
			p.from.Until().Format(time.DateTime))
	}
	i, _ := slices.BinarySearchFunc(p.kept, until, func(k keptFold, t protocol.HLC) int { return cmp.Compare(k.at, t+1) })
	if p.state != nil && p.upto <= until && (i == 0 || p.kept[i-1].at <= p.upto) {
		return nil
	}
	p.state, p.upto = board.New(p.mesh), 0
	if p.from != nil {
		p.state, p.upto = p.from.State(), p.from.At()
	}
	if i == 0 {
		return nil
	}
	raw, err := io.ReadAll(flate.NewReader(bytes.NewReader(p.kept[i-1].raw)))
	if err != nil {
		return fmt.Errorf("unpack a fold: %w", err)
	}
	if p.state, err = board.Decode(raw); err != nil {
		return fmt.Errorf("fold of a past moment: %w", err)
	}
	if p.from != nil {
		p.state.Settle(p.from)
	}
	p.upto = p.kept[i-1].at
	return nil
}

// advance applies what was logged up to until and is not in the fold yet, in hybrid order.
func (p *past) advance(ctx context.Context, until protocol.HLC) error {
	floor := p.upto // folds up to here are kept already, or know more than they should
	for {
		stale, err := p.apply(ctx, until, floor)
		if err != nil || stale == 0 {
			p.upto = until
			return err
		}
		// A record that came late changes what counted: what was folded over it is worth nothing, and what is folded anew
		// knows of it from the beginning.
		p.kept = slices.DeleteFunc(p.kept, func(k keptFold) bool { return k.at >= stale })
		p.state, floor = p.state.Restart(), stale
	}
}

// apply carries the fold on. stale is the time of the record that made it worthless; 0: none did.
func (p *past) apply(ctx context.Context, until, floor protocol.HLC) (stale protocol.HLC, err error) {
	logs, err := p.cursors(until)
	if err != nil {
		return 0, err
	}
	for n := 0; len(logs) > 0; {
		c := logs[0]
		rec := &c.recs[0]
		if err := p.state.Apply(rec, nil); err != nil {
			return 0, fmt.Errorf("fold %s seq %d: %w", rec.Log, rec.Seq, err)
		}
		if p.state.Stale() {
			return rec.At, nil
		}
		at := rec.At
		if c.recs = c.recs[1:]; len(c.recs) == 0 {
			if err := c.read(p.store, pastRead); err != nil {
				return 0, err
			}
		}
		if len(c.recs) == 0 || c.recs[0].At > until {
			heap.Pop(&logs)
		} else {
			heap.Fix(&logs, 0)
		}
		if n++; n%p.every == 0 {
			if ctx.Err() != nil {
				return 0, fmt.Errorf("fold: %w", ctx.Err())
			}
			if at > floor {
				p.keep(at)
			}
		}
	}
	return 0, nil
}

// keep packs the fold for later questions. Others of the same time may still come: they are carried on from there.
func (p *past) keep(at protocol.HLC) {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestSpeed)
	if err != nil {
		return // not with that level
	}
	_, _ = w.Write(p.state.Encode()) // into memory
	_ = w.Close()
	i, there := slices.BinarySearchFunc(p.kept, at, func(k keptFold, t protocol.HLC) int { return cmp.Compare(k.at, t) })
	if there {
		return
	}
	p.kept = slices.Insert(p.kept, i, keptFold{at, out.Bytes()})
	total := 0
	for _, k := range p.kept {
		total += len(k.raw)
	}
	for i := len(p.kept) - 2; total > pastBytesMax && i >= 0; i -= 2 {
		total -= len(p.kept[i].raw)
		p.kept = slices.Delete(p.kept, i, i+1)
	}
}

// cursor is where the reading of a log stands.
type cursor struct {
	log  protocol.LogID
	next uint64
	recs []protocol.Record
}

func (c *cursor) read(store *journal.Journal, bytes int) error {
	recs, err := store.Range(c.log, c.next, bytes)
	if err != nil {
		return fmt.Errorf("read %s: %w", c.log, err)
	}
	c.recs, c.next = recs, c.next+uint64(len(recs))
	return nil
}

// cursors are the logs that have something up to until which the fold has not.
func (p *past) cursors(until protocol.HLC) (cursorHeap, error) {
	heads, err := p.store.Heads()
	if err != nil {
		return nil, fmt.Errorf("heads: %w", err)
	}
	var out cursorHeap
	for _, h := range heads {
		c := &cursor{log: h.Log, next: p.state.Mark(h.Log) + 1}
		if c.next > h.Seq {
			continue
		}
		if err := c.read(p.store, 1); err != nil { // one commit says whether there is anything
			return nil, err
		}
		if len(c.recs) > 0 && c.recs[0].At <= until {
			out = append(out, c)
		}
	}
	heap.Init(&out)
	return out, nil
}

// cursorHeap has the log on top whose next record is the earliest.
type cursorHeap []*cursor

func (h cursorHeap) Len() int      { return len(h) }
func (h cursorHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h cursorHeap) Less(i, j int) bool {
	a, b := &h[i].recs[0], &h[j].recs[0]
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Log.String(), b.Log.String())) < 0
}
func (h *cursorHeap) Push(x any) { *h = append(*h, x.(*cursor)) }
func (h *cursorHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

package node

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
)

// What a node writes without end would take all of a machine here, however fairly its frames take turns: each record is
// checked, kept, filed and indexed, and most of that is done beside the loop. So while others use this node, a member's records, and a client's words, have as
// much of it as all others have together, and some beside that; what is above waits in the link's or socket's reader, before it is
// even checked. Who is alone waits for nothing.
const (
	longRecords = 32 // from so many on a range is long: it is taken in pieces, between which others have their turns

	debtPerSecond = 2_000
	debtBurst     = 500
	// A client's share is smaller than its node's is elsewhere: what it says at once stands in its node's log before what that node's
	// other clients say.
	clientPerSecond = 1_000
	clientBurst     = 250
	// debtBytes is what one of them is for; a larger record counts as several.
	debtBytes = 8 << 10
	// debtNews is what a record counts that is neither a message nor a receipt: who is there, and in what state, every board and agent is
	// told anew.
	debtNews = 10
	// othersSpoke is how long somebody who said something counts as using this node.
	othersSpoke = time.Second
	// debtLook is how often who waits looks again: others may have gone.
	debtLook = 20 * time.Millisecond
)

// debts are how much of this node each source has had. The zero value is ready. Safe for concurrent use.
type debts struct {
	mu     sync.Mutex
	all    float64 // that anybody had
	of     map[source]*debt
	newest source    // who had something last
	at     time.Time // when that was
	other  time.Time // when anybody but newest had something last
}

// source is a member and whose records it sends: what it passes on of another's is counted apart, so that neither has the other wait.
// Or it is a client: then from is empty.
type source struct{ from, author protocol.PeerID }

// share is what a source may have a second beside what others have, and what at once.
func (p source) share() (perSecond, burst float64) {
	if p.from == "" {
		return clientPerSecond, clientBurst
	}
	return debtPerSecond, debtBurst
}

type debt struct {
	owed   float64
	at     time.Time // of owed
	had    float64
	others float64 // what others had had at that time
}

// now is the debt of a source with what has been forgiven since. Call it with mu held.
func (d *debts) now(p source, now time.Time) *debt {
	if d.of == nil {
		d.of = map[source]*debt{}
	}
	o := d.of[p]
	if o == nil {
		o = &debt{at: now, others: d.all}
		d.of[p] = o
	}
	perSecond, _ := p.share()
	others := d.all - o.had
	past := max(now.Sub(o.at), 0)
	o.owed = max(o.owed-past.Seconds()*perSecond-(others-o.others), 0)
	o.at, o.others = now, others
	return o
}

// charge notes that a source had something, and uses this node.
func (d *debts) charge(p source, units float64, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.add(p, units, now)
	if p != d.newest {
		d.newest, d.other = p, d.at
	}
	d.at = now
}

// answered is charge for what does not count as using this node, since it only answers what others said.
func (d *debts) answered(p source, units float64, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.add(p, units, now)
}

// add is charge without its use. Call it with mu held.
func (d *debts) add(p source, units float64, now time.Time) {
	o := d.now(p, now)
	o.owed, o.had = o.owed+units, o.had+units
	d.all += units
}

// forget drops a source that has gone.
func (d *debts) forget(p source) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.of, p)
}

// due is how long a source is to wait if nothing changes meanwhile.
func (d *debts) due(p source, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.now(p, now)
	perSecond, burst := p.share()
	if !d.contended(p, now) {
		o.owed = min(o.owed, burst) // what it had alone is not held against it
	}
	return time.Duration(max(o.owed-burst, 0) / perSecond * float64(time.Second))
}

// contended says whether anybody but a source uses this node. Call it with mu held.
func (d *debts) contended(p source, now time.Time) bool {
	last := d.at
	if p == d.newest {
		last = d.other
	}
	return now.Sub(last) < othersSpoke
}

// shared is contended for who does not hold mu.
func (d *debts) shared(p source, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.contended(p, now)
}

// pause has a source's reader wait for its share, and charges it with what came.
func (d *debts) pause(ctx context.Context, p source, units float64) {
	d.wait(ctx, p)
	d.charge(p, units, time.Now())
}

// pauseRange is pause for a range of records.
func (d *debts) pauseRange(ctx context.Context, p source, recs []meshwire.Rec) {
	d.wait(ctx, p)
	if slices.ContainsFunc(recs, func(r meshwire.Rec) bool { return r.Kind != protocol.KindReceipts }) {
		d.charge(p, unitsOf(recs), time.Now())
	} else {
		d.answered(p, unitsOf(recs), time.Now())
	}
}

// wait has a source's reader wait for its share.
func (d *debts) wait(ctx context.Context, p source) {
	for {
		wait := d.due(p, time.Now())
		if wait <= 0 || pause(ctx, min(wait, debtLook)) != nil {
			return // cut short, the node ends
		}
	}
}

// unitsOf is what a range counts.
func unitsOf(recs []meshwire.Rec) (units float64) {
	for i := range recs {
		if k := recs[i].Kind; k != protocol.KindMessage && k != protocol.KindReceipts {
			units += debtNews - 1
		}
		units += float64(1 + len(recs[i].Body)/debtBytes)
	}
	return units
}

// sizeOf is what verified records count that others hold already.
func sizeOf(recs []protocol.Record) (units float64) {
	for i := range recs {
		units += float64(1 + len(recs[i].Body)/debtBytes)
	}
	return units
}

// takeRecords gives the loop a verified range: at once, or, if it is long and others use this node, in pieces of which each is durable
// before the next. What is on credit keeps to the pace of that meanwhile.
func (n *Node) takeRecords(from protocol.PeerID, recs []protocol.Record, envs []*protocol.Envelope, credit bool) error {
	arrived := func() { n.loop.arrived(from, recs, envs) }
	shared := n.debts.shared(source{from, recs[0].Log.Peer}, time.Now())
	if len(recs) < longRecords {
		if credit && shared {
			n.credit.wait(n.ctx, sizeOf(recs))
		}
		return n.lanes.lane(from).post(n.ctx, n.loop, arrived)
	}
	if !shared {
		return n.lanes.long(from).post(n.ctx, n.loop, arrived)
	}
	for begin := 0; begin < len(recs); {
		end := pieceEnd(recs, begin)
		piece, words := recs[begin:end], envs[begin:end]
		if credit {
			n.credit.wait(n.ctx, sizeOf(piece))
		}
		if err := n.loop.call(n.ctx, func() { n.loop.arrived(from, piece, words) }); err != nil {
			return err
		}
		begin = end
	}
	return nil
}

// pieceEnd is where a piece ends that begins somewhere: behind a commit, and with few records if commits are small.
func pieceEnd(recs []protocol.Record, begin int) int {
	for end := begin + 1; end < len(recs); end++ {
		if len(recs[end-1].Sig) > 0 && end-begin >= longRecords {
			return end
		}
	}
	return len(recs)
}

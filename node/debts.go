package node

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// What a node writes without end would take all of the loop's time here, however fairly its frames take turns: others would wait
// for a turn full of them each time. So one long range of a peer waits for the loop at once. And while others use the loop too, long
// ranges of a peer's own log may take it half of the time, in turns that hold little of it; what is above waits in that peer's reader,
// before it is even checked. What agents say to one another comes in short ranges, and pays nothing.
const (
	longRecords = 32 // from so many on a range is long

	debtShare = 2                      // one part in so many
	debtBurst = 100 * time.Millisecond // of the loop's time, at once
	debtMost  = debtBurst + time.Second/debtShare
	// othersSpoke is how long somebody who said something counts as using the loop.
	othersSpoke = time.Second
	// pieceRecords is where a range of a peer in debt is cut, behind a commit.
	pieceRecords = longRecords
)

// debts are how much of the loop's time peers have had. The zero value is ready. Safe for concurrent use.
type debts struct {
	clients atomic.Int64 // when a client said something last, in ns since 1970
	mu      sync.Mutex
	of      map[protocol.PeerID]*debt
}

type debt struct {
	owed time.Duration
	at   time.Time // of owed
	last time.Time // when its records were taken last
}

// now is the debt of a peer with what has been forgiven since. Call it with mu held.
func (d *debts) now(p protocol.PeerID, now time.Time) *debt {
	if d.of == nil {
		d.of = map[protocol.PeerID]*debt{}
	}
	o := d.of[p]
	if o == nil {
		o = &debt{at: now}
		d.of[p] = o
	}
	if past := now.Sub(o.at); past > 0 {
		o.owed, o.at = max(o.owed-past/debtShare, 0), now
	}
	return o
}

// charge notes that records of a peer took the loop so long.
func (d *debts) charge(p protocol.PeerID, took time.Duration, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.now(p, now)
	o.owed, o.last = min(o.owed+took, debtMost), now
}

// clientSpoke notes that a client uses the loop.
func (d *debts) clientSpoke(now time.Time) { d.clients.Store(now.UnixNano()) }

// due is how long a peer's reader is to wait; small: what it brings is to be taken in pieces.
func (d *debts) due(p protocol.PeerID, now time.Time) (wait time.Duration, small bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.now(p, now)
	if o.owed <= debtBurst/2 || !d.contended(p, now) {
		return 0, false
	}
	return max(o.owed-debtBurst, 0) * debtShare, true
}

// contended says whether anybody but a peer uses the loop. Call it with mu held.
func (d *debts) contended(p protocol.PeerID, now time.Time) bool {
	if now.Sub(time.Unix(0, d.clients.Load())) < othersSpoke {
		return true
	}
	for other, o := range d.of {
		if other != p && now.Sub(o.last) < othersSpoke {
			return true
		}
	}
	return false
}

// pause has a peer's reader wait for its share.
func (d *debts) pause(ctx context.Context, p protocol.PeerID) {
	if wait, _ := d.due(p, time.Now()); wait > 0 {
		_ = pause(ctx, wait) // cut short, the node ends
	}
}

// ownLong says whether n records that a peer sends are a long range of its own log, for which it pays.
func ownLong(from protocol.PeerID, log protocol.LogID, n int) bool {
	return log.Peer == from && n >= longRecords
}

// takeRecords gives the loop a verified range: at once, or, of a peer in debt, in pieces of which each is durable before the next.
func (n *Node) takeRecords(from protocol.PeerID, recs []protocol.Record, envs []*protocol.Envelope) error {
	arrived := func() { n.loop.arrived(from, recs, envs) }
	if len(recs) < longRecords {
		return n.lanes.lane(from).post(n.ctx, n.loop, arrived)
	}
	if _, small := n.debts.due(from, time.Now()); !small || !ownLong(from, recs[0].Log, len(recs)) {
		return n.lanes.long(from).post(n.ctx, n.loop, arrived)
	}
	for begin := 0; begin < len(recs); {
		end := pieceEnd(recs, begin)
		piece, words := recs[begin:end], envs[begin:end]
		if err := n.loop.call(n.ctx, func() { n.loop.arrived(from, piece, words) }); err != nil {
			return err
		}
		if begin = end; begin < len(recs) {
			n.debts.pause(n.ctx, from)
		}
	}
	return nil
}

// pieceEnd is where a piece ends that begins somewhere: behind a commit, and with few records if commits are small.
func pieceEnd(recs []protocol.Record, begin int) int {
	for end := begin + 1; end < len(recs); end++ {
		if len(recs[end-1].Sig) > 0 && end-begin >= pieceRecords {
			return end
		}
	}
	return len(recs)
}

// chargeTurn has the peers pay for a turn, by what of its records were theirs.
func (l *loop) chargeTurn() {
	all := l.committed
	l.committed = 0
	if len(l.wrote) == 0 {
		return
	}
	now := time.Now()
	took := now.Sub(l.now)
	for p, n := range l.wrote {
		l.n.debts.charge(p, took*time.Duration(n)/time.Duration(max(all, n)), now)
	}
	clear(l.wrote)
}

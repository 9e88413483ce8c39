package node

import (
	"context"
	"sync"
	"time"

	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
)

// What a node missed while it was away comes at once, like a flood; but it is known in number before it comes, and is over then. So
// what an inside peer's first comparison on a link says that it holds of others' logs, and this node lacks, is on credit: it costs its
// author's share nothing, and comes in pieces at a pace of its own between what is said now. A peer vouches for no log of its own, and
// for no more than others could have sent in the time that it had no link: who makes links anew, or has two members vouch for each
// other, gets no more for it than by a flood. A comparison that is not true brings nothing, since the records have signatures.
const (
	// creditPerSecond is the pace of all of it together while others use this node.
	creditPerSecond = 7_000
	creditBurst     = 2 * longRecords
	// creditMost is what a peer may vouch for on its first link since this node started: how long that was away it does not know.
	creditMost = 1_000_000
	// creditAgain is how often a record may come: two who pass on the same send some of it both.
	creditAgain = 2
)

// credit is what is known to be missing here. The zero value is ready. Safe for concurrent use.
type credit struct {
	mu   sync.Mutex
	left map[protocol.PeerID]float64   // that a peer may still vouch for; an entry: it had a link since the start
	down map[protocol.PeerID]time.Time // since when it has none
	of   map[protocol.PeerID]map[protocol.LogID]*missed
	pace debt // of what comes
}

// missed is what a peer that is linked vouched for of one log.
type missed struct {
	to   uint64 // seq
	left int    // records
}

// linked begins a link of an inside peer.
func (c *credit) linked(p protocol.PeerID, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == nil {
		c.left, c.down = map[protocol.PeerID]float64{}, map[protocol.PeerID]time.Time{}
		c.of = map[protocol.PeerID]map[protocol.LogID]*missed{}
	}
	if left, before := c.left[p]; !before {
		c.left[p] = creditMost
	} else if since, ok := c.down[p]; ok {
		c.left[p] = min(left+max(now.Sub(since).Seconds(), 0)*debtPerSecond, creditMost)
	}
	delete(c.down, p)
	c.of[p] = map[protocol.LogID]*missed{}
}

// ended ends the link, and drops what the peer vouched for and did not come.
func (c *credit) ended(p protocol.PeerID, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[p] != nil {
		c.down[p] = now
	}
	delete(c.of, p)
}

// vouch notes that a linked peer says it holds a log up to a record, of which this node has so many less.
func (c *credit) vouch(p protocol.PeerID, log protocol.LogID, have, to uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[p] == nil || log.Peer == p || to <= have {
		return
	}
	n := uint64(min(float64(to-have), c.left[p]))
	if n == 0 {
		return
	}
	c.left[p] -= float64(n)
	c.of[p][log] = &missed{to: have + n, left: int(creditAgain * n)}
}

// spend says whether a range is on credit, and takes it from that.
func (c *credit) spend(f *meshwire.Records) bool {
	last := f.First + uint64(len(f.Records)) - 1
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range c.of {
		if m := of[f.Log]; m != nil && last <= m.to && len(f.Records) <= m.left {
			m.left -= len(f.Records)
			return true
		}
	}
	return false
}

// wait returns when a piece of so many units may come, and counts it.
func (c *credit) wait(ctx context.Context, units float64) {
	for {
		c.mu.Lock()
		now := time.Now()
		c.pace.owed = max(c.pace.owed-max(now.Sub(c.pace.at), 0).Seconds()*creditPerSecond, 0)
		c.pace.at = now
		due := time.Duration((c.pace.owed - creditBurst) / creditPerSecond * float64(time.Second))
		if due <= 0 {
			c.pace.owed += units
		}
		c.mu.Unlock()
		if due <= 0 || pause(ctx, due) != nil {
			return
		}
	}
}

// vouched takes a comparison of a linked peer for what it says of what is missing here.
func (l *loop) vouched(from protocol.PeerID, p *peerState, v *replica.Vector) {
	if len(v.Of) == 0 {
		p.compares++
	}
	if p.compares > 1 || l.n.standingOf(from) != mesh.Inside {
		return // what it got since comes as it is said
	}
	for _, m := range v.Marks {
		l.n.credit.vouch(from, m.Log, l.rep.Taken(m.Log), m.Seq)
	}
}

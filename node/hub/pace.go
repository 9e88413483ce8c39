package hub

import (
	"math"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// Limits are how fast messages may enter at this node. A zero is the protocol's own number.
type Limits struct {
	SenderPerSecond, SenderBurst int64 // of one sender; all people here are one
	PairPerSecond, PairBurst     int64 // of one sender to one recipient or room
}

func (l Limits) orDefault() Limits {
	for _, f := range []struct {
		at *int64
		is int64
	}{
		{&l.SenderPerSecond, protocol.SenderPerSecond}, {&l.SenderBurst, protocol.SenderBurst},
		{&l.PairPerSecond, protocol.PairPerSecond}, {&l.PairBurst, protocol.PairBurst},
	} {
		if *f.at <= 0 {
			*f.at = f.is
		}
	}
	return l
}

// paceKey is a sender, or a sender and whom it speaks to. Folded.
type paceKey struct {
	from protocol.AgentID
	to   string
}

// bucket holds what may be said at once, and fills with time.
type bucket struct {
	left float64
	at   time.Time
}

// filled is what a bucket holds now.
func (b bucket) filled(now time.Time, perSecond, burst int64) float64 {
	if b.at.IsZero() {
		return float64(burst)
	}
	return math.Min(float64(burst), b.left+max(now.Sub(b.at).Seconds(), 0)*float64(perSecond))
}

// pacesMax is how many buckets are looked through for full ones, which say nothing.
const pacesMax = 4096

// paced takes what a message costs from its sender's bucket and from the pair's, or from neither and says when to come
// again. Only what would be let in is counted: what was acknowledged is never taken back, and what is refused is not kept.
func (c *Core) paced(now time.Time, env *protocol.Envelope) *protocol.Refusal {
	if env.Source == protocol.SourceServer {
		return nil // the node's own word
	}
	cost := float64(1 + Size(env)>>16)
	l, from := c.limits, protocol.FoldAgentID(env.From)
	to := string(protocol.FoldAgentID(env.To))
	if env.Room != "" {
		to = "room/" + string(env.Room)
	}
	type part struct {
		key              paceKey
		perSecond, burst int64
		left             float64
	}
	parts := []part{{paceKey{from, ""}, l.SenderPerSecond, l.SenderBurst, 0}}
	if to != "" {
		parts = append(parts, part{paceKey{from, to}, l.PairPerSecond, l.PairBurst, 0})
	}
	for i := range parts {
		p := &parts[i]
		p.left = c.paces[p.key].filled(now, p.perSecond, p.burst)
		if lacks := math.Min(cost, float64(p.burst)) - p.left; lacks > 0 {
			return tooFast(env, p.perSecond, p.key.to != "", time.Duration(lacks/float64(p.perSecond)*float64(time.Second)))
		}
	}
	if len(c.paces) >= pacesMax {
		c.forgetPaces(now)
	}
	for _, p := range parts {
		c.paces[p.key] = bucket{p.left - cost, now}
	}
	return nil
}

func tooFast(env *protocol.Envelope, perSecond int64, pair bool, wait time.Duration) *protocol.Refusal {
	who, whom := string(env.From), ""
	if who == "" {
		who = "this node's people"
	}
	if pair && env.Room != "" {
		whom = " to room " + string(env.Room)
	} else if pair {
		whom = " to " + string(env.To)
	}
	wait = max(wait.Round(10*time.Millisecond), 10*time.Millisecond)
	r := protocol.Refuse(protocol.CodeRate, "%s sends%s faster than %d messages a second, and this one was not taken", "", who, whom, perSecond)
	r.Hint = "send it again in " + wait.String() + ", or fewer at once"
	r.RetryMs = wait.Milliseconds()
	return r
}

// forgetPaces drops the buckets that are full: an absent one is full.
func (c *Core) forgetPaces(now time.Time) {
	for key, b := range c.paces {
		perSecond, burst := c.limits.SenderPerSecond, c.limits.SenderBurst
		if key.to != "" {
			perSecond, burst = c.limits.PairPerSecond, c.limits.PairBurst
		}
		if b.filled(now, perSecond, burst) >= float64(burst) {
			delete(c.paces, key)
		}
	}
}

package node

import (
	"context"
	"maps"
	"net/netip"
	"sync"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/keys"
)

// A client may have so many frames refused at once, and for long so many a second. One above that is a program that has lost
// its way: each refusal costs the loop as much as a message.
const (
	refusalsBurst     = 1_000
	refusalsPerSecond = 50
	// closeOffends is the status by which a WebSocket says that its peer breaks the rules.
	closeOffends = 1008
	// offenderOut is how long the next HELLO of an agent waits that was cut off: it would go on where it was.
	offenderOut = 30 * time.Second
)

// refusals counts what one socket was refused. The zero value is ready. Owned by the loop.
type refusals struct {
	owed float64
	at   time.Time
	over bool
}

// more notes one more and says whether it is the one too many; of those after it, it is not.
func (r *refusals) more(now time.Time) bool {
	r.owed = max(r.owed-max(now.Sub(r.at).Seconds(), 0)*refusalsPerSecond, 0) + 1
	r.at = now
	if r.over || r.owed <= refusalsBurst {
		return false
	}
	r.over = true
	return true
}

// offended notes that a client was refused something, and cuts it off when that is too often.
func (l *loop) offended(s *socket) {
	if !s.refusals.more(l.now) {
		return
	}
	l.log.Warn("client cut off: too many of its frames were refused", "agent", s.holder(), "refused", int(s.refusals.owed), "for", offenderOut)
	if agent := s.holder(); agent != "" {
		l.n.offenders.cutOff(s.offender(agent), time.Now())
	}
	s.conn.Close(closeOffends, "too many of its frames were refused")
}

// offender is an agent as whom a client was cut off: by its key or, without one, by its address, so that nobody elsewhere who has taken
// its name keeps it out.
type offender struct {
	agent protocol.AgentID // folded
	key   keys.Hash
	from  netip.Addr
}

func (s *socket) offender(agent protocol.AgentID) offender {
	if o := (offender{agent: protocol.FoldAgentID(agent), key: s.key}); s.keyed {
		return o
	}
	return offender{agent: protocol.FoldAgentID(agent), from: s.from}
}

// offenders are who was cut off, and until when. The zero value is ready. Safe for concurrent use.
type offenders struct {
	mu    sync.Mutex
	until map[offender]time.Time
	waits map[offender]bool
}

func (o *offenders) cutOff(who offender, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.until == nil {
		o.until, o.waits = map[offender]time.Time{}, map[offender]bool{}
	}
	maps.DeleteFunc(o.until, func(_ offender, until time.Time) bool { return !now.Before(until) })
	o.until[who] = now.Add(offenderOut)
}

// wait returns when a client may be heard as an agent; false: ctx ended, or another client of that name waits already.
func (o *offenders) wait(ctx context.Context, who offender) bool {
	o.mu.Lock()
	d := time.Until(o.until[who])
	if d <= 0 {
		o.mu.Unlock()
		return true
	}
	if o.waits[who] {
		o.mu.Unlock()
		return false
	}
	o.waits[who] = true
	o.mu.Unlock()
	err := pause(ctx, d)
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.waits, who)
	return err == nil
}

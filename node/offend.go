package node

import "time"

// A client may have so many frames refused at once, and for long so many a second. One above that is a program that has lost
// its way: each refusal costs the loop as much as a message.
const (
	refusalsBurst     = 1_000
	refusalsPerSecond = 50
	// closeOffends is the status by which a WebSocket says that its peer breaks the rules.
	closeOffends = 1008
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
	l.log.Warn("client cut off: too many of its frames were refused", "agent", s.holder(), "refused", int(s.refusals.owed))
	s.conn.Close(closeOffends, "too many of its frames were refused")
}

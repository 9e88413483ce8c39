package keys

import (
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// State is where a key is in its life (wire 3.8).
type State string

const (
	Issued         State = "ISSUED"
	Active         State = "ACTIVE"          // used once
	RevokedPending State = "REVOKED_PENDING" // sessions that are open go on for a grace, new ones do not begin
	Revoked        State = "REVOKED"         // or past its end, which a renewal undoes
	Deleted        State = "DELETED"         // so long over that lists leave it out
)

// deletedAfter is how long lists show a key that is over.
const deletedAfter = 90 * 24 * time.Hour

// Key is one key as the records say. Times are ms since 1970 by the clock of whoever wrote them; 0 is never.
type Key struct {
	Hash   Hash
	Kind   Kind
	Label  string
	Note   string
	Bound  protocol.AgentID // the only agent that may use it; empty before its first use
	Used   bool
	TTL    int64 // ms; 0: it does not end by itself
	Issued int64

	Renewed    int64
	RenewCount int
	Revoked    int64 // for good
	Pending    int64 // revoked with a grace that ends then
	Lapsed     int64 // the end that is known to have passed
	LastAgent  protocol.AgentID
	LastSeen   int64

	clock   protocol.PeerID // whose clock set its end
	pending protocol.PeerID // and that of its grace
}

func (e *entry) key(h Hash) Key {
	b := &e.Issue.Body
	k := Key{
		Hash: h, Kind: Kind(b.Kind), Label: b.Label, Note: b.Note, Bound: b.Agent, TTL: b.TTL, Issued: e.Issue.Wall,
		RenewCount: e.Renewed, Lapsed: e.Lapsed, clock: e.Issue.Peer,
	}
	if e.Label != nil {
		k.Label = e.Label.Body.Label
	}
	if e.Renew != nil {
		k.Renewed, k.TTL, k.clock = e.Renew.Wall, e.Renew.Body.TTL, e.Renew.Peer
	}
	if e.Bind != nil {
		k.Used = true
		k.LastAgent, k.LastSeen = e.Seen.Body.Agent, e.Seen.Wall
		if k.Bound == "" {
			k.Bound = e.Bind.Body.Agent
		}
	}
	if e.Pending != nil {
		k.Pending, k.pending = e.Pending.Body.Until, e.Pending.Peer
	}
	if e.Revoked != nil {
		k.Revoked = e.Revoked.Wall
	}
	return k
}

// Ref is the key's public name.
func (k *Key) Ref() string { return k.Hash.Ref() }

// ExpiresAt is the end of its life, 0 for never.
func (k *Key) ExpiresAt() int64 {
	if k.TTL == 0 {
		return 0
	}
	return max(k.Issued, k.Renewed) + k.TTL
}

// Clock says whether self's clock set the key's end, so that self is the one to say that it has passed.
func (k *Key) Clock(self protocol.PeerID) bool { return k.clock == self }

// GraceClock says the same of the grace of a revocation.
func (k *Key) GraceClock(self protocol.PeerID) bool { return k.pending == self }

// ends is the moment at which, by self's clock, an instant of by's clock has surely passed.
func ends(instant int64, by, self protocol.PeerID) time.Time {
	t := time.UnixMilli(instant)
	if by != self {
		t = t.Add(protocol.ClockGrace)
	}
	return t
}

// Expired says whether the key is past its end by the clock of self. Where that end was set by another clock it is given
// ten minutes, unless whoever set it says that it has passed.
func (k *Key) Expired(self protocol.PeerID, now time.Time) bool {
	at := k.ExpiresAt()
	return at > 0 && (k.Lapsed >= at || !now.Before(ends(at, k.clock, self)))
}

// State says where the key is at now, by the clock of self.
func (k *Key) State(self protocol.PeerID, now time.Time) State {
	switch {
	case k.Revoked > 0:
		return over(k.Revoked, now)
	case k.Pending > 0 && !now.Before(ends(k.Pending, k.pending, self)):
		return over(k.Pending, now)
	case k.Pending > 0:
		return RevokedPending
	case k.Expired(self, now):
		return over(k.ExpiresAt(), now)
	case k.Used:
		return Active
	}
	return Issued
}

func over(since int64, now time.Time) State {
	if now.Sub(time.UnixMilli(since)) > deletedAfter {
		return Deleted
	}
	return Revoked
}

// Final says that no renewal brings the key back.
func (k *Key) Final() bool { return k.Revoked > 0 || k.Pending > 0 }

// Next is when time alone changes the key's State next by the clock of self, or zero.
func (k *Key) Next(self protocol.PeerID, now time.Time) time.Time {
	switch {
	case k.Revoked > 0:
	case k.Pending > 0:
		if at := ends(k.Pending, k.pending, self); now.Before(at) {
			return at
		}
	case k.TTL > 0 && !k.Expired(self, now):
		return ends(k.ExpiresAt(), k.clock, self)
	}
	return time.Time{}
}

// WarnFrom is when its holder hears that the key will end: three days before, of short lives the last quarter. Zero for a
// key that does not end by itself.
func (k *Key) WarnFrom() time.Time {
	if k.TTL == 0 || k.Final() {
		return time.Time{}
	}
	return time.UnixMilli(k.ExpiresAt() - min(protocol.KeyWarning.Milliseconds(), k.TTL/4))
}

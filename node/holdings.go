package node

import (
	"encoding/json"
	"time"

	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/protocol"
)

// keyHolding begins the names of values that say how far a member has what is here, and when it was last linked.
const keyHolding = "holding/"

// holdingSaved is how old a saved holding may grow: what a restart forgets only keeps content here a little longer.
const holdingSaved = time.Hour

// holding is what is known of one inside member. Owned by the loop.
type holding struct {
	Store string    `json:"store"` // that Pos is of
	Pos   uint64    `json:"pos"`   // it said that it has every record up to there
	Seen  time.Time `json:"seen"`  // last linked; of one never linked, when it was first heard of here

	saved time.Time
	name  string
	now   bool // linked
}

// noteHoldings looks how far the other inside members are.
func (l *loop) noteHoldings() {
	if l.holdings == nil {
		l.holdings = map[protocol.PeerID]*holding{}
		saved, err := l.store.ValuesWithPrefix(keyHolding)
		if err != nil {
			l.log.Error("what members hold is not readable", "err", err)
		}
		for key, raw := range saved {
			h := &holding{saved: l.now}
			if json.Unmarshal(raw, h) != nil {
				continue
			}
			if h.Store != l.store.Store() {
				h.Store, h.Pos = "", 0
			}
			l.holdings[protocol.PeerID(key[len(keyHolding):])] = h
		}
	}
	known := l.known()
	for p := range l.holdings {
		if m, ok := known[p]; !ok || m.Revoked || !m.Inside {
			delete(l.holdings, p)
			l.value(keyHolding+string(p), nil)
		}
	}
	for p, m := range known {
		if p == l.n.home.peer || m.Revoked || !m.Inside {
			continue
		}
		h := l.holdings[p]
		if h == nil {
			h = &holding{Seen: l.now}
			l.holdings[p] = h
		}
		h.name, h.now = m.Name, l.peers[p] != nil && l.n.standingOf(p) == mesh.Inside
		if h.now {
			h.Seen = l.now
			if l.rep.HoldsAll(p) {
				h.Store, h.Pos = l.store.Store(), l.pos
			}
		}
		if l.now.Sub(h.saved) >= holdingSaved && l.n.full() == nil {
			h.saved = l.now
			l.value(keyHolding+string(p), protocol.EncodeBody(h))
		}
	}
}

// lacking is the name of a member that may not have the record at pos yet and has not been gone for longer than limit.
func (l *loop) lacking(pos uint64, limit time.Duration) string {
	for _, h := range l.holdings {
		if h.Pos < pos && l.now.Sub(h.Seen) <= limit {
			return h.name
		}
	}
	return ""
}

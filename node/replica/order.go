package replica

import (
	"slices"
	"time"
)

// A node writes one log after another: every start begins a new one in each scope. Who is sent a start's log while it lacks
// the end of the one before would hand its agents what was said last before what was said first. So nobody is sent a log of
// which it holds nothing before it has said that it holds, to the end, the logs of the same node and scope that are older.
// Whoever holds a part of a log then holds all of these, and so can serve them: it matters to nobody who passes a log on.

// givenUp is after how many ranges sent in vain, about a minute, a peer is taken never to want a log: it cuts it lower, or
// holds another branch of it. After as many comparisons our store is taken never to serve it: somebody else may have it, and
// it comes late. What the peer lacks there holds up nothing any more.
const givenUp = 3

// waits says whether a log must not be sent yet, since the peer lacks older ones of the same writer. The writer itself, whose
// store was lost, is given all at once: what it said of its mail last it needs first.
func (k *link) waits(h *held) bool {
	if h.sent > 0 {
		return false
	}
	if h.log.id.Peer == k.peer {
		return false
	}
	older := h.log.author.logs
	at, _ := slices.BinarySearchFunc(older, h.log, byStart)
	for i := at - 1; i >= 0; i-- { // who catches up lacks the newest
		if l := older[i]; l.id.Scope == h.log.id.Scope && k.lacks(l) {
			return true
		}
	}
	return false
}

// lacks says whether a peer does not hold all that there is of a log here, and can be given it.
func (k *link) lacks(l *logState) bool {
	if l.limit() == 0 {
		return false
	}
	if h := k.logs[l]; h != nil {
		return h.has < l.limit() && h.dry < givenUp && h.fails < givenUp
	}
	return k.base(l) < l.limit()
}

// look lets all links look again at what waits to be served: what it waited for may count no more.
func (r *Replica) look() {
	for _, k := range r.links {
		k.storeAt = time.Time{}
	}
}

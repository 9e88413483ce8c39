package replica

import (
	"slices"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// Confirmed takes a peer's Have: what it holds on disk without a gap. Logs that it may not see are passed over.
func (r *Replica) Confirmed(now time.Time, peer protocol.PeerID, marks []Mark) {
	k := r.link(peer)
	if k == nil {
		return
	}
	for _, m := range marks {
		if !r.sees(k, m.Log) {
			continue
		}
		if l := r.openStrange(k, m.Log); l != nil {
			h := k.held(l, k.base(l))
			if m.Seq == h.has && !k.flies(h) {
				h.fed = false // nothing new: it had what we passed on, so another feeds it as well
			}
			r.advance(now, k, h, m.Seq)
		}
	}
}

// advance notes that a peer holds a log up to seq.
func (r *Replica) advance(now time.Time, k *link, h *held, seq uint64) {
	l := h.log
	if k.inside {
		l.replicated = max(l.replicated, seq)
		l.inside = true
	}
	r.lack(now, l, seq)
	if seq <= h.has {
		return
	}
	h.has, h.fails, h.dry = seq, 0, 0
	if k.land(h, func(f flight) bool { return f.to <= seq }) && l.id.Peer != r.self {
		h.fed = true
	}
	if seq > h.sent {
		// It got them from somebody else: wait for that one from now on.
		h.sent, h.fed = seq, false
		if h.place != idle {
			h.passAt = r.passTime(now, k, h)
		}
	}
	k.storeAt = time.Time{}
}

// flies says whether anything of a log is in flight.
func (k *link) flies(h *held) bool {
	return slices.ContainsFunc(k.flight, func(f flight) bool { return f.held == h })
}

// Sent settles a range that Ready gave: its records up to to went to the link's queue, bytes of them. to below the
// range's From says that the store cannot serve it (it was truncated or is damaged); that log then waits for the next
// comparison.
func (r *Replica) Sent(peer protocol.PeerID, log protocol.LogID, to uint64, bytes int) {
	k, l := r.link(peer), r.logs[log]
	if k == nil || l == nil {
		return
	}
	for i := len(k.flight) - 1; i >= 0; i-- {
		f := &k.flight[i]
		if f.held.log != l || f.settled {
			continue
		}
		h := f.held
		k.flightBytes += bytes - f.bytes
		if f.store {
			k.storeBytes += bytes - f.bytes
			k.serving = false
		}
		cut := to < f.to
		f.to, f.bytes, f.settled = min(to, f.to), bytes, true
		if cut {
			h.sent = max(h.has, to)
		}
		if to < f.from {
			h.stuck = true
			h.sent = max(h.has, f.from-1)
			from := f.from
			k.land(h, func(f flight) bool { return f.from >= from })
		} else if cut && h.sent < l.limit() {
			r.toStore(k, h, time.Time{})
		}
		k.storeAt = time.Time{}
		return
	}
}

// HoldsAll says whether a linked peer has, as it said itself, all that is durable here and that it may see.
func (r *Replica) HoldsAll(peer protocol.PeerID) bool {
	k := r.link(peer)
	if k == nil || !k.compared || len(k.vague) > 0 {
		return false
	}
	for l, h := range k.logs {
		if h.has < l.limit() && r.sees(k, l.id) {
			return false
		}
	}
	return true
}

// Behind counts the logs that a linked peer may see and does not hold as far as here, and the records it lacks.
func (r *Replica) Behind(peer protocol.PeerID) (logs int, records uint64) {
	k := r.link(peer)
	if k == nil {
		return 0, 0
	}
	for l, h := range k.logs {
		if limit := l.limit(); h.has < limit && r.sees(k, l.id) {
			logs++
			records += limit - h.has
		}
	}
	return logs, records
}

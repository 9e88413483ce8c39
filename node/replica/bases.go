package replica

import "github.com/aster-mesh/aster/protocol"

// Based says that the records of a log up to seq have left: from now on they are served to nobody. A peer of the inside that
// lacks some of them is told, with each comparison, where this node begins, and goes on from there as from a snapshot. Logs that
// others than the inside may see have no base.
func (r *Replica) Based(log protocol.LogID, seq uint64) {
	l := r.logs[log]
	if l == nil || log.Scope != protocol.ScopeInside {
		return
	}
	l.base = max(l.base, min(seq, l.seq))
	r.look()
}

// below takes a log out of what is served to a peer that lacks what has left. What the peer has no way to get holds up nothing
// for ever: see givenUp.
func (k *link) below(h *held) bool {
	if h.sent >= h.log.base {
		return false
	}
	k.based = true
	h.rest()
	h.stuck = true
	return true
}

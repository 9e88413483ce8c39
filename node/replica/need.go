package replica

import (
	"slices"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// Need asks for a log from From on, or, with To, for that range once as a proof.
type Need struct {
	Log  protocol.LogID
	From uint64
	To   uint64
}

// Wanted takes a peer's Need. False: it may not see that log, or we do not hold it.
func (r *Replica) Wanted(now time.Time, peer protocol.PeerID, n Need) bool {
	k, l := r.link(peer), r.logs[n.Log]
	if k == nil || l == nil || n.From == 0 || !r.sees(k, n.Log) || n.From > l.limit() {
		return false
	}
	if n.To > 0 && n.From <= l.base {
		return false // nobody can be shown what has left
	}
	if n.To > 0 {
		if len(k.proofs) < proofsMax {
			k.proofs = append(k.proofs, Range{Peer: peer, Log: n.Log, From: n.From, To: min(n.To, l.limit()), Bytes: storeBytesMax, Proof: true})
		}
		return true
	}
	h := k.held(l, n.From-1)
	h.has = min(h.has, n.From-1)
	coming := func(f flight) bool {
		return f.held == h && f.from <= n.From && n.From <= f.to && now.Sub(f.at) < needAfter
	}
	if slices.ContainsFunc(k.flight, coming) {
		return true // the two crossed
	}
	k.land(h, func(flight) bool { return true })
	h.sent, h.asked, h.stuck, h.fails = n.From-1, true, false, 0
	r.toStore(k, h, time.Time{})
	return true
}

// lack notes that somebody holds a log up to seq.
func (r *Replica) lack(now time.Time, l *logState, seq uint64) {
	if l.own {
		return
	}
	l.known = max(l.known, seq)
	if min(l.known, l.end) > l.takenSeq && !l.lacking {
		l.lacking, l.lackAt, l.askAt, l.turn = true, now, now.Add(needAfter), 0
		r.lacks = append(r.lacks, l)
		r.askAt = time.Time{}
	}
}

// ask asks one peer for what we lack of a log.
func (r *Replica) ask(now time.Time, k *link, l *logState) {
	r.needs = append(r.needs, NeedTo{k.peer, Need{Log: l.id, From: l.takenSeq + 1}})
	l.askAt = now.Add(needEvery)
	l.turn++
}

// asks looks through what we lack and asks where nobody sends it by itself.
func (r *Replica) asks(now time.Time) {
	if now.Before(r.askAt) {
		return
	}
	next := now.Add(protocol.CompareEvery)
	r.lacks = slices.DeleteFunc(r.lacks, func(l *logState) bool {
		if min(l.known, l.end) <= l.takenSeq {
			l.lacking = false
			return true
		}
		if !now.Before(l.askAt) {
			switch k, busy := r.holder(now, l); {
			case k != nil:
				r.ask(now, k, l)
			case busy:
				l.askAt = now.Add(needAfter)
			default:
				l.askAt = now.Add(protocol.CompareEvery)
			}
		}
		if l.askAt.Before(next) {
			next = l.askAt
		}
		return false
	})
	r.askAt = next
}

// holder is the linked peer to ask next for a log; busy: those who hold it are sending other things.
func (r *Replica) holder(now time.Time, l *logState) (_ *link, busy bool) {
	var able []*link
	for _, k := range r.links {
		h := k.logs[l]
		switch {
		case h == nil || h.has <= l.takenSeq:
		case now.Sub(k.takenAt) < needAfter:
			busy = true
		default:
			able = append(able, k)
		}
	}
	if len(able) == 0 || busy {
		return nil, busy
	}
	return able[l.turn%len(able)], false
}

// Lack is a log of which more is known to exist than is held.
type Lack struct {
	Log    protocol.LogID
	Have   uint64
	Known  uint64        // the highest seq that a peer has stated
	Age    time.Duration // since it was first known, or last became less
	Linked bool          // a linked peer holds more than we do
}

// Lacking lists what is lacking, by age of the logs.
func (r *Replica) Lacking(now time.Time) []Lack {
	var out []Lack
	for _, l := range r.lacks {
		known := min(l.known, l.end)
		if known <= l.takenSeq {
			continue
		}
		linked := slices.ContainsFunc(r.links, func(k *link) bool { h := k.logs[l]; return h != nil && h.has > l.takenSeq })
		out = append(out, Lack{l.id, l.takenSeq, known, now.Sub(l.lackAt), linked})
	}
	slices.SortFunc(out, func(a, b Lack) int { return byStart(r.logs[a.Log], r.logs[b.Log]) })
	return out
}

package replica

import (
	"slices"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// Ready is what the loop owes the world. Order matters within each list only.
type Ready struct {
	Vectors []VectorTo
	Send    []Range
	Need    []NeedTo
	Have    []HaveTo
	Forks   []Fork            // each log once
	Based   []protocol.PeerID // they lack what has left here
}

// VectorTo is a comparison for a peer.
type VectorTo struct {
	Peer   protocol.PeerID
	Vector Vector
}

// Range is to be read and sent to a peer: whole commits from From on, not beyond To. After each the caller calls Sent,
// before the next Ready (a Proof needs none).
type Range struct {
	Peer     protocol.PeerID
	Log      protocol.LogID
	From, To uint64
	// Bytes bounds what is sent now, though always at least one commit goes; of a live range it is what was committed.
	Bytes int
	Live  bool // just committed, and so perhaps still in memory; send all of it
	Proof bool // a request's answer, outside the window: the commits that hold From to To
}

// NeedTo is a request to a peer.
type NeedTo struct {
	Peer protocol.PeerID
	Need
}

// HaveTo tells a peer what is durable here.
type HaveTo struct {
	Peer  protocol.PeerID
	Marks []Mark // without hashes
}

// Empty says whether there is nothing to do.
func (rd *Ready) Empty() bool {
	return len(rd.Vectors)+len(rd.Send)+len(rd.Need)+len(rd.Have)+len(rd.Forks)+len(rd.Based) == 0
}

// Ready gives what is due, once. The loop calls it after inputs, at Next, and again after Sent until it is Empty.
func (r *Replica) Ready(now time.Time) Ready {
	r.asks(now)
	rd := Ready{Need: r.needs, Forks: r.forks}
	r.needs, r.forks = nil, nil
	for _, k := range r.links {
		if len(k.have) > 0 && !now.Before(k.haveBy) {
			h := HaveTo{Peer: k.peer, Marks: make([]Mark, 0, len(k.have))}
			for _, l := range k.have {
				h.Marks = append(h.Marks, Mark{Log: l.id, Seq: l.limit()})
			}
			k.have = nil
			rd.Have = append(rd.Have, h)
		}
		if !now.Before(k.compareAt) {
			k.compareAt = now.Add(protocol.CompareEvery)
			rd.Vectors = append(rd.Vectors, VectorTo{k.peer, r.vector(k)})
		}
		if len(k.details) > 0 {
			rd.Vectors = append(rd.Vectors, VectorTo{k.peer, r.details(k)})
		}
		rd.Send = append(rd.Send, k.proofs...)
		k.proofs = nil
		rd.Send = k.pushes(now, rd.Send)
		rd.Send = k.serve(now, rd.Send)
		if k.based {
			k.based, rd.Based = false, append(rd.Based, k.peer)
		}
	}
	return rd
}

// pushes gives the live runs that are due and have room.
func (k *link) pushes(now time.Time, out []Range) []Range {
	k.live = slices.DeleteFunc(k.live, func(h *held) bool {
		if h.place != inLive {
			return true
		}
		limit := h.log.limit()
		if h.sent >= limit {
			h.rest()
			return true
		}
		if now.Before(h.passAt) {
			return false
		}
		if k.flightBytes > 0 && k.flightBytes+h.liveBytes > protocol.PushBacklogBytes {
			h.passAt = time.Time{} // waits for room, not for an instant
			return false
		}
		if k.waits(h) || !h.log.own && k.full(h) {
			h.passAt = time.Time{} // for what the peer says, not for an instant
			return false
		}
		out = append(out, Range{Peer: k.peer, Log: h.log.id, From: h.sent + 1, To: limit, Bytes: h.liveBytes, Live: true})
		k.depart(now, h, limit, h.liveBytes, false)
		h.rest()
		return true
	})
	return out
}

// full says whether so much of a log is in flight that no more of it is passed on for now: the window is for what others say, too.
func (k *link) full(h *held) bool {
	bytes := h.liveBytes
	for i := range k.flight {
		if k.flight[i].held == h {
			bytes += k.flight[i].bytes
		}
	}
	return bytes > h.liveBytes && bytes > passBytesMax
}

// serve gives the next range from the store, one at a time, oldest log first.
func (k *link) serve(now time.Time, out []Range) []Range {
	room := min(storeBytesMax-k.storeBytes, protocol.PushBacklogBytes-k.flightBytes)
	if k.serving || (room <= 0 && k.storeBytes > 0) {
		return out
	}
	if len(k.store) == 0 || now.Before(k.storeAt) {
		return out
	}
	var next time.Time
	done := 0
	for _, h := range k.store {
		limit := h.log.limit()
		if h.place != inStore || h.sent >= limit || h.stuck {
			if h.place == inStore {
				h.rest()
			}
			done++
			continue
		}
		if now.Before(h.passAt) {
			if next.IsZero() || h.passAt.Before(next) {
				next = h.passAt
			}
			continue
		}
		if k.below(h) {
			done++
			continue
		}
		if k.waits(h) {
			continue
		}
		room = max(room, 1)
		out = append(out, Range{Peer: k.peer, Log: h.log.id, From: h.sent + 1, To: limit, Bytes: room})
		k.depart(now, h, limit, room, true)
		k.serving, next = true, time.Time{}
		break
	}
	if done > 0 {
		k.store = slices.DeleteFunc(k.store, func(h *held) bool { return h.place != inStore })
	}
	k.storeAt = next
	return out
}

// rest says that a peer was sent everything of a log.
func (h *held) rest() { h.place, h.liveBytes, h.passAt, h.asked = idle, 0, time.Time{}, false }

// depart puts a range in flight.
func (k *link) depart(now time.Time, h *held, to uint64, bytes int, store bool) {
	k.flight = append(k.flight, flight{held: h, from: h.sent + 1, to: to, bytes: bytes, store: store, at: now})
	k.flightBytes += bytes
	if store {
		k.storeBytes += bytes
	}
	h.sent = to
}

// Next is the instant at which Ready will have something without any input; zero: only an input changes anything.
func (r *Replica) Next() time.Time {
	var next time.Time
	sooner := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	if len(r.lacks) > 0 && len(r.links) > 0 {
		sooner(r.askAt)
	}
	for _, k := range r.links {
		sooner(k.compareAt)
		if len(k.have) > 0 && !k.haveBy.IsZero() {
			sooner(k.haveBy)
		}
		for _, h := range k.live {
			if !h.passAt.IsZero() {
				sooner(h.passAt)
			}
		}
		if len(k.store) > 0 && !k.storeAt.IsZero() {
			sooner(k.storeAt)
		}
	}
	return next
}

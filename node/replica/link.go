package replica

import (
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// link is what is known of a linked peer. It lives as long as the link.
type link struct {
	peer   protocol.PeerID
	inside bool

	compareAt time.Time // when our vector is due
	compared  bool      // its whole vector has come
	compares  int
	details   []protocol.PeerID             // authors of whom it is due all marks
	same      map[protocol.PeerID][16]byte  // authors' pasts found equal, by their sum
	vague     map[protocol.PeerID]bool      // authors' pasts found different, but not yet in what
	told      map[protocol.PeerID]time.Time // when it was last told all marks of an author

	// logs holds a peer's state where it may differ from ours. Once compared, a log that is not here is held alike,
	// unless its author is vague.
	logs  map[*logState]*held
	live  []*held // what was said since the peer had everything, in order
	store []*held // what is to be read from the store, oldest log first
	// storeAt is when store is to be looked through again; zero: now.
	storeAt time.Time
	serving bool // a range from the store was given to the caller and not settled by Sent

	flight      []flight // sent and not confirmed, in order
	flightBytes int
	storeBytes  int // of flightBytes, from the store

	have    []*logState // to be confirmed to it
	haveBy  time.Time   // when at the latest, if there are any
	proofs  []Range
	based   bool      // it lacks what has left here, and is to be told
	takenAt time.Time // when it last sent something new
	strange int
}

// place is where a held waits to be sent.
type place uint8

const (
	idle    place = iota
	inLive        // what was said since the peer had everything
	inStore       // behind
)

// held is how a linked peer stands with one log.
type held struct {
	log    *logState
	has    uint64 // as it said
	sent   uint64 // at least has; what was sent on this link
	place  place
	passAt time.Time // not to be sent before

	liveBytes int // since the live run began

	fed   bool  // it lacked this log's records until we passed them on: pass the next ones on at once
	asked bool  // it has asked
	fails uint8 // how often a range was sent in vain
	stuck bool  // our store could not serve it
	dry   uint8 // at how many comparisons in a row
}

// flight is a range on its way.
type flight struct {
	held     *held
	from, to uint64
	bytes    int
	store    bool
	settled  bool
	at       time.Time
}

// LinkUp says that a link to a peer is open; a comparison is due. A second one for the same peer replaces the first.
func (r *Replica) LinkUp(now time.Time, peer protocol.PeerID, inside bool) {
	r.LinkDown(peer)
	at, _ := r.find(peer)
	r.links = slices.Insert(r.links, at, &link{peer: peer, inside: inside, compareAt: now,
		logs: map[*logState]*held{}, same: map[protocol.PeerID][16]byte{},
		vague: map[protocol.PeerID]bool{}, told: map[protocol.PeerID]time.Time{}})
}

// LinkDown forgets what was known of a peer, except what it proved: that it holds records, and that there are some.
func (r *Replica) LinkDown(peer protocol.PeerID) {
	at, found := r.find(peer)
	if !found {
		return
	}
	k := r.links[at]
	r.links = slices.Delete(r.links, at, at+1)
	r.needs = slices.DeleteFunc(r.needs, func(n NeedTo) bool { return n.Peer == peer })
	for _, l := range sortedLogs(k.logs) {
		if l.takenSeq == 0 && l.cut == noEnd && !l.inside && !r.named(l) {
			r.close(l)
		}
	}
}

func sortedLogs(m map[*logState]*held) []*logState {
	out := make([]*logState, 0, len(m))
	for l := range m {
		out = append(out, l)
	}
	slices.SortFunc(out, byStart)
	return out
}

func (r *Replica) named(l *logState) bool {
	return slices.ContainsFunc(r.links, func(k *link) bool { return k.logs[l] != nil })
}

func (r *Replica) find(peer protocol.PeerID) (int, bool) {
	return slices.BinarySearchFunc(r.links, peer, func(k *link, p protocol.PeerID) int {
		return strings.Compare(string(k.peer), string(p))
	})
}

func (r *Replica) link(peer protocol.PeerID) *link {
	if at, found := r.find(peer); found {
		return r.links[at]
	}
	return nil
}

// sees says whether a linked peer may hold a log.
func (r *Replica) sees(k *link, id protocol.LogID) bool {
	return k.inside || k.peer == id.Peer || r.see(k.peer, id.Scope)
}

// held finds or makes a peer's state of a log; a new one starts with seq.
func (k *link) held(l *logState, seq uint64) *held {
	h := k.logs[l]
	if h == nil {
		h = &held{log: l, has: seq, sent: seq}
		k.logs[l] = h
	}
	return h
}

// base is how far a peer holds a log that is not in k.logs.
func (k *link) base(l *logState) uint64 {
	if k.compared && !k.vague[l.id.Peer] {
		return l.limit()
	}
	return 0
}

// passTime is when a record may be passed on to a peer that still lacks it: at once if it is ours, or if the peer got
// the ones before from us alone. Else nodes wait for one another, each a little differently, so that one of them passes
// it on and the others hear that before their time.
func (r *Replica) passTime(now time.Time, k *link, h *held) time.Time {
	if h.log.id.Peer == r.self || h.fed || h.asked {
		return time.Time{}
	}
	sum := fnv.New32a()
	for _, s := range []string{string(r.self), string(k.peer), string(h.log.id.Peer), string(h.log.id.Scope)} {
		sum.Write([]byte(s))
		sum.Write([]byte{0})
	}
	const steps = 64
	return now.Add(protocol.PassOnAfter + protocol.PassOnAfter*time.Duration(sum.Sum32()%steps)/steps)
}

// toLive begins or goes on with a live run; bytes were added to the log after before.
func (r *Replica) toLive(now time.Time, k *link, h *held, before uint64, bytes int) {
	switch {
	case h.place == inLive:
		h.liveBytes += bytes
		if h.liveBytes > protocol.PushBacklogBytes {
			r.toStore(k, h, h.passAt)
		}
	case h.sent >= before && !h.stuck:
		h.place, h.liveBytes, h.passAt = inLive, bytes, r.passTime(now, k, h)
		k.live = append(k.live, h)
	case h.place == idle && !h.stuck:
		r.toStore(k, h, r.passTime(now, k, h))
	}
}

// toStore puts a log where it is served from the store, not before at.
func (r *Replica) toStore(k *link, h *held, at time.Time) {
	if h.place == inLive {
		k.live = slices.DeleteFunc(k.live, func(x *held) bool { return x == h })
	}
	h.place, h.passAt, h.liveBytes = inStore, at, 0
	k.storeAt = time.Time{}
	i, found := slices.BinarySearchFunc(k.store, h, func(a, b *held) int { return byStart(a.log, b.log) })
	if !found {
		k.store = slices.Insert(k.store, i, h)
	}
}

// land takes the flights of a log out that ok names; it tells whether there were any.
func (k *link) land(h *held, ok func(flight) bool) bool {
	before := len(k.flight)
	k.flight = slices.DeleteFunc(k.flight, func(f flight) bool {
		if f.held != h || !ok(f) {
			return false
		}
		k.flightBytes -= f.bytes
		if f.store {
			k.storeBytes -= f.bytes
			if !f.settled {
				k.serving = false
			}
		}
		return true
	})
	return len(k.flight) < before
}

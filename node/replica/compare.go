package replica

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// Past stands for all logs of an author's former starts: equal sums, equal logs.
type Past struct {
	Author protocol.PeerID
	Sum    [16]byte
}

// Vector is a comparison. Without Of it speaks of everything that its receiver may see: Marks name the logs of each
// author's last start, Past the ones before, and of an author not named nothing is held. With Of, Marks name all logs
// of these authors.
type Vector struct {
	Marks []Mark
	Past  []Past
	Of    []protocol.PeerID
}

// vector is what we hold of what k may see.
func (r *Replica) vector(k *link) Vector {
	var v Vector
	for _, a := range r.authors {
		last, ok := r.lastStart(k, a)
		if !ok {
			continue
		}
		past := false
		for _, l := range a.logs {
			if l.limit() == 0 || !r.sees(k, l.id) {
				continue
			}
			if l.id.Start == last {
				v.Marks = append(v.Marks, l.mark())
			} else {
				past = true
			}
		}
		if past {
			v.Past = append(v.Past, Past{a.peer, r.pastSum(k, a, last)})
		}
	}
	return v
}

// details is all that we hold of some authors and k may see.
func (r *Replica) details(k *link) Vector {
	v := Vector{Of: k.details}
	for _, p := range k.details {
		if a := r.author(p); a != nil {
			for _, l := range a.logs {
				if l.limit() > 0 && r.sees(k, l.id) {
					v.Marks = append(v.Marks, l.mark())
				}
			}
		}
	}
	k.details = nil
	return v
}

// mark states a log up to its cut. The hash there is known only if nothing lies beyond, so a cut log states none: nodes
// that hold more and less of it beyond the cut then agree.
func (l *logState) mark() Mark {
	m := Mark{Log: l.id, Seq: l.limit()}
	if l.seq < l.end {
		copy(m.Hash[:], l.hash[:])
	}
	return m
}

func (r *Replica) author(p protocol.PeerID) *author {
	at, found := slices.BinarySearchFunc(r.authors, p, func(a *author, p protocol.PeerID) int {
		return strings.Compare(string(a.peer), string(p))
	})
	if !found {
		return nil
	}
	return r.authors[at]
}

// lastStart is the last start of an author of which we hold something that k may see.
func (r *Replica) lastStart(k *link, a *author) (protocol.Start, bool) {
	for i := len(a.logs) - 1; i >= 0; i-- {
		if l := a.logs[i]; l.limit() > 0 && r.sees(k, l.id) {
			return l.id.Start, true
		}
	}
	return protocol.Start{}, false
}

// pastSum is a digest of what we hold of an author's logs before a start and k may see. Inside members see all, so the
// usual one is kept.
func (r *Replica) pastSum(k *link, a *author, before protocol.Start) [16]byte {
	last, _ := r.lastStart(k, a)
	usual := k.inside && before == last
	if usual && a.sumOK {
		return a.sum
	}
	h := sha256.New()
	var n [24]byte
	for _, l := range a.logs {
		if compareStarts(l.id.Start, before) >= 0 {
			break
		}
		if l.limit() == 0 || !r.sees(k, l.id) {
			continue
		}
		m := l.mark()
		binary.BigEndian.PutUint64(n[:], uint64(l.id.Start.At))
		binary.BigEndian.PutUint64(n[8:], l.id.Start.Rand)
		binary.BigEndian.PutUint64(n[16:], m.Seq)
		h.Write(n[:])
		h.Write(m.Hash[:])
		binary.BigEndian.PutUint64(n[:], uint64(len(l.id.Scope)))
		h.Write(n[:8])
		h.Write([]byte(l.id.Scope))
	}
	sum := [16]byte(h.Sum(nil)[:16])
	if usual {
		a.sum, a.sumOK = sum, true
	}
	return sum
}

// stated is what a vector says of one author.
type stated struct {
	marks map[protocol.LogID]Mark
	last  protocol.Start
	past  [16]byte
	hasP  bool
}

// Compared takes a peer's vector, whole. What it lacks is sent from now on; what it holds and we lack will come, or be
// asked for.
func (r *Replica) Compared(now time.Time, peer protocol.PeerID, v Vector) {
	k := r.link(peer)
	if k == nil {
		return
	}
	k.storeAt = time.Time{} // what waits for older logs may wait no more
	said := map[protocol.PeerID]*stated{}
	of := func(p protocol.PeerID) *stated {
		if said[p] == nil {
			said[p] = &stated{marks: map[protocol.LogID]Mark{}}
		}
		return said[p]
	}
	for _, p := range v.Past {
		s := of(p.Author)
		s.past, s.hasP = p.Sum, true
	}
	for _, m := range v.Marks {
		if m.Seq == 0 || !r.sees(k, m.Log) {
			continue
		}
		s := of(m.Log.Peer)
		s.marks[m.Log] = m
		if compareStarts(m.Log.Start, s.last) > 0 {
			s.last = m.Log.Start
		}
		r.openStrange(k, m.Log)
	}
	if len(v.Of) > 0 {
		for _, p := range v.Of {
			s := of(p)
			s.hasP = false
			if !r.comparePeerOf(now, k, p, s) {
				k.detail(now, p) // it may know less than we about where we differ
			}
		}
		return
	}
	k.compared = true
	k.compares++
	nothing := &stated{}
	for _, a := range slices.Clone(r.authors) {
		s := said[a.peer]
		if s == nil {
			s = nothing
		}
		delete(said, a.peer)
		r.comparePeerOf(now, k, a.peer, s)
	}
	for _, p := range v.Past { // of whom we hold nothing at all
		if said[p.Author] != nil {
			k.vague[p.Author] = true
			k.detail(now, p.Author)
		}
	}
}

// detail makes all our marks of an author due, once a comparison.
func (k *link) detail(now time.Time, p protocol.PeerID) {
	if at, ok := k.told[p]; !ok || now.Sub(at) >= protocol.CompareEvery/2 {
		k.told[p] = now
		k.details = append(k.details, p)
	}
}

// comparePeerOf compares all logs of one author with what a peer says of them; it tells whether they are alike.
func (r *Replica) comparePeerOf(now time.Time, k *link, p protocol.PeerID, s *stated) bool {
	delete(k.vague, p)
	a := r.author(p)
	if a == nil {
		return true
	}
	before := s.last
	if s.hasP && len(s.marks) == 0 {
		before = protocol.Start{At: ^protocol.HLC(0), Rand: ^uint64(0)}
	}
	pastEqual, known := false, false
	if s.hasP {
		sum := r.pastSum(k, a, before)
		pastEqual = sum == s.past
		old, was := k.same[p]
		known = was && old == sum
		if pastEqual {
			k.same[p] = sum
		} else {
			delete(k.same, p)
			k.vague[p] = true
			k.detail(now, p)
		}
	}
	alike := true
	for _, l := range a.logs {
		m, ok := s.marks[l.id]
		if !ok && s.hasP && compareStarts(l.id.Start, before) < 0 {
			if !pastEqual || known {
				continue
			}
			m = Mark{Seq: l.limit()}
		}
		if r.sees(k, l.id) {
			alike = alike && m.Seq == l.limit()
			r.compareLog(now, k, l, m, compareStarts(l.id.Start, before) < 0)
		}
	}
	return alike
}

// compareLog sets what a peer holds of one log, up or down.
func (r *Replica) compareLog(now time.Time, k *link, l *logState, m Mark, former bool) {
	h, limit := k.logs[l], l.limit()
	if h == nil {
		if limit == m.Seq && l.mark().agrees(m) && (former || limit == 0) {
			if k.inside {
				l.replicated = max(l.replicated, m.Seq)
			}
			return // alike, and needs no memory
		}
		h = k.held(l, m.Seq)
	}
	r.advance(now, k, h, m.Seq)
	if h.has > m.Seq { // it says less than before: believe it
		h.has = m.Seq
	}
	if h.stuck {
		h.stuck, h.dry = false, min(h.dry+1, givenUp)
	}
	if k.compares%feedCompares == 0 {
		h.fed = false
	}
	if h.place == inLive {
		r.toStore(k, h, h.passAt) // what it lacks may have begun before the run
	}
	late := func(f flight) bool { return f.held == h && now.Sub(f.at) >= protocol.CompareEvery }
	if slices.ContainsFunc(k.flight, late) {
		k.land(h, func(flight) bool { return true })
		h.fails = min(h.fails+1, 6)
	}
	h.sent = h.has
	for _, f := range k.flight {
		if f.held == h {
			h.sent = max(h.sent, f.to)
		}
	}
	if m.Seq == l.seq && !l.mark().agrees(m) {
		// A vector is no proof: ask for the signed record.
		r.needs = append(r.needs, NeedTo{k.peer, Need{l.id, m.Seq, m.Seq}})
	}
	switch {
	case h.sent >= limit:
		if former && h.place == idle && h.has == limit {
			delete(k.logs, l)
		}
	case h.place == idle && (r.serves(l) || h.asked):
		at := r.passTime(now, k, h)
		if h.fails > 0 {
			at = now.Add(protocol.CompareEvery << (h.fails - 1))
		}
		r.toStore(k, h, at)
	}
}

// agrees says whether two marks of one seq may be of one record.
func (m Mark) agrees(other Mark) bool {
	return m.Seq != other.Seq || m.Hash == other.Hash || m.Hash == [8]byte{} || other.Hash == [8]byte{}
}

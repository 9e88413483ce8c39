package replica

import (
	"slices"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// Verdict says what becomes of an offered range.
type Verdict uint8

const (
	// Take: Offer.Take continues the log; make it durable, then call Committed.
	Take Verdict = iota + 1
	// Repeat: all of it is held or on its way to the disk.
	Repeat
	// Gap: something before it is missing; it has been asked for from the same peer.
	Gap
	// Refused: it will never be taken; Offer.Refusal says why.
	Refused
)

func (v Verdict) String() string {
	return [...]string{"none", "take", "repeat", "gap", "refused"}[min(int(v), 4)]
}

// Offer is the verdict on a range.
type Offer struct {
	Verdict Verdict
	Take    []protocol.Record // the part that is new; shares the offered slice
	Hash    protocol.Hash     // of the last record of Take
	From    uint64            // of Gap: the first seq that is missing
	Refusal *protocol.Refusal
	Fork    *Fork // of Refused: what the range proves; Ready reports it once as well
}

// Fork proves that an author wrote two records under one seq, or lost control of its key. Seq is the lowest seq known
// to differ; the branches may part before it.
type Fork struct {
	Log    protocol.LogID
	Seq    uint64
	Ours   protocol.Hash
	Theirs protocol.Hash
	Peer   protocol.PeerID // who sent the other branch
}

// Offered judges a range that arrived from a peer. The caller has verified its signatures before
// (protocol.VerifyCommits with the first record's own Prev); what is checked here is that it may be here and that it
// follows the log as held, hash by hash, so that nothing else is ever taken. What it takes counts as held for the next
// range, but is stated to nobody before Committed.
func (r *Replica) Offered(now time.Time, peer protocol.PeerID, recs []protocol.Record) Offer {
	if len(recs) == 0 {
		return refused(protocol.CodeBadFrame, "a range without records")
	}
	id := recs[0].Log
	if !r.mayHold(id) {
		return refused(protocol.CodeNotAllowed, "this node may not see logs of that scope")
	}
	tip, ok := chain(recs)
	if !ok {
		return refused(protocol.CodeBadFrame, protocol.ErrBadChain.Error())
	}
	first, last := recs[0].Seq, recs[len(recs)-1].Seq
	l := r.logs[id]
	if l == nil {
		l = newLog(id)
	}
	hashAt := func(seq uint64) protocol.Hash {
		if seq == last {
			return tip
		}
		return recs[seq+1-first].Prev
	}
	switch held := l.takenSeq; {
	case first > l.end:
		return refused(protocol.CodeRevoked, "records beyond the cut of their log count nowhere")
	case held > 0 && first <= held+1 && last >= held && hashAt2(recs, first, held, hashAt) != l.takenHash:
		return r.fork(peer, l, hashAt2(recs, first, held, hashAt))
	case l.own && last > held:
		return refused(protocol.CodeNotAllowed, "only this node writes that log")
	case last <= held:
		r.heard(now, peer, l, last)
		if k := r.link(peer); k != nil && last <= l.seq && r.sees(k, id) {
			k.confirm(l, time.Time{}) // it may have crossed ours; the sender's window waits for it
		}
		return Offer{Verdict: Repeat}
	case first > held+1:
		return r.gap(now, peer, id, last)
	default:
		return r.take(now, peer, id, recs[held+1-first:], hashAt)
	}
}

// hashAt2 is the hash that a range gives for seq, which may be the one before its first.
func hashAt2(recs []protocol.Record, first, seq uint64, at func(uint64) protocol.Hash) protocol.Hash {
	if seq+1 == first {
		return recs[0].Prev
	}
	return at(seq)
}

func refused(code, reason string) Offer {
	return Offer{Verdict: Refused, Refusal: protocol.Refuse(code, reason, "")}
}

// chain checks that recs are one range of one log, each following the one before, and gives the last one's hash.
func chain(recs []protocol.Record) (protocol.Hash, bool) {
	if first := recs[0]; first.Seq == 0 || (first.Seq == 1) != (first.Prev == protocol.Hash{}) {
		return protocol.Hash{}, false
	}
	tip := recs[0].Hash()
	for i := range recs[1:] {
		next := &recs[i+1]
		if next.Log != recs[0].Log || next.Seq != recs[i].Seq+1 || next.Prev != tip {
			return tip, false
		}
		tip = next.Hash()
	}
	return tip, true
}

func (r *Replica) take(now time.Time, peer protocol.PeerID, id protocol.LogID, fresh []protocol.Record, hashAt func(uint64) protocol.Hash) Offer {
	last := fresh[len(fresh)-1].Seq
	l := r.open(id)
	if last > l.end {
		// Only whole commits are taken, so that they can be passed on: up to the last signature before the cut.
		n := int(l.end - fresh[0].Seq + 1)
		for n > 0 && len(fresh[n-1].Sig) == 0 {
			n--
		}
		if fresh = fresh[:n]; n == 0 {
			return refused(protocol.CodeRevoked, "records beyond the cut of their log count nowhere")
		}
	}
	end := fresh[len(fresh)-1].Seq
	r.reach(l, end, hashAt(end))
	if k := r.link(peer); k != nil {
		k.takenAt = now
	}
	r.heard(now, peer, l, last)
	return Offer{Verdict: Take, Take: fresh, Hash: l.takenHash}
}

func (r *Replica) gap(now time.Time, peer protocol.PeerID, id protocol.LogID, last uint64) Offer {
	k := r.link(peer)
	if k == nil {
		return Offer{Verdict: Gap, From: r.Head(id).Seq + 1}
	}
	l := r.openStrange(k, id)
	if l == nil {
		return refused(protocol.CodeRate, "too many logs of which nothing is held")
	}
	r.heard(now, peer, l, last)
	if !now.Before(l.askAt) || l.turn == 0 {
		r.ask(now, k, l)
	}
	return Offer{Verdict: Gap, From: l.takenSeq + 1}
}

func (r *Replica) fork(peer protocol.PeerID, l *logState, theirs protocol.Hash) Offer {
	f := Fork{l.id, l.takenSeq, l.takenHash, theirs, peer}
	if l.fork == noEnd {
		l.fork = f.Seq - 1
		l.end = min(l.cut, l.fork)
		l.author.sumOK = false
		r.look()
		r.forks = append(r.forks, f)
	}
	o := refused(protocol.CodeBadFrame, "two records under one number: the log is cut there")
	o.Fork = &f
	return o
}

// reach moves what is taken of a log.
func (r *Replica) reach(l *logState, seq uint64, hash protocol.Hash) {
	if l.takenSeq == 0 {
		r.strange--
	}
	l.takenSeq, l.takenHash = seq, hash
}

// heard notes that a peer holds a log up to seq, since it sent it.
func (r *Replica) heard(now time.Time, peer protocol.PeerID, l *logState, seq uint64) {
	if k := r.link(peer); k != nil && r.sees(k, l.id) {
		r.advance(now, k, k.held(l, k.base(l)), seq)
	}
}

// Commit is what became durable of one log by one sync.
type Commit struct {
	Log   protocol.LogID
	Seq   uint64 // the last record
	Hash  protocol.Hash
	Bytes int             // of the records that were added, about
	From  protocol.PeerID // who sent them; empty: this node wrote them
	Quiet bool            // nobody waits to hear that they are here
}

// Committed says that records are durable here: own ones, or such that Offered took. From then on they are stated,
// pushed and passed on.
func (r *Replica) Committed(now time.Time, c Commit) {
	l := r.open(c.Log)
	if c.Seq <= l.seq {
		return
	}
	before := l.seq
	if c.Seq > l.takenSeq {
		r.reach(l, c.Seq, c.Hash)
	}
	l.seq, l.hash = c.Seq, c.Hash
	l.own = l.own || c.From == ""
	if a := l.author; l.id.Start != a.logs[len(a.logs)-1].id.Start || before == 0 {
		a.sumOK = false
	}
	if l.lacking {
		l.lackAt, l.askAt = now, now.Add(needAfter)
	}
	var by time.Time
	if c.Quiet && c.Bytes < quietBytes {
		by = now.Add(quietFor)
	}
	for _, k := range r.links {
		if !r.sees(k, l.id) {
			continue
		}
		if c.From != "" && (k.inside || k.peer == l.id.Peer || k.peer == c.From) {
			k.confirm(l, by)
		}
		if !k.compared || (k.vague[l.id.Peer] && k.logs[l] == nil && l.id.Peer != r.self) {
			continue // the comparison will say what it lacks
		}
		h := k.held(l, before)
		if k.peer == c.From || k.peer == l.id.Peer {
			// Its own log it holds, unless it lost it: then the comparison says so.
			r.advance(now, k, h, c.Seq)
		}
		if h.sent < l.limit() && (r.serves(l) || h.asked) {
			r.toLive(now, k, h, before, c.Bytes)
		}
	}
}

// confirm owes the peer a word on a log, at the instant by at the latest. Zero: at once.
func (k *link) confirm(l *logState, by time.Time) {
	if len(k.have) == 0 || by.Before(k.haveBy) {
		k.haveBy = by
	}
	if !slices.Contains(k.have, l) {
		k.have = append(k.have, l)
	}
}

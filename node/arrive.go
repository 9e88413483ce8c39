package node

import (
	"runtime"

	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/node/turn"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
	"github.com/aster-mesh/aster/roles"
	"github.com/aster-mesh/aster/roles/member"
)

// onRecords has a range wait for its share of this node: of a peer's own in the link's reader, of what it passes on, and of what is on
// credit, beside that.
func (n *Node) onRecords(from protocol.PeerID, f meshwire.Records) error {
	src := source{from, f.Log.Peer}
	if from != f.Log.Peer && n.standingOf(f.Log.Peer) == mesh.Unknown {
		src.author = "" // anybody can make such names
	}
	r := ranged{f, src.author != "" && n.credit.spend(&f)}
	if (from != f.Log.Peer || r.credit) && n.aside.put(n, src, r) {
		return nil
	}
	if from == f.Log.Peer {
		n.aside.drained(n.ctx, src)
	}
	n.debts.pauseRange(n.ctx, src, f.Records)
	return n.takeRange(from, r)
}

// takeRange checks a range whole: chain and signatures here, its place in the loop. Blobs that the records need are
// fetched first, since a node has a record only with its blobs (DESIGN 10).
func (n *Node) takeRange(from protocol.PeerID, f ranged) error {
	recs := f.ToRecords()
	if _, err := protocol.VerifyCommits(recs, f.Prev); err != nil {
		return err
	}
	envs := make([]*protocol.Envelope, len(recs))
	var blobs []protocol.BlobRef
	for i := range recs {
		if i%longRecords == 0 {
			runtime.Gosched() // the loop comes first
		}
		if recs[i].Kind != protocol.KindMessage {
			continue
		}
		env, err := protocol.DecodeBody[protocol.Envelope](&recs[i])
		if err != nil || env.Check() != nil {
			continue // kept and passed on like any record, shown nowhere
		}
		envs[i] = &env
		for _, b := range env.AllBlobs() {
			if !n.store.KeepBlob(b.SHA256) {
				blobs = append(blobs, b)
			}
		}
	}
	if author := f.Log.Peer; !n.affords(author, weigh(recs, envs)) {
		return n.loop.post(n.ctx, func() { n.loop.overQuota(author) })
	}
	take := func() error { return n.takeRecords(from, recs, envs, f.credit) }
	return n.blobs.before(from, blobs, take)
}

// keyOlder is the value that says that this home lost something once and was given it back by others.
const keyOlder = "older"

// arrived offers a verified range to the replica and applies what continues our copy of the log.
func (l *loop) arrived(from protocol.PeerID, recs []protocol.Record, envs []*protocol.Envelope) {
	if r := l.mayWrite(from, recs[0].Log); r != nil {
		l.log.Warn("records refused", "peer", from, "log", recs[0].Log.String(), "code", r.Code)
		return
	}
	l.mend(recs, envs)
	if log := recs[0].Log; log.Peer == l.n.home.peer && l.n.startID.Compare(log.Start) < 0 {
		l.fence(log.Start)
	}
	if l.n.full() != nil {
		return // not taken, so not stated: it comes again when there is room
	}
	if log := recs[0].Log; l.roster().Bound(log) != member.NoBound {
		if log.Start.At > l.roster().RevokedAt(log.Peer) {
			return // its author may be let in again, and the record of that be on its way
		}
		l.rep.Cut(log, l.roster().Bound(log)) // also of a log that whoever revoked its author never saw
	}
	offer := l.rep.Offered(l.now, from, recs)
	if offer.Verdict != replica.Take {
		if offer.Verdict == replica.Refused {
			l.log.Warn("records refused", "peer", from, "log", recs[0].Log.String(), "code", offer.Refusal.Code)
		}
		return
	}
	if recs[0].Log.Peer == l.n.home.peer { // ours, and not here
		l.n.older.Store(true)
		l.ownBack = true
		l.value(keyOlder, []byte{1})
	}
	skip := int(offer.Take[0].Seq - recs[0].Seq)
	l.spend(recs[0].Log.Peer, weigh(offer.Take, envs[skip:]))
	a := turn.Arrival{Hub: l.core, Board: l.board, Replica: l.rep, Past: l.store, Belief: &l.belief, Older: l.n.older.Load()}
	entries := a.Take(l.now, &offer, envs[skip:])
	for i := range entries {
		if entries[i].Void && envs[skip+i] != nil {
			l.log.Warn("words of an agent that this log has not bound, or that is called otherwise here", "peer", recs[0].Log.Peer, "agent", envs[skip+i].From, "seq", entries[i].Record.Seq)
		}
	}
	l.foreign = append(l.foreign, entries...)
	l.regained = append(l.regained, turn.Regained(l.n.home.peer, entries)...)
	l.from[recs[0].Log] = from
}

// mayWrite keeps an outside member to its own scope, and strangers' logs out unless an inside member passes them on,
// whose word on a newcomer comes before the newcomer's record.
func (l *loop) mayWrite(from protocol.PeerID, log protocol.LogID) *protocol.Refusal {
	switch l.n.standingOf(log.Peer) {
	case mesh.Inside, mesh.Revoked: // of a revoked member what lies before its cut counts
		return nil
	case mesh.Outside:
		return roles.MayWrite(roles.Viewer{Peer: log.Peer}, log.Scope)
	}
	if l.n.standingOf(from) == mesh.Inside || log.Peer == l.n.home.peer {
		return nil
	}
	return protocol.Refuse(protocol.CodeNotMember, "records of a node that is no member", "")
}

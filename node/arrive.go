package node

import (
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
	"github.com/aster-mesh/aster/roles"
	"github.com/aster-mesh/aster/roles/member"
)

// onRecords checks a range whole: chain and signatures here, its place in the loop. Blobs that the records need are
// fetched first, since a node has a record only with its blobs (DESIGN 10).
func (n *Node) onRecords(from protocol.PeerID, f meshwire.Records) error {
	recs := f.ToRecords()
	if _, err := protocol.VerifyCommits(recs, f.Prev); err != nil {
		return err
	}
	envs := make([]*protocol.Envelope, len(recs))
	var blobs []protocol.BlobRef
	for i := range recs {
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
	take := func() error {
		return n.loop.post(n.ctx, func() { n.loop.arrived(from, recs, envs) })
	}
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
	var held func(protocol.LogID) uint64
	if ofOutsider(recs[0].Log) {
		held = l.rep.Taken
	}
	if recs[0].Log.Peer == l.n.home.peer { // ours, and not here
		l.n.older.Store(true)
		l.value(keyOlder, []byte{1})
	}
	skip := int(offer.Take[0].Seq - recs[0].Seq)
	l.spend(recs[0].Log.Peer, weigh(offer.Take, envs[skip:]))
	for i := range offer.Take {
		rec, said := &offer.Take[i], envs[skip+i]
		env, mixed := l.believed(rec, said)
		entry := journal.Entry{Record: *rec, Hash: offer.Hash, Envelope: env, Void: env == nil && rec.Kind == protocol.KindMessage}
		if i+1 < len(offer.Take) {
			entry.Hash = offer.Take[i+1].Prev
		}
		l.foreign = append(l.foreign, entry)
		in := hub.Applied{Record: rec, Env: env, Seen: l.seen(env), Settled: l.settled(rec, env), Held: held}
		if mixed {
			in.Disbelieved = said
		}
		l.core.Step(l.now, in)
	}
	l.from[recs[0].Log] = from
}

// believed is the envelope of an arrived message if its log may tell it: behind the binding of whoever speaks in it, and of
// an outside member not under the name of somebody else's agent (mixed). What is not believed is kept and passed on like any
// record, and shown nowhere.
func (l *loop) believed(rec *protocol.Record, env *protocol.Envelope) (_ *protocol.Envelope, mixed bool) {
	if rec.Kind == protocol.KindBind {
		if b, err := protocol.DecodeBody[protocol.BindBody](rec); err == nil && b.Home == rec.Log.Peer {
			l.boundNow[boundKey{rec.Log, protocol.FoldAgentID(b.Agent)}] = !b.Forgotten
			if b.Called != "" {
				l.boundNow[boundKey{rec.Log, protocol.FoldAgentID(b.Called)}] = !b.Forgotten
			}
		}
		return env, false
	}
	if env == nil || !outsideMay(rec, env) {
		return nil, false
	}
	if env.From == "" {
		return env, false
	}
	bound, now := l.boundNow[boundKey{rec.Log, protocol.FoldAgentID(env.From)}]
	if !now {
		bound = l.board.Bound(rec.Log, env.From)
	}
	k, ok := l.core.Agent(env.From)
	mixed = bound && ofOutsider(rec.Log) && ok && k.Home != rec.Log.Peer
	if !bound || mixed {
		l.log.Warn("words of an agent that this log has not bound, or that is called otherwise here", "peer", rec.Log.Peer, "agent", env.From, "seq", rec.Seq)
		return nil, mixed
	}
	return env, false
}

// outsideMay says whether a record of a member outside claims no more than such a member may: it speaks for agents and
// persons of its own, never as the node, as main or as an agent of the inside, and says nothing that only a hub says but how
// a question of its own ended. It looks at the record alone, so all nodes answer alike.
func outsideMay(rec *protocol.Record, env *protocol.Envelope) bool {
	if !ofOutsider(rec.Log) {
		return true
	}
	if env.Source == protocol.SourceServer {
		return env.From == "" && (env.Intent == "SelectionExpired" || env.Intent == "SelectionResolved")
	}
	if info := protocol.Lookup(env.Intent); info.HubOnly || info.Keeping == protocol.Dropped || env.FromRole.Inside() || env.FromRole == protocol.RoleBoard {
		return false
	}
	return (env.From == "") == (env.Source == protocol.SourceBoard)
}

// ofOutsider says whether a log's author writes in the scope of itself, as members outside alone do: that is known before
// their admission is.
func ofOutsider(log protocol.LogID) bool {
	out, ok := log.Scope.Outsider()
	return ok && out == log.Peer
}

// boundKey names an agent in a log.
type boundKey struct {
	log   protocol.LogID
	agent protocol.AgentID // folded
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

// seen looks for an earlier message under the same identity, for messages to agents here.
func (l *loop) seen(env *protocol.Envelope) *hub.Seen {
	if env == nil || env.To == "" && env.Room == "" {
		return nil
	}
	if env.Room == "" && !l.core.TakenHere(env.To) {
		return nil
	}
	row, ok, err := l.store.Identity(env.Identity())
	if err != nil || !ok {
		return nil
	}
	if tiers, err := l.store.Tiers(row.Log, row.Seq); err == nil {
		for _, t := range tiers {
			if t.Tier == protocol.Refused {
				return nil // the earlier one was not taken: this is no second copy of it
			}
		}
	}
	return &hub.Seen{Content: row.Content, Ref: hub.Ref{Log: row.Log, Seq: row.Seq}}
}

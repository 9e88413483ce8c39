package sim

import (
	"slices"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
	"github.com/aster-mesh/aster/roles"
	"github.com/aster-mesh/aster/roles/member"
)

type boundKey struct {
	log   protocol.LogID
	agent protocol.AgentID // folded
}

// provenRange is a range whose signatures were checked once; they are the same wherever it arrives again.
type provenRange struct {
	log         protocol.LogID
	first, last uint64
	sig         string
}

// records is Node.onRecords: chain and signatures, then the loop.
func (p *proc) records(from *node, f meshwire.Records) {
	recs := f.ToRecords()
	w := p.n.w
	key := provenRange{f.Log, f.First, f.First + uint64(len(recs)) - 1, string(recs[len(recs)-1].Sig)}
	if !w.proven[key] {
		if _, err := protocol.VerifyCommits(recs, f.Prev); err != nil {
			w.fail("ranges verify", "node %d from %d: %v", p.n.i, from.i, err)
			return
		}
		w.proven[key] = true
	}
	envs := make([]*protocol.Envelope, len(recs))
	for i := range recs {
		if recs[i].Kind != protocol.KindMessage {
			continue
		}
		if env, err := protocol.DecodeBody[protocol.Envelope](&recs[i]); err == nil && env.Check() == nil {
			envs[i] = &env
		}
	}
	p.post(func() { p.arrived(from.peer, recs, envs) })
}

// arrived is loop.arrived.
func (p *proc) arrived(from protocol.PeerID, recs []protocol.Record, envs []*protocol.Envelope) {
	log := recs[0].Log
	if r := p.mayWrite(from, log); r != nil {
		return
	}
	if p.n.disk.Full {
		return // not taken, so not stated: it comes again when there is room
	}
	if bound := p.roster().Bound(log); bound != member.NoBound {
		if log.Start.At > p.roster().RevokedAt(log.Peer) {
			return
		}
		p.rep.Cut(log, bound)
	}
	offer := p.rep.Offered(p.now, from, recs)
	if offer.Verdict != replica.Take {
		return
	}
	if last := offer.Take[len(offer.Take)-1].Seq; last > p.roster().Bound(log) {
		p.n.w.fail("nothing beyond a cut is taken", "node %d takes %s up to %d, its cut is %d", p.n.i, p.n.w.logName(log), last, p.roster().Bound(log))
	}
	var held func(protocol.LogID) uint64
	if ofOutsider(log) {
		held = p.rep.Taken
	}
	if log.Peer == p.n.peer {
		p.older = true
		p.value(keyOlder, []byte{1})
	}
	skip := int(offer.Take[0].Seq - recs[0].Seq)
	for i := range offer.Take {
		rec, said := &offer.Take[i], envs[skip+i]
		env, mixed := p.believed(rec, said)
		entry := journal.Entry{Record: *rec, Hash: offer.Hash, Envelope: env, Void: env == nil && rec.Kind == protocol.KindMessage}
		if i+1 < len(offer.Take) {
			entry.Hash = offer.Take[i+1].Prev
		}
		p.foreign = append(p.foreign, entry)
		in := hub.Applied{Record: rec, Env: env, Seen: p.seen(env), Settled: p.settled(rec, env), Held: held}
		if mixed {
			in.Disbelieved = said
		}
		p.core.Step(p.now, in)
	}
	p.from[log] = from
}

func (p *proc) believed(rec *protocol.Record, env *protocol.Envelope) (_ *protocol.Envelope, mixed bool) {
	if rec.Kind == protocol.KindBind {
		if b, err := protocol.DecodeBody[protocol.BindBody](rec); err == nil && b.Home == rec.Log.Peer {
			p.bound[boundKey{rec.Log, protocol.FoldAgentID(b.Agent)}] = !b.Forgotten
			if b.Called != "" {
				p.bound[boundKey{rec.Log, protocol.FoldAgentID(b.Called)}] = !b.Forgotten
			}
		}
		return env, false
	}
	if env == nil {
		return nil, false
	}
	if env.From == "" {
		return env, false
	}
	bound, now := p.bound[boundKey{rec.Log, protocol.FoldAgentID(env.From)}]
	if !now {
		bound = p.board.Bound(rec.Log, env.From)
	}
	k, ok := p.core.Agent(env.From)
	mixed = bound && ofOutsider(rec.Log) && ok && k.Home != rec.Log.Peer
	if !bound || mixed {
		return nil, mixed
	}
	return env, false
}

const keyOlder = "older"

// settled is loop.settled; nobody moves here.
func (p *proc) settled(rec *protocol.Record, env *protocol.Envelope) bool {
	if env == nil || env.Room != "" || env.To == "" || !p.older || !p.core.TakenHere(env.To) {
		return false
	}
	tiers, _ := p.n.disk.Tiers(rec.Log, rec.Seq)
	return slices.ContainsFunc(tiers, func(t journal.TierPut) bool {
		return (t.Tier == protocol.Processed || t.Tier == protocol.Refused) && p.core.Now(t.Agent) == p.core.Now(env.To)
	})
}

func ofOutsider(log protocol.LogID) bool {
	out, ok := log.Scope.Outsider()
	return ok && out == log.Peer
}

func (p *proc) mayWrite(from protocol.PeerID, log protocol.LogID) *protocol.Refusal {
	switch p.standing(log.Peer) {
	case insider, revoked:
		return nil
	case outsider:
		return roles.MayWrite(roles.Viewer{Peer: log.Peer}, log.Scope)
	}
	if p.standing(from) == insider || log.Peer == p.n.peer {
		return nil
	}
	return protocol.Refuse(protocol.CodeNotMember, "records of a node that is no member", "")
}

func (p *proc) seen(env *protocol.Envelope) *hub.Seen {
	if env == nil || env.To == "" && env.Room == "" {
		return nil
	}
	if env.Room == "" && !p.core.TakenHere(env.To) {
		return nil
	}
	row, ok, err := p.n.disk.Identity(env.Identity())
	if err != nil || !ok {
		return nil
	}
	tiers, _ := p.n.disk.Tiers(row.Log, row.Seq)
	for _, t := range tiers {
		if t.Tier == protocol.Refused {
			return nil
		}
	}
	return &hub.Seen{Content: row.Content, Ref: hub.Ref{Log: row.Log, Seq: row.Seq}}
}

// said is loop.said: a Say with what only the store knows.
func (p *proc) said(in hub.Say) hub.Say {
	in.Env.From = in.As
	if row, ok, _ := p.n.disk.Identity(in.Env.Identity()); ok {
		in.Seen = &hub.Seen{Content: row.Content, Ref: hub.Ref{Log: row.Log, Seq: row.Seq}}
	}
	if in.Env.Re != "" && (in.Env.Intent == protocol.Delegate || in.Env.Intent == protocol.WorkerReport) {
		if m, ok, _ := p.n.disk.MessageByID("", in.Env.Re); ok {
			in.Parent = &m.Envelope
		}
	}
	return in
}

package sim

import (
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/node/turn"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
	"github.com/aster-mesh/aster/roles"
	"github.com/aster-mesh/aster/roles/member"
)

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
	if log.Peer == p.n.peer {
		p.older, p.ownBack = true, true
		p.value(keyOlder, []byte{1})
	}
	skip := int(offer.Take[0].Seq - recs[0].Seq)
	a := turn.Arrival{Hub: p.core, Board: p.board, Replica: p.rep, Past: p.n.disk, Belief: &p.belief, Older: p.older}
	entries := a.Take(p.now, &offer, envs[skip:])
	p.foreign = append(p.foreign, entries...)
	p.regained = append(p.regained, turn.Regained(p.n.peer, entries)...)
	p.from[log] = from
}

const keyOlder = "older"

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

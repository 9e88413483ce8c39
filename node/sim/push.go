package sim

import (
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/node/turn"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
)

func (p *proc) sendTo(peer protocol.PeerID, f meshwire.Frame) bool {
	for _, part := range meshwire.Split(f) {
		if !p.n.w.send(p.n, p.n.w.byPeer[peer], part, 64) {
			return false
		}
	}
	return true
}

func (p *proc) linkUp(other *node) {
	st := p.standing(other.peer)
	if !st.member() {
		if l, _ := p.n.w.linkOf(p.n.i, other.i); l != nil {
			p.n.w.disconnect(l)
		}
		return
	}
	p.peers[other.peer] = &peerState{}
	p.rep.LinkUp(p.now, other.peer, st == insider)
	p.sendPresence(other.peer)
}

func (p *proc) linkDown(other *node) {
	if p.peers[other.peer] == nil {
		return
	}
	if l, _ := p.n.w.linkOf(p.n.i, other.i); l != nil {
		return // there is a new one already
	}
	delete(p.peers, other.peer)
	delete(p.bases, other.peer)
	p.rep.LinkDown(other.peer)
	p.core.Step(p.now, hub.PeerGone{Peer: other.peer})
}

// frame takes a frame of a linked peer: what loop.frame does with it, once it is verified.
func (p *proc) frame(from *node, f meshwire.Frame) {
	if rs, ok := f.(meshwire.Records); ok {
		p.records(from, rs)
		return
	}
	p.post(func() {
		s := p.peers[from.peer]
		if s == nil {
			return // the link went down meanwhile
		}
		switch f := f.(type) {
		case meshwire.Vector:
			p.vector(from.peer, s, f)
		case meshwire.Have:
			p.confirmed(from.peer, turn.Marks(f.Marks))
		case meshwire.Need:
			p.rep.Wanted(p.now, from.peer, replica.Need{Log: f.Log, From: f.From, To: f.To})
		case meshwire.Presence:
			p.presence(from.peer, s, &f)
		case meshwire.Roster:
			p.rosterFrom(from.peer, s, &f)
		case meshwire.Office:
			if p.office != nil {
				p.office.From(from.peer, &f)
			}
		case meshwire.Claims:
			if p.office != nil {
				p.office.Asked(from.peer, &f)
			}
		case meshwire.Base:
			p.toldOfBase(from.peer, f)
		case meshwire.Live:
			p.hinted(from.peer, f)
		}
	})
}

func (p *proc) vector(from protocol.PeerID, s *peerState, f meshwire.Vector) {
	v, whole, err := s.vector.Take(f)
	if err != nil || !whole {
		return
	}
	p.rep.Compared(p.now, from, v)
	for _, m := range v.Marks {
		p.noteReplicated(m.Log)
	}
}

func (p *proc) replicate() {
	for range 256 {
		rd := p.rep.Ready(p.now)
		if rd.Empty() {
			break
		}
		for _, h := range rd.Have {
			p.n.w.statesOnlyDurable(p.n, h.Marks)
		}
		for _, t := range turn.Talk(&rd) {
			p.sendTo(t.Peer, t.Frame)
		}
		for _, r := range rd.Send {
			p.sendRange(r)
			p.n.reaches(atSend)
		}
		p.tellBase(rd.Based)
		for _, f := range rd.Forks {
			p.n.w.fail("no number is written twice", "node %d sees a fork of %s at %d, from node %d", p.n.i, p.n.w.logName(f.Log), f.Seq, p.n.w.byPeer[f.Peer].i)
		}
	}
	clear(p.fresh)
}

func (p *proc) sendRange(r replica.Range) {
	recs, ok := turn.Within(p.fresh[r.Log], &r)
	if !ok {
		recs, _ = p.n.disk.Range(r.Log, r.From, min(max(r.Bytes, 1), protocol.MeshFrameBytesMax/2))
		recs = turn.UpTo(recs, &r)
	}
	bytes, last := 0, r.From-1
	parts, err := meshwire.SplitRecords(recs)
	if err != nil {
		p.n.w.fail("ranges encode", "node %d: %s from %d: %v", p.n.i, p.n.w.logName(r.Log), r.From, err)
	}
	for _, part := range parts {
		size := 0
		for i := range part.Records {
			size += len(part.Records[i].Body) + 120
		}
		if !p.n.w.send(p.n, p.n.w.byPeer[r.Peer], part, size) {
			break
		}
		bytes += size
		last = part.First + uint64(len(part.Records)) - 1
	}
	if !r.Proof {
		p.rep.Sent(r.Peer, r.Log, last, bytes)
	}
}

func (p *proc) confirmed(from protocol.PeerID, have []replica.Mark) {
	p.rep.Confirmed(p.now, from, have)
	for _, m := range have {
		p.noteReplicated(m.Log)
	}
}

func (p *proc) noteReplicated(log protocol.LogID) {
	if log.Peer != p.n.peer {
		return
	}
	seq := p.rep.ReplicatedTo(log)
	if p.told[log] >= seq {
		return
	}
	p.told[log] = seq
	p.core.Step(p.now, hub.Replicated{Log: log, Seq: seq})
}

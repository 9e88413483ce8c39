package sim

import (
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/replica"
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
			p.confirmed(from.peer, marks(f.Marks))
		case meshwire.Need:
			p.rep.Wanted(p.now, from.peer, replica.Need{Log: f.Log, From: f.From, To: f.To})
		case meshwire.Presence:
			p.presence(from.peer, s, f)
		case meshwire.Roster:
			p.rosterFrom(from.peer, s, f)
		case meshwire.Live:
			p.hinted(from.peer, f)
		}
	})
}

func (p *proc) vector(from protocol.PeerID, s *peerState, f meshwire.Vector) {
	if s.vector != nil {
		joined, err := s.vector.Join(f)
		if err != nil {
			s.vector = nil
			return
		}
		f = joined
	}
	if f.More {
		s.vector = &f
		return
	}
	s.vector = nil
	v := replica.Vector{Marks: marks(f.Marks), Of: f.Of}
	for _, past := range f.Past {
		v.Past = append(v.Past, replica.Past(past))
	}
	p.rep.Compared(p.now, from, v)
	for _, m := range f.Marks {
		p.noteReplicated(m.Log)
	}
}

func marks(in []meshwire.Mark) []replica.Mark {
	out := make([]replica.Mark, len(in))
	for i, m := range in {
		out[i] = replica.Mark(m)
	}
	return out
}

func markFrames(in []replica.Mark) []meshwire.Mark {
	out := make([]meshwire.Mark, len(in))
	for i, m := range in {
		out[i] = meshwire.Mark(m)
	}
	return out
}

func (p *proc) replicate() {
	for range 256 {
		rd := p.rep.Ready(p.now)
		if rd.Empty() {
			break
		}
		for _, v := range rd.Vectors {
			f := meshwire.Vector{Marks: markFrames(v.Vector.Marks), Of: v.Vector.Of}
			for _, past := range v.Vector.Past {
				f.Past = append(f.Past, meshwire.Past(past))
			}
			p.sendTo(v.Peer, f)
		}
		for _, h := range rd.Have {
			p.n.w.statesOnlyDurable(p.n, h.Marks)
			p.sendTo(h.Peer, meshwire.Have{Marks: markFrames(h.Marks)})
		}
		for _, x := range rd.Need {
			p.sendTo(x.Peer, meshwire.Need{Log: x.Log, From: x.From, To: x.To})
		}
		for _, r := range rd.Send {
			p.sendRange(r)
			p.n.reaches(atSend)
		}
		for _, f := range rd.Forks {
			p.n.w.fail("no number is written twice", "node %d sees a fork of %s at %d, from node %d", p.n.i, p.n.w.logName(f.Log), f.Seq, p.n.w.byPeer[f.Peer].i)
		}
	}
	clear(p.fresh)
}

func (p *proc) sendRange(r replica.Range) {
	recs := p.fresh[r.Log]
	for len(recs) > 0 && recs[0].Seq < r.From {
		recs = recs[1:]
	}
	if len(recs) == 0 || recs[0].Seq != r.From || recs[len(recs)-1].Seq > r.To {
		recs, _ = p.n.disk.Range(r.Log, r.From, min(max(r.Bytes, 1), protocol.MeshFrameBytesMax/2))
	}
	for len(recs) > 0 && recs[len(recs)-1].Seq > r.To {
		recs = recs[:len(recs)-1]
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

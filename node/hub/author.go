package hub

import (
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// author numbers the records of this start's logs. The shell adds hashes and signatures, which need a key.
type author struct {
	self  protocol.PeerID
	start protocol.Start
	clock protocol.Clock
	seqs  map[protocol.Scope]uint64
	named map[protocol.Scope]map[protocol.AgentID]bool // agents whose binding stands in that log
}

func newAuthor(self protocol.PeerID, start protocol.Start, last protocol.HLC) author {
	a := author{
		self: self, start: start,
		seqs:  map[protocol.Scope]uint64{},
		named: map[protocol.Scope]map[protocol.AgentID]bool{},
	}
	a.clock.Merge(last)
	return a
}

// add drafts one record and returns its place.
func (a *author) add(rd *Ready, now time.Time, scope protocol.Scope, kind protocol.Kind, body []byte, env *protocol.Envelope) Ref {
	a.seqs[scope]++
	ref := Ref{protocol.LogID{Peer: a.self, Start: a.start, Scope: scope}, a.seqs[scope]}
	rd.Drafts = append(rd.Drafts, Draft{
		Record: protocol.Record{
			Log: ref.Log, Seq: ref.Seq, At: a.clock.Next(now), Wall: now.UnixMilli(), Kind: kind, Body: body,
		},
		Env: env,
	})
	return ref
}

// name writes an agent's binding into a log before its first record there (DESIGN 5).
func (a *author) name(rd *Ready, now time.Time, scope protocol.Scope, of *agent) {
	in := a.named[scope]
	if in == nil {
		in = map[protocol.AgentID]bool{}
		a.named[scope] = in
	}
	if in[of.bind.Agent] {
		return
	}
	in[of.bind.Agent] = true
	says := of.says()
	a.add(rd, now, scope, protocol.KindBind, protocol.EncodeBody(says), nil)
	of.word = wordOf(&says, a.clock.Last()) // newer than what a restored disk may be given back
}

// forget lets the next record of an agent repeat its binding.
func (a *author) forget(id protocol.AgentID) {
	for _, in := range a.named {
		delete(in, id)
	}
}

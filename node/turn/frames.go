package turn

import (
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
)

// Marks are what a peer's frame says of logs.
func Marks(in []meshwire.Mark) []replica.Mark {
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

func vectorFrame(v replica.Vector) meshwire.Vector {
	f := meshwire.Vector{Marks: markFrames(v.Marks), Of: v.Of}
	for _, p := range v.Past {
		f.Past = append(f.Past, meshwire.Past(p))
	}
	return f
}

// Comparison gathers a peer's comparison of several frames.
type Comparison struct{ part *meshwire.Vector }

// Take adds a frame; whole says that the comparison is complete. A frame that contradicts the ones before is an error, and
// the next begins anew.
func (c *Comparison) Take(f meshwire.Vector) (v replica.Vector, whole bool, err error) {
	if c.part != nil {
		joined, err := c.part.Join(f)
		if err != nil {
			c.part = nil
			return v, false, err
		}
		f = joined
	}
	if f.More {
		c.part = &f
		return v, false, nil
	}
	c.part = nil
	v = replica.Vector{Marks: Marks(f.Marks), Of: f.Of}
	for _, p := range f.Past {
		v.Past = append(v.Past, replica.Past(p))
	}
	return v, true, nil
}

// Told is a frame for a peer.
type Told struct {
	Peer  protocol.PeerID
	Frame meshwire.Frame
}

// Talk is what replication owes in words: comparisons, confirmations and questions. Ranges and forks are the caller's.
func Talk(rd *replica.Ready) []Told {
	out := make([]Told, 0, len(rd.Vectors)+len(rd.Have)+len(rd.Need))
	for _, v := range rd.Vectors {
		out = append(out, Told{v.Peer, vectorFrame(v.Vector)})
	}
	for _, h := range rd.Have {
		out = append(out, Told{h.Peer, meshwire.Have{Marks: markFrames(h.Marks)}})
	}
	for _, n := range rd.Need {
		out = append(out, Told{n.Peer, meshwire.Need{Log: n.Log, From: n.From, To: n.To}})
	}
	return out
}

// Within are the records of r among those that this turn made durable; false: they must be read.
func Within(fresh []protocol.Record, r *replica.Range) ([]protocol.Record, bool) {
	for len(fresh) > 0 && fresh[0].Seq < r.From {
		fresh = fresh[1:]
	}
	if len(fresh) == 0 || fresh[0].Seq != r.From || fresh[len(fresh)-1].Seq > r.To {
		return nil, false
	}
	return fresh, true
}

// UpTo leaves out what lies above a range.
func UpTo(recs []protocol.Record, r *replica.Range) []protocol.Record {
	for len(recs) > 0 && recs[len(recs)-1].Seq > r.To {
		recs = recs[:len(recs)-1]
	}
	return recs
}

// PresenceFrame is how an agent is, for other nodes.
func PresenceFrame(p *hub.Presence) meshwire.AgentPresence {
	f := meshwire.AgentPresence{
		ID: p.Agent, Name: p.Name, Role: p.Role, State: p.State, Unread: p.Unread, Wakes: p.Wakes,
		Doing: protocol.CutText(p.Doing, protocol.ShortTextBytesMax), Attached: p.Attached,
	}
	if !p.Since.IsZero() {
		f.SinceMillis = p.Since.UnixMilli()
	}
	return f
}

func presenceOf(f *meshwire.AgentPresence, home protocol.PeerID) hub.Presence {
	p := hub.Presence{
		Agent: f.ID, Name: f.Name, Role: f.Role, Home: home, State: f.State, Wakes: f.Wakes, Doing: f.Doing,
		Unread: f.Unread, Attached: f.Attached,
	}
	if f.SinceMillis != 0 {
		p.Since = time.UnixMilli(f.SinceMillis)
	}
	return p
}

// Heard is a linked peer's word on agents, which may come in several frames.
type Heard struct {
	start   protocol.Start
	counter uint64
	agents  []hub.Presence
}

// Presence takes an inside peer's word on its own agents; main is whose node main is. An older one than we have is a replay
// and is dropped. Once whole, in is for the hub.
func (h *Heard) Presence(from, main protocol.PeerID, f *meshwire.Presence) (in hub.PeerPresence, whole bool) {
	if older(f.Start, f.Counter, h.start, h.counter) {
		return in, false
	}
	if f.Start != h.start || f.Counter != h.counter {
		h.agents = nil
	}
	h.start, h.counter = f.Start, f.Counter
	for i := range f.Agents {
		a := presenceOf(&f.Agents[i], from)
		if a.Role == protocol.RoleMain && from != main {
			a.Role = protocol.RoleLocal
		}
		h.agents = append(h.agents, a)
	}
	return hub.PeerPresence{Peer: from, Agents: h.agents}, !f.More
}

// Roster takes what an inside peer shows to a node outside. terms are for the hub at once: who is main is heard here, since
// the term's record lies in a log of the inside. Old: the frame is of an earlier showing.
func (h *Heard) Roster(from protocol.PeerID, f *meshwire.Roster) (in hub.PeerPresence, terms []hub.Term, old bool) {
	if f.Counter < h.counter {
		return in, nil, true
	}
	if f.Counter != h.counter {
		h.agents = nil
	}
	h.counter = f.Counter
	for i := range f.Agents {
		a := &f.Agents[i]
		h.agents = append(h.agents, presenceOf(&a.AgentPresence, a.Home))
		if a.Role == protocol.RoleMain {
			terms = append(terms, hub.Term{TermBody: protocol.TermBody{Number: 1, Peer: a.Home, Agent: a.ID}})
		}
	}
	return hub.PeerPresence{Peer: from, Agents: h.agents}, terms, false
}

func older(start protocol.Start, counter uint64, than protocol.Start, thanCounter uint64) bool {
	if start.At != than.At {
		return start.At < than.At
	}
	return start == than && counter < thanCounter
}

package board

import (
	"iter"
	"slices"
	"strings"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles"
)

// guest is what a member outside says of its agents: so much of it as everybody has to keep. Of each name the newest word
// counts, and of more than GuestNamesMax names the ones whose newest word is the oldest give way. So what is kept depends on
// the set of its words alone: a name only ever gets newer, and what gave way comes back by a newer word or not at all. That
// would not hold beside words that it said as a member inside, which are kept apart.
type guest struct {
	bindings map[protocol.AgentID]*binding // by folded id
	presence map[protocol.AgentID]*presence
}

func (s *State) guest(p protocol.PeerID) *guest {
	g := s.guests[p]
	if g == nil {
		g = &guest{map[protocol.AgentID]*binding{}, map[protocol.AgentID]*presence{}}
		s.guests[p] = g
	}
	return g
}

// bind takes a binding, which moves nobody: see State.bind.
func (g *guest) bind(at pos, body protocol.BindBody) {
	id := protocol.FoldAgentID(body.Agent)
	if old := g.bindings[id]; old != nil && !old.at.before(at) {
		return
	}
	g.bindings[id] = &binding{at: at, body: shortened(body), settled: true, homes: []protocol.PeerID{body.Home}}
	yield(g.bindings, func(b *binding) protocol.HLC { return b.at.at })
}

func (g *guest) present(p *presence) {
	id := protocol.FoldAgentID(p.body.Agent)
	if old := g.presence[id]; old != nil && !old.at.before(p.at) {
		return
	}
	g.presence[id] = p
	yield(g.presence, func(p *presence) protocol.HLC { return p.at.at })
}

// yield drops what one too many makes give way. It looks at times and names alone, as a hub can.
func yield[V any](of map[protocol.AgentID]V, at func(V) protocol.HLC) {
	if len(of) <= protocol.GuestNamesMax {
		return
	}
	var first roles.Spoken
	for id, v := range of {
		if s := (roles.Spoken{Agent: id, At: at(v)}); first.Agent == "" || s.Before(first) {
			first = s
		}
	}
	delete(of, first.Agent)
}

// holds is the binding that counts, or nil.
func (s *State) holds(key agentKey) *binding {
	inside := s.bindings[key.Agent][key.Home]
	g := s.guests[key.Home]
	if g == nil || g.bindings[key.Agent] == nil {
		return inside
	}
	return inside.or(g.bindings[key.Agent])
}

// or is the one of two that holds, with the homes of both. b may be nil.
func (b *binding) or(o *binding) *binding {
	if b == nil {
		return o
	}
	out := *b
	switch says := roles.ClaimOf(&o.body); {
	case says == roles.ClaimOf(&b.body):
		if out.settled = b.settled || o.settled; b.at.before(o.at) {
			out.at, out.body = o.at, o.body
		}
	case says.Beats(roles.ClaimOf(&b.body)):
		out.at, out.body, out.settled = o.at, o.body, o.settled
	}
	out.homes = slices.Clone(b.homes)
	for _, home := range o.homes {
		if !slices.Contains(out.homes, home) {
			out.homes = append(out.homes, home)
		}
	}
	slices.SortFunc(out.homes, func(a, b protocol.PeerID) int { return strings.Compare(string(a), string(b)) })
	return &out
}

// held goes through the bindings that count, in no order.
func (s *State) held() iter.Seq2[agentKey, *binding] {
	return func(yield func(agentKey, *binding) bool) {
		for id, homes := range s.bindings {
			for first := range homes {
				key := agentKey{id, first}
				if !yield(key, s.holds(key)) {
					return
				}
			}
		}
		for first, g := range s.guests {
			for id, b := range g.bindings {
				if s.bindings[id][first] == nil && !yield(agentKey{id, first}, b) {
					return
				}
			}
		}
	}
}

// heldOf are those of one id, in no order.
func (s *State) heldOf(id protocol.AgentID) (out []*binding) {
	for first := range s.bindings[id] {
		out = append(out, s.holds(agentKey{id, first}))
	}
	for first, g := range s.guests {
		if b := g.bindings[id]; b != nil && s.bindings[id][first] == nil {
			out = append(out, b)
		}
	}
	return out
}

// presenceOf is the newest presence of an agent at a home, or nil.
func (s *State) presenceOf(key agentKey) *presence {
	p := s.presence[key]
	if g := s.guests[key.Home]; g != nil {
		if o := g.presence[key.Agent]; o != nil && (p == nil || p.at.before(o.at)) {
			return o
		}
	}
	return p
}

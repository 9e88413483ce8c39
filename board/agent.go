package board

import (
	"cmp"
	"slices"
	"strings"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles"
	"github.com/aster-mesh/aster/roles/member"
)

// Agent is one row of the roster, as the journal knows it.
type Agent struct {
	ID    protocol.AgentID `json:"id"`    // as it is called in this mesh
	Bound protocol.AgentID `json:"bound"` // as its home bound it; differs from ID after a clash
	Name  string           `json:"name,omitempty"`
	// Role is what holds now: main for the agent that the term names, and no more than its node's for one outside.
	Role     protocol.Role       `json:"role"`
	Home     protocol.PeerID     `json:"home"`
	NodeName string              `json:"nodeName,omitempty"`
	Client   string              `json:"client,omitempty"`
	Since    protocol.HLC        `json:"since"`
	Was      protocol.AgentID    `json:"was,omitempty"`     // its name before the last rename
	First    protocol.PeerID     `json:"first,omitempty"`   // the node that bound it first
	Moves    uint64              `json:"moves,omitempty"`   // how often it has moved to another home
	Forced   bool                `json:"forced,omitempty"`  // the last time by main's word
	Homes    []protocol.PeerID   `json:"homes,omitempty"`   // all that it has had, by peer id
	State    protocol.AgentState `json:"state"`             // the last that settled; the home knows better
	StateAt  int64               `json:"stateAt,omitempty"` // its author's wall clock, ms
	At       protocol.HLC        `json:"at"`                // of the word that holds
	// Guest: a member outside bound it.
	Guest bool `json:"guest,omitempty"`
	// Move is what its home has yet to take over; nil when nothing.
	Move *protocol.MoveBody `json:"move,omitempty"`
}

// binding is what is known of an agent: the word that holds, and all homes that it had by any word.
type binding struct {
	at      pos
	body    protocol.BindBody
	settled bool              // its home has said so itself
	homes   []protocol.PeerID // sorted; only grows
}

type presence struct {
	at   pos
	wall int64
	body protocol.PresenceBody
}

// bind takes a binding from the agent's own home, and from nobody else. A home says the same in each log that speaks of
// the agent; its latest word holds. Bindings are kept by the home that was the first, which an agent keeps when it moves.
func (s *State) bind(at pos, body protocol.BindBody) {
	if body.Home != at.log.Peer || protocol.CheckAgentID(body.Agent) != nil {
		return
	}
	if body.First() != body.Home && (body.Moves == 0 || guests(at.log)) || guests(at.log) && body.Moves > 0 {
		return // nobody came from elsewhere without a move, and to a member outside nobody comes
	}
	if guests(at.log) {
		s.guest(at.log.Peer).bind(at, body)
		return
	}
	s.claim(at, body, true)
}

// speaks says whether a log may tell words of an agent: its author has bound it there before. Words of nobody in particular
// are a person's or the node's own.
func (ls *logState) speaks(id protocol.AgentID) bool {
	return id == "" || ls.bound[protocol.FoldAgentID(id)]
}

// binds notes a binding by the log's own author. It looks at this log alone, so the order of logs cannot matter.
func (ls *logState) binds(body protocol.BindBody) {
	if body.Home != ls.id.Peer {
		return
	}
	if ls.bound == nil {
		ls.bound = map[protocol.AgentID]bool{}
	}
	for _, id := range []protocol.AgentID{body.Agent, body.Called} {
		if id = protocol.FoldAgentID(id); body.Forgotten {
			delete(ls.bound, id)
		} else if id != "" {
			ls.bound[id] = true
		}
	}
}

// Bound says whether a log tells words of an agent: see speaks.
func (s *State) Bound(log protocol.LogID, id protocol.AgentID) bool {
	ls := s.logs[log]
	return ls != nil && ls.speaks(id)
}

// present takes presence from the home of whoever it is about.
func (s *State) present(at pos, wall int64, body protocol.PresenceBody) {
	if protocol.CheckAgentID(body.Agent) != nil {
		return
	}
	body.State = protocol.CutText(body.State, refBytesMax)
	s.presentAt(&presence{at, wall, body})
}

func (s *State) presentAt(p *presence) {
	if guests(p.at.log) {
		s.guest(p.at.log.Peer).present(p)
		return
	}
	key := agentKey{protocol.FoldAgentID(p.body.Agent), p.at.log.Peer}
	if old := s.presence[key]; old == nil || old.at.before(p.at) {
		s.presence[key] = p
	}
}

// names gives every binding in force the id that it is called by, as every hub does (roles.Called).
func (s *State) names() map[agentKey]protocol.AgentID {
	var keys []agentKey
	var all []roles.Bound
	for key, b := range s.held() {
		if b.inForce() {
			keys = append(keys, key)
			all = append(all, s.boundOf(b))
		}
	}
	out := make(map[agentKey]protocol.AgentID, len(keys))
	for i, name := range roles.Called(all) {
		out[keys[i]] = name
	}
	return out
}

func (s *State) boundOf(b *binding) roles.Bound {
	bound := roles.Bound{Agent: b.body.Agent, First: b.body.First(), Since: b.body.Since, Guest: b.ofGuest()}
	if bound.Guest {
		m, _ := s.roster.Member(bound.First)
		bound.Admitted = m.Since
	}
	return bound
}

// keeper is the binding of an id that keeps it, or nil.
func (s *State) keeper(id protocol.AgentID) *binding {
	var held []*binding
	var all []roles.Bound
	for _, b := range s.heldOf(id) {
		if b.inForce() {
			held = append(held, b)
			all = append(all, s.boundOf(b))
		}
	}
	for i, name := range roles.Called(all) {
		if protocol.FoldAgentID(name) == id {
			return held[i]
		}
	}
	return nil
}

// inForce says whether a binding is not withdrawn.
func (b *binding) inForce() bool { return !b.body.Forgotten && b.body.RenamedTo == "" }

// ofGuest says whether a member outside wrote the binding: it has its own scope alone to write in.
func (b *binding) ofGuest() bool { return guests(b.at.log) }

func guests(log protocol.LogID) bool {
	p, out := log.Scope.Outsider()
	return out && p == log.Peer
}

// Agents lists the agents that are bound and not forgotten, by the name of their node, then their id.
func (s *State) Agents() []Agent {
	names := s.names()
	nodes := map[protocol.PeerID]member.Member{}
	for _, m := range s.roster.Members() {
		nodes[m.Peer] = m
	}
	term := s.roster.Term()
	out := make([]Agent, 0, len(names))
	for key, name := range names {
		held := s.holds(key)
		b := held.body
		a := Agent{
			ID: name, Bound: b.Agent, Name: b.Name, Home: b.Home, NodeName: nodes[b.Home].Name, Client: b.Client,
			Since: b.Since, Was: b.Was, Role: protocol.RoleLocal, State: protocol.StateUnknown,
			First: b.First(), Moves: b.Moves, Forced: b.Forced, Homes: slices.Clone(held.homes), At: held.at.at, Guest: held.ofGuest(),
		}
		if m := s.moves[key]; m != nil {
			body := m.body
			a.Move = &body
		}
		if term.Peer == b.Home && term.Agent != "" && protocol.FoldAgentID(term.Agent) == key.Agent {
			a.Role = protocol.RoleMain
		} else if b.Role.Known() && b.Role != protocol.RoleMain && b.Role != protocol.RoleBoard {
			a.Role = b.Role
		}
		if node, ok := nodes[b.Home]; ok {
			a.Role = roles.Speaking(node.Role, a.Role)
		}
		if p := s.presenceOf(agentKey{key.Agent, b.Home}); p != nil {
			a.State, a.StateAt = protocol.AgentState(p.body.State), p.wall
		}
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b Agent) int {
		return cmp.Or(strings.Compare(a.NodeName, b.NodeName), strings.Compare(string(a.Home), string(b.Home)), strings.Compare(string(a.ID), string(b.ID)))
	})
	return out
}

// Former is a name that its agent gave up for another.
type Former struct {
	Bind  protocol.BindBody
	At    protocol.HLC // of the record that said so
	Guest bool         // a member outside wrote it
}

// Former lists the names given up that no agent bears now, by name, then home.
func (s *State) Former() []Former {
	var out []Former
	for key, b := range s.held() {
		if b.body.RenamedTo != "" && s.keeper(key.Agent) == nil {
			out = append(out, Former{b.body, b.at.at, b.ofGuest()})
		}
	}
	slices.SortFunc(out, func(a, b Former) int {
		return cmp.Or(strings.Compare(string(a.Bind.Agent), string(b.Bind.Agent)), strings.Compare(string(a.Bind.Home), string(b.Bind.Home)))
	})
	return out
}

// Withdrawn lists the bindings that their agents' homes took back, by id, then first home.
func (s *State) Withdrawn() []Former {
	var out []Former
	for _, b := range s.held() {
		if !b.inForce() {
			out = append(out, Former{b.body, b.at.at, b.ofGuest()})
		}
	}
	slices.SortFunc(out, func(a, b Former) int {
		return cmp.Or(strings.Compare(string(a.Bind.Agent), string(b.Bind.Agent)), strings.Compare(string(a.Bind.First()), string(b.Bind.First())))
	})
	return out
}

// Owner is the home of the agent that is called id, by the rule of Agents.
func (s *State) Owner(id protocol.AgentID) (protocol.PeerID, bool) {
	if b := s.keeper(protocol.FoldAgentID(id)); b != nil {
		return b.body.Home, true
	}
	for key, name := range s.names() { // an id that a clash made
		if protocol.FoldAgentID(name) == protocol.FoldAgentID(id) {
			return s.holds(key).body.Home, true
		}
	}
	return "", false
}

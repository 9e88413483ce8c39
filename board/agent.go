package board

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

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
	State    protocol.AgentState `json:"state"`             // the last that settled; the home knows better
	StateAt  int64               `json:"stateAt,omitempty"` // its author's wall clock, ms
}

type binding struct {
	at   pos
	body protocol.BindBody
}

type presence struct {
	at   pos
	wall int64
	body protocol.PresenceBody
}

// bind takes a binding from the agent's own home, and from nobody else. A home says the same in each log that speaks of
// the agent; its latest word holds.
func (s *State) bind(at pos, body protocol.BindBody) {
	if body.Home != at.log.Peer || protocol.CheckAgentID(body.Agent) != nil {
		return
	}
	id := protocol.FoldAgentID(body.Agent)
	if old := s.bindings[id][body.Home]; old != nil && !old.at.before(at) {
		return
	}
	if s.bindings[id] == nil {
		s.bindings[id] = map[protocol.PeerID]*binding{}
	}
	body.Name = protocol.CutText(body.Name, 4*protocol.AgentNameRunesMax)
	body.Client = protocol.CutText(body.Client, refBytesMax)
	s.bindings[id][body.Home] = &binding{at, body}
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
	if id := protocol.FoldAgentID(body.Agent); body.Forgotten {
		delete(ls.bound, id)
	} else {
		ls.bound[id] = true
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
	key := agentKey{protocol.FoldAgentID(body.Agent), at.log.Peer}
	if old := s.presence[key]; old == nil || old.at.before(at) {
		body.State = protocol.CutText(body.State, refBytesMax)
		s.presence[key] = &presence{at, wall, body}
	}
}

// names gives every binding in force the id that it is called by: of those that fold alike the first of inForce keeps it,
// the others get the first free -2, -3, … An id that somebody bound is never given to another, so the result depends on the
// set of bindings alone.
func (s *State) names() map[agentKey]protocol.AgentID {
	out := map[agentKey]protocol.AgentID{}
	taken := map[protocol.AgentID]bool{}
	ids := make([]protocol.AgentID, 0, len(s.bindings))
	for id := range s.bindings {
		ids = append(ids, id)
		taken[id] = true
	}
	slices.Sort(ids)
	for _, id := range ids {
		for i, b := range inForce(s.bindings[id]) {
			name := b.body.Agent
			for n := 2; i > 0; n++ {
				if name = suffixed(b.body.Agent, n); !taken[protocol.FoldAgentID(name)] {
					break
				}
			}
			taken[protocol.FoldAgentID(name)] = true
			out[agentKey{id, b.body.Home}] = name
		}
	}
	return out
}

// inForce lists the bindings of one id that are not withdrawn, the one that keeps the id first: the smallest (since, home),
// those of members outside behind all others, since they may say any time (decision 012).
func inForce(homes map[protocol.PeerID]*binding) []*binding {
	var out []*binding
	for _, b := range homes {
		if !b.body.Forgotten && b.body.RenamedTo == "" {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b *binding) int {
		if guest := a.guest(); guest != b.guest() {
			if guest {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(a.body.Since, b.body.Since), strings.Compare(string(a.body.Home), string(b.body.Home)))
	})
	return out
}

// guest says whether a member outside wrote the binding: it has its own scope alone to write in.
func (b *binding) guest() bool { return guests(b.at.log) }

func guests(log protocol.LogID) bool {
	p, out := log.Scope.Outsider()
	return out && p == log.Peer
}

func suffixed(id protocol.AgentID, n int) protocol.AgentID {
	end := fmt.Sprintf("-%d", n)
	base := string(id)
	for len(base)+len(end) > protocol.AgentIDBytesMax {
		_, size := utf8.DecodeLastRuneInString(base)
		base = base[:len(base)-size]
	}
	return protocol.AgentID(base + end)
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
		b := s.bindings[key.Agent][key.Home].body
		a := Agent{
			ID: name, Bound: b.Agent, Name: b.Name, Home: b.Home, NodeName: nodes[b.Home].Name, Client: b.Client,
			Since: b.Since, Was: b.Was, Role: protocol.RoleLocal, State: protocol.StateUnknown,
		}
		if term.Peer == b.Home && term.Agent != "" && protocol.FoldAgentID(term.Agent) == key.Agent {
			a.Role = protocol.RoleMain
		} else if b.Role.Known() && b.Role != protocol.RoleMain && b.Role != protocol.RoleBoard {
			a.Role = b.Role
		}
		if node, ok := nodes[b.Home]; ok {
			a.Role = roles.Speaking(node.Role, a.Role)
		}
		if p := s.presence[key]; p != nil {
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
	Bind protocol.BindBody
	At   protocol.HLC // of the record that said so
}

// Former lists the names given up that no agent bears now, by name, then home.
func (s *State) Former() []Former {
	var out []Former
	for _, homes := range s.bindings {
		if len(inForce(homes)) > 0 {
			continue
		}
		for _, b := range homes {
			if b.body.RenamedTo != "" {
				out = append(out, Former{b.body, b.at.at})
			}
		}
	}
	slices.SortFunc(out, func(a, b Former) int {
		return cmp.Or(strings.Compare(string(a.Bind.Agent), string(b.Bind.Agent)), strings.Compare(string(a.Bind.Home), string(b.Bind.Home)))
	})
	return out
}

// Owner is the home of the agent that is called id, by the rule of Agents.
func (s *State) Owner(id protocol.AgentID) (protocol.PeerID, bool) {
	if held := inForce(s.bindings[protocol.FoldAgentID(id)]); len(held) > 0 {
		return held[0].body.Home, true
	}
	for key, name := range s.names() { // an id that a clash made
		if protocol.FoldAgentID(name) == protocol.FoldAgentID(id) {
			return key.Home, true
		}
	}
	return "", false
}

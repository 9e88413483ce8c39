package deadlock

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/aster-mesh/aster/protocol"
)

// Said is one message between two agents.
type Said struct {
	ID       protocol.MsgID
	From, To protocol.AgentID // as the agents are called now
	FromRole protocol.Role
	Intent   protocol.Intent
	Re       protocol.MsgID // what it answers
}

// Edge is an agent that waits for another's answer to Ask.
type Edge struct {
	From protocol.AgentID `json:"from"`
	To   protocol.AgentID `json:"to"`
	Ask  protocol.MsgID   `json:"msgId"`
}

// Class says whether somebody else could still free them.
type Class string

const (
	Strict Class = "strict" // all that they wait for are they themselves
	Quasi  Class = "quasi"  // one of them also waits for somebody else
)

// Cycle is a set of agents of which each waits, perhaps through others, for each other one.
type Cycle struct {
	Members []protocol.AgentID
	Edges   []Edge
	Class   Class
	// First is the edge whose asked one should answer first: it is the one of least right to be waited for (wire 7.6).
	First Edge
}

// Key is the same for the same wait.
func (c *Cycle) Key() string {
	var b strings.Builder
	for _, e := range c.Edges {
		fmt.Fprintf(&b, "%s\x00%s\x00%s\n", protocol.FoldAgentID(e.From), protocol.FoldAgentID(e.To), e.Ask)
	}
	return b.String()
}

// asks are the intents that nobody goes on from without an answer. Delegate is none: its worker reports by itself.
var asks = map[protocol.Intent]bool{protocol.Request: true, "DECISION_REQUEST": true, "PRRequest": true, "PRMergeRequest": true}

// Find returns the cycles of waiting in what was said, oldest first, in one order. An ask is over once the one who was
// asked has said anything to the one who asked but another ask of its own; one that names the ask ends it as well, since
// who asked then knows more.
func Find(said []Said) []Cycle {
	type pair struct{ from, to protocol.AgentID }
	open := map[pair][]Edge{}
	role := map[protocol.AgentID]protocol.Role{}
	for _, m := range said {
		from, to := protocol.FoldAgentID(m.From), protocol.FoldAgentID(m.To)
		if from == "" || to == "" || from == to || protocol.Lookup(m.Intent).Class == protocol.ClassTransport {
			continue
		}
		role[from] = m.FromRole
		back := pair{to, from}
		if !asks[m.Intent] {
			delete(open, back)
			continue
		}
		open[back] = slices.DeleteFunc(open[back], func(e Edge) bool { return m.Re != "" && e.Ask == m.Re })
		open[pair{from, to}] = append(open[pair{from, to}], Edge{m.From, m.To, m.ID})
	}
	waits := map[protocol.AgentID][]Edge{}
	for _, edges := range open {
		if len(edges) > 0 { // of several the first: it has waited longest
			from := protocol.FoldAgentID(edges[0].From)
			waits[from] = append(waits[from], edges[0])
		}
	}
	var out []Cycle
	for _, members := range components(waits) {
		c := Cycle{Class: Strict}
		for _, m := range members {
			for _, e := range waits[m] {
				if slices.Contains(members, protocol.FoldAgentID(e.To)) {
					c.Edges = append(c.Edges, e)
				} else {
					c.Class = Quasi
				}
			}
		}
		slices.SortFunc(c.Edges, func(a, b Edge) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
		for _, e := range c.Edges {
			if !slices.Contains(c.Members, e.From) {
				c.Members = append(c.Members, e.From)
			}
		}
		c.First = slices.MinFunc(c.Edges, func(a, b Edge) int {
			return cmp.Compare(weight(role[protocol.FoldAgentID(a.To)]), weight(role[protocol.FoldAgentID(b.To)]))
		})
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Cycle) int { return cmp.Compare(a.Key(), b.Key()) })
	return out
}

// weight is the contract's order: main is waited for before collab, that before upstream, that before local.
func weight(r protocol.Role) int {
	return slices.Index([]protocol.Role{protocol.RoleLocal, protocol.RoleUpstream, protocol.RolePeer, protocol.RoleCollab, protocol.RoleMain}, r)
}

// components are the sets of two agents and more that reach each other, each sorted.
func components(waits map[protocol.AgentID][]Edge) (out [][]protocol.AgentID) {
	reach := map[protocol.AgentID]map[protocol.AgentID]bool{}
	var from []protocol.AgentID
	for a := range waits {
		from = append(from, a)
	}
	slices.Sort(from)
	for _, a := range from {
		seen := map[protocol.AgentID]bool{}
		for todo := []protocol.AgentID{a}; len(todo) > 0; todo = todo[1:] {
			for _, e := range waits[todo[0]] {
				if to := protocol.FoldAgentID(e.To); !seen[to] {
					seen[to] = true
					todo = append(todo, to)
				}
			}
		}
		reach[a] = seen
	}
	done := map[protocol.AgentID]bool{}
	for _, a := range from {
		if done[a] || !reach[a][a] {
			continue
		}
		var set []protocol.AgentID
		for _, b := range from {
			if reach[a][b] && reach[b][a] {
				set = append(set, b)
				done[b] = true
			}
		}
		out = append(out, set)
	}
	return out
}

package hub

import (
	"sort"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// role is what an agent may do now: main by the term, an outsider's by its member's certificate, else as bound.
func (c *Core) role(a *agent) protocol.Role {
	if c.term.Agent != "" && protocol.FoldAgentID(a.own) == protocol.FoldAgentID(c.term.Agent) && a.bind.Home == c.term.Peer {
		return protocol.RoleMain
	}
	if m, ok := c.members[a.bind.Home]; ok && !m.Inside && m.Role != "" {
		return m.Role
	}
	if a.guest {
		return protocol.RolePeer // until its member's record says more
	}
	if a.hearsay && a.remote != nil && a.remote.Role != "" {
		return a.remote.Role
	}
	if a.bind.Role == "" {
		return protocol.RoleLocal
	}
	return a.bind.Role
}

// Known is one agent as the roster shows it.
type Known struct {
	Presence
	Here bool
	Room bool // it stands for a room of another board
}

// Agents lists every agent, by home then name: this node's first.
func (c *Core) Agents(now time.Time) []Known {
	out := make([]Known, 0, len(c.agents))
	for _, a := range c.agents {
		if c.members[a.bind.Home].Gone {
			continue
		}
		out = append(out, c.known(a))
	}
	sort.Slice(out, func(i, j int) bool {
		x, y := &out[i], &out[j]
		if x.Here != y.Here {
			return x.Here
		}
		if x.Home != y.Home {
			return x.Home < y.Home
		}
		return x.Agent < y.Agent
	})
	return out
}

func (c *Core) known(a *agent) Known {
	k := Known{Here: a.bind.Home == c.self, Room: isFarRoom(a), Presence: Presence{
		Agent: a.bind.Agent, Name: a.bind.Name, Role: c.role(a), Home: a.bind.Home, State: a.state, Since: a.since,
		Wakes: a.wakes, Doing: a.doing,
	}}
	if k.Here && a.arrives != nil {
		k.State, k.Doing = protocol.StateAway, "its mail is on the way from "+c.nodeName(a.arrives.From)
		return k
	}
	if k.Here {
		k.Unread, k.Bytes = a.box.unread(), a.box.bytes
		for _, id := range a.conns {
			k.Attached = append(k.Attached, c.conns[id].client)
		}
		if k.Wakes == "" {
			k.Wakes = wakeWords(a, c.conns)
		}
		return k
	}
	if r := a.remote; r != nil {
		k.State, k.Since, k.Wakes, k.Doing, k.Unread, k.Attached = r.State, r.Since, r.Wakes, r.Doing, r.Unread, r.Attached
	} else {
		k.State = protocol.StateAway
	}
	return k
}

// wakeWords says how mail reaches an agent, so that a sender knows before it disappoints (U5).
func wakeWords(a *agent, conns map[ConnID]*conn) string {
	for _, id := range a.conns {
		switch conns[id].client {
		case "ws", "mcp-ws":
			return "its socket"
		case "wait":
			return "aster wait"
		case "worker":
			return "its runner"
		case "files":
			return "its inbox file"
		case ClientBoard, ClientRoom:
			return "its own board"
		}
	}
	return "nothing: it reads its inbox"
}

// Listed are the agents that clients see as present: attached somewhere, or reading by themselves.
func (c *Core) Listed(now time.Time) []Known {
	all := c.Agents(now)
	out := all[:0]
	for _, k := range all {
		if k.State != protocol.StateAway && k.State != protocol.StateUnknown {
			out = append(out, k)
		}
	}
	return out
}

// Presences are the agents at home here, for other nodes.
func (c *Core) Presences(now time.Time) []Presence {
	var out []Presence
	for _, a := range c.agents {
		if a.bind.Home == c.self {
			out = append(out, c.known(a).Presence)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Agent < out[j].Agent })
	return out
}

// Agent is one row, by id.
func (c *Core) Agent(id protocol.AgentID) (Known, bool) {
	if a := c.find(id); a != nil {
		return c.known(a), true
	}
	return Known{}, false
}

// rosterPace bounds what rosters cost: at most one in 100 ms, and no more than 50 MB/s of them (issue of 2,000 joins).
func (c *Core) rosterPace() time.Duration {
	bytes := len(c.agents) * 96 * (len(c.conns) + len(c.boards))
	return max(100*time.Millisecond, time.Duration(bytes)*time.Second/50_000_000)
}

func (c *Core) setState(now time.Time, a *agent, s protocol.AgentState) {
	if a.state != s {
		a.state, a.since = s, now
	}
	c.settle(a)
	c.changed()
}

func (c *Core) setDoing(now time.Time, in Doing) {
	a := c.home(in.Agent)
	if a == nil {
		return
	}
	if in.State != "" && in.State != a.state {
		a.state, a.since = in.State, now
	}
	c.settle(a)
	a.doing = in.Text
	c.presenceDirty = true
}

// peerPresence replaces a peer's rows. Agents that are known only by its word may be addressed already.
func (c *Core) peerPresence(in PeerPresence) {
	for _, a := range c.agents {
		if a.remote != nil && a.remote.Home == in.Peer || a.bind.Home == in.Peer && a.bind.Home != c.self {
			a.remote = nil
		}
		if a.elsewhere != nil && a.elsewhere.Home == in.Peer {
			a.elsewhere = nil
		}
	}
	for _, p := range in.Agents {
		if p.Home == c.self || protocol.CheckAgentID(p.Agent) != nil || len(c.agents) >= protocol.AgentsMax {
			continue
		}
		row := p
		a := c.find(p.Agent)
		if f, ok := c.former[protocol.FoldAgentID(p.Agent)]; a == nil && ok && f.Bind.Home == p.Home {
			continue // it was on its way when the name was given up
		}
		if a == nil {
			if c.crowded(p.Home) {
				continue
			}
			a = &agent{hearsay: true, state: protocol.StateUnknown, own: p.Agent,
				bind: protocol.BindBody{Agent: p.Agent, Home: p.Home, Name: p.Name, Role: p.Role}}
			c.agents[protocol.FoldAgentID(p.Agent)] = a
		}
		if a.bind.Home == p.Home {
			a.remote = &row
		} else {
			a.elsewhere = &row // it may have moved there, and that record be on its way
		}
	}
	for key, a := range c.agents { // nothing but that peer's word said that it is there
		if a.hearsay && a.remote == nil && a.bind.Home == in.Peer {
			delete(c.agents, key)
		}
	}
	c.rosterDirty = true
}

func (c *Core) peerGone(in PeerGone) {
	for key, a := range c.agents {
		if a.elsewhere != nil && a.elsewhere.Home == in.Peer {
			a.elsewhere = nil
		}
		if a.bind.Home == in.Peer && a.remote != nil {
			a.remote = nil
			if a.hearsay {
				delete(c.agents, key)
			}
		}
	}
	c.rosterDirty = true
}

// Main is what the agent that the term names is called; empty when there is none. The term has it as its home bound it:
// after a clash of names that may be what another agent is called. An agent that is not known yet is called so.
func (c *Core) Main() protocol.AgentID {
	if c.term.Agent == "" {
		return ""
	}
	named := c.find(c.term.Agent)
	if named != nil && c.role(named) == protocol.RoleMain {
		return named.bind.Agent
	}
	for _, a := range c.agents {
		if c.role(a) == protocol.RoleMain {
			return a.bind.Agent
		}
	}
	if named != nil {
		return ""
	}
	return c.term.Agent
}

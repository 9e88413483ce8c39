package hub

import (
	"slices"
	"strconv"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// Flap damping (faults B1, KF9): a second socket replaces the first; after flapMax replacements within flapWindow
// newcomers are refused until flapCool has passed.
const (
	flapMax    = 3
	flapWindow = 10 * time.Second
	flapCool   = 30 * time.Second
)

// attach makes an agent reachable. The first attach of an id binds it to this node (DESIGN 5).
func (c *Core) attach(now time.Time, in Attach) {
	if r := c.Renamed(in.Agent); r != nil {
		c.tell(Told{Token: in.Token, Refusal: r})
		return
	}
	a := c.find(in.Agent)
	if a != nil && a.bind.Home != c.self && !a.hearsay {
		c.tell(Told{Token: in.Token, Refusal: protocol.Refuse(protocol.CodeIdentityMismatch, "agent %q lives on node %s",
			"attach there, or choose another id", string(in.Agent), c.nodeName(a.bind.Home))})
		return
	}
	if a == nil || a.hearsay {
		a = c.bindHere(now, in.Agent, in.Name, in.Role, in.Client)
	}
	if socket(in.Client) {
		if now.Before(a.coolUntil) {
			c.out(Replaced{Conn: in.Conn, Flap: true})
			c.tell(Told{Token: in.Token, Refusal: protocol.Refuse(protocol.CodeFlap, "agent %q is attached already and was replaced %d times in %d s",
				"end the other client that uses this id", string(in.Agent), flapMax, int(flapWindow/time.Second))})
			return
		}
		c.replace(now, a)
	}
	conn := &conn{id: in.Conn, agent: a.bind.Agent, client: in.Client, tiers: in.Tiers, ackLayer: in.AckLayer, inflight: map[Ref]int{}}
	c.conns[in.Conn] = conn
	a.conns = append(a.conns, in.Conn)
	if in.Wakes != "" {
		a.wakes = in.Wakes
	}
	c.setState(now, a, protocol.StateIdle)
	c.tell(Told{Token: in.Token})
	c.out(Roster{Conn: in.Conn})
	c.out(Welcome{Conn: in.Conn, Agent: a.bind.Agent, Role: c.role(a)})
	if socket(in.Client) {
		c.flush(now, a, conn)
	}
}

// replace closes the agent's present socket in favour of a newer one, without an AgentList in between (fault B2).
func (c *Core) replace(now time.Time, a *agent) {
	for _, id := range slices.Clone(a.conns) {
		if old := c.conns[id]; socket(old.client) {
			a.conns = slices.DeleteFunc(a.conns, func(o ConnID) bool { return o == id })
			delete(c.conns, id)
			c.out(Replaced{Conn: id})
			a.replaced = slices.DeleteFunc(a.replaced, func(t time.Time) bool { return now.Sub(t) > flapWindow })
			if a.replaced = append(a.replaced, now); len(a.replaced) >= flapMax {
				a.coolUntil, a.replaced = now.Add(flapCool), nil
			}
		}
	}
}

// detach ends an attachment or a board; an unknown conn (replaced, refused) is nothing.
func (c *Core) detach(now time.Time, in Detach) {
	delete(c.boards, in.Conn)
	conn := c.conns[in.Conn]
	if conn == nil {
		return
	}
	delete(c.conns, in.Conn)
	a := c.find(conn.agent)
	a.conns = slices.DeleteFunc(a.conns, func(o ConnID) bool { return o == in.Conn })
	for _, l := range a.box.items {
		l.tries, l.lastTry = 0, time.Time{}
	}
	if len(a.conns) == 0 {
		a.doing = ""
		c.setState(now, a, c.calmState(a))
	}
}

// calmState is the state of an agent with nothing attached.
func (c *Core) calmState(a *agent) protocol.AgentState {
	if a.client == "cli" {
		return protocol.StatePullOnly
	}
	return protocol.StateAway
}

// bindHere writes a new binding; the id is free or known by hearsay only.
func (c *Core) bindHere(now time.Time, id protocol.AgentID, name string, role protocol.Role, client string) *agent {
	if role == "" || role == protocol.RoleMain {
		role = protocol.RoleLocal
	}
	if !c.inside() {
		role = c.members[c.self].Role
	}
	bind := protocol.BindBody{Agent: id, Home: c.self, Since: c.author.clock.Next(now), Name: name, Role: role, Client: client}
	a := c.bound(bind)
	a.since = now
	a.state = c.calmState(a)
	c.settle(a)
	c.author.name(&c.ready, now, c.scopeTo(""), bind)
	c.catchUp(now, a)
	c.firstMain(now, a, client)
	c.changed()
	return a
}

// bound takes a binding from anywhere: of two for one folded id the earlier keeps it, the other's agent becomes ID-2
// (DESIGN 5).
func (c *Core) bound(bind protocol.BindBody) *agent {
	key := protocol.FoldAgentID(bind.Agent)
	old := c.agents[key]
	switch {
	case bind.Forgotten:
		if old != nil && old.bind.Home == bind.Home && len(old.conns) == 0 {
			delete(c.agents, key)
		}
		return old
	case old != nil && old.hearsay:
		if old.bind.Home != bind.Home {
			old.remote = nil
		}
	case old != nil && old.bind.Home == bind.Home:
		if bind.Since < old.bind.Since {
			old.bind.Since = bind.Since
		}
		return old
	case old != nil:
		if !c.earlier(bind, old.bind) {
			return c.bound(second(bind))
		}
		moved := *old
		for moved.bind = second(old.bind); c.find(moved.bind.Agent) != nil; {
			moved.bind = second(moved.bind) // whoever is called so has an inbox of its own
		}
		delete(c.agents, key)
		c.agents[protocol.FoldAgentID(moved.bind.Agent)] = &moved
		for _, id := range moved.conns {
			c.conns[id].agent = moved.bind.Agent
		}
	}
	if old == nil && c.crowded(bind.Home) {
		return nil
	}
	a := &agent{bind: bind, client: bind.Client, state: protocol.StateUnknown}
	if bind.Home == c.self {
		a.box = newMailbox()
		a.state = c.calmState(a)
	}
	if old != nil && old.hearsay {
		a.remote = old.remote // what its home said before its binding came
	}
	c.agents[key] = a
	return a
}

// earlier says which of two bindings keeps its id: the smaller (since, home). A member outside may say any time, so it takes
// no name from the inside (decision 012).
func (c *Core) earlier(a, b protocol.BindBody) bool {
	if out := c.guest(a.Home); out != c.guest(b.Home) {
		return !out
	}
	if a.Since != b.Since {
		return a.Since < b.Since
	}
	return a.Home < b.Home
}

// guest says whether a node is known as a member outside.
func (c *Core) guest(p protocol.PeerID) bool {
	m, ok := c.members[p]
	return ok && !m.Inside
}

// crowded says whether another node is a member outside with as many agents here as it may have.
func (c *Core) crowded(p protocol.PeerID) bool {
	if p == c.self || !c.guest(p) {
		return false
	}
	n := 0
	for _, a := range c.agents {
		if a.bind.Home == p {
			n++
		}
	}
	return n >= protocol.GuestAgentsMax
}

// fromOutside notes a member outside whose own record is still on its way: nobody else writes in its scope of itself.
func (c *Core) fromOutside(p protocol.PeerID) {
	if _, known := c.members[p]; !known {
		c.members[p] = Member{}
	}
}

// second gives the later of two agents of one name the next free-looking one; all nodes compute the same.
func second(bind protocol.BindBody) protocol.BindBody {
	id := string(bind.Agent)
	for i := len(id) - 1; i > 0; i-- {
		if id[i] == '-' {
			if n, err := strconv.Atoi(id[i+1:]); err == nil && n >= 2 {
				bind.Agent = protocol.AgentID(id[:i+1] + strconv.Itoa(n+1))
				return bind
			}
			break
		}
	}
	bind.Agent += "-2"
	return bind
}

// declare binds an agent that has no connection yet, such as the one a runner works as.
func (c *Core) declare(now time.Time, in Declare) {
	if r := c.Renamed(in.Agent); r != nil {
		c.tell(Told{Token: in.Token, Refusal: r})
		return
	}
	a := c.find(in.Agent)
	if a != nil && a.bind.Home != c.self && !a.hearsay {
		c.tell(Told{Token: in.Token, Refusal: protocol.Refuse(protocol.CodeIdentityMismatch, "agent %q lives on node %s", "choose another with --agent", string(in.Agent), c.nodeName(a.bind.Home))})
		return
	}
	if a == nil || a.hearsay {
		a = c.bindHere(now, in.Agent, "", protocol.RoleLocal, in.Client)
	}
	a.wakes = in.Wakes
	c.changed()
	c.tell(Told{Token: in.Token})
}

// forget withdraws a binding; unread mail is refused to its senders.
func (c *Core) forget(now time.Time, in Forget) {
	a := c.home(in.Agent)
	switch {
	case a == nil && c.forgetFormer(now, in.Agent):
		c.tell(Told{Token: in.Token})
		return
	case a == nil:
		c.tell(Told{Token: in.Token, Refusal: protocol.Refuse(protocol.CodeUnknownAgent, "no agent %q lives here. %s", "", string(in.Agent), c.choices())})
		return
	case len(a.conns) > 0:
		c.tell(Told{Token: in.Token, Refusal: protocol.Refuse(protocol.CodeNotAllowed, "agent %q is attached", "end its client first", string(in.Agent))})
		return
	case c.term.Agent == a.bind.Agent && c.term.Peer == c.self:
		c.tell(Told{Token: in.Token, Refusal: protocol.Refuse(protocol.CodeNotAllowed, "%q is the main agent of this mesh", "", string(in.Agent))})
		return
	}
	for _, l := range slices.Clone(a.box.items) {
		if !l.done {
			a.box.take(l)
			c.receipts.add(protocol.Refused, a.bind.Agent, protocol.CodeUnknownAgent, c.receiptScope(l.Ref), l.Ref)
		}
	}
	c.receipts.flush(c, now)
	gone := a.bind
	gone.Forgotten = true
	for _, scope := range c.scopesOf(gone.Agent) {
		c.author.add(&c.ready, now, scope, protocol.KindBind, protocol.EncodeBody(gone), nil)
	}
	c.author.forget(gone.Agent)
	delete(c.agents, protocol.FoldAgentID(gone.Agent))
	c.changed()
	c.tell(Told{Token: in.Token})
}

// mainByName is the id that names the main agent by itself where the founding node was given none (DESIGN 5).
const mainByName protocol.AgentID = "main-agent"

// firstMain names the main agent once: the first that attaches at the main node as main-agent or through an installed
// adapter, where the founding node did not name one itself.
func (c *Core) firstMain(now time.Time, a *agent, client string) {
	if c.term.Peer != c.self || c.term.Agent != "" {
		return
	}
	if a.bind.Agent != mainByName && client != "hook" && client != "mcp" {
		return
	}
	body := c.term
	body.Agent = a.bind.Agent
	c.author.add(&c.ready, now, protocol.ScopeInside, protocol.KindTerm, protocol.EncodeBody(body), nil)
	c.setTerm(Term{body})
}

func (c *Core) setTerm(in Term) {
	if in.Number == c.term.Number && in.Peer == c.term.Peer && in.Agent == c.term.Agent {
		return
	}
	c.term = in.TermBody
	c.out(MainChanged{Agent: in.Agent})
	c.changed()
}

func (c *Core) changed() { c.rosterDirty, c.presenceDirty = true, true }

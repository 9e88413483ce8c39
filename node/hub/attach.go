package hub

import (
	"slices"
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
	if r := c.Elsewhere(in.Agent); r != nil {
		c.tell(Told{Token: in.Token, Refusal: r})
		return
	}
	a := c.find(in.Agent)
	if r := c.mixed(a, in.Client); r != nil {
		c.tell(Told{Token: in.Token, Refusal: r})
		return
	}
	if a == nil || a.hearsay {
		if r := c.mayBind(); r != nil {
			c.tell(Told{Token: in.Token, Refusal: r})
			return
		}
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
	a := c.bindNew(now, protocol.BindBody{Agent: id, Home: c.self, Since: c.author.clock.Next(now), Name: name, Role: role, Client: client})
	a.since = now
	a.state = c.calmState(a)
	c.settle(a)
	c.author.name(&c.ready, now, c.scopeTo(""), a)
	c.catchUp(now, a)
	c.firstMain(now, a, client)
	c.changed()
	return a
}

// guest says whether a node is known as a member outside.
func (c *Core) guest(p protocol.PeerID) bool {
	m, ok := c.members[p]
	return ok && !m.Inside
}

// fromOutside notes a member outside whose own record is still on its way: nobody else writes in its scope of itself.
func (c *Core) fromOutside(p protocol.PeerID) {
	if _, known := c.members[p]; !known {
		c.members[p] = Member{}
	}
}

// declare binds an agent that has no connection yet, such as the one a runner works as.
func (c *Core) declare(now time.Time, in Declare) {
	if r := c.Renamed(in.Agent); r != nil {
		c.tell(Told{Token: in.Token, Refusal: r})
		return
	}
	if r := c.Elsewhere(in.Agent); r != nil {
		c.tell(Told{Token: in.Token, Refusal: r})
		return
	}
	a := c.find(in.Agent)
	if a == nil || a.hearsay {
		if r := c.mayBind(); r != nil {
			c.tell(Told{Token: in.Token, Refusal: r})
			return
		}
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
		c.tell(Told{Token: in.Token, Refusal: c.notHere(in.Agent)})
		return
	case len(a.conns) > 0:
		c.tell(Told{Token: in.Token, Refusal: protocol.Refuse(protocol.CodeNotAllowed, "agent %q is attached", "end its client first", string(in.Agent))})
		return
	case c.leads(a):
		c.tell(Told{Token: in.Token, Refusal: protocol.Refuse(protocol.CodeNotAllowed, "%q is the main agent of this mesh", "", string(in.Agent))})
		return
	}
	c.refuseUnread(now, a, in.Left)
	c.receipts.flush(c, now)
	gone := a.says()
	gone.Forgotten = true
	for _, scope := range c.scopesOf(a.bind.Agent) {
		c.author.add(&c.ready, now, scope, protocol.KindBind, protocol.EncodeBody(gone), nil)
	}
	c.author.forget(a.bind.Agent)
	c.end(now, a, gone, c.author.clock.Last(), a.guest)
	c.yield(now, c.self)
	c.changed()
	c.tell(Told{Token: in.Token})
}

// mainByName is the id that names the main agent by itself where the founding node was given none (DESIGN 5).
const mainByName protocol.AgentID = "main-agent"

// firstMain names the main agent once: the first that attaches at the main node as main-agent or through an installed
// adapter, where the founding node did not name one itself. Of a later term any that attaches will do.
func (c *Core) firstMain(now time.Time, a *agent, client string) {
	if c.term.Peer != c.self || c.term.Agent != "" {
		return
	}
	if c.term.Number == 1 && a.bind.Agent != mainByName && client != "hook" && client != "mcp" {
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
	before := c.term
	c.term = in.TermBody
	c.changed()
	if in.Agent == before.Agent && in.Peer == before.Peer {
		return // the same main in another term
	}
	c.out(Roster{}) // who is main is shown before it is said
	c.rosterDirty = false
	c.out(MainChanged{Agent: in.Agent, Was: before.Agent})
}

func (c *Core) changed() { c.rosterDirty, c.presenceDirty = true, true }

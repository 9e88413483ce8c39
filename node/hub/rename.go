package hub

import (
	"slices"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// Rename gives an agent of this node that is not attached another name. Its inbox goes along; what it said stays said
// under the old name, which takes no new mail.
type Rename struct {
	Agent, To protocol.AgentID
	Token     Token
}

func (Rename) isInput() {}

// InboxRename says that all of an agent's inbox here is another name's now.
type InboxRename struct{ From, To protocol.AgentID }

// Former is a name that its agent gave up for another.
type Former struct {
	Bind  protocol.BindBody // with RenamedTo
	At    protocol.HLC      // of the record that said so
	Guest bool              // a member outside wrote it
}

// renamesMax bounds how far a chain of renames is followed.
const renamesMax = 64

// successor is who an agent of a former name is now, nil if that is gone or not known yet. Of any other name it is the
// agent of that name.
func (c *Core) successor(id protocol.AgentID) *agent {
	for range renamesMax {
		key := protocol.FoldAgentID(id)
		if a := c.agents[key]; a != nil {
			return a
		}
		f, ok := c.former[key]
		if !ok {
			return nil
		}
		for _, a := range c.agents { // by where it came from: after a clash it is called otherwise
			if a.bind.Was != "" && a.bind.First() == f.Bind.Home && protocol.FoldAgentID(a.bind.Was) == key {
				return a
			}
		}
		id = f.Bind.RenamedTo
	}
	return nil
}

// livesAt says whether a peer is the home of an agent or was, also while that had this name: what it said then may come
// late.
func (c *Core) livesAt(id protocol.AgentID, peer protocol.PeerID) bool {
	key := protocol.FoldAgentID(id)
	if a := c.agents[key]; a != nil && (a.bind.Home == peer || slices.Contains(a.homes, peer)) {
		return true
	}
	if f, ok := c.former[key]; ok && c.agents[key] == nil && f.Bind.Home == peer {
		return true
	}
	for _, a := range c.bound { // its home may know of a clash that this node has yet to hear of
		if !a.guest && a.bind.Home == peer && a.bind.Called != "" && protocol.FoldAgentID(a.bind.Called) == key {
			return true
		}
	}
	return false
}

// takes is the agent here that mail to id is for: the one of that name, or the one that had it. Who sent to the old name
// knew no better, and what was let in elsewhere is not lost.
func (c *Core) takes(id protocol.AgentID) *agent {
	if a := c.successor(id); a != nil && c.serves(a) {
		return a
	}
	return nil
}

// TakenHere says whether mail to id is for an agent of this node.
func (c *Core) TakenHere(id protocol.AgentID) bool { return c.takes(id) != nil }

// Now is what an agent is called now.
func (c *Core) Now(id protocol.AgentID) protocol.AgentID {
	if a := c.successor(id); a != nil {
		return a.bind.Agent
	}
	return id
}

// Formerly lists the names that an agent had before, by name.
func (c *Core) Formerly(id protocol.AgentID) []protocol.AgentID {
	var out []protocol.AgentID
	a := c.find(id)
	for _, f := range c.former {
		if a != nil && c.successor(f.Bind.Agent) == a {
			out = append(out, f.Bind.Agent)
		}
	}
	slices.Sort(out)
	return out
}

// Renamed refuses a name that its agent gave up, and says the new one; nil: nobody did.
func (c *Core) Renamed(id protocol.AgentID) *protocol.Refusal {
	key := protocol.FoldAgentID(id)
	f, ok := c.former[key]
	if !ok || c.agents[key] != nil {
		return nil
	}
	now := f.Bind.RenamedTo
	if a := c.successor(id); a != nil {
		now = a.bind.Agent
	}
	return protocol.Refuse(protocol.CodeAgentRenamed, "agent %q is called %q now", "use that name", string(id), string(now))
}

// forward gives an answer to what an agent said under its former name to the agent: whoever answers did not choose the
// name. All other mail to a former name is refused.
func (c *Core) forward(env *protocol.Envelope) {
	env.ToWas = ""
	if env.To == "" || env.Re == "" || c.find(env.To) != nil {
		return
	}
	if a := c.successor(env.To); a != nil {
		env.ToWas, env.To = env.To, a.bind.Agent
	}
}

// work notes under which name the sender was given what it answers, if it was renamed since.
func (c *Core) work(env, parent *protocol.Envelope, from *agent) {
	env.FromWas = ""
	if from == nil || parent == nil || parent.ID != env.Re || parent.To == "" || protocol.FoldAgentID(parent.To) == protocol.FoldAgentID(env.From) {
		return
	}
	if c.takes(parent.To) == from {
		env.FromWas = parent.To
	}
}

func (c *Core) rename(now time.Time, in Rename) {
	a := c.home(in.Agent)
	if r := c.mayRename(a, in); r != nil {
		c.tell(Told{Token: in.Token, Refusal: r})
		return
	}
	c.receipts.flush(c, now) // what was said under the old name
	old, gone := a.bind, a.says()
	gone.RenamedTo = in.To
	scopes := c.scopesOf(old.Agent)
	delete(c.former, protocol.FoldAgentID(in.To)) // it may take a name back that it had
	bind := protocol.BindBody{Agent: in.To, Home: c.self, Since: c.author.clock.Next(now), Name: old.Name, Role: old.Role, Client: old.Client, Was: old.Agent}
	if old.Name == string(old.Agent) {
		bind.Name = string(in.To)
	}
	c.unbind(a)
	a.homes = nil
	c.bind(now, a, bind)
	c.callAll(now) // who had to give way to the old name has it now
	for _, scope := range scopes {
		c.author.name(&c.ready, now, scope, a)
		c.author.add(&c.ready, now, scope, protocol.KindBind, protocol.EncodeBody(gone), nil)
	}
	c.author.forget(old.Agent)
	c.ended[identityOf(&gone)] = ending{wordOf(&gone, c.author.clock.Last()), a.guest}
	c.former[protocol.FoldAgentID(old.Agent)] = Former{gone, c.author.clock.Last(), a.guest}
	c.yield(now, c.self)
	for t, key := range c.waits {
		if key == protocol.FoldAgentID(old.Agent) {
			c.waits[t] = protocol.FoldAgentID(in.To)
		}
	}
	c.ready.Renames = append(c.ready.Renames, InboxRename{old.Agent, in.To})
	a.noted = Noted{At: a.noted.At} // the old name's
	c.settle(a)
	c.changed()
	c.tell(Told{Token: in.Token})
	c.out(Mail{Agent: in.To})
}

// scopesOf are the scopes in which a binding is withdrawn: those whose logs of this start name the agent, and the node's
// own in any case, since it may have been bound in a former start.
func (c *Core) scopesOf(id protocol.AgentID) []protocol.Scope {
	scopes := []protocol.Scope{c.scopeTo("")}
	for scope, names := range c.author.named {
		if names[id] && scope != scopes[0] {
			scopes = append(scopes, scope)
		}
	}
	slices.Sort(scopes[1:])
	return scopes
}

// mayRename says why not, or nil.
func (c *Core) mayRename(a *agent, in Rename) *protocol.Refusal {
	refuse := func(hint, format string, args ...any) *protocol.Refusal {
		return protocol.Refuse(protocol.CodeNotAllowed, format, hint, args...)
	}
	if a == nil {
		if r := c.Renamed(in.Agent); r != nil {
			return r
		}
		if other := c.find(in.Agent); other != nil {
			return protocol.Refuse(protocol.CodeIdentityMismatch, "agent %q lives on node %s", "rename it there", string(other.bind.Agent), c.nodeName(other.bind.Home))
		}
		return c.notHere(in.Agent)
	}
	if err := protocol.CheckAgentID(in.To); err != nil {
		return protocol.Refuse(protocol.CodeBadAgentID, err.Error(), "choose a name without slashes and control characters")
	}
	was, to := protocol.FoldAgentID(a.bind.Agent), protocol.FoldAgentID(in.To)
	if was == to {
		return refuse("choose another", "%q and %q are one name: case does not tell agents apart", string(a.bind.Agent), string(in.To))
	}
	if other := c.find(in.To); other != nil {
		return refuse("choose another name", "agent %q exists already, on node %s", string(other.bind.Agent), c.nodeName(other.bind.Home))
	}
	if f, ok := c.former[to]; ok && c.successor(f.Bind.Agent) != a {
		return refuse("choose another name, or free it on "+c.nodeName(f.Bind.Home)+": aster agent forget "+string(in.To),
			"%q is the former name of agent %q", string(in.To), string(c.Now(in.To)))
	}
	switch {
	case farClient(a.client):
		return refuse("", "%q is an agent of another board, which names it", string(a.bind.Agent))
	case len(a.conns) > 0:
		return refuse("end its client first", "agent %q is attached", string(a.bind.Agent))
	case c.leads(a):
		return refuse("", "%q is the main agent of this mesh, which keeps its name", string(a.bind.Agent))
	case c.meets(was) != "":
		return refuse("leave it first", "%q is in the room %q, which knows it by its name", string(a.bind.Agent), string(c.meets(was)))
	case c.asks(was):
		return refuse("answer or cancel it first", "%q has asked people a question that is open", string(a.bind.Agent))
	}
	return nil
}

// asks says whether a question of an agent, by folded id, is open.
func (c *Core) asks(id protocol.AgentID) bool {
	for key, p := range c.prompts {
		if key.asker == id && p.ended == "" {
			return true
		}
	}
	return false
}

// meets is an open room that an agent, by folded id, is in; of several the first.
func (c *Core) meets(id protocol.AgentID) (in protocol.RoomID) {
	for key, r := range c.rooms {
		if r.In(id) && (in == "" || key < in) {
			in = key
		}
	}
	return in
}

// forgetFormer frees a name that an agent of this node had; false: none had it.
func (c *Core) forgetFormer(now time.Time, id protocol.AgentID) bool {
	key := protocol.FoldAgentID(id)
	f, ok := c.former[key]
	if !ok || f.Bind.Home != c.self || c.agents[key] != nil {
		return false
	}
	gone := f.Bind
	gone.RenamedTo, gone.Forgotten = "", true
	c.author.add(&c.ready, now, c.scopeTo(""), protocol.KindBind, protocol.EncodeBody(gone), nil)
	c.ended[identityOf(&gone)] = ending{wordOf(&gone, c.author.clock.Last()), f.Guest}
	delete(c.former, key)
	return true
}

package hub

import (
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles"
)

// identity is what an agent keeps for ever: the id under which it was bound first, and the node that did.
type identity struct {
	id    protocol.AgentID // folded
	first protocol.PeerID
}

func identityOf(b *protocol.BindBody) identity {
	return identity{protocol.FoldAgentID(b.Agent), b.First()}
}

// word is a binding's place among all words on one agent: what it claims, then when it was said.
type word struct {
	claim roles.Claim
	at    protocol.HLC
}

// ending is the word that took a binding back; a member outside said it if guest.
type ending struct {
	word
	guest bool
}

func wordOf(b *protocol.BindBody, at protocol.HLC) word { return word{roles.ClaimOf(b), at} }

func (w word) before(o word) bool {
	if w.claim != o.claim {
		return o.claim.Beats(w.claim)
	}
	return w.at < o.at
}

// says is the binding as a log has it.
func (a *agent) says() protocol.BindBody {
	b := a.bind
	b.Agent, b.Called = a.own, ""
	if a.bind.Agent != a.own {
		b.Called = a.bind.Agent
	}
	return b
}

func (a *agent) identity() identity { return identity{protocol.FoldAgentID(a.own), a.bind.First()} }

// heard takes what a home, a member outside if guest, says of a binding in a record of the time at. Logs come in any order, so what was said before a
// word that is known, or claims less, is void (board.State folds the same).
func (c *Core) heard(now time.Time, bind protocol.BindBody, at protocol.HLC, guest bool) {
	id, says := identityOf(&bind), wordOf(&bind, at)
	a := c.bound[id]
	if a != nil {
		a.dwelt(bind.Home)
		a.inner = a.inner || !guest
		if (bind.Forgotten || bind.RenamedTo != "") && c.serves(a) {
			c.receipts.flush(c, now) // what it owes it says under its binding, which is a newer word than this
		}
	}
	if e, ok := c.ended[id]; ok && !e.before(says) || a != nil && !a.word.before(says) {
		return
	}
	delete(c.ended, id)
	if f, ok := c.former[id.id]; ok && identityOf(&f.Bind) == id {
		delete(c.former, id.id)
	}
	if bind.Forgotten || bind.RenamedTo != "" {
		if a != nil && c.serves(a) {
			c.leave(now, a, bind.Home)
		}
		c.end(now, a, bind, at, guest)
		c.yield(now, bind.Home)
		return
	}
	if a == nil {
		a = &agent{state: protocol.StateUnknown, client: bind.Client, guest: guest, inner: !guest}
		c.bind(now, a, bind)
		a.word = says
		c.yield(now, bind.Home)
		return
	}
	a.guest = guest
	c.rebind(now, a, bind)
	a.word = says
}

// rebind lets a newer word hold. An agent whose home is another one now is served here no more.
func (c *Core) rebind(now time.Time, a *agent, bind protocol.BindBody) {
	from, called := a.bind.Home, a.bind.Agent
	if from == c.self && bind.Home != c.self {
		c.leave(now, a, bind.Home)
	}
	a.bind, a.arrives = bind, nil
	a.bind.Agent = called
	a.own, a.hearsay = bind.Agent, false
	a.dwelt(bind.Home)
	if from != bind.Home {
		a.remote = nil
		if a.elsewhere != nil && a.elsewhere.Home == bind.Home {
			a.remote, a.elsewhere = a.elsewhere, nil
		}
	}
	c.callAll(now)
	c.changed()
}

// bind gives an agent without one a binding, and a name. What was known of it by hearsay goes along.
func (c *Core) bind(now time.Time, a *agent, bind protocol.BindBody) {
	id := identityOf(&bind)
	a.bind, a.own, a.word = bind, bind.Agent, wordOf(&bind, c.author.clock.Last())
	a.dwelt(bind.Home)
	a.dwelt(bind.First())
	if bind.Home == c.self && a.box == nil {
		a.box = newMailbox(c.self)
		a.state = c.calmState(a)
	}
	c.bound[id] = a
	delete(c.ended, id)
	old := c.agents[id.id]
	if old != nil && old.hearsay {
		for _, row := range []*Presence{old.remote, old.elsewhere} {
			if row != nil && row.Home == bind.Home && bind.Home != c.self {
				a.remote = row
			}
		}
		old = nil
	}
	if old == nil {
		c.agents[id.id] = a // its own name is free: nobody else's changes
		c.alias()
		return
	}
	c.callAll(now)
}

// bindNew makes an agent of this node, whose binding counts whatever was said of the same before.
func (c *Core) bindNew(now time.Time, bind protocol.BindBody) *agent {
	if e, ok := c.ended[identityOf(&bind)]; ok && e.claim.Moves > 0 {
		bind.Origin, bind.Moves = c.self, e.claim.Moves+1
	}
	a := &agent{client: bind.Client, guest: !c.inside()}
	c.author.forget(bind.Agent) // another was called so
	c.bind(now, a, bind)
	c.yield(now, c.self)
	return a
}

// unbind takes an agent out of the names.
func (c *Core) unbind(a *agent) {
	delete(c.bound, a.identity())
	if key := protocol.FoldAgentID(a.bind.Agent); c.agents[key] == a {
		delete(c.agents, key)
	}
}

// end lets a withdrawn binding count no more. a is nil when it was not known.
func (c *Core) end(now time.Time, a *agent, bind protocol.BindBody, at protocol.HLC, guest bool) {
	id := identityOf(&bind)
	c.ended[id] = ending{wordOf(&bind, at), guest}
	if bind.RenamedTo != "" {
		c.former[id.id] = Former{bind, at, guest}
	}
	if a != nil {
		c.unbind(a)
		c.callAll(now)
	}
}

func (a *agent) dwelt(p protocol.PeerID) {
	if !slices.Contains(a.homes, p) {
		a.homes = append(a.homes, p)
	}
}

// bootAgent takes an agent as the board knows it. callAll follows.
func (c *Core) bootAgent(b Bound) {
	a := &agent{
		bind: b.Bind, own: b.Bind.Agent, word: wordOf(&b.Bind, b.At), homes: slices.Clone(b.Homes), client: b.Bind.Client,
		state: protocol.StateUnknown, guest: b.Guest,
	}
	a.dwelt(b.Bind.Home)
	if a.bind.Home == c.self {
		a.box, a.arrives = newMailbox(c.self), b.Move
		a.state = c.calmState(a)
	}
	c.bound[a.identity()] = a
	if a.arrives != nil {
		c.arrivals[a.identity()] = true
	}
	if a.bind.Home == c.self && a.bind.Moves > 0 {
		c.came[a.identity()] = true
	}
}

// callAll gives all agents the ids that they are called by (roles.Called), as the board does from the same bindings.
func (c *Core) callAll(now time.Time) {
	all := make([]*agent, 0, len(c.bound))
	for _, a := range c.bound {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b *agent) int {
		x, y := a.identity(), b.identity()
		if n := strings.Compare(string(x.id), string(y.id)); n != 0 {
			return n
		}
		return strings.Compare(string(x.first), string(y.first))
	})
	words := make([]roles.Bound, len(all))
	for i, a := range all {
		words[i] = roles.Bound{Agent: a.own, First: a.bind.First(), Since: a.bind.Since, Guest: a.guest, Admitted: c.members[a.bind.First()].Admitted}
	}
	agents := make(map[protocol.AgentID]*agent, len(c.agents))
	var renamed []*agent
	was := map[*agent]protocol.AgentID{}
	for i, name := range roles.Called(words) {
		a := all[i]
		agents[protocol.FoldAgentID(name)] = a
		if a.bind.Agent != name {
			was[a] = a.bind.Agent
			a.bind.Agent = name
			renamed = append(renamed, a)
		}
	}
	for key, a := range c.agents {
		if a.hearsay && agents[key] == nil {
			agents[key] = a
		}
	}
	c.agents = agents
	c.alias()
	for _, a := range renamed {
		if a.box != nil { // a log may know these names by the bindings of others
			c.author.forget(was[a])
			c.author.forget(a.bind.Agent)
		}
	}
	for _, a := range renamed {
		if a.box != nil {
			c.recalled(now, a, was[a])
		}
	}
}

// recalled lets an agent of this node go on under the name that it has now: its inbox goes along, its waits stay, and its
// sockets are told (fault of two homes; DESIGN 5).
func (c *Core) recalled(now time.Time, a *agent, was protocol.AgentID) {
	is := a.bind.Agent
	if protocol.FoldAgentID(was) == protocol.FoldAgentID(is) {
		return // other case alone
	}
	c.receipts.recalled(was, is)
	c.ready.Renames = append(c.ready.Renames, InboxRename{was, is})
	for t, key := range c.waits {
		if key == protocol.FoldAgentID(was) {
			c.waits[t] = protocol.FoldAgentID(is)
		}
	}
	for _, id := range a.conns {
		c.conns[id].agent = is
		c.out(Recalled{Conn: id, Was: was, Is: is, Role: c.role(a)})
	}
	if a.arrives == nil { // nobody believes words under a name that this log has not bound
		c.author.name(&c.ready, now, c.scopeTo(""), a)
	}
	c.changed()
}

// Elsewhere refuses to let an agent act here that lives on another node, or whose mail is still on its way here; nil: it
// may, or is not known.
func (c *Core) Elsewhere(id protocol.AgentID) *protocol.Refusal {
	a := c.find(id)
	switch {
	case a == nil || a.hearsay || c.serves(a):
		return nil
	case a.bind.Home == c.self:
		return protocol.Refuse(protocol.CodeBusy, "agent %q is moving here from node %s, and not all of its mail has arrived",
			"try again in a moment: aster peers shows what is missing", string(a.bind.Agent), c.nodeName(a.arrives.From))
	}
	return protocol.Refuse(protocol.CodeIdentityMismatch, "agent %q lives on node %s", "attach there, have it moved here by aster agent move there, or choose another id",
		string(a.bind.Agent), c.nodeName(a.bind.Home))
}

// notHere says of a name that no agent of this node has where its agent lives, if there is one.
func (c *Core) notHere(id protocol.AgentID) *protocol.Refusal {
	if r := c.Elsewhere(id); r != nil {
		return r
	}
	return protocol.Refuse(protocol.CodeUnknownAgent, "no agent %q lives here. %s", "", string(id), c.choices())
}

// MovedHere says whether mail to id is for an agent of this node that lived on another before.
func (c *Core) MovedHere(id protocol.AgentID) bool {
	a := c.takes(id)
	return a != nil && a.bind.Moves > 0
}

// CameHere says whether any agent of this node may have lived on another before.
func (c *Core) CameHere() bool { return len(c.came) > 0 }

// leads says whether the term names an agent of this node.
func (c *Core) leads(a *agent) bool {
	return a.bind.Home == c.self && c.term.Peer == c.self && c.term.Agent != "" && protocol.FoldAgentID(c.term.Agent) == protocol.FoldAgentID(a.own)
}

package hub

import (
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles"
)

// mayBind says why this node may not have one agent more, or nil. A member outside knows what the others keep of it, and
// refuses before anything of its would be lost.
func (c *Core) mayBind() *protocol.Refusal {
	n, limit := len(c.bound), protocol.AgentsMax
	if !c.inside() {
		n, limit = c.living(c.self), protocol.GuestAgentsMax
	}
	if n < limit {
		return nil
	}
	if c.inside() {
		return protocol.Refuse(protocol.CodeTooMany, "this mesh has %d agents, which is as many as it lists", "end those that nobody needs: aster agent forget NAME", n)
	}
	return protocol.Refuse(protocol.CodeTooMany, "this node is a member outside and has its %d agents already", "end those that nobody needs: aster agent forget NAME", n)
}

// living counts the agents of a node, hearsay included.
func (c *Core) living(p protocol.PeerID) (n int) {
	for _, a := range c.agents {
		if a.bind.Home == p {
			n++
		}
	}
	return n
}

// crowded says whether another node is a member outside of which no more agents are taken by hearsay.
func (c *Core) crowded(p protocol.PeerID) bool {
	return p != c.self && c.guest(p) && c.living(p) >= protocol.GuestAgentsMax
}

// yield lets the names of a member outside give way that are more than its share: the same as on every board (board.guest),
// in whatever order its logs came. Of its own agents a node says again what would be forgotten of it.
func (c *Core) yield(now time.Time, p protocol.PeerID) {
	if p == c.self && c.living(p) >= protocol.GuestNamesMax {
		return // of an earlier program, which had no limit: nothing that could be said again would help
	}
	for {
		n, first := 0, roles.Spoken{}
		see := func(id identity, at protocol.HLC) {
			n++
			if s := (roles.Spoken{Agent: id.id, At: at}); first.Agent == "" || s.Before(first) {
				first = s
			}
		}
		for id, a := range c.bound {
			if a.guest && id.first == p {
				see(id, a.word.at)
			}
		}
		for id, e := range c.ended {
			if e.guest && id.first == p {
				see(id, e.at)
			}
		}
		if n <= protocol.GuestNamesMax {
			return
		}
		c.drop(now, identity{first.Agent, p})
		if n-1 <= protocol.GuestNamesMax {
			return // who names agents without end comes here with each of them
		}
	}
}

// drop forgets what a member outside said of one name.
func (c *Core) drop(now time.Time, id identity) {
	if f, ok := c.former[id.id]; ok && identityOf(&f.Bind) == id {
		delete(c.former, id.id)
	}
	delete(c.ended, id)
	a := c.bound[id]
	switch {
	case a == nil:
	case c.serves(a):
		c.author.forget(a.bind.Agent)
		c.author.name(&c.ready, now, c.scopeTo(""), a)
	case a.inner:
		a.guest = false // what it said as a member inside holds
	default:
		c.unbind(a)
		clash := id.id != protocol.FoldAgentID(a.bind.Agent)
		for other := range c.bound {
			if other.id == id.id {
				clash = true
				c.callAll(now)
				break
			}
		}
		if clash { // else no other name was taken for its sake
			c.alias()
		}
		c.changed()
	}
}

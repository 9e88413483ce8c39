package hub

import (
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles"
)

// say takes a message where it enters the mesh: the one place that decides whether it is let in (DESIGN 4 Decided once).
func (c *Core) say(now time.Time, in Say) {
	env := in.Env
	from := c.stamp(now, &env, in)
	if r := c.Renamed(env.From); r != nil {
		c.refuse(in, &env, r)
		return
	}
	if r := c.fromAbroad(from, &in); r != nil {
		c.refuse(in, &env, r)
		return
	}
	if selection(env.Intent) {
		env.Room = "" // people answer it at a board, wherever it was asked
	}
	if c.ofRoom(now, &env, in, from) {
		return
	}
	if r := c.direct(&env, in.Parent, from); r != nil {
		c.refuse(in, &env, r)
		return
	}
	if c.repeated(&env, in) {
		return
	}
	r := c.admit(now, &env, in, from)
	if r == nil {
		r = c.paced(now, &env)
	}
	if r != nil {
		c.refuse(in, &env, r)
		return
	}
	if from == nil && env.From != "" { // first use of an agent of this node
		from = c.bindHere(now, env.From, env.FromName, protocol.RoleLocal, in.BindAs)
		env.FromRole = c.role(from)
	}
	declares := declaration(env.Intent) && env.To == ""
	if declares && c.declares(now, &env, in) {
		c.keep(in.Values)
		return
	}
	scope := c.scopeTo(env.To)
	if from != nil {
		c.author.name(&c.ready, now, scope, from)
	}
	ref := c.author.add(&c.ready, now, scope, protocol.KindMessage, protocol.EncodeBody(&env), &env)
	c.fresh[env.Identity()] = Seen{env.Content(), ref}
	c.keep(in.Values)
	c.tell(Told{Token: in.Token, Ref: ref, ID: env.ID, To: env.To})
	if !declares || env.Intent != "SeatTelemetry" || in.Conn == 0 { // a socket's telemetry was shown as it came
		c.out(Copy{Ref: ref, Env: &env, Except: in.Conn})
	}
	c.out(TierReached{Ref: ref, Tier: protocol.Logged})
	if declares {
		c.hasDeclared(now, &env, ref)
	}
	if env.To != "" {
		calm := c.talks(now, &env)
		target := c.home(env.To)
		if target != nil {
			c.deliverHere(now, target, ref, &env, scope, calm)
		}
		c.follow(now, ref, &env, target != nil)
	}
	if selection(env.Intent) {
		c.selectionSaid(now, &env, ref)
	}
}

// repeated answers a message whose id was said before: the same again gets the same receipt, another is refused.
func (c *Core) repeated(env *protocol.Envelope, in Say) bool {
	old, ok := c.repeat(env, in.Seen)
	switch {
	case !ok:
		return false
	case old.Content != env.Content():
		c.refuse(in, env, protocol.Refuse(protocol.CodeMsgIDReused,
			"the message id %q stands for another message already", "use a new id for new content", string(env.ID)))
	default:
		c.keep(in.Values)
		c.tell(Told{Token: in.Token, Ref: old.Ref, ID: env.ID, Repeat: true})
	}
	return true
}

// direct finds whom a message is for where it does not say, or says a former name.
func (c *Core) direct(env, parent *protocol.Envelope, from *agent) *protocol.Refusal {
	if selection(env.Intent) {
		if r := c.routeSelection(env); r != nil {
			return r
		}
	} else if env.To == "" {
		c.route(env)
	}
	c.work(env, parent, from)
	c.forward(env)
	return nil
}

// stamp overwrites what the sender says of itself with what the node knows (faults B30, KB1).
func (c *Core) stamp(now time.Time, env *protocol.Envelope, in Say) *agent {
	env.From, env.Hops = in.As, nil
	if in.As == "" {
		if env.Source != protocol.SourceServer {
			env.Source = protocol.SourceBoard
		}
		env.FromRole, env.FromName = roles.Speaking(c.nodeRole(c.self), protocol.RoleBoard), ""
		return nil
	}
	env.Source = protocol.SourceAgent
	from := c.home(in.As)
	if from != nil {
		env.From, env.FromName, env.FromRole = from.bind.Agent, from.bind.Name, c.role(from)
	} else {
		env.FromRole = roles.Speaking(c.nodeRole(c.self), protocol.RoleLocal)
		if c.term.Peer == c.self && (c.term.Agent == in.As || c.term.Agent == "" && in.As == mainByName) {
			env.FromRole = protocol.RoleMain
		}
	}
	return from
}

// route finds the target of a message that names none: main for what agents say to one another, nobody for what is
// for boards. It never guesses from who spoke last (fault B11).
func (c *Core) route(env *protocol.Envelope) {
	switch protocol.Lookup(env.Intent).Class {
	case protocol.ClassA2A, protocol.ClassUnknown, protocol.ClassProbe:
	case protocol.ClassRun:
		if env.FromRole.Inside() || env.Intent != protocol.AgentText {
			return
		}
	default:
		return
	}
	if main := c.Main(); main != "" && main != env.From {
		env.To = main
	}
}

func (c *Core) repeat(env *protocol.Envelope, seen *Seen) (Seen, bool) {
	if s, ok := c.fresh[env.Identity()]; ok {
		return s, true
	}
	if seen != nil {
		return *seen, true
	}
	return Seen{}, false
}

// admit says why a message may not enter, or nil.
func (c *Core) admit(now time.Time, env *protocol.Envelope, in Say, from *agent) *protocol.Refusal {
	if r := env.Check(); r != nil {
		return r
	}
	info := protocol.Lookup(env.Intent)
	if info.HubOnly && env.Source != protocol.SourceServer {
		return protocol.Refuse(protocol.CodeReservedName, "only the hub sends %s", "choose another name", string(env.Intent))
	}
	if info.Keeping == protocol.Dropped && !RoomVerb(env.Intent) && env.Source != protocol.SourceServer {
		return protocol.Refuse(protocol.CodeReservedName, "%s is asked of the hub on a connection, and said to nobody", "choose another name", string(env.Intent))
	}
	if from == nil && env.From != "" {
		if r := c.Elsewhere(env.From); r != nil {
			return r
		}
		if r := c.mayBind(); r != nil {
			return r
		}
	}
	if r := c.admitValue(env, in); r != nil {
		return r
	}
	if env.To == "" && env.Intent == "OperatorFeedback" { // a person's word to main never lies where nobody reads it (fault B39)
		return protocol.Refuse(protocol.CodeUnknownAgent, "there is no main agent yet", "attach one first: aster agents shows who is here")
	}
	if env.To == "" {
		return nil
	}
	target := c.find(env.To)
	if r := c.Renamed(env.To); r != nil {
		return r
	}
	if target == nil {
		if c.inside() && outsideRole(env.FromRole) {
			return protocol.Refuse(protocol.CodeUnknownAgent, "no agent %q. Nothing was sent", "ask main who is here", string(env.To))
		}
		return protocol.Refuse(protocol.CodeUnknownAgent, "no agent %q. %s. Nothing was sent", c.unborn(env.To), string(env.To), c.choices())
	}
	env.To = target.bind.Agent
	if c.members[target.bind.Home].Gone {
		return protocol.Refuse(protocol.CodeUnknownAgent, "agent %q lived on %s, which is no longer a member", "aster agents shows who is here",
			string(env.To), c.nodeName(target.bind.Home))
	}
	if r := roles.MayReach(c.self, c.inside(), target.bind.Home, c.nodeRole(target.bind.Home).Inside()); r != nil {
		return r
	}
	own := actsOn(env.Intent) && env.From == "" && target.bind.Home == c.self // an outside node's person answers its own agents
	if r := roles.May(env.FromRole, env.Intent, c.role(target)); r != nil && !own {
		return r
	}
	if r := c.mayReport(env, in.Parent, from); r != nil {
		return r
	}
	if env.Intent == protocol.Delegate {
		if r := c.hop(env, in.Parent); r != nil {
			return r
		}
	}
	if target.box != nil && c.noRoom(target, c.ours(env), env, in.Parent) {
		return c.inboxFull(target, c.ours(env), env.From)
	}
	return nil
}

// admitValue is admit for what some names' values may hold.
func (c *Core) admitValue(env *protocol.Envelope, in Say) *protocol.Refusal {
	switch {
	case selection(env.Intent):
		return c.admitSelection(env)
	case declaration(env.Intent):
		return c.admitDeclaration(env, in.Declared)
	}
	return protocol.CheckAcceptance(env.Intent, env.Value)
}

// outsideRole: who joined by a key of such a role is not told who else is here.
func outsideRole(r protocol.Role) bool { return r.Known() && !r.Inside() && r != protocol.RoleBoard }

// mayReport keeps an agent from reporting on another's work. Ids that clients make up may meet, so it asks only where the
// id is one of ours (a UUID).
func (c *Core) mayReport(env, parent *protocol.Envelope, from *agent) *protocol.Refusal {
	if env.Intent != protocol.WorkerReport || from == nil || parent == nil || parent.Intent != protocol.Delegate || parent.To == "" || len(parent.ID) != 36 {
		return nil
	}
	if protocol.FoldAgentID(parent.To) == protocol.FoldAgentID(env.From) || c.takes(parent.To) == from {
		return nil
	}
	return protocol.Refuse(protocol.CodeNotAllowed, "t-%s was given to %s, not to %s", "its own agent reports on it; aster task cancel stops it",
		protocol.ShortID(parent.ID), string(parent.To), string(env.From))
}

// hop continues the chain of Delegates and refuses a loop (U46): A to B to A, or more than HopsMax.
func (c *Core) hop(env *protocol.Envelope, parent *protocol.Envelope) *protocol.Refusal {
	if parent == nil || parent.Intent != protocol.Delegate || parent.To != env.From && parent.To != env.FromWas {
		return nil
	}
	env.Hops = append(slices.Clone(parent.Hops), parent.From)
	if len(env.Hops) >= protocol.HopsMax {
		return protocol.Refuse(protocol.CodeHopDepth, "this work was delegated %d times already", "answer with a WorkerReport instead", len(env.Hops))
	}
	if slices.Contains(env.Hops, env.To) {
		return protocol.Refuse(protocol.CodeHopLoop, "%q is already in this chain of Delegates (%s)", "answer it with a WorkerReport, or ask with a Request",
			string(env.To), joinIDs(env.Hops))
	}
	return nil
}

func joinIDs(ids []protocol.AgentID) string {
	parts := make([]string, len(ids))
	for i, id := range ids {
		parts[i] = string(id)
	}
	return strings.Join(parts, " -> ")
}

// unborn says how a node's own agent comes to be, to who names one that is not there yet: it is one once somebody uses it.
func (c *Core) unborn(id protocol.AgentID) string {
	for _, m := range c.members {
		if m.Name == string(id) && !m.Gone {
			return "node " + m.Name + " is here and its own agent has not begun: aster wait, typed there, does"
		}
	}
	if id == "main-agent" || len(c.agents) == 0 {
		return "a node's own agent begins when it is used: aster wait, typed on that node, does"
	}
	return ""
}

// choices names the agents that exist, for whoever named one that does not.
func (c *Core) choices() string {
	var ids []string
	for _, a := range c.agents {
		ids = append(ids, string(a.bind.Agent))
	}
	if len(ids) == 0 {
		return "There are no agents yet"
	}
	sort.Strings(ids)
	if len(ids) > 12 {
		ids = append(ids[:12], "…")
	}
	return "Here: " + strings.Join(ids, ", ")
}

func (c *Core) refuse(in Say, env *protocol.Envelope, r *protocol.Refusal) {
	c.tell(Told{Token: in.Token, Refusal: r, ID: env.ID})
	if in.Conn != 0 {
		c.out(Refused{Conn: in.Conn, Env: env, Refusal: r})
	}
	// A refused outbox line is settled too: its cursor moves on, its file says why. One that came too fast comes again.
	if r.Code != protocol.CodeRate {
		c.keep(in.Values)
	}
}

func (c *Core) keep(values map[string][]byte) {
	for k, v := range values {
		if c.ready.Values == nil {
			c.ready.Values = map[string][]byte{}
		}
		c.ready.Values[k] = v
	}
}

// scopeTo chooses the log of a message to an agent; a home that is no member yet counts as inside.
func (c *Core) scopeTo(to protocol.AgentID) protocol.Scope {
	var home protocol.PeerID
	inside := true
	if a := c.find(to); a != nil {
		home = a.bind.Home
		if m, ok := c.members[home]; ok {
			inside = m.Inside
		}
	}
	return roles.ScopeFor(c.inside(), c.self, home, inside)
}

// Size is what a message weighs in an inbox, in bytes.
func Size(env *protocol.Envelope) int { return len(env.Value) + 256 }

// nodeRole is a member's role; a node that is not known yet is vouched for by the inside member that told of it.
func (c *Core) nodeRole(p protocol.PeerID) protocol.Role {
	if m, ok := c.members[p]; ok && m.Role != "" {
		return m.Role
	}
	return protocol.RoleLocal
}

func (c *Core) nodeName(p protocol.PeerID) string {
	if m, ok := c.members[p]; ok && m.Name != "" {
		return m.Name
	}
	return "…" + p.Short()
}

// sayLive passes on a frame that is never kept.
func (c *Core) sayLive(in SayLive) {
	target := c.find(in.To)
	if target != nil && target.bind.Home == c.self {
		c.out(LiveCopy{Conns: slices.Clone(target.conns), From: in.As, Frame: in.Frame})
	} else if target != nil {
		c.out(LiveOut{Home: target.bind.Home, From: in.As, To: in.To, Frame: in.Frame})
	} else if in.To == "" && in.Conn != 0 {
		c.out(LiveOut{From: in.As, Frame: in.Frame})
	}
	c.out(LiveCopy{Board: true, From: in.As, Frame: in.Frame})
}

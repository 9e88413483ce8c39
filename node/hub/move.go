package hub

import (
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// Move hands an agent over to another node inside: by its home, or by main's node when that is gone.
type Move struct {
	Agent protocol.AgentID
	To    protocol.PeerID
	// Held has, of each log with a message for the agent, the last such message that is stored here. Of an agent that
	// lives elsewhere it has instead what is held of the logs of its homes.
	Held map[protocol.LogID]uint64
	// Gone says that the agent's home was not heard of for long enough, ToGone that the new home was not.
	Gone, ToGone bool
	// Busy names what an agent of this node must end before it goes; nil: nothing.
	Busy  *protocol.Refusal
	Token Token
}

// Arrive is the mail of an agent that has moved here, once all is here that its move named.
type Arrive struct {
	Agent protocol.AgentID
	Mail  []Arrived // in the order in which the records came here
}

// Arrived is one message that may be for an agent that has moved here.
type Arrived struct {
	Ref Ref
	Env *protocol.Envelope
	At  time.Time
	// Parent is the Delegate that it reports on, if it is a report.
	Parent *protocol.Envelope
	Seen   *Seen // an earlier one under the same identity, also one that a former home took
	// Handed: a former home took it, and the agent has not processed it. Given: a client had it that does not acknowledge.
	Handed, Given bool
}

func (Move) isInput()   {}
func (Arrive) isInput() {}

// moveBytesMax keeps a move's record below RecordBytesMax with room for its frame.
const moveBytesMax = protocol.RecordBytesMax - 4<<10

// move writes the record that gives an agent another home. From it on this node serves the agent no more.
func (c *Core) move(now time.Time, in Move) {
	a := c.find(in.Agent)
	if r := c.mayMove(a, in); r != nil {
		c.tell(Told{Token: in.Token, Refusal: r})
		return
	}
	c.receipts.flush(c, now) // what this home has dealt with is said before it goes
	body := protocol.MoveBody{
		Agent: a.own, Origin: a.bind.First(), Since: a.bind.Since, Name: a.bind.Name, Role: a.bind.Role, Client: a.bind.Client, Was: a.bind.Was,
		From: a.bind.Home, To: in.To, Moves: a.bind.Moves + 1, Forced: !c.serves(a),
	}
	unread := 0
	body.Seen = map[string]uint64{}
	for log, seq := range in.Held {
		body.Seen[log.String()] = seq
	}
	if !body.Forced {
		for _, t := range c.ready.Tiers { // dealt with in this turn, not stored yet
			if t.By == c.self && protocol.FoldAgentID(t.Agent) == protocol.FoldAgentID(a.bind.Agent) {
				log := t.Ref.Log.String()
				body.Seen[log] = max(body.Seen[log], t.Ref.Seq)
			}
		}
		body.Unread, body.Given = a.box.handOver(a.acks)
		unread = a.box.unread()
	}
	whole := protocol.EncodeBody(body)
	if len(whole) > moveBytesMax {
		c.tell(Told{Token: in.Token, Refusal: protocol.Refuse(protocol.CodeTooMany, "agent %q has mail in %d logs: more than one record can name",
			"acknowledge what it has read, then try again", string(a.bind.Agent), len(body.Seen))})
		return
	}
	if c.parks(a) {
		c.unparkAll(now, a)
	}
	ref := c.author.add(&c.ready, now, protocol.ScopeInside, protocol.KindMove, whole, nil)
	c.takeMove(now, body, c.author.clock.Last())
	c.tell(Told{Token: in.Token, Ref: ref, Unread: unread, Forced: body.Forced})
}

// mayMove says why not, or nil.
func (c *Core) mayMove(a *agent, in Move) *protocol.Refusal {
	refuse := func(code, hint, format string, args ...any) *protocol.Refusal {
		return protocol.Refuse(code, format, hint, args...)
	}
	if a == nil || a.hearsay {
		if r := c.Renamed(in.Agent); r != nil {
			return r
		}
		return refuse(protocol.CodeUnknownAgent, "", "no agent %q. %s", string(in.Agent), c.choices())
	}
	name, home := string(a.bind.Agent), c.nodeName(a.bind.Home)
	to, ok := c.members[in.To]
	switch {
	case !c.inside():
		return refuse(protocol.CodeNotAllowed, "ask the inside", "agents move between nodes of the inside, and this node is outside")
	case farClient(a.client), farClient(a.bind.Client):
		return refuse(protocol.CodeNotAllowed, "", "agent %q is of another board, and lives there", name)
	case a.guest:
		return refuse(protocol.CodeNotAllowed, "", "agent %q belongs to %s, a member outside", name, home)
	case in.To == a.bind.Home && a.arrives != nil:
		return refuse(protocol.CodeBusy, "aster peers shows what is missing", "agent %q is moving here from node %s, and not all of its mail has arrived", name, c.nodeName(a.arrives.From))
	case in.To == a.bind.Home:
		return refuse(protocol.CodeNotAllowed, "", "agent %q lives on node %s already", name, home)
	case !ok:
		return refuse(protocol.CodeNotMember, "aster peers lists them", "there is no such node")
	case to.Gone:
		return refuse(protocol.CodeRevoked, "aster peers lists the nodes", "node %s is no longer a member", to.Name)
	case !to.Inside:
		return refuse(protocol.CodeNotAllowed, "choose a node of the inside: aster peers", "node %s is outside: agents move between nodes of the inside", to.Name)
	case in.ToGone && in.To != c.self:
		return refuse(protocol.CodeUnreachable, "start it, or choose another node: aster peers", "node %s has not been heard of for a minute", to.Name)
	}
	if a.bind.Home == c.self {
		return c.mayLeave(a, in)
	}
	switch {
	case !in.Gone && !c.members[a.bind.Home].Gone:
		return refuse(protocol.CodeIdentityMismatch, "move it there: aster agent move, on "+home, "agent %q lives on node %s", name, home)
	case c.term.Peer != c.self:
		return refuse(protocol.CodeNotAllowed, "run aster agent move on "+c.nodeName(c.term.Peer)+", which is main", "agent %q lives on node %s, which is gone", name, home)
	}
	return nil
}

// mayLeave says what keeps an agent of this node here, or nil.
func (c *Core) mayLeave(a *agent, in Move) *protocol.Refusal {
	switch {
	case a.arrives != nil:
		return c.Elsewhere(a.bind.Agent)
	case c.leads(a):
		return protocol.Refuse(protocol.CodeNotAllowed, "%q is the main agent of this mesh, which stays where main is", "move another, or hand main over first", string(a.bind.Agent))
	case c.asks(protocol.FoldAgentID(a.bind.Agent)):
		return protocol.Refuse(protocol.CodeBusy, "%q has asked people a question that is open", "answer or cancel it first", string(a.bind.Agent))
	}
	return in.Busy
}

// handOver lists what is unread, and what of it a client had that does not acknowledge: what it is silent on it has read.
func (m *mailbox) handOver(acks bool) (unread, given []protocol.LogRange) {
	var all, had []Ref
	for _, l := range m.items {
		if l.done {
			continue
		}
		all = append(all, l.Ref)
		if l.Given && !l.Kept && !acks {
			had = append(had, l.Ref)
		}
	}
	return ranges(all), ranges(had)
}

// moved takes another node's record of a move.
func (c *Core) moved(now time.Time, rec *protocol.Record, body protocol.MoveBody) {
	if rec.Log.Scope != protocol.ScopeInside || body.To == "" || body.Origin == "" || body.Moves == 0 || protocol.CheckAgentID(body.Agent) != nil {
		return
	}
	c.takeMove(now, body, rec.At)
	c.rosterDirty = true
}

// takeMove lets a move count, unless another claims more. At the new home the agent's mail is to be taken over now.
func (c *Core) takeMove(now time.Time, body protocol.MoveBody, at protocol.HLC) {
	bind := body.Bind()
	id, says := identityOf(&bind), wordOf(&bind, at)
	if a := c.bound[id]; a != nil {
		a.dwelt(body.From)
		if a.word.claim == says.claim && a.bind.Home == c.self {
			return // taken up, or about to be
		}
	}
	c.heard(now, bind, at, false)
	if a := c.bound[id]; a != nil && a.word == says && a.bind.Home == c.self {
		a.dwelt(body.From)
		if a.box == nil {
			a.box = newMailbox(c.self)
		}
		a.arrives, a.client, a.state, a.noted = &body, bind.Client, protocol.StateUnknown, Noted{}
		c.arrivals[id] = true
	}
}

// leave ends all service of an agent here: its sockets are told where it lives, and its mail is that home's.
func (c *Core) leave(now time.Time, a *agent, home protocol.PeerID) {
	c.receipts.flush(c, now)
	if c.parks(a) {
		c.unparkAll(now, a)
	}
	c.ready.Inbox = slices.DeleteFunc(c.ready.Inbox, func(p InboxPut) bool {
		return protocol.FoldAgentID(p.Agent) == protocol.FoldAgentID(a.bind.Agent)
	})
	c.ready.Out = slices.DeleteFunc(c.ready.Out, func(o Out) bool {
		d, ok := o.(Deliver)
		return ok && slices.Contains(a.conns, d.Conn)
	})
	for _, id := range a.conns {
		delete(c.conns, id)
		c.out(MovedAway{Conn: id, Agent: a.bind.Agent, Home: home})
	}
	key := protocol.FoldAgentID(a.bind.Agent)
	for t, k := range c.waits {
		if k == key {
			delete(c.waits, t)
			c.tell(Told{Token: t, Refusal: protocol.Refuse(protocol.CodeIdentityMismatch, "agent %q lives on node %s now", "wait there", string(a.bind.Agent), c.nodeName(home))})
		}
	}
	c.author.forget(a.bind.Agent)
	if a.arrives == nil {
		c.ready.Left = append(c.ready.Left, a.bind.Agent)
	}
	a.box, a.conns, a.arrives, a.wakes, a.doing, a.replaced, a.acks = nil, nil, nil, "", "", nil, false
	a.state, a.noted = protocol.StateUnknown, Noted{}
}

// parks says whether messages of an agent wait here for a person's word in a room.
func (c *Core) parks(a *agent) bool {
	for _, waiting := range c.parked {
		if slices.ContainsFunc(waiting, func(p *Parked) bool { return c.find(p.Env.From) == a }) {
			return true
		}
	}
	return false
}

// unparkAll gives up what an agent wanted to say in rooms: it is told, and may say it again at its new home.
func (c *Core) unparkAll(now time.Time, a *agent) {
	c.giveUpParked(now, "its sender moved to another node", func(p *Parked) bool { return c.find(p.Env.From) == a })
}

// Homes are all homes that an agent is known to have had.
func (c *Core) Homes(id protocol.AgentID) []protocol.PeerID {
	if a := c.find(id); a != nil {
		return slices.Clone(a.homes)
	}
	return nil
}

// Arrival is an agent whose mail this node has yet to take over.
type Arrival struct {
	Agent protocol.AgentID
	Names []protocol.AgentID // Agent, as its first home bound it, and those that it had before
	Move  *protocol.MoveBody
}

// Arriving lists them, by agent.
func (c *Core) Arriving() []Arrival {
	var out []Arrival
	for id := range c.arrivals {
		a := c.bound[id]
		if a == nil || a.arrives == nil {
			delete(c.arrivals, id)
			continue
		}
		names := []protocol.AgentID{a.bind.Agent}
		for _, name := range append([]protocol.AgentID{a.own}, c.Formerly(a.bind.Agent)...) {
			if protocol.FoldAgentID(name) != protocol.FoldAgentID(a.bind.Agent) {
				names = append(names, name)
			}
		}
		out = append(out, Arrival{a.bind.Agent, names, a.arrives})
	}
	slices.SortFunc(out, func(x, y Arrival) int { return strings.Compare(string(x.Agent), string(y.Agent)) })
	return out
}

// RoomMail are the places of what was said in an agent's open rooms that is remembered there, oldest first in each.
func (c *Core) RoomMail(id protocol.AgentID) []Ref {
	var out []Ref
	for _, r := range c.rooms {
		if !r.Open() || !r.In(id) {
			continue
		}
		for _, line := range r.Lines {
			if log, seq, ok := line.Pos.Record(); ok && protocol.FoldAgentID(line.From) != protocol.FoldAgentID(id) {
				out = append(out, Ref{log, seq})
			}
		}
	}
	return out
}

// arrive takes an agent's mail over and says so by the agent's binding: both are one commit, so a crash leaves either
// all of the mail to be taken or none.
func (c *Core) arrive(now time.Time, in Arrive) {
	a := c.find(in.Agent)
	if a == nil || a.bind.Home != c.self || a.arrives == nil {
		return
	}
	forced := a.arrives.Forced
	c.ready.Left = append(c.ready.Left, a.bind.Agent) // what lies there from an earlier stay is said again below
	a.arrives, a.since = nil, now
	c.came[a.identity()] = true
	a.state = c.calmState(a)
	c.author.forget(a.bind.Agent)
	c.author.name(&c.ready, now, c.scopeTo(""), a)
	a.word = wordOf(&a.bind, c.author.clock.Last())
	for i := range in.Mail {
		m := &in.Mail[i]
		switch {
		case a.box.byRef[m.Ref] != nil:
		case m.Handed && !forced:
			own := *m.Env
			own.To = a.bind.Agent
			a.box.put(Letter{Ref: m.Ref, ID: m.Env.ID, From: m.Env.From, Report: ReportOn(m.Env), At: m.At, Bytes: Size(m.Env), Wakes: protocol.Wakes(&own, a.bind.Agent), Given: m.Given})
			c.ready.Inbox = append(c.ready.Inbox, InboxPut{a.bind.Agent, m.Ref})
			if m.Given {
				c.ready.Tiers = append(c.ready.Tiers, TierPut{Ref: m.Ref, Tier: Given, Agent: a.bind.Agent, At: c.author.clock.Last(), Wall: now.UnixMilli(), By: c.self})
			}
		case m.Env.Room != "":
			if c.noRoom(a, senderOf(c.self, m.Ref.Log, m.Env.From), m.Env, nil) {
				c.receipts.add(protocol.Refused, a.bind.Agent, protocol.CodeInboxFull, c.receiptScope(m.Ref), m.Ref)
			} else {
				c.deliverHere(now, a, m.Ref, m.Env, c.receiptScope(m.Ref), time.Time{})
			}
		default:
			c.take(now, a, m.Ref, m.Env, m.Parent, m.Seen)
		}
	}
	c.settle(a)
	c.changed()
	c.out(Mail{Agent: a.bind.Agent})
}

package hub

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles"
	"github.com/aster-mesh/aster/roles/room"
)

// ofRoom takes what is said in a room, or asked about one; false: it is neither.
func (c *Core) ofRoom(now time.Time, env *protocol.Envelope, in Say, from *agent) bool {
	far := c.farRoom(env, in.Far)
	switch {
	case far != nil:
		c.sayFar(now, env, in, from, far)
	case RoomVerb(env.Intent):
		c.roomAsked(now, env, in, from)
	case env.Room != "":
		c.roomSay(now, env, in, from)
	default:
		return false
	}
	return true
}

// roomSay takes a room's message where it enters: the one place that decides whether it fits the room's budgets
// (DESIGN 6 State that has one owner).
func (c *Core) roomSay(now time.Time, env *protocol.Envelope, in Say, from *agent) {
	if env.To != "" { // a copy has the target; who is named stands in addressee
		if len(env.Addressee) == 0 {
			env.Addressee = []protocol.AgentID{env.To}
		}
		env.To = ""
	}
	if c.repeated(env, in) {
		return
	}
	r := c.rooms[env.Room]
	no := c.admit(now, env, in, from)
	if no == nil && r.Open() {
		no = c.roomMay(env, r)
	}
	if no == nil && r.Open() && env.From == "" && !c.inside() {
		no = protocol.Refuse(protocol.CodeNotAllowed, "a person of a member outside is not in the room", "let an agent say it")
	}
	if no == nil {
		no = c.paced(now, env)
	}
	if no != nil {
		c.refuse(in, env, no)
		return
	}
	c.keep(in.Values)
	if from == nil && r.In(env.From) { // first use of an agent of this node
		env.FromRole = c.role(c.bindHere(now, env.From, env.FromName, protocol.RoleLocal, in.BindAs))
	}
	rule := room.Rule("")
	switch {
	case !r.Open():
		rule = room.NoSuchRoom
	case env.From != "":
		rule = r.Breaks(now, env.From)
	}
	if rule == room.NoSuchRoom || rule == room.NotParticipant {
		c.guard(env, env.Room, rule, guardDropped, env.ID)
		c.tell(Told{Token: in.Token, ID: env.ID, Refusal: protocol.Refuse(protocol.CodeNotAllowed, "%s: the message was not sent", "", ruleWords(rule))})
		return
	}
	if env.From != "" && c.inside() {
		c.floor(now, env, r)
	}
	if rule != "" {
		c.park(now, env, in, r, rule)
		return
	}
	if env.From != "" && env.ReplyTo != "" && r.Notice(env.ReplyTo) {
		c.guard(env, r.ID, room.NoticeReply, guardWarned, env.ID)
	}
	c.unpark(env) // sent again, it fits now
	ref := c.roomLog(now, env, r, in.Conn)
	c.tell(Told{Token: in.Token, Ref: ref, ID: env.ID})
	if env.From == "" {
		c.release(now, r)
	}
}

func ruleWords(rule room.Rule) string {
	switch rule {
	case room.NoSuchRoom:
		return "there is no such open room"
	case room.NotParticipant:
		return "only who is in a room speaks there"
	case room.Rate:
		return "you said as much as one may in a minute"
	case room.Consecutive:
		return "you said as much in a row as one may"
	case room.AutoHop:
		return "agents said as much as they may without a person"
	}
	return string(rule)
}

// roomMay checks that the sender may say such a thing to everyone in the room. Work is for one: a Delegate names whom.
func (c *Core) roomMay(env *protocol.Envelope, r *room.Room) *protocol.Refusal {
	if env.Intent == protocol.Delegate && len(env.Addressee) != 1 {
		return protocol.Refuse(protocol.CodeNotAllowed, "a Delegate in a room names the one who shall work in addressee", "")
	}
	if env.Intent == protocol.Delegate && (!c.inside() || len(c.outsiders(r)) > 0) {
		return protocol.Refuse(protocol.CodeNotAllowed, "nobody delegates in a room that agents from outside are in", "send the Delegate to its worker alone")
	}
	for _, p := range r.Participants() {
		if a := c.find(p); a != nil && protocol.FoldAgentID(p) != protocol.FoldAgentID(env.From) {
			if no := roles.May(env.FromRole, env.Intent, c.role(a)); no != nil {
				return no
			}
		}
	}
	return nil
}

// floor notes a wish for the floor, also of a message that is parked then.
func (c *Core) floor(now time.Time, env *protocol.Envelope, r *room.Room) {
	if len(env.Floor) == 0 {
		return
	}
	var f protocol.FloorIntent
	if json.Unmarshal(env.Floor, &f) != nil {
		return
	}
	switch f.Intent {
	case "request", "release", "yield":
		if old := r.Floor[protocol.FoldAgentID(env.From)]; old != nil && old.Body.Intent == f.Intent && old.Body.Bid == f.Bid {
			return // it stands already
		}
		c.roomRecord(now, protocol.RoomBody{Room: r.ID, Op: protocol.RoomFloor, By: env.From, Agent: env.From, Intent: f.Intent, Bid: f.Bid})
	}
}

// roomLog stamps a message, writes it once, and gives everybody who is in and lives here a copy.
func (c *Core) roomLog(now time.Time, env *protocol.Envelope, r *room.Room, conn ConnID) Ref {
	scope := c.scopeTo("")
	env.SpeakerClass, env.AutoHop = "human-operator", 0
	if env.From != "" {
		env.SpeakerClass, env.AutoHop = "agent", r.Hops()+1
		if from := c.home(env.From); from != nil {
			c.author.name(&c.ready, now, scope, from)
		}
	}
	env.Rcpt = nil
	ack := RoomAcked{Sender: env.From, Room: r.ID, ID: env.ID}
	for _, p := range r.Participants() {
		if protocol.FoldAgentID(p) == protocol.FoldAgentID(env.From) {
			continue
		}
		a := c.find(p)
		if a != nil && !c.members[a.bind.Home].Gone {
			env.Rcpt = append(env.Rcpt, a.bind.Agent)
		}
		if c.inside() && (a == nil || !reachable(c.known(a).State)) {
			ack.Offline = append(ack.Offline, string(p))
		} else {
			ack.Reached++
		}
	}
	ref := c.author.add(&c.ready, now, scope, protocol.KindMessage, protocol.EncodeBody(env), env)
	last := c.ready.Drafts[len(c.ready.Drafts)-1].Record
	c.fresh[env.Identity()] = Seen{env.Content(), ref}
	c.roomSaid(room.At(last.At, ref.Log, ref.Seq), last.Wall, env, r)
	c.out(Copy{Ref: ref, Env: env, Except: conn})
	c.out(TierReached{Ref: ref, Tier: protocol.Logged})
	c.fanOut(now, env, ref, scope, nil)
	if env.From != "" {
		c.out(ack)
	}
	if c.inside() {
		c.shareWords(now, env, r, ref)
	}
	return ref
}

func reachable(s protocol.AgentState) bool {
	return s != protocol.StateAway && s != protocol.StateUnknown
}

// roomSaid lets a message of any node count, and tells the room what follows from it.
func (c *Core) roomSaid(at room.Pos, wall int64, env *protocol.Envelope, r *room.Room) {
	r.Said(at, wall, env)
	if !r.Open() {
		return
	}
	switch {
	case env.From == "":
		c.roomEvent("RoomYield", r.ID, r.Participants(), map[string]any{"roomId": r.ID, "msgId": env.ID})
	case r.Stalled():
		c.roomEvent("RoomStall", r.ID, r.Participants(), map[string]any{"roomId": r.ID, "reason": "no-addressee-progress", "hint": "name somebody with addressee"})
	}
}

// fanOut puts the message into the inbox of everyone that it is for and that lives here, but for those with whom it is over.
func (c *Core) fanOut(now time.Time, env *protocol.Envelope, ref Ref, scope protocol.Scope, over []protocol.AgentID) {
	for _, p := range env.Rcpt {
		a := c.takes(p)
		switch {
		case a == nil || slices.ContainsFunc(a.box.byID[env.ID], func(l *letter) bool { return l.Ref == ref }):
		case slices.Contains(over, a.bind.Agent) || c.settledNow(ref, env, a):
		case c.noRoom(a, senderOf(c.self, ref.Log, env.From), env, nil):
			c.receipts.add(protocol.Refused, a.bind.Agent, protocol.CodeInboxFull, scope, ref)
		default:
			c.deliverHere(now, a, ref, env, scope, time.Time{})
		}
	}
}

// roomArrived takes a room's message of another node.
func (c *Core) roomArrived(now time.Time, in Applied) {
	rec := in.Record
	ref := Ref{rec.Log, rec.Seq}
	env, ok := c.heardInRoom(now, in.Env, ref)
	if !ok || !c.speaksFor(env, rec.Log.Peer) {
		return
	}
	c.out(Copy{Ref: ref, Env: env})
	c.out(TierReached{Ref: ref, Tier: protocol.Logged})
	far := isFarRoom(c.find(protocol.AgentID(env.Room)))
	if old, ok := c.repeat(env, in.Seen); ok && old.Ref != ref {
		if far && c.livesAt(protocol.AgentID(env.Room), rec.Log.Peer) {
			c.fanOut(now, env, ref, c.receiptScope(ref), in.Over) // the node that is at its board gives it to one more
			return
		}
		for _, p := range env.Rcpt { // a person's message that came by two nodes: one copy, the same receipt for both
			if a := c.home(p); a != nil {
				tier, reason := protocol.Persisted, ""
				if old.Content != env.Content() {
					tier, reason = protocol.Refused, protocol.CodeMsgIDReused
				}
				c.receipts.add(tier, a.bind.Agent, reason, c.receiptScope(ref), ref)
			}
		}
		return
	}
	c.fresh[env.Identity()] = Seen{env.Content(), ref}
	if far { // its board's hub keeps it
		c.fanOut(now, env, ref, c.receiptScope(ref), in.Over)
		return
	}
	r := c.room(env.Room)
	c.roomSaid(room.At(rec.At, rec.Log, rec.Seq), rec.Wall, env, r)
	c.fanOut(now, env, ref, c.receiptScope(ref), in.Over)
	if rec.Log.Scope == protocol.ScopeInside {
		c.alsoFor(now, env, ref, r, in.Over)
	}
	if env.From == "" && r.Open() {
		c.release(now, r)
	}
}

// alsoFor gives a message to those of the room's first participants who live here and whom the speaker's node had not
// heard of yet: it named them as away, so nobody else gives it to them (fault KC13).
func (c *Core) alsoFor(now time.Time, env *protocol.Envelope, ref Ref, r *room.Room, over []protocol.AgentID) {
	if !r.Open() {
		return
	}
	late := *env
	late.Rcpt = nil
	for _, p := range r.Created.Body.Participants {
		key := protocol.FoldAgentID(p)
		named := slices.ContainsFunc(env.Rcpt, func(o protocol.AgentID) bool { return protocol.FoldAgentID(o) == key })
		if !named && r.Members[key] == nil && key != protocol.FoldAgentID(env.From) {
			late.Rcpt = append(late.Rcpt, p)
		}
	}
	c.fanOut(now, &late, ref, c.receiptScope(ref), over)
}

// catchUp gives an agent that is bound for the first time what was said in its rooms before (fault KC13). The newest lines
// are what a room remembers; older ones are in the room's channel.
func (c *Core) catchUp(now time.Time, a *agent) {
	ids := make([]protocol.RoomID, 0, len(c.rooms))
	for id, r := range c.rooms {
		if r.Open() && r.In(a.bind.Agent) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		for _, line := range c.rooms[id].Lines {
			log, seq, ok := line.Pos.Record()
			if !ok || a.box.full(senderOf(c.self, log, line.From), 256) {
				continue
			}
			ref := Ref{log, seq}
			a.box.put(Letter{Ref: ref, ID: line.ID, From: line.From, At: now, Bytes: 256})
			c.ready.Inbox = append(c.ready.Inbox, InboxPut{a.bind.Agent, ref})
			c.receipts.add(protocol.Persisted, a.bind.Agent, "", protocol.ScopeInside, ref)
		}
	}
}

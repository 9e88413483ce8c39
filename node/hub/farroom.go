package hub

import (
	"cmp"
	"slices"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles"
)

// A room of another board is kept by that board's hub: who is in, what fits its budgets and when it is over are that hub's
// word. Here it is an agent in an outside role, whose inbox is what our agents say there; what is said there comes as that
// hub gives it to each of our agents that is in.

// Far says what the shell knows of a room of another board and of who speaks to it.
type Far struct {
	Room  protocol.AgentID // as called here
	In    bool             // the sender is in
	There bool             // the sender's connection to that board holds
}

// Heard is a copy of what was said in a room of another board, as that board gave it to one agent of ours.
type Heard struct {
	Env  protocol.Envelope  // From as called here, Room
	To   protocol.AgentID   // who was given it
	Also []protocol.AgentID // others of this node that are in; each is given its own copy by the board
	Own  bool               // an agent of ours said it: Env is what it said
	Seen *Seen              // what the journal holds under Env.Identity(), if anything
	Had  bool               // To was given it before

	Token Token
}

func (Heard) isInput() {}

// FarAsked is a verb of rooms for another board.
type FarAsked struct {
	Agent protocol.AgentID // who asks
	Room  protocol.AgentID // as called here
	Verb  protocol.Intent
	Value []byte // JSON
}

func (FarAsked) isOut() {}

// farRoom is the room of another board that a message is for: by its room, by its target, or by what a verb names. Of one that
// another node of the mesh is at, far is nil.
func (c *Core) farRoom(env *protocol.Envelope, far *Far) *agent {
	switch {
	case selection(env.Intent):
		return nil
	case far != nil:
		if a := c.home(far.Room); a != nil && a.client == ClientRoom {
			return a
		}
		return nil
	}
	id := cmp.Or(protocol.AgentID(env.Room), env.To)
	if RoomVerb(env.Intent) {
		if v, no := readRoom(env); no == nil {
			id = cmp.Or(protocol.AgentID(v.RoomID), id)
		}
	}
	if a := c.find(id); c.inside() && isFarRoom(a) && a.bind.Home != c.self {
		return a
	}
	return nil
}

// isFarRoom says whether an agent stands for a room of another board that some node of the inside is at.
func isFarRoom(a *agent) bool {
	return a != nil && !a.hearsay && !a.guest && a.bind.Client == ClientRoom
}

// sayFar takes what an agent of this node says in a room of another board. It waits in the room's inbox for that board, which may
// be another node's: an agent that was moved speaks there through the node that brought it.
func (c *Core) sayFar(now time.Time, env *protocol.Envelope, in Say, from, far *agent) {
	if env.Room != "" && env.To != "" && len(env.Addressee) == 0 {
		env.Addressee = []protocol.AgentID{env.To}
	}
	env.Room, env.To = protocol.RoomID(far.bind.Agent), ""
	if RoomVerb(env.Intent) {
		c.askFar(env, in, far)
		return
	}
	if c.repeated(env, in) {
		return
	}
	no := c.admit(now, env, in, from)
	if no == nil {
		no = c.mayFar(env, in.Far, from, far)
	}
	if no == nil {
		no = c.paced(now, env)
	}
	if no != nil {
		c.refuse(in, env, no)
		return
	}
	c.keep(in.Values)
	scope := c.scopeTo("")
	if from != nil {
		c.author.name(&c.ready, now, scope, from)
	}
	env.SpeakerClass, env.AutoHop, env.Rcpt = "agent", 0, []protocol.AgentID{far.bind.Agent}
	ref := c.author.add(&c.ready, now, scope, protocol.KindMessage, protocol.EncodeBody(env), env)
	c.fresh[env.Identity()] = Seen{env.Content(), ref}
	c.tell(Told{Token: in.Token, Ref: ref, ID: env.ID, To: far.bind.Agent})
	c.out(Copy{Ref: ref, Env: env, Except: in.Conn})
	c.out(TierReached{Ref: ref, Tier: protocol.Logged})
	if far.bind.Home == c.self {
		c.deliverHere(now, far, ref, env, scope, time.Time{})
	}
}

// mayFar says why a message may not be said in a room of another board, as far as that is known here.
func (c *Core) mayFar(env *protocol.Envelope, know *Far, from, far *agent) *protocol.Refusal {
	switch {
	case env.From == "":
		return protocol.Refuse(protocol.CodeNotAllowed, "a person of this mesh is not in a room of another board", "let an agent say it that is in")
	case know != nil && !know.In, from == nil: // of a room that another node is at, that one decides
		return protocol.Refuse(CodeNotParticipant, "%q is not in the room %s", "have somebody in it bring it in", string(env.From), string(far.bind.Agent))
	case far.box != nil && c.noRoom(far, c.ours(env), env, nil):
		return c.inboxFull(far, c.ours(env), env.From)
	}
	return roles.May(env.FromRole, env.Intent, c.role(far))
}

// CodeNotParticipant refuses what somebody says in a room of another board that it is not in; the contract's word for it.
const CodeNotParticipant = "not-participant"

// askFar passes a verb of rooms on to the room's board. It is asked there and then or not at all: no inbox keeps it.
func (c *Core) askFar(env *protocol.Envelope, in Say, far *agent) {
	_, no := readRoom(env)
	switch {
	case no != nil:
	case env.From == "":
		no = protocol.Refuse(protocol.CodeNotAllowed, "a person of this mesh is not in a room of another board", "let an agent ask that is in")
	case in.Far == nil:
		no = protocol.Refuse(protocol.CodeNotAllowed, "the room %s is of a board that node %s is at, and is asked there", "", string(far.bind.Agent), c.nodeName(far.bind.Home))
		no.Hint = "have the agent moved there first: aster agent move " + string(env.From) + " " + c.nodeName(far.bind.Home)
	case !in.Far.There:
		no = protocol.Refuse(protocol.CodeNotAllowed, "%q has no connection to the board of the room %s now", "try again when it has: aster join-board --list", string(env.From), string(far.bind.Agent))
	case !in.Far.In && env.Intent != "RoomJoin":
		no = protocol.Refuse(CodeNotParticipant, "%q is not in the room %s", "", string(env.From), string(far.bind.Agent))
	}
	if no != nil {
		c.refuse(in, env, no)
		return
	}
	c.keep(in.Values)
	c.tell(Told{Token: in.Token, ID: env.ID, To: far.bind.Agent})
	c.out(FarAsked{Agent: env.From, Room: far.bind.Agent, Verb: env.Intent, Value: env.Value})
}

// heardAbroad gives an agent of ours what its board gave it of a room. However many of ours are in, it is one record.
func (c *Core) heardAbroad(now time.Time, in Heard) {
	env, no := &in.Env, (*protocol.Refusal)(nil)
	env.To = ""
	to, speaker := c.find(in.To), c.home(env.From)
	old, again := c.repeat(env, in.Seen)
	switch {
	case to == nil:
		no = protocol.Refuse(protocol.CodeUnknownAgent, "no agent %q", "", string(in.To))
	case in.Own && !again:
		no = protocol.Refuse(protocol.CodeUnknownID, "nobody here said that", "")
	case again && !in.Own && old.Content != env.Content():
		no = protocol.Refuse(protocol.CodeMsgIDReused, "the message id %q stands for another message already", "use a new id for new content", string(env.ID))
	case !again:
		no = c.mayHear(env, speaker, to)
	}
	if no == nil && to.box != nil && !in.Had && c.noRoom(to, c.ours(env), env, nil) {
		no = c.inboxFull(to, c.ours(env), env.From)
	}
	if no != nil {
		c.tell(Told{Token: in.Token, ID: env.ID, Refusal: no})
		return
	}
	ref, here := old.Ref, c.takes(in.To) != nil
	if !again {
		ref = c.logHeard(now, env, speaker, in.To, in.Also)
	}
	if !here && !in.Had {
		c.passOn(now, env, ref, to)
	}
	c.tell(Told{Token: in.Token, ID: env.ID, Ref: ref, Repeat: again})
	twice := in.Had || !here || slices.ContainsFunc(to.box.byID[env.ID], func(l *letter) bool { return l.Ref == ref })
	if !twice {
		c.deliverHere(now, to, ref, env, c.receiptScope(ref), time.Time{})
	}
}

// mayHear stamps what was said and says why it is not given to an agent here, or nil.
func (c *Core) mayHear(env *protocol.Envelope, speaker, to *agent) *protocol.Refusal {
	if !ofBoard(speaker, c.self) {
		return protocol.Refuse(protocol.CodeUnknownAgent, "no agent %q", "", string(env.From))
	}
	env.Source, env.From, env.FromName, env.FromRole = protocol.SourceAgent, speaker.bind.Agent, speaker.bind.Name, c.role(speaker)
	if no := env.Check(); no != nil {
		return no
	}
	if info := protocol.Lookup(env.Intent); info.HubOnly || info.Keeping != protocol.Kept {
		return protocol.Refuse(protocol.CodeReservedName, "%s is said to nobody", "choose another name", string(env.Intent))
	}
	if no := protocol.CheckAcceptance(env.Intent, env.Value); no != nil {
		return no
	}
	return roles.May(env.FromRole, env.Intent, c.role(to))
}

func (c *Core) logHeard(now time.Time, env *protocol.Envelope, speaker *agent, to protocol.AgentID, also []protocol.AgentID) Ref {
	env.Rcpt = nil
	for _, id := range append([]protocol.AgentID{to}, also...) {
		if a := c.takes(id); a != nil && !slices.Contains(env.Rcpt, a.bind.Agent) {
			env.Rcpt = append(env.Rcpt, a.bind.Agent)
		}
	}
	scope := c.scopeTo("")
	c.author.name(&c.ready, now, scope, speaker)
	ref := c.author.add(&c.ready, now, scope, protocol.KindMessage, protocol.EncodeBody(env), env)
	c.fresh[env.Identity()] = Seen{env.Content(), ref}
	c.out(Copy{Ref: ref, Env: env})
	c.out(TierReached{Ref: ref, Tier: protocol.Logged})
	return ref
}

// passOn gives an agent that lives on another node now what its board gave it here: a copy that names it alone, which its home
// takes. That it was written is noted here, so that the board may give the word again and it is one all the same.
func (c *Core) passOn(now time.Time, env *protocol.Envelope, of Ref, to *agent) {
	if slices.ContainsFunc(c.ready.Tiers, func(t TierPut) bool { return t.Ref == of && t.Tier == protocol.Handed && t.Agent == to.bind.Agent }) {
		return // in this very turn
	}
	again := *env
	again.To, again.Rcpt = to.bind.Agent, []protocol.AgentID{to.bind.Agent}
	scope := c.scopeTo("")
	if speaker := c.home(env.From); speaker != nil {
		c.author.name(&c.ready, now, scope, speaker)
	}
	c.copied(c.author.add(&c.ready, now, scope, protocol.KindMessage, protocol.EncodeBody(again), &again), of)
	c.ready.Tiers = append(c.ready.Tiers, TierPut{Ref: of, Tier: protocol.Handed, Agent: to.bind.Agent, At: c.author.clock.Last(), Wall: now.UnixMilli(), By: c.self})
}

package hub

import (
	"encoding/json"
	"errors"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/room"
)

// Bounds of rooms, in items and characters (wire 7.1).
const (
	roomsOpenMax    = 200
	participantsMax = 64
	roomTopicMax    = 200
	roomHeaderMax   = 4_000
	roomDecisionMax = 2_000
	roomSummaryMax  = 8_000
)

// What a RoomGuard says was done.
const (
	guardParked  = "parked"
	guardDropped = "dropped"
	guardIgnored = "ignored"
	guardWarned  = "warned"
)

// roomValue is what the hub reads of the verbs of rooms.
type roomValue struct {
	RoomID       protocol.RoomID      `json:"roomId"`
	AgentID      protocol.AgentID     `json:"agentId"`
	Topic        string               `json:"topic"`
	Mode         string               `json:"mode"`
	Moderated    bool                 `json:"moderated"`
	Moderator    protocol.AgentID     `json:"moderator"`
	Participants []protocol.AgentID   `json:"participants"`
	Budgets      protocol.RoomBudgets `json:"budgets"`
	Reason       string               `json:"reason"`
	Header       *protocol.RoomText   `json:"header"`
	Decision     *protocol.RoomText   `json:"decision"`
	Summary      *protocol.RoomText   `json:"summary"`
}

// RoomVerb says whether a name is a request about a room, which the hub carries out and relays to nobody.
func RoomVerb(name protocol.Intent) bool {
	switch name {
	case "RoomCreate", "RoomJoin", "RoomLeave", "RoomClose", "RoomArtifactsUpdate", "RequestRoomArtifacts":
		return true
	}
	return false
}

// roomAsked carries out a verb of rooms: checked here, where it enters, and a record for all.
func (c *Core) roomAsked(now time.Time, env *protocol.Envelope, in Say, from *agent) {
	v, no := readRoom(env)
	if no == nil {
		no = env.Check()
	}
	if no == nil && from == nil && env.From != "" {
		no = c.admit(now, env, in, nil) // an agent that lives elsewhere speaks there
	}
	if no != nil {
		c.refuse(in, env, no)
		return
	}
	if from == nil && env.From != "" {
		from = c.bindHere(now, env.From, env.FromName, protocol.RoleLocal, in.BindAs)
		env.FromRole = c.role(from)
	}
	c.keep(in.Values)
	if !c.inside() {
		c.askedOutside(now, env, in, from, &v)
		return
	}
	if env.Intent == "RoomCreate" {
		c.roomCreate(now, env, in, &v)
		return
	}
	r := c.rooms[v.RoomID]
	if !r.Open() {
		c.guard(env, v.RoomID, room.NoSuchRoom, guardIgnored, "")
		c.tell(Told{Token: in.Token, ID: env.ID, Refusal: protocol.Refuse(protocol.CodeUnknownID, "there is no room %q", "", string(v.RoomID))})
		return
	}
	body, no := c.roomStep(env, &v, r)
	if no != nil {
		if env.From != "" && !r.In(env.From) {
			c.guard(env, r.ID, room.NotParticipant, guardIgnored, "")
		}
		c.refuse(in, env, no)
		return
	}
	if body == nil { // RequestRoomArtifacts
		value := map[string]any{"roomId": r.ID, "artifacts": artifacts(r), "version": r.Version}
		c.out(RoomEvent{Name: "RoomArtifacts", Room: r.ID, Value: protocol.EncodeBody(value), Conns: c.asker(env, in), To: env.From})
		c.tell(Told{Token: in.Token, ID: env.ID})
		return
	}
	c.roomRecord(now, *body)
	c.tell(Told{Token: in.Token, ID: env.ID})
}

func readRoom(env *protocol.Envelope) (roomValue, *protocol.Refusal) {
	v := roomValue{}
	if env.ValueBlob != nil {
		return v, protocol.Refuse(protocol.CodeFrameTooLarge, "the value of %s has more than %d bytes", "", string(env.Intent), protocol.ValueBytesInline)
	}
	if len(env.Value) > 0 {
		if err := json.Unmarshal(env.Value, &v); err != nil {
			var wrong *json.UnmarshalTypeError
			if errors.As(err, &wrong) && wrong.Field != "" {
				return v, protocol.Refuse(protocol.CodeWrongType, "value.%s of %s must not be a %s", "", wrong.Field, string(env.Intent), wrong.Value)
			}
			return v, protocol.Refuse(protocol.CodeWrongType, "the value of %s must be an object", "", string(env.Intent))
		}
	}
	if v.RoomID == "" {
		v.RoomID = env.Room
	}
	for _, t := range []struct {
		name, text string
		most       int
	}{{"topic", v.Topic, roomTopicMax}, {"header", textOf(v.Header), roomHeaderMax}, {"decision", textOf(v.Decision), roomDecisionMax},
		{"summary", textOf(v.Summary), roomSummaryMax}, {"reason", v.Reason, protocol.ShortTextBytesMax}} {
		if n := utf8.RuneCountInString(t.text); n > t.most {
			return v, protocol.Refuse(protocol.CodeFrameTooLarge, "a room's %s has %d characters, at most %d", "", t.name, n, t.most)
		}
	}
	for _, id := range append(slices.Clone(v.Participants), v.AgentID, v.Moderator) {
		if id == "" && len(v.Participants) > 0 && slices.Contains(v.Participants, "") {
			return v, protocol.Refuse(protocol.CodeBadAgentID, "a participant without a name", "")
		}
		if err := protocol.CheckAgentID(id); id != "" && err != nil {
			return v, protocol.Refuse(protocol.CodeBadAgentID, err.Error(), "")
		}
	}
	return v, nil
}

func textOf(t *protocol.RoomText) string {
	if t == nil {
		return ""
	}
	return t.Text
}

// roomCreate makes a room. Its id follows from the message, so that a repeat makes no second one.
func (c *Core) roomCreate(now time.Time, env *protocol.Envelope, in Say, v *roomValue) {
	id := protocol.RoomID("rt-" + env.Identity().String()[:12])
	if c.rooms[id] != nil {
		c.tell(Told{Token: in.Token, ID: env.ID, Repeat: true})
		return
	}
	body := protocol.RoomBody{
		Room: id, Op: protocol.RoomCreated, By: env.From, Topic: v.Topic, Mode: v.Mode, Moderated: v.Moderated, Moderator: v.Moderator,
		Budgets: room.Clamp(v.Budgets), Header: v.Header,
	}
	switch body.Mode {
	case "":
		body.Mode = "temporary"
	case "temporary", "persistent":
	default:
		c.refuse(in, env, protocol.Refuse(protocol.CodeWrongType, "value.mode of RoomCreate must be temporary or persistent", ""))
		return
	}
	asked := v.Participants
	if env.From != "" {
		asked = append(slices.Clone(asked), env.From)
	}
	for _, p := range asked {
		name := c.participant(p)
		if !slices.ContainsFunc(body.Participants, func(o protocol.AgentID) bool { return protocol.FoldAgentID(o) == protocol.FoldAgentID(name) }) {
			body.Participants = append(body.Participants, name)
		}
	}
	body.Outside = c.comeFrom(body.Participants...)
	if no := c.oneOutside(nil, body.Participants...); no != nil {
		c.refuse(in, env, no)
		return
	}
	open := 0
	for _, r := range c.rooms {
		if r.Open() {
			open++
		}
	}
	if open >= roomsOpenMax || len(body.Participants) > participantsMax {
		c.refuse(in, env, protocol.Refuse(protocol.CodeTooMany, "a mesh has at most %d open rooms, of at most %d participants", "close one that is done", roomsOpenMax, participantsMax))
		return
	}
	c.roomRecord(now, body)
	c.tell(Told{Token: in.Token, ID: env.ID})
}

// participant is a name as it is known here. One that nobody has seen yet may be in: it gets what was said when it comes, if
// it comes inside.
func (c *Core) participant(id protocol.AgentID) protocol.AgentID {
	if a := c.find(id); a != nil {
		return a.bind.Agent
	}
	return id
}

// roomStep judges a verb on an open room: the record it becomes, or nil for a question.
func (c *Core) roomStep(env *protocol.Envelope, v *roomValue, r *room.Room) (*protocol.RoomBody, *protocol.Refusal) {
	person := env.From == ""
	ruler := person || r.Leads(env.From) || env.FromRole == protocol.RoleMain
	who := v.AgentID
	if who == "" {
		who = env.From
	}
	self := protocol.FoldAgentID(who) == protocol.FoldAgentID(env.From)
	body := &protocol.RoomBody{Room: r.ID, By: env.From, Agent: who, Reason: v.Reason}
	deny := func(what string) (*protocol.RoomBody, *protocol.Refusal) {
		return nil, protocol.Refuse(protocol.CodeNotAllowed, what, "ask a participant, its moderator, or a person")
	}
	switch env.Intent {
	case "RoomJoin":
		if who == "" {
			return nil, protocol.Refuse(protocol.CodeWrongType, "RoomJoin needs value.agentId", "")
		}
		switch {
		case !self && !ruler && !r.In(env.From):
			return deny("only who is in a room brings others in")
		case self && !person && !env.FromRole.Inside() && !ruler:
			return deny("an agent from outside is brought into a room by somebody in it")
		case !r.In(who) && len(r.Participants()) >= participantsMax:
			return nil, protocol.Refuse(protocol.CodeTooMany, "a room has at most %d participants", "", participantsMax)
		}
		body.Op, body.Agent = protocol.RoomJoined, c.participant(who)
		body.Outside = c.comeFrom(body.Agent)
		return body, c.oneOutside(r, who)
	case "RoomLeave":
		if !r.In(who) {
			return nil, protocol.Refuse(protocol.CodeUnknownAgent, "%q is not in this room", "", string(who))
		}
		if !self && !ruler {
			return deny("nobody but its maker, its moderator, main or a person sends others out of a room")
		}
		body.Op = protocol.RoomLeft
		return body, nil
	case "RoomClose":
		if !ruler {
			return deny("nobody but its maker, its moderator, main or a person closes a room")
		}
		body.Op, body.Agent = protocol.RoomClosed, ""
		return body, nil
	}
	if !person && !r.In(env.From) {
		return deny("only who is in a room sees or changes what was agreed there")
	}
	if env.Intent == "RequestRoomArtifacts" {
		return nil, nil
	}
	if v.Header == nil && v.Decision == nil && v.Summary == nil {
		return nil, protocol.Refuse(protocol.CodeWrongType, "RoomArtifactsUpdate needs value.header, value.decision or value.summary", "")
	}
	body.Op, body.Agent, body.Reason = protocol.RoomArtifacts, "", ""
	body.Header, body.Decision, body.Summary = v.Header, v.Decision, v.Summary
	return body, nil
}

// asker is the connection or the sockets of whoever asked.
func (c *Core) asker(env *protocol.Envelope, in Say) []ConnID {
	if in.Conn != 0 {
		return []ConnID{in.Conn}
	}
	return c.Conns(env.From)
}

// setRooms takes rooms as the records say. A member outside has those that it was told of.
func (c *Core) setRooms(all map[protocol.RoomID]*room.Room, shared map[protocol.PeerID]map[protocol.RoomID]*room.Room) {
	c.rooms = all
	if !c.inside() {
		c.rooms = shared[c.self]
	}
	if c.rooms == nil {
		c.rooms = map[protocol.RoomID]*room.Room{}
	}
}

// InRoom says whether an agent is in an open room.
func (c *Core) InRoom(id protocol.RoomID, agent protocol.AgentID) bool { return c.rooms[id].In(agent) }

// roomRecord writes a step and lets it take effect.
func (c *Core) roomRecord(now time.Time, body protocol.RoomBody) {
	if from := c.home(body.By); from != nil {
		c.author.name(&c.ready, now, protocol.ScopeInside, from)
	}
	ref := c.author.add(&c.ready, now, protocol.ScopeInside, protocol.KindRoom, protocol.EncodeBody(body), nil)
	last := c.ready.Drafts[len(c.ready.Drafts)-1].Record
	r := c.room(body.Room)
	before := c.outsiders(r)
	c.roomApplied(now, room.At(last.At, ref.Log, ref.Seq), last.Wall, body)
	c.share(now, r, before, body)
}

func (c *Core) room(id protocol.RoomID) *room.Room {
	r := c.rooms[id]
	if r == nil {
		r = &room.Room{ID: id}
		c.rooms[id] = r
	}
	return r
}

// roomApplied lets a record of any node take effect, and tells who is here of it.
func (c *Core) roomApplied(now time.Time, at room.Pos, wall int64, body protocol.RoomBody) {
	r := c.room(body.Room)
	if r.Closed {
		return
	}
	before := r.Participants()
	r.Apply(at, wall, body)
	value := map[string]any{"roomId": body.Room}
	var name protocol.Intent
	tell := r.Participants()
	switch body.Op {
	case protocol.RoomCreated, protocol.RoomShared:
		by := string(body.By)
		if by == "" {
			by = "board"
		}
		name = "RoomCreated"
		value["topic"], value["mode"], value["participants"], value["createdBy"] = body.Topic, body.Mode, body.Participants, by
	case protocol.RoomJoined:
		name, value["agentId"] = "RoomJoined", body.Agent
	case protocol.RoomLeft:
		name, tell, value["agentId"] = "RoomLeft", before, body.Agent
	case protocol.RoomClosed:
		name, tell = "RoomClosed", before
		if body.Reason != "" {
			value["reason"] = body.Reason
		}
		c.parkedOver(now, body.Room, "the room was closed")
	case protocol.RoomArtifacts:
		name = "RoomArtifacts"
		value["delta"], value["version"] = delta(r, at, wall, &body), r.Version
	case protocol.RoomFloor:
		name, value["queue"] = "RoomFloor", queue(r)
	case protocol.RoomStall:
		name = "RoomStall"
		value["reason"], value["parkedMsgId"], value["from"], value["hint"] = body.Reason, body.MsgID, body.Agent, "a person's word in the room starts a new chain"
	default:
		return
	}
	c.roomEvent(name, r.ID, tell, value)
}

// roomEvent tells participants here and the boards here.
func (c *Core) roomEvent(name protocol.Intent, id protocol.RoomID, to []protocol.AgentID, value map[string]any) {
	ev := RoomEvent{Name: name, Room: id, Value: protocol.EncodeBody(value), Boards: true}
	for _, p := range to {
		ev.Conns = append(ev.Conns, c.Conns(p)...)
	}
	c.out(ev)
}

// guard tells the offender and all boards what rule a frame broke.
func (c *Core) guard(env *protocol.Envelope, id protocol.RoomID, rule room.Rule, action string, msg protocol.MsgID) {
	value := map[string]any{"roomId": id, "rule": rule, "action": action}
	if msg != "" {
		value["msgId"] = msg
	}
	if env.From != "" {
		value["agentId"] = env.From
	}
	c.out(RoomEvent{Name: "RoomGuard", Room: id, Value: protocol.EncodeBody(value), Conns: c.Conns(env.From), To: env.From, Boards: true, Everywhere: true})
}

package double

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// room is one conversation of several.
type room struct {
	id      protocol.RoomID
	topic   string
	in      []protocol.AgentID
	closed  bool
	limits  budgets
	lines   []line
	parked  []parkedWord
	agreed  []json.RawMessage
	version int
}

type line struct {
	from protocol.AgentID // empty: a person
	at   time.Time
}

type parkedWord struct {
	env protocol.Envelope
	by  *conn
}

// unpark takes what waits under a message's id out of it, and says whether anything did.
func (r *room) unpark(env *protocol.Envelope) bool {
	if r == nil {
		return false
	}
	n := len(r.parked)
	r.parked = slices.DeleteFunc(r.parked, func(p parkedWord) bool { return p.env.ID == env.ID && p.env.From == env.From })
	return len(r.parked) < n
}

type budgets struct {
	Consecutive int `json:"maxConsecutive"`
	Rate        int `json:"ratePerMin"`
	Hops        int `json:"maxAutoHop"`
}

func clamped(n, normal, most int) int {
	if n == 0 {
		return normal
	}
	return min(max(n, 1), most)
}

func (r *room) open() bool { return r != nil && !r.closed }

func (r *room) has(id protocol.AgentID) bool {
	return slices.ContainsFunc(r.in, func(in protocol.AgentID) bool { return protocol.FoldAgentID(in) == protocol.FoldAgentID(id) })
}

// roomAsk is the value of every verb of rooms.
type roomAsk struct {
	RoomID       protocol.RoomID    `json:"roomId"`
	AgentID      protocol.AgentID   `json:"agentId"`
	Topic        string             `json:"topic"`
	Mode         string             `json:"mode"`
	Reason       string             `json:"reason"`
	Participants []protocol.AgentID `json:"participants"`
	Budgets      budgets            `json:"budgets"`
}

// tellRoom says something of the hub's to who is in, to one more, and to boards.
func (h *hub) tellRoom(r *room, name protocol.Intent, v map[string]any, more ...protocol.AgentID) {
	v["roomId"] = r.id
	raw, _ := json.Marshal(v)
	frame := h.enc.Custom(h.clock.now(), asterism.Custom{Name: name, Room: r.id, Value: raw})
	for _, id := range append(slices.Clone(r.in), more...) {
		if a := h.agent(id); a != nil && a.conn != nil {
			a.conn.link.Send(frame)
		}
	}
	h.toBoards(frame, nil)
}

func (r *room) shape() map[string]any {
	return map[string]any{"topic": r.topic, "mode": "temporary", "participants": r.in}
}

func (c *conn) roomVerb(f *asterism.Frame) {
	h, by := c.h, c.session.Sender().ID
	var v roomAsk
	if json.Unmarshal(f.Value, &v) != nil {
		if h.fault == "KA6" { // it was the end of the whole process
			for _, each := range h.conns {
				each.link.Close(1011, "crashed")
			}
			return
		}
		c.refuse(f.MsgID, protocol.Refuse(protocol.CodeWrongType, "the value is not understood", ""))
		return
	}
	if f.Intent() == "RoomCreate" {
		most := budgets{10, 60, 32}
		if h.fault == "KD8" {
			most = budgets{1e9, 1e9, 1e9}
		}
		r := &room{id: protocol.RoomID(fmt.Sprint("r-", h.id())), topic: v.Topic, in: v.Participants}
		r.limits = budgets{clamped(v.Budgets.Consecutive, 2, most.Consecutive), clamped(v.Budgets.Rate, 10, most.Rate), clamped(v.Budgets.Hops, 6, most.Hops)}
		if by != "" && !r.has(by) {
			r.in = append(r.in, by)
		}
		h.rooms[r.id] = r
		shape := r.shape()
		shape["createdBy"] = by
		h.tellRoom(r, "RoomCreated", shape)
		return
	}
	r := h.rooms[v.RoomID]
	rule := ""
	switch {
	case !r.open():
		rule = "no-such-room"
	case by != "" && !r.has(by):
		rule = "not-participant"
	}
	if rule != "" {
		c.roomGuard(v.RoomID, rule, "dropped", protocol.MsgID(f.MsgID))
		return
	}
	who := v.AgentID
	if who == "" {
		who = by
	}
	switch f.Intent() {
	case "RoomJoin":
		r.in = append(r.in, who)
		h.tellRoom(r, "RoomJoined", map[string]any{"agentId": who})
		if a := h.agent(who); a != nil && a.conn != nil {
			shape := r.shape()
			shape["roomId"] = r.id
			h.answer(a.conn, "RoomCreated", shape)
		}
	case "RoomLeave":
		r.in = slices.DeleteFunc(r.in, func(in protocol.AgentID) bool { return protocol.FoldAgentID(in) == protocol.FoldAgentID(who) })
		h.tellRoom(r, "RoomLeft", map[string]any{"agentId": who}, who)
	case "RoomClose":
		r.closed = true
		h.tellRoom(r, "RoomClosed", map[string]any{"reason": v.Reason})
	case "RoomArtifactsUpdate":
		r.agreed, r.version = append(r.agreed, f.Value), r.version+1
		h.tellRoom(r, "RoomArtifacts", map[string]any{"delta": f.Value, "version": r.version})
	case "RequestRoomArtifacts":
		h.answer(c, "RoomArtifacts", map[string]any{"roomId": r.id, "artifacts": r.agreed, "version": r.version})
	}
}

func (c *conn) roomGuard(id protocol.RoomID, rule, action string, msg protocol.MsgID) {
	c.h.answer(c, "RoomGuard", map[string]any{"roomId": id, "rule": rule, "action": action, "msgId": msg, "agentId": c.session.Sender().ID})
}

// breaks is the rule that an agent's next word would break.
func (r *room) breaks(now time.Time, from protocol.AgentID) string {
	run, hops, minute, running, person := 0, 0, 0, true, false
	for _, l := range slices.Backward(r.lines) {
		if running = running && l.from == from; running {
			run++
		}
		if person = person || l.from == ""; !person {
			hops++
		}
		if l.from == from && now.Sub(l.at) < time.Minute {
			minute++
		}
	}
	switch {
	case minute >= r.limits.Rate:
		return "rate"
	case run >= r.limits.Consecutive:
		return "consecutive"
	case hops >= r.limits.Hops:
		return "autoHop-cap"
	}
	return ""
}

func (r *room) hops() (n int) {
	for i := len(r.lines) - 1; i >= 0 && r.lines[i].from != ""; i-- {
		n++
	}
	return n
}

// sayInRoom takes a word in a room: it is heard, waits, or is not for this room.
func (c *conn) sayInRoom(env protocol.Envelope) {
	h := c.h
	r := h.rooms[env.Room]
	if env.To != "" && len(env.Addressee) == 0 {
		env.Addressee = []protocol.AgentID{env.To}
	}
	env.To = ""
	switch {
	case !r.open():
		c.roomGuard(env.Room, "no-such-room", "dropped", env.ID)
		return
	case env.From != "" && !r.has(env.From):
		c.roomGuard(env.Room, "not-participant", "dropped", env.ID)
		return
	}
	if env.From != "" {
		if rule := r.breaks(h.clock.now(), env.From); rule != "" {
			r.parked = append(r.parked, parkedWord{env, c})
			c.roomGuard(env.Room, rule, "parked", env.ID)
			return
		}
	}
	c.hearInRoom(r, env)
	if env.From != "" || h.fault == "KC14" {
		return
	}
	for len(r.parked) > 0 && r.breaks(h.clock.now(), r.parked[0].env.From) == "" {
		p := r.parked[0]
		r.parked = r.parked[1:]
		p.by.hearInRoom(r, p.env)
	}
}

// hearInRoom gives a word to everybody who is in but its speaker, each as its target.
func (c *conn) hearInRoom(r *room, env protocol.Envelope) {
	h := c.h
	r.lines = append(r.lines, line{env.From, h.clock.now()})
	env.SpeakerClass = "human-operator"
	if env.From != "" {
		env.SpeakerClass, env.AutoHop = "agent", r.hops()
	}
	env.Rcpt = slices.Clone(r.in)
	h.events = append(h.events, asterism.Event{Env: &env, At: h.clock.now().UnixMilli()})
	h.toBoards(asterism.AppendDelivery(nil, &env, h.clock.now().UnixMilli()), c)
	ack := asterism.Ack{For: env.ID, Kind: asterism.KindDelivered, From: "room:" + protocol.AgentID(r.id), Room: true}
	for _, id := range r.in {
		a := h.agent(id)
		if a == nil || id == env.From {
			continue
		}
		if a.conn == nil {
			ack.Offline = append(ack.Offline, string(id))
			if h.fault == "KC13" {
				continue
			}
		} else {
			ack.Reached++
		}
		each := env
		each.To = id
		h.post(a, &letter{env: each, by: c, room: true})
	}
	c.link.Send(h.enc.Ack(h.clock.now(), env.From, ack))
}

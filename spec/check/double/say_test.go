package double

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// frame takes one frame of a connection, under the hub's lock.
func (c *conn) frame(data []byte) {
	h := c.h
	f, no := asterism.Decode(data, 0)
	if no != nil {
		c.do(c.session.Bad(no))
		return
	}
	switch {
	case h.fault == "KB8" && f.Hello() && c.session.Agent() && f.AgentID != c.session.Sender().ID:
		h.agents[protocol.FoldAgentID(f.AgentID)] = &agent{id: f.AgentID, name: string(f.AgentID), conn: c}
		h.roster()
		return
	case h.fault == "B13" && f.Reserved() != nil && c.session.Agent():
		f.AgentID, f.Source = c.session.Sender().ID, "agent"
		h.toBoards(f.Append(nil), c)
		return
	case c.forced != "":
		if env, no := f.Envelope(asterism.Sender{ID: c.forced, Source: protocol.SourceAgent}, h.id()); no == nil {
			c.say(env)
		}
		return
	}
	switch out := c.session.Frame(&f); out.Verdict {
	case asterism.Judge:
		c.judge(&f)
	case asterism.Pass:
		c.pass(&f)
	default:
		c.do(out)
	}
}

func (c *conn) pass(f *asterism.Frame) {
	keeping := protocol.Lookup(f.Intent()).Keeping
	switch {
	case f.Stream():
		c.live(f)
		for _, whole := range c.streams.Add(f) {
			c.kept(&whole)
		}
	case c.asked(f):
	case f.Observation() || keeping == protocol.Live:
		c.live(f)
	case keeping != protocol.Dropped:
		c.kept(f)
	}
}

func (c *conn) live(f *asterism.Frame) {
	if env, no := f.Envelope(c.session.Sender(), c.h.id()); no == nil {
		frame := asterism.AppendDelivery(nil, &env, c.h.clock.now().UnixMilli())
		if f.Telemetry {
			frame = append(frame[:len(frame)-1], `,"telemetry":true}`...)
		}
		c.h.toBoards(frame, c)
	}
}

func (c *conn) kept(f *asterism.Frame) {
	env, no := f.Envelope(c.session.Sender(), c.h.id())
	if no == nil {
		no = protocol.CheckAcceptance(env.Intent, env.Value)
	}
	if no != nil {
		c.refuse(f.MsgID, no)
		return
	}
	if sender := c.session.Sender(); env.Intent == protocol.ServerNotice && sender.ID != "" {
		var value map[string]any
		if json.Unmarshal(env.Value, &value) == nil && value != nil {
			value["agentId"], value["senderRole"] = sender.ID, sender.Role
			env.Value, _ = json.Marshal(value)
		}
	}
	switch protocol.Lookup(env.Intent).Class {
	case protocol.ClassDeclaration:
		if !c.declares(f) {
			return
		}
	case protocol.ClassA2A:
		if strings.HasPrefix(string(env.Intent), "Selection") && !c.selection(f, &env) {
			return
		}
	}
	c.say(env)
}

func (c *conn) refuse(id string, no *protocol.Refusal) {
	c.do(asterism.Outcome{Say: []asterism.Say{{Kind: asterism.SayRefused, Refusal: no, MsgID: protocol.MsgID(id)}}})
}

// say takes a message in, shows it to boards and brings it to its agent.
func (c *conn) say(env protocol.Envelope) {
	h := c.h
	h.route(&env, c)
	if env.To != "" && h.agent(env.To) == nil && !h.leads(env.To) {
		c.link.Send(h.enc.RelayUnreachable(h.clock.now(), env.From, asterism.Unreachable{MsgID: &env.ID, TargetAgentID: env.To, LastError: asterism.UnreachableAbsent}))
		c.refuse(string(env.ID), protocol.Refuse(protocol.CodeUnknownAgent, "no agent %q", "", string(env.To)))
		return
	}
	no := c.enclose(&env)
	key := string(env.From) + "\n" + string(env.ID)
	if old, twice := h.said[key]; twice && no == nil {
		switch {
		case old != env.Content():
			c.refuse(string(env.ID), protocol.Refuse(protocol.CodeMsgIDReused, "the id stands for another message", ""))
		case h.rooms[env.Room].unpark(&env):
			c.sayInRoom(env) // it was not heard yet, and may be now
		}
		return
	}
	to := h.agent(env.To)
	if no == nil {
		no = h.mayNot(&env, c, to)
	}
	if no != nil {
		c.refuse(string(env.ID), no)
		return
	}
	h.said[key] = env.Content()
	if env.Room != "" {
		c.sayInRoom(env)
		return
	}
	if h.fault == "B24" && to != nil && to.conn == nil {
		if to = h.agent(h.main); to != nil && to.conn == nil {
			to = nil // it waits nowhere
		}
	}
	if protocol.Lookup(env.Intent).Class == protocol.ClassDeclaration {
		h.noise++
	} else {
		h.events = append(h.events, asterism.Event{Env: &env, At: h.clock.now().UnixMilli()})
	}
	if !asterism.Streamed(&env) {
		h.toBoards(asterism.AppendDelivery(nil, &env, h.clock.now().UnixMilli()), c)
	}
	if to == nil {
		return
	}
	if env.From != "" {
		h.window[to.id] = env.From
	}
	h.post(to, &letter{env: env, by: c})
	h.talks(&env)
}

// mayNot says why a message is not for its target.
func (h *hub) mayNot(env *protocol.Envelope, c *conn, to *agent) *protocol.Refusal {
	directs := env.Intent == "Delegate" && to != nil
	switch {
	case directs && (h.outside(to) || c.key.outside()):
		return protocol.Refuse(protocol.CodeNotAllowed, "nobody directs who comes from outside, who directs nobody", "")
	case to != nil && to.fullOf(env.From) && !h.asked(env, to):
		return protocol.Refuse(protocol.CodeInboxFull, "%s has %d unread", "", string(to.id), len(to.box))
	}
	return nil
}

// fullOf says whether an agent has as much of a sender waiting as half of what the others leave.
func (a *agent) fullOf(from protocol.AgentID) bool {
	of := 0
	for _, l := range a.box {
		if l.env.From == from {
			of++
		}
	}
	return of >= protocol.InboxShare(protocol.InboxItemsMax, len(a.box)-of)
}

// asked says whether a message is the end of work that its recipient gave out.
func (h *hub) asked(env *protocol.Envelope, to *agent) bool {
	var v struct {
		Re     protocol.MsgID `json:"re_msgId"`
		Status string         `json:"status"`
	}
	if env.Intent != protocol.WorkerReport || json.Unmarshal(env.Value, &v) != nil || v.Status == "in_progress" {
		return false
	}
	return slices.ContainsFunc(h.events, func(e asterism.Event) bool {
		return e.Env.Intent == protocol.Delegate && e.Env.ID == v.Re && e.Env.From == to.id && e.Env.To == env.From
	})
}

func (h *hub) outside(a *agent) bool {
	role := h.roleOf(a)
	return role == protocol.RoleCollab || role == protocol.RolePeer
}

// talks counts how often two agents answer each other without a person, and tells boards once when it is sixty times.
func (h *hub) talks(env *protocol.Envelope) {
	if env.From == "" {
		for pair := range h.turns {
			if pair[0] == env.To || pair[1] == env.To {
				delete(h.turns, pair)
			}
		}
		return
	}
	pair := [2]protocol.AgentID{min(env.From, env.To), max(env.From, env.To)}
	t := h.turns[pair]
	if t.last != env.From && t.last != "" {
		if t.n++; t.n == 60 {
			h.toBoards(h.enc.ServerNotice(h.clock.now(), "", asterism.Notice{Kind: "storm", Text: "two agents answer each other without end"}), nil)
		}
	}
	t.last = env.From
	h.turns[pair] = t
}

// turns is how often two have answered each other.
type turns struct {
	last protocol.AgentID
	n    int
}

// route finds a target for what names none.
func (h *hub) route(env *protocol.Envelope, c *conn) {
	if env.To != "" || env.Room != "" {
		return
	}
	if to := h.window[env.From]; h.fault == "B11" && to != "" && env.From != "" {
		env.To = to
		return
	}
	class := protocol.Lookup(env.Intent).Class
	switch {
	case env.Intent == "SelectionPrompt" || h.leads(env.From):
	case class == protocol.ClassA2A, class == protocol.ClassUnknown, class == protocol.ClassProbe,
		env.Intent == protocol.AgentText && c.key.outside() && h.fault != "B38":
		env.To = h.main
	}
}

func (c *conn) acked(f *asterism.Frame) {
	h, by := c.h, c.speaker()
	var v struct {
		AckFor protocol.MsgID `json:"ackFor"`
		Tier   string         `json:"tier"`
	}
	if by == nil || json.Unmarshal(f.Value, &v) != nil || v.AckFor == "" {
		c.refuse(f.MsgID, protocol.Refuse(protocol.CodeWrongType, "AckProcessed needs value.ackFor", ""))
		return
	}
	by.acks = true
	if f.TargetAgentID != "" && h.fault == "B11" {
		h.window[f.TargetAgentID], h.window[by.id] = by.id, ""
	}
	owner := by
	if other := h.agent(f.TargetAgentID); h.fault == "B22" && other != nil && other.letter(v.AckFor) >= 0 {
		owner = other
	}
	i := owner.letter(v.AckFor)
	if i < 0 {
		return
	}
	l := owner.box[i]
	if !l.given {
		h.delivered(l)
	}
	if v.Tier == "" {
		owner.box = append(owner.box[:i:i], owner.box[i+1:]...)
	} else {
		l.kept = true
	}
	frame := h.enc.AckProcessed(h.clock.now(), l.env.From, asterism.Processed{From: asterism.Sender{ID: by.id, Name: by.name}, For: v.AckFor, Tier: v.Tier})
	to := h.sender(l)
	if to != nil {
		to.link.Send(frame)
	}
	h.toBoards(frame, to)
}

// speaker is the agent that speaks on a connection, or nil.
func (c *conn) speaker() *agent {
	if !c.session.Agent() {
		return nil
	}
	return c.h.agent(c.session.Sender().ID)
}

func (a *agent) letter(id protocol.MsgID) int {
	for i, l := range a.box {
		if l.env.ID == id {
			return i
		}
	}
	return -1
}

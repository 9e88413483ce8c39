package double

import (
	"encoding/json"
	"time"

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
	case f.Intent() == protocol.AckProcessed:
		c.acked(f)
	case f.Intent() == "RequestChannelHistory":
		c.past(f)
	case f.Observation() || keeping == protocol.Live:
		c.live(f)
	case keeping != protocol.Dropped:
		c.kept(f)
	}
}

func (c *conn) live(f *asterism.Frame) {
	if env, no := f.Envelope(c.session.Sender(), c.h.id()); no == nil {
		frame := asterism.AppendDelivery(nil, &env, time.Now().UnixMilli())
		if f.Telemetry {
			frame = append(frame[:len(frame)-1], `,"telemetry":true}`...)
		}
		c.h.toBoards(frame, c)
	}
}

func (c *conn) kept(f *asterism.Frame) {
	env, no := f.Envelope(c.session.Sender(), c.h.id())
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
	c.say(env)
}

func (c *conn) refuse(id string, no *protocol.Refusal) {
	c.do(asterism.Outcome{Say: []asterism.Say{{Kind: asterism.SayRefused, Refusal: no, MsgID: protocol.MsgID(id)}}})
}

// say takes a message in, shows it to boards and brings it to its agent.
func (c *conn) say(env protocol.Envelope) {
	h := c.h
	h.route(&env)
	key := string(env.From) + "\n" + string(env.ID)
	if old, twice := h.said[key]; twice {
		if old != env.Content() {
			c.refuse(string(env.ID), protocol.Refuse(protocol.CodeMsgIDReused, "the id stands for another message", ""))
		}
		return
	}
	to := h.agent(env.To)
	if h.fault == "B24" && env.To != "" && (to == nil || to.conn == nil) {
		to = h.agent(mainAgent)
	}
	if env.To != "" && to == nil && env.To != mainAgent {
		c.link.Send(h.enc.RelayUnreachable(time.Now(), env.From, asterism.Unreachable{MsgID: &env.ID, TargetAgentID: env.To, LastError: asterism.UnreachableAbsent}))
		c.refuse(string(env.ID), protocol.Refuse(protocol.CodeUnknownAgent, "no agent %q", "", string(env.To)))
		return
	}
	h.said[key] = env.Content()
	h.events = append(h.events, asterism.Event{Env: &env, At: time.Now().UnixMilli()})
	if !asterism.Streamed(&env) {
		h.toBoards(asterism.AppendDelivery(nil, &env, time.Now().UnixMilli()), c)
	}
	if to == nil {
		return
	}
	l := &letter{env: env, by: c}
	to.box = append(to.box, l)
	if env.From != "" {
		h.window[to.id] = env.From
	}
	if to.conn != nil {
		to.conn.give(l)
	}
}

// route finds a target for what names none.
func (h *hub) route(env *protocol.Envelope) {
	if env.To != "" {
		return
	}
	if to := h.window[env.From]; h.fault == "B11" && to != "" && env.From != "" {
		env.To = to
		return
	}
	switch protocol.Lookup(env.Intent).Class {
	case protocol.ClassA2A, protocol.ClassUnknown, protocol.ClassProbe:
		if env.From != mainAgent {
			env.To = mainAgent
		}
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
	frame := h.enc.AckProcessed(time.Now(), l.env.From, asterism.Processed{From: asterism.Sender{ID: by.id, Name: by.name}, For: v.AckFor, Tier: v.Tier})
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

// past answers RequestChannelHistory.
func (c *conn) past(f *asterism.Frame) {
	var v struct {
		ChannelKey string `json:"channelKey"`
		BeforeTs   int64  `json:"beforeTs"`
		Limit      int    `json:"limit"`
	}
	_ = json.Unmarshal(f.Value, &v)
	page := asterism.ChannelPage{Key: v.ChannelKey, Before: v.BeforeTs > 0}
	for _, ev := range c.h.events {
		if string(ev.Env.From) == v.ChannelKey && (v.BeforeTs == 0 || ev.At < v.BeforeTs) {
			page.Events = append(page.Events, ev)
		}
	}
	if v.Limit > 0 && len(page.Events) > v.Limit {
		page.Earlier = len(page.Events) - v.Limit
		page.Events = page.Events[page.Earlier:]
	}
	c.link.Send(c.h.enc.ChannelHistory(time.Now(), page))
}

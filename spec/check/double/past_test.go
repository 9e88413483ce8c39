package double

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// shownMax is of how many events, newest last, a new connection is shown what it may see; what is before stands in cold.
const shownMax = 600

// channelOf is the channel that a message stands in: its speaker's, its room's, or that of whom a person spoke to.
func channelOf(env *protocol.Envelope) string {
	switch {
	case env.Room != "":
		return "room:" + string(env.Room)
	case env.From != "":
		return string(env.From)
	case env.To != "":
		return string(env.To)
	}
	return "_"
}

// maySee says whether a message is for the eyes of a connection.
func (c *conn) maySee(env *protocol.Envelope) bool {
	me := c.session.Sender().ID
	return !c.key.outside() || env.From == me || env.To == me || slices.Contains(env.Rcpt, me)
}

// history is what a new connection is shown of the past.
func (c *conn) history() asterism.History {
	h := c.h
	board := c.session.Sender().ID == ""
	out := asterism.History{Manifests: h.declared["CommandManifest"], OpsStates: h.declared["OpsState"], CapManifests: h.declared["CapabilityManifest"], RoleStates: h.declared["RoleState"]}
	for _, chart := range h.declared["CorporateChart"] {
		out.CorporateChart = chart
	}
	if c.key.outside() {
		out = asterism.History{}
	}
	whole, warm, at := map[string]*asterism.Stub{}, map[string]bool{}, map[string]int{}
	for i, ev := range h.events {
		key := channelOf(ev.Env)
		if !c.maySee(ev.Env) {
			continue
		}
		if whole[key] == nil {
			whole[key] = &asterism.Stub{Key: key}
			if a := h.agent(protocol.AgentID(key)); a != nil {
				whole[key].Role = h.roleOf(a)
			}
		}
		whole[key].Count++
		whole[key].LastTs = ev.At
		if board && h.away[key] || i < len(h.events)-h.newest() {
			continue
		}
		if !warm[key] {
			warm[key], at[key] = true, len(out.Channels)
			out.Channels = append(out.Channels, asterism.Channel{Key: key})
		}
		out.Channels[at[key]].Events = append(out.Channels[at[key]].Events, ev)
	}
	for key, stub := range whole {
		switch {
		case board && h.away[key]:
			out.Archived = append(out.Archived, *stub)
		case !warm[key]:
			out.Cold = append(out.Cold, *stub)
		}
	}
	return out
}

// newest is how many events are shown. With fault B20 what agents declare takes their room.
func (h *hub) newest() int {
	if h.fault == "B20" {
		return max(200-h.noise, 0)
	}
	return shownMax
}

// past answers RequestChannelHistory. A person who looks at a channel takes it out of those that were put away.
func (c *conn) past(f *asterism.Frame) {
	var v struct {
		ChannelKey string `json:"channelKey"`
		BeforeTs   int64  `json:"beforeTs"`
		Limit      int    `json:"limit"`
	}
	_ = json.Unmarshal(f.Value, &v)
	if c.speaker() == nil && v.BeforeTs == 0 {
		delete(c.h.away, v.ChannelKey)
	}
	page := asterism.ChannelPage{Key: v.ChannelKey, Before: v.BeforeTs > 0}
	for _, ev := range c.h.events {
		if channelOf(ev.Env) == v.ChannelKey && c.maySee(ev.Env) && (v.BeforeTs == 0 || ev.At < v.BeforeTs) {
			page.Events = append(page.Events, ev)
		}
	}
	if v.Limit > 0 && len(page.Events) > v.Limit {
		page.Earlier = len(page.Events) - v.Limit
		page.Events = page.Events[page.Earlier:]
	}
	c.link.Send(c.h.enc.ChannelHistory(c.h.clock.now(), page))
}

// channelVerb puts a channel away or deletes what was said in it.
func (c *conn) channelVerb(f *asterism.Frame) {
	h := c.h
	var v struct {
		AgentID    string `json:"agentId"`
		ChannelKey string `json:"channelKey"`
	}
	no := (*protocol.Refusal)(nil)
	key := ""
	switch {
	case c.speaker() != nil && h.fault != "B13":
		no = protocol.Refuse(protocol.CodeNotAllowed, "only a person says so", "")
	case json.Unmarshal(f.Value, &v) != nil || v.AgentID == "" && v.ChannelKey == "" || v.AgentID != "" && v.ChannelKey != "" && v.AgentID != v.ChannelKey:
		no = protocol.Refuse(protocol.CodeWrongType, "it needs value.agentId or value.channelKey", "")
	default:
		key = v.AgentID + strings.Repeat(v.ChannelKey, map[bool]int{true: 1}[v.AgentID == ""])
		if h.agent(protocol.AgentID(key)) == nil && !slices.ContainsFunc(h.events, func(ev asterism.Event) bool { return channelOf(ev.Env) == key }) {
			no = protocol.Refuse(protocol.CodeUnknownID, "there is no such channel", "")
		}
	}
	if no != nil {
		c.refuse(f.MsgID, no)
		return
	}
	if f.Intent() == "ArchiveChannel" {
		h.away[key] = true
		return
	}
	h.events = slices.DeleteFunc(h.events, func(ev asterism.Event) bool { return channelOf(ev.Env) == key })
	delete(h.away, key)
	h.toBoards(h.made(f.Intent(), map[string]any{"agentId": key, "channelKey": key}), nil)
}

package foreign

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// roomKey stands before a room's id in Names, so that an agent of the board that is called like the room is another.
const roomKey = "\x00room/"

// roomBy stands before a room's id where a hub speaks for all who are in.
const roomBy = "room:"

// Bounds of what is believed of a room.
const (
	roomIDMax       = 128
	roomTopicMax    = 200
	participantsMax = 64
)

// RoomKey is what a room of a board is in Names.
func RoomKey(id string) protocol.AgentID { return protocol.AgentID(roomKey + id) }

// RoomOf is the room's id, if there is one in Names.
func RoomOf(there protocol.AgentID) (id string, ok bool) {
	return strings.CutPrefix(string(there), roomKey)
}

// RoomSpeaks is who acknowledges what is said in a room, in its hub's words.
func RoomSpeaks(id string) protocol.AgentID { return protocol.AgentID(roomBy + id) }

// Hold says until when a room takes nothing more of our agent.
type Hold string

// Holds.
const (
	HoldTurn   Hold = "turn"   // until somebody else speaks
	HoldMinute Hold = "minute" // it said as much as one may in a minute
	HoldYield  Hold = "yield"  // until a person speaks
)

// RoomChange is a hub's word on a room.
type RoomChange struct {
	Name  protocol.Intent
	Room  string // as called there
	Value json.RawMessage

	In    bool             // our agent is in
	Out   bool             // our agent is not in any more
	Over  bool             // there is no such room any more
	Agent protocol.AgentID // of RoomLeft: who left
	Topic string

	Hold Hold           // what our agent says is to wait
	ID   protocol.MsgID // the message of ours that the hub did not pass on
	Free bool           // what waits may be said
}

func (RoomChange) isEvent() {}

// room reads what a hub says of a room: nobody else may. What is not for our agent has no meaning but to be passed on.
func (s *Session) room(f *asterism.Frame) (out []Event) {
	if key, keyed := f.RecoveryKey(); keyed {
		out = append(out, Passed{Ack: key})
	}
	v := read[struct {
		RoomID, Topic, Rule, Action, Reason string
		AgentID, From                       protocol.AgentID
		Participants                        []protocol.AgentID
		MsgID, ParkedMsgID                  protocol.MsgID
		Artifacts                           json.RawMessage
	}](f.Value)
	if v.RoomID == "" {
		v.RoomID = f.RoomID
	}
	if f.Source != string(protocol.SourceServer) || !RoomID(v.RoomID) {
		return out
	}
	c := RoomChange{Name: f.Intent(), Room: v.RoomID, Value: f.Value, Topic: protocol.CutText(v.Topic, roomTopicMax)}
	switch c.Name {
	case "RoomCreated":
		for _, p := range v.Participants {
			c.In = c.In || s.me(p)
		}
	case "RoomJoined":
		c.In = s.me(v.AgentID)
	case "RoomLeft":
		c.Out, c.Agent = s.me(v.AgentID), v.AgentID
	case "RoomClosed":
		c.Over = true
	case "RoomArtifacts":
		c.In = len(v.Artifacts) > 0 // the answer to whoever is in, and asked
	case "RoomYield":
		c.Free = true
	case "RoomStall":
		if v.Reason == "autoHop-cap" { // the other kind holds nothing back
			c.Hold = HoldYield
		}
		if s.me(v.From) {
			c.ID = v.ParkedMsgID
		}
	case "RoomGuard":
		if v.AgentID != "" && !s.me(v.AgentID) {
			return out // another one's
		}
		return append(out, guarded(c, v.Rule, v.Action, v.MsgID)...)
	}
	return append(out, c)
}

// RoomID says whether a text may be a room of that board: names with an @ are of a further one.
func RoomID(id string) bool {
	return id != "" && len(id) <= roomIDMax && !strings.ContainsRune(id, '@')
}

// guarded reads a guard on our agent: what is parked is sent again when it may be said, all else is refused for good.
func guarded(c RoomChange, rule, action string, msg protocol.MsgID) []Event {
	rule = protocol.CutText(rule, 64)
	switch {
	case rule == "no-such-room":
		c.Over = true
	case rule == "not-participant":
		c.Out = true
	case action != "parked":
	case rule == "rate":
		c.Hold, c.ID = HoldMinute, msg
	case rule == "consecutive":
		c.Hold, c.ID = HoldTurn, msg
	default:
		c.Hold, c.ID = HoldYield, msg
	}
	if msg != "" && (c.Over || c.Out || action == "dropped") { // the word comes before the change: it is this message's
		return []Event{Settled{ID: msg, By: RoomSpeaks(c.Room), Tier: protocol.Refused, Reason: rule}, c}
	}
	return []Event{c}
}

// InRoom is a message of our agent as it goes into a room there. addressee are those whom it names, as called there.
func InRoom(env *protocol.Envelope, room string, addressee []string, now time.Time, id string) []byte {
	f := asterism.Frame{
		Type: asterism.TypeCustom, Name: string(env.Intent), ID: id, Timestamp: now.UnixMilli(), RoomID: room, MsgID: string(env.ID),
		ContextID: env.Context, ParentID: env.Parent, ThreadID: env.Thread, RunID: env.Run, Value: env.Value,
		Addressee: addressee, ReplyTo: env.ReplyTo, Notice: env.Notice, FloorIntent: env.Floor, NoWake: env.NoWake,
	}
	if len(f.Value) == 0 {
		f.Value = json.RawMessage("{}")
	}
	return f.Append(nil)
}

// RoomVerb asks a hub something about a room.
func RoomVerb(name protocol.Intent, value any, now time.Time, id string) []byte {
	f := asterism.Frame{Type: asterism.TypeCustom, Name: string(name), ID: id, Timestamp: now.UnixMilli(), Value: protocol.EncodeBody(value)}
	return f.Append(nil)
}

// Rename puts other names into what is said of a room: rooms and agents stand in it under the keys that the contract has for
// them, and the room at the top in any case. A value that is no object stays as it is.
func Rename(value json.RawMessage, room string, agent func(protocol.AgentID) protocol.AgentID) json.RawMessage {
	var v map[string]any
	in := json.NewDecoder(bytes.NewReader(value))
	in.UseNumber() // as it was written: a float64 holds no integer above 2^53
	if in.Decode(&v) != nil {
		return value
	}
	renamed(v, room, agent, 0)
	if v != nil {
		v["roomId"] = room
	}
	return protocol.EncodeBody(v)
}

// renameDepth bounds how deep names are looked for: the contract's stand no deeper than artifacts.decisions[].by.
const renameDepth = 4

func renamed(v map[string]any, room string, agent func(protocol.AgentID) protocol.AgentID, depth int) {
	for key, one := range v {
		switch one := one.(type) {
		case string:
			switch key {
			case "roomId":
				v[key] = room
			case "agentId", "from", "by", "updatedBy", "createdBy", "moderator":
				v[key] = string(agent(protocol.AgentID(one)))
			}
		case map[string]any:
			if depth < renameDepth {
				renamed(one, room, agent, depth+1)
			}
		case []any:
			for i := range one {
				if text, ok := one[i].(string); ok && key == "participants" {
					one[i] = string(agent(protocol.AgentID(text)))
				} else if m, ok := one[i].(map[string]any); ok && depth < renameDepth {
					renamed(m, room, agent, depth+1)
				}
			}
		}
	}
}

package foreign

import (
	"encoding/json"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// Outgoing is a message of our agent as it goes to an agent there: under its own id whenever it is sent again, so that
// whoever recognises repeats has it once. The envelope's value must be inline.
func Outgoing(env *protocol.Envelope, to protocol.AgentID, now time.Time, id string) []byte {
	f := asterism.Frame{
		Type: asterism.TypeCustom, Name: string(env.Intent), ID: id, Timestamp: now.UnixMilli(), TargetAgentID: to, MsgID: string(env.ID),
		ContextID: env.Context, ParentID: env.Parent, ThreadID: env.Thread, RunID: env.Run, Value: env.Value,
	}
	if len(f.Value) == 0 {
		f.Value = json.RawMessage("{}")
	}
	return f.Append(nil)
}

// Acknowledge says that a message is durable here, or, with processed, that our agent has handled it. Hub-made messages are
// acknowledged without a target.
func Acknowledge(of protocol.MsgID, to protocol.AgentID, processed bool, now time.Time, id string) []byte {
	v := struct {
		AckFor protocol.MsgID `json:"ackFor"`
		Tier   string         `json:"tier,omitempty"`
	}{of, "delivered-persist"}
	if processed {
		v.Tier = ""
	}
	f := asterism.Frame{Type: asterism.TypeCustom, Name: string(protocol.AckProcessed), ID: id, Timestamp: now.UnixMilli(), TargetAgentID: to, Value: protocol.EncodeBody(v)}
	return f.Append(nil)
}

// Refuse tells a sender there that its message was not taken, and why. Its id depends on the message alone: sent again it
// is the same. Without an agent to tell, boards are told.
func Refuse(of protocol.MsgID, to protocol.AgentID, no *protocol.Refusal, now time.Time, id string) []byte {
	v := struct {
		For       protocol.MsgID `json:"for,omitempty"`
		Reason    string         `json:"reason"`
		WaitingOn string         `json:"waitingOn"`
		Code      string         `json:"code"`
	}{of, protocol.CutText(no.Error(), 500), "sender", no.Code}
	f := asterism.Frame{
		Type: asterism.TypeCustom, Name: "BLOCKED", ID: id, Timestamp: now.UnixMilli(), TargetAgentID: to, Value: protocol.EncodeBody(v),
	}
	if to == "" {
		f.Name = "Status"
	} else if of != "" {
		f.MsgID = "not-taken-" + protocol.IdentityOf(to, of).String()
	}
	return f.Append(nil)
}

// Greeting introduces our agent to main there, once: who it is, and nothing else.
func Greeting(as protocol.AgentID, name string, to protocol.AgentID, now time.Time, id string) []byte {
	v := map[string]any{"agentId": as, "agentName": name, "role": "collab", "env": "aster"}
	f := asterism.Frame{Type: asterism.TypeCustom, Name: "AgentHello", ID: id, Timestamp: now.UnixMilli(), TargetAgentID: to, Value: protocol.EncodeBody(v)}
	return f.Append(nil)
}

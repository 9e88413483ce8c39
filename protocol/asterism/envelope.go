package asterism

import (
	"encoding/json"

	"github.com/aster-mesh/aster/protocol"
)

// Sender is who a connection is, as the hub authenticated it. ID is empty for a person at a board.
type Sender struct {
	ID     protocol.AgentID
	Name   string
	Role   protocol.Role
	Source protocol.Source
}

// Envelope is f as an envelope of sender, under the sender's own message id or, without one, under id. A run frame's
// fields become its value. It refuses what only the hub may send, a HELLO, and what protocol.Envelope.Check refuses, except
// that a value above protocol.ValueBytesInline is left to the caller, who makes it a blob. Hops stay empty: they are the
// hub's to set. The envelope aliases f.
func (f *Frame) Envelope(sender Sender, id protocol.MsgID) (protocol.Envelope, *protocol.Refusal) {
	if no := f.Reserved(); no != nil {
		return protocol.Envelope{}, no
	}
	if f.Hello() {
		return protocol.Envelope{}, protocol.Refuse(protocol.CodeBadFrame, "a HELLO is not a message", "")
	}
	e := protocol.Envelope{
		ID: id, From: sender.ID, FromName: sender.Name, FromRole: sender.Role, Source: sender.Source,
		To: f.TargetAgentID, Room: protocol.RoomID(f.RoomID),
		Intent: f.Intent(), Value: f.Value,
		Parent: f.ParentID, Context: f.ContextID, Thread: f.ThreadID, Run: f.RunID, Channel: f.ChannelID,
		Frame: f.ID, Declared: f.Timestamp, NoWake: f.NoWake, Trace: protocol.CleanTraceParent(f.TraceParent),
	}
	if f.RoomID != "" {
		if no := f.room(&e); no != nil {
			return protocol.Envelope{}, no
		}
	}
	if key, ok := f.RecoveryKey(); ok {
		e.ID = key
	}
	if protocol.Lookup(e.Intent).Class == protocol.ClassRun && f.Type != TypeCustom {
		e.Value = f.runValue()
	}
	e.Re = answered(e.Value)
	value := e.Value
	if len(value) > protocol.ValueBytesInline {
		e.Value = nil
	}
	no := e.Check()
	e.Value = value
	if no != nil {
		return protocol.Envelope{}, no
	}
	return e, nil
}

// floorBytesMax bounds a wish for the floor: a word and a number.
const floorBytesMax = 256

// room takes what only a room's message has.
func (f *Frame) room(e *protocol.Envelope) *protocol.Refusal {
	if len(f.FloorIntent) > floorBytesMax {
		return protocol.Refuse(protocol.CodeBadFrame, "floorIntent has %d bytes, at most %d", "", len(f.FloorIntent), floorBytesMax)
	}
	e.Floor, e.Notice = f.FloorIntent, f.Notice
	if protocol.CheckMsgID(protocol.MsgID(f.ReplyTo)) == nil {
		e.ReplyTo = f.ReplyTo
	}
	for _, a := range f.Addressee {
		if err := protocol.CheckAgentID(protocol.AgentID(a)); err != nil {
			return protocol.Refuse(protocol.CodeBadAgentID, "addressee: "+err.Error(), "")
		}
		e.Addressee = append(e.Addressee, protocol.AgentID(a))
	}
	return nil
}

// answered is the message that a value says it answers: re_msgId, else for.
func answered(value []byte) protocol.MsgID {
	for _, key := range [2]string{"re_msgId", "for"} {
		if s, ok := valueText(value, key); ok && protocol.CheckMsgID(protocol.MsgID(s)) == nil {
			return protocol.MsgID(s)
		}
	}
	return ""
}

// runValue gathers a run frame's own fields into one object; AppendDelivery spreads them again.
func (f *Frame) runValue() json.RawMessage {
	b := append(make([]byte, 0, 64+len(f.Delta)+len(f.Message)), '{')
	b = f.appendRun(b)
	return append(dropComma(b), '}')
}

// appendRun appends the fields of a run frame, each with a comma after it.
func (f *Frame) appendRun(b []byte) []byte {
	b = appendText(b, "messageId", f.MessageID)
	b = appendText(b, "role", f.Role)
	b = appendText(b, "delta", f.Delta)
	b = appendText(b, "stepName", f.StepName)
	b = appendText(b, "toolCallId", f.ToolCallID)
	b = appendText(b, "toolCallName", f.ToolCallName)
	b = appendText(b, "message", f.Message)
	b = appendRaw(b, "outcome", f.Outcome)
	b = appendRaw(b, "args", f.Args)
	b = appendRaw(b, "content", f.Result)
	b = appendRaw(b, "display", f.Display)
	return f.appendExtra(b)
}

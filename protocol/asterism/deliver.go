package asterism

import (
	"strconv"

	"github.com/aster-mesh/aster/protocol"
)

// AppendDelivery appends the copy of a message for an agent or a board: CUSTOM with name and value, or, for a frame of a
// run, its own type with its fields at the top. timestampMs is when this hub took the message; the sender's own time, when
// it differs, goes along as declaredTs (fault B19). The value must be inline: a caller fetches a ValueBlob first. A message
// that is kept carries its msgId, so that its recipient acknowledges it; a live one does not. A number that not every reader holds,
// which an earlier version or another node let in, goes out as a string: whoever reads the frame must not fail by it.
func AppendDelivery(b []byte, e *protocol.Envelope, timestampMs int64) []byte {
	row := protocol.Lookup(e.Intent)
	if row.Class == protocol.ClassRun && e.Intent != protocol.AgentText && e.Intent != protocol.ToolCall {
		b = appendKey(append(b, '{'), "type")
		b = append(AppendString(b, string(e.Intent)), ',')
		b = appendEnvelope(b, e, timestampMs, row.Keeping == protocol.Kept)
		return append(dropComma(appendSpread(b, protocol.TameNumbers(e.Value))), '}')
	}
	b = append(b, `{"type":"CUSTOM",`...)
	b = appendText(b, "name", string(e.Intent))
	b = appendEnvelope(b, e, timestampMs, row.Keeping == protocol.Kept)
	b = append(b, `"value":`...)
	if len(e.Value) == 0 {
		b = append(b, '{', '}') // clients read fields of it without looking
	} else {
		b = append(b, protocol.TameNumbers(e.Value)...)
	}
	return append(b, '}')
}

// appendEnvelope appends what every copy carries, each field with a comma after it.
func appendEnvelope(b []byte, e *protocol.Envelope, timestampMs int64, withMsgID bool) []byte {
	frame := e.Frame
	if frame == "" {
		frame = string(e.ID) // clients drop a frame whose id they have seen, so none may lack one
	}
	b = appendText(b, "id", frame)
	b = appendText(b, "source", string(e.Source))
	b = appendText(b, "agentId", string(e.From))
	b = appendText(b, "agentName", e.FromName)
	b = appendText(b, "targetAgentId", string(e.To))
	if withMsgID {
		b = appendText(b, "msgId", string(e.ID))
	}
	b = append(strconv.AppendInt(append(b, `"timestamp":`...), timestampMs, 10), ',')
	if e.Declared != 0 && e.Declared != timestampMs {
		b = appendInt(b, "declaredTs", e.Declared)
	}
	b = appendText(b, "contextId", e.Context)
	b = appendText(b, "parentId", e.Parent)
	b = appendText(b, "threadId", e.Thread)
	b = appendText(b, "runId", e.Run)
	b = appendText(b, "channelId", e.Channel)
	b = appendText(b, "traceparent", e.Trace)
	if e.Room == "" {
		return b
	}
	b = appendText(b, "roomId", string(e.Room))
	if len(e.Addressee) > 0 {
		b = append(appendKey(b, "addressee"), '[')
		for _, a := range e.Addressee {
			b = append(AppendString(b, string(a)), ',')
		}
		b = append(dropComma(b), ']', ',')
	}
	b = appendText(b, "replyTo", e.ReplyTo)
	b = appendFlag(b, "notice", e.Notice)
	b = appendRaw(b, "floorIntent", protocol.TameNumbers(e.Floor))
	b = appendText(b, "speakerClass", e.SpeakerClass)
	if e.AutoHop > 0 {
		b = appendInt(b, "autoHop", int64(e.AutoHop))
	}
	return b
}

// spreads are the known fields that a run frame's value may put at the top level. All other known names are the
// envelope's own: another node's word must not overwrite them.
var spreads = map[string]bool{
	"messageId": true, "role": true, "delta": true, "stepName": true, "toolCallId": true, "toolCallName": true,
	"message": true, "outcome": true, "args": true, "argsPreview": true, "content": true, "resultPreview": true,
	"display": true,
}

// appendSpread appends the fields of an object, each with a comma after it, without those that belong to the envelope.
func appendSpread(b []byte, value []byte) []byte {
	if len(value) == 0 || value[0] != '{' {
		return b
	}
	var room [24]member
	ms, fault := scan(value, room[:0])
	if fault != nil {
		return b
	}
	for _, m := range ms {
		name := unescape(m.key)
		if _, known := fieldAt[name]; (known && !spreads[name]) || name == "declaredTs" {
			continue
		}
		b = append(append(append(AppendString(b, name), ':'), m.value...), ',')
	}
	return b
}

// What stored copies are cut to, in bytes (the contract says characters: 8000 of text, 2000 of a result).
const (
	eventTextMax   = 8_000
	eventResultMax = 2_000
	eventValueMax  = 64 << 10
)

// AppendEvent appends a message as History and ChannelHistory show it: an utterance as TEXT_MESSAGE, a tool call as
// TOOL_CALL, cut to what the contract stores, and everything else as its delivery. A value above 64 KiB is replaced by its
// first words.
func AppendEvent(b []byte, e *protocol.Envelope, timestampMs int64) []byte {
	switch e.Intent {
	case protocol.AgentText:
		return appendTextEvent(b, e, timestampMs)
	case protocol.ToolCall:
		return appendToolEvent(b, e, timestampMs)
	}
	if len(e.Value) > eventValueMax || e.ValueBlob != nil && len(e.Value) == 0 {
		short := *e
		short.Value = append(appendFlag(appendText([]byte{'{'}, "summary", e.Text(protocol.ShortTextBytesMax)), "truncated", true), '}')
		short.Value = append(dropComma(short.Value[:len(short.Value)-1]), '}')
		return AppendDelivery(b, &short, timestampMs)
	}
	return AppendDelivery(b, e, timestampMs)
}

func appendTextEvent(b []byte, e *protocol.Envelope, timestampMs int64) []byte {
	words, _ := valueText(e.Value, "text")
	role, ok := valueText(e.Value, "role")
	if !ok {
		role = "assistant"
	}
	stream, _ := valueText(e.Value, "messageId")
	b = append(b, `{"type":"TEXT_MESSAGE",`...)
	b = appendText(b, "messageId", stream)
	b = appendText(b, "role", role)
	b = append(AppendString(appendKey(b, "text"), protocol.CutText(words, eventTextMax)), ',')
	return append(dropComma(appendEnvelope(b, e, timestampMs, true)), '}')
}

func appendToolEvent(b []byte, e *protocol.Envelope, timestampMs int64) []byte {
	b = append(b, `{"type":"TOOL_CALL",`...)
	for _, key := range [2]string{"toolCallId", "toolCallName"} {
		s, _ := valueText(e.Value, key)
		b = appendText(b, key, s)
	}
	for _, key := range [2]string{"args", "result"} {
		if s, ok := valueText(e.Value, key); ok {
			b = append(AppendString(appendKey(b, key), protocol.CutText(s, eventResultMax)), ',')
		}
	}
	b = appendRaw(b, "display", protocol.TameNumbers(valueField(e.Value, "display")))
	return append(dropComma(appendEnvelope(b, e, timestampMs, true)), '}')
}

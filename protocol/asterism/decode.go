package asterism

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aster-mesh/aster/protocol"
)

// Bounds on what one frame may carry beside its value. They keep an envelope's texts far below protocol.RecordBytesMax.
const (
	fieldsMax     = 320
	extraMax      = 256
	idBytesMax    = 512
	nameBytesMax  = 2_000
	keyBytesMax   = 512
	capBytesMax   = 128
	capsMax       = 256
	addresseesMax = 256
)

// sort is what a known field may hold.
type sort uint8

const (
	sortText    sort = iota // a string
	sortVersion             // a string or a number
	sortNumber              // a number
	sortTime                // a number or a string; what is no time becomes 0
	sortBool                // true or false
	sortTexts               // an array of strings
	sortCaps                // an object or an array
	sortAny                 // any JSON
	sortDelta               // a string; any JSON in STATE_DELTA
)

// field is one row of the table of known top-level fields.
type field struct {
	name string
	sort sort
	max  int // bytes of a text; 0: as large as the frame
	text func(*Frame) *string
	any  func(*Frame) *json.RawMessage
	flag func(*Frame) *bool
	num  func(*Frame) *int64
}

var fields = []field{
	{name: "type", max: protocol.IntentBytesMax, text: func(f *Frame) *string { return &f.Type }},
	{name: "name", max: protocol.IntentBytesMax, text: func(f *Frame) *string { return &f.Name }},
	{name: "id", max: idBytesMax, text: func(f *Frame) *string { return &f.ID }},
	{name: "seq", sort: sortNumber, num: func(f *Frame) *int64 { return &f.Seq }},
	{name: "timestamp", sort: sortTime, num: func(f *Frame) *int64 { return &f.Timestamp }},
	{name: "source", max: idBytesMax, text: func(f *Frame) *string { return &f.Source }},
	{name: "agentId", max: protocol.AgentIDBytesMax, text: func(f *Frame) *string { return (*string)(&f.AgentID) }},
	{name: "agentName", max: nameBytesMax, text: func(f *Frame) *string { return &f.AgentName }},
	{name: "targetAgentId", max: protocol.AgentIDBytesMax, text: func(f *Frame) *string { return (*string)(&f.TargetAgentID) }},
	{name: "msgId", max: protocol.MsgIDBytesMax, text: func(f *Frame) *string { return &f.MsgID }},
	{name: "messageId", max: protocol.MsgIDBytesMax, text: func(f *Frame) *string { return &f.MessageID }},
	{name: "runId", max: idBytesMax, text: func(f *Frame) *string { return &f.RunID }},
	{name: "threadId", max: idBytesMax, text: func(f *Frame) *string { return &f.ThreadID }},
	{name: "contextId", max: idBytesMax, text: func(f *Frame) *string { return &f.ContextID }},
	{name: "parentId", max: idBytesMax, text: func(f *Frame) *string { return &f.ParentID }},
	{name: "channelId", max: idBytesMax, text: func(f *Frame) *string { return &f.ChannelID }},
	{name: "roomId", max: idBytesMax, text: func(f *Frame) *string { return &f.RoomID }},
	{name: "replyTo", max: idBytesMax, text: func(f *Frame) *string { return &f.ReplyTo }},
	{name: "addressee", sort: sortTexts},
	{name: "floorIntent", sort: sortAny, any: func(f *Frame) *json.RawMessage { return &f.FloorIntent }},
	{name: "telemetry", sort: sortBool, flag: func(f *Frame) *bool { return &f.Telemetry }},
	{name: "notice", sort: sortBool, flag: func(f *Frame) *bool { return &f.Notice }},
	{name: "noWake", sort: sortBool, flag: func(f *Frame) *bool { return &f.NoWake }},
	{name: "traceparent", max: idBytesMax, text: func(f *Frame) *string { return &f.TraceParent }},
	{name: "value", sort: sortAny, any: func(f *Frame) *json.RawMessage { return &f.Value }},
	{name: "delta", sort: sortDelta, text: func(f *Frame) *string { return &f.Delta }},
	{name: "role", max: idBytesMax, text: func(f *Frame) *string { return &f.Role }},
	{name: "stepName", max: nameBytesMax, text: func(f *Frame) *string { return &f.StepName }},
	{name: "toolCallId", max: protocol.MsgIDBytesMax, text: func(f *Frame) *string { return &f.ToolCallID }},
	{name: "toolCallName", max: nameBytesMax, text: func(f *Frame) *string { return &f.ToolCallName }},
	{name: "message", text: func(f *Frame) *string { return &f.Message }},
	{name: "outcome", sort: sortAny, any: func(f *Frame) *json.RawMessage { return &f.Outcome }},
	{name: "args", sort: sortAny, any: func(f *Frame) *json.RawMessage { return &f.Args }},
	{name: "argsPreview", sort: sortAny, any: func(f *Frame) *json.RawMessage { return &f.Args }},
	{name: "resultPreview", sort: sortAny, any: func(f *Frame) *json.RawMessage { return &f.Result }},
	{name: "content", sort: sortAny, any: func(f *Frame) *json.RawMessage { return &f.Result }},
	{name: "display", sort: sortAny, any: func(f *Frame) *json.RawMessage { return &f.Display }},
	{name: "clientId", max: idBytesMax, text: func(f *Frame) *string { return &f.ClientID }},
	{name: "protocolVersion", sort: sortVersion, max: idBytesMax, text: func(f *Frame) *string { return &f.ProtocolVersion }},
	{name: "pid", sort: sortNumber, num: func(f *Frame) *int64 { return &f.PID }},
	{name: "key", max: keyBytesMax, text: func(f *Frame) *string { return &f.Key }},
	{name: "peerKey", max: keyBytesMax, text: func(f *Frame) *string { return &f.Key }},
	{name: "upstreamKey", max: keyBytesMax, text: func(f *Frame) *string { return &f.Key }},
	{name: "collabKey", max: keyBytesMax, text: func(f *Frame) *string { return &f.Key }},
	{name: "capabilities", sort: sortCaps},
}

var fieldAt = func() map[string]int {
	at := make(map[string]int, len(fields))
	for i, f := range fields {
		at[f.name] = i
	}
	return at
}()

// Decode reads one frame of at most limit bytes (protocol.FrameBytesMax when limit is 0). It checks size, UTF-8, nesting
// and JSON first, then that the frame is one object with no field twice, then the type and length of every known field.
// The Refusal names the field. The frame aliases b, which must not change afterwards. Any bytes are safe to give it.
func Decode(b []byte, limit int) (Frame, *protocol.Refusal) {
	if limit <= 0 {
		limit = protocol.FrameBytesMax
	}
	if len(b) > limit {
		return Frame{}, protocol.Refuse(protocol.CodeFrameTooLarge, "a frame of %d bytes, at most %d", "", len(b), limit)
	}
	if !utf8.Valid(b) {
		return Frame{}, protocol.Refuse(protocol.CodeNotUTF8, "the frame is not UTF-8", "")
	}
	var room [40]member
	ms, fault := scan(b, room[:0])
	if fault != nil {
		if fault.deep {
			return Frame{}, protocol.Refuse(protocol.CodeTooDeep, "arrays and objects nest deeper than %d", "", protocol.NestingMax)
		}
		if fault.wild {
			return Frame{}, protocol.RefuseNumber("the frame", fault.at)
		}
		return Frame{}, protocol.Refuse(protocol.CodeBadFrame, "not JSON at byte %d", "", fault.at)
	}
	if at := space(b, 0); b[at] != '{' {
		return Frame{}, protocol.Refuse(protocol.CodeBadFrame, "a frame is one JSON object", "")
	}
	if len(ms) > fieldsMax {
		return Frame{}, protocol.Refuse(protocol.CodeBadFrame, "%d fields, at most %d", "", len(ms), fieldsMax)
	}
	f, no := fill(ms)
	if no != nil {
		return Frame{}, no
	}
	return f, nil
}

// fill sorts the fields of a frame into their places, then checks what only the whole can tell.
func fill(ms []member) (f Frame, no *protocol.Refusal) {
	var seen [64]bool
	var deltaRaw json.RawMessage
	for _, m := range ms {
		at, known := fieldAt[string(m.key)] // the compiler makes no copy for a map lookup
		name := ""
		if !known {
			name = unescape(m.key)
			at, known = fieldAt[name]
		}
		if !known {
			if no = f.extra(name, m.value); no != nil {
				return f, no
			}
			continue
		}
		if seen[at] {
			return f, protocol.Refuse(protocol.CodeDuplicateKey, "%s stands twice in the frame", "", fields[at].name)
		}
		seen[at] = true
		if m.value[0] == 'n' { // null is absent
			continue
		}
		if fields[at].sort == sortDelta && m.value[0] != '"' {
			deltaRaw = m.value
			continue
		}
		if no = f.set(&fields[at], m.value); no != nil {
			return f, no
		}
	}
	if deltaRaw != nil {
		if f.Type != "STATE_DELTA" {
			return f, wrongType("delta", "a string")
		}
		if no = f.extra("delta", deltaRaw); no != nil {
			return f, no
		}
	}
	return f, f.finish()
}

func (f *Frame) extra(name string, value []byte) *protocol.Refusal {
	if _, twice := f.Extra[name]; twice {
		return protocol.Refuse(protocol.CodeDuplicateKey, "%q stands twice in the frame", "", protocol.CutText(name, 64))
	}
	if len(f.Extra) == extraMax {
		return protocol.Refuse(protocol.CodeBadFrame, "more than %d fields that are not of the contract", "", extraMax)
	}
	if f.Extra == nil {
		f.Extra = map[string]json.RawMessage{}
	}
	f.Extra[name] = value
	return nil
}

func wrongType(name, want string) *protocol.Refusal {
	return protocol.Refuse(protocol.CodeWrongType, "%s must be %s", "", name, want)
}

// set puts one value that is not null into its field.
func (f *Frame) set(d *field, raw []byte) *protocol.Refusal {
	isText, isNumber := raw[0] == '"', raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9'
	switch d.sort {
	case sortText, sortDelta, sortVersion:
		s := ""
		switch {
		case isText:
			s = text(raw)
		case isNumber && d.sort == sortVersion:
			s = string(raw)
		default:
			return wrongType(d.name, "a string")
		}
		if d.max > 0 && len(s) > d.max {
			if d.max == protocol.AgentIDBytesMax {
				return protocol.Refuse(protocol.CodeBadAgentID, "%s has %d bytes, at most %d", "", d.name, len(s), d.max)
			}
			return protocol.Refuse(protocol.CodeBadFrame, "%s has %d bytes, at most %d", "", d.name, len(s), d.max)
		}
		if into := d.text(f); *into == "" { // of several names for one field the first that says something holds
			*into = s
		}
	case sortNumber:
		if !isNumber {
			return wrongType(d.name, "a number")
		}
		*d.num(f) = wholeNumber(raw)
	case sortTime:
		if !isNumber && !isText {
			return wrongType(d.name, "milliseconds or an ISO time")
		}
		*d.num(f) = wireTime(raw, isText)
	case sortBool:
		if raw[0] != 't' && raw[0] != 'f' {
			return wrongType(d.name, "true or false")
		}
		*d.flag(f) = raw[0] == 't'
	case sortAny:
		if into := d.any(f); *into == nil {
			*into = raw
		}
	case sortTexts:
		if json.Unmarshal(raw, &f.Addressee) != nil || len(f.Addressee) > addresseesMax {
			return wrongType(d.name, "an array of at most 256 strings")
		}
	case sortCaps:
		return f.setCapabilities(raw)
	}
	return nil
}

// setCapabilities reads an array of names, or an object whose keys and whose inbound and outbound lists are names. What is
// not a name in them is passed over: the contract never checked it.
func (f *Frame) setCapabilities(raw []byte) *protocol.Refusal {
	add := func(items []json.RawMessage) {
		for _, it := range items {
			if len(f.Capabilities) < capsMax && len(it) > 2 && it[0] == '"' && len(it) <= capBytesMax {
				f.Capabilities = append(f.Capabilities, text(it))
			}
		}
	}
	switch raw[0] {
	case '[':
		var items []json.RawMessage
		_ = json.Unmarshal(raw, &items) // it passed scan
		add(items)
		f.MCPProxy = f.Can(capMCPProxy)
	case '{':
		ms, _ := scan(raw, nil)
		for _, m := range ms {
			switch name := unescape(m.key); {
			case m.value[0] == '[':
				var items []json.RawMessage
				_ = json.Unmarshal(m.value, &items)
				if name != "inbound" && name != "outbound" { // those list intents, not abilities
					add(items)
				}
			case m.value[0] == 't' && len(f.Capabilities) < capsMax && len(name) <= capBytesMax:
				f.Capabilities = append(f.Capabilities, name)
			}
		}
	default:
		return wrongType("capabilities", "an object or an array")
	}
	return nil
}

// finish checks what needs the whole frame, and lifts what stood in the value.
func (f *Frame) finish() *protocol.Refusal {
	if f.Type == "" {
		if f.Name == "" {
			return protocol.Refuse(protocol.CodeBadFrame, "the frame has neither type nor name", "")
		}
		f.Type = TypeCustom
	}
	if f.Type == TypeCustom && f.Name == "" {
		return protocol.Refuse(protocol.CodeBadFrame, "a CUSTOM frame needs a name", "")
	}
	if f.TargetAgentID == "" {
		if raw := valueField(f.Value, "targetAgentId"); len(raw) > 0 && raw[0] != 'n' {
			if raw[0] != '"' {
				return wrongType("value.targetAgentId", "a string")
			}
			f.TargetAgentID = protocol.AgentID(text(raw))
		}
	}
	f.AgentID = protocol.AgentID(strings.TrimSpace(string(f.AgentID)))
	f.TargetAgentID = protocol.AgentID(strings.TrimSpace(string(f.TargetAgentID)))
	if f.TargetAgentID != "" {
		if err := protocol.CheckAgentID(f.TargetAgentID); err != nil {
			return protocol.Refuse(protocol.CodeBadAgentID, "targetAgentId: "+err.Error(), "")
		}
	}
	return nil
}

// valueField returns the raw value of one field of a JSON object, or nil. Of a field that stands twice the last counts, as
// for every JavaScript reader. value must have passed scan.
func valueField(value []byte, name string) json.RawMessage {
	if len(value) == 0 || value[0] != '{' || !bytes.Contains(value, []byte(name)) {
		return nil
	}
	var room [24]member
	ms, _ := scan(value, room[:0])
	var found json.RawMessage
	for _, m := range ms {
		if string(m.key) == name {
			found = m.value
		}
	}
	return found
}

// valueText is valueField for a string; ok is false for everything else.
func valueText(value []byte, name string) (string, bool) {
	raw := valueField(value, name)
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	return text(raw), true
}

func wholeNumber(raw []byte) int64 {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || math.IsNaN(n) || math.Abs(n) > 1<<53 {
		return 0
	}
	return int64(n)
}

// wireTime reads milliseconds, or a text with milliseconds or an ISO time. What lies outside 1970 to 2200 is no time.
func wireTime(raw []byte, isText bool) int64 {
	ms := int64(0)
	if !isText {
		ms = wholeNumber(raw)
	} else {
		s := text(raw)
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			ms = n
		} else if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
			ms = t.UnixMilli()
		}
	}
	if ms < 0 || ms >= int64(protocol.HLCMax>>16) {
		return 0
	}
	return ms
}

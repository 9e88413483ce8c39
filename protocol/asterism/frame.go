package asterism

import (
	"encoding/json"
	"strings"

	"github.com/aster-mesh/aster/protocol"
)

// ProtocolVersion is the version of the contract that the hub announces.
const ProtocolVersion = "0.3"

// Types of frames that mean something here; the other run types need no name of their own.
const (
	TypeCustom = "CUSTOM"
	TypeHello  = "HELLO"
)

// Frame is one JSON object of the contract as it came, with its known fields checked for type and length. Absent and null
// are the same. Raw fields alias the bytes that were decoded.
type Frame struct {
	Type      string // CUSTOM when a frame had a name and no type
	Name      string
	ID        string
	Seq       int64
	Timestamp int64  // ms since 1970; 0: none, or one that is no time between 1970 and 2200
	Source    string // claimed; never believed
	AgentID   protocol.AgentID
	AgentName string

	TargetAgentID protocol.AgentID // from value.targetAgentId when the top level had none
	MsgID         string
	MessageID     string
	RunID         string
	ThreadID      string
	ContextID     string
	ParentID      string
	ChannelID     string
	RoomID        string
	ReplyTo       string
	Addressee     []string
	FloorIntent   json.RawMessage
	Telemetry     bool
	Notice        bool
	NoWake        bool   // ours: the recipient need not be woken
	TraceParent   string // ours: W3C's traceparent; what is none counts as absent

	Value json.RawMessage

	// Run streams.
	Delta        string
	Role         string // also a HELLO's hint, never believed
	StepName     string
	ToolCallID   string
	ToolCallName string
	Message      string
	Outcome      json.RawMessage
	Args         json.RawMessage // args or argsPreview
	Result       json.RawMessage // resultPreview or content
	Display      json.RawMessage

	// HELLO.
	ClientID        string
	ProtocolVersion string
	PID             int64
	Key             string // key, peerKey, upstreamKey or collabKey, the first that is set
	Capabilities    []string
	MCPProxy        bool // an array of capabilities with "mcp-proxy": the mcp surface

	// Extra holds the unknown top-level fields, at most 256 of them; nil when there are none.
	Extra map[string]json.RawMessage
}

// Capabilities of ours and of the contract that change what the hub sends.
const (
	CapTiers    = "aster.tiers"
	CapAckLayer = "ack-layer"
	// CapArtifacts stands in SERVER_HELLO: the hub keeps attachments (artifact.go).
	CapArtifacts = "aster.artifacts"
	capMCPProxy  = "mcp-proxy"
)

// Can says whether a HELLO lists a capability.
func (f *Frame) Can(capability string) bool {
	for _, c := range f.Capabilities {
		if c == capability {
			return true
		}
	}
	return false
}

// Hello says whether f introduces an agent.
func (f *Frame) Hello() bool { return f.Type == TypeHello }

// Intent is the name under which f is routed: a CUSTOM frame's name, a run frame's type. An unknown type counts as a name,
// so that nothing reserved hides behind it.
func (f *Frame) Intent() protocol.Intent {
	if f.Name != "" && protocol.Lookup(protocol.Intent(f.Type)).Class != protocol.ClassRun {
		return protocol.Intent(f.Name)
	}
	return protocol.Intent(f.Type)
}

// Stream says whether f is a piece of a text or tool stream, which Streams joins.
func (f *Frame) Stream() bool {
	switch f.Type {
	case "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END",
		"TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT":
		return true
	}
	return false
}

// Observation says whether f only watches (wire 4.1): it wakes nobody, pairs with nothing and is not kept.
func (f *Frame) Observation() bool {
	const watch = "codex-watch"
	if f.Telemetry || f.ThreadID == watch || f.RunID == watch {
		return true
	}
	if f.Type == "STATE_SNAPSHOT" && string(f.Extra["scope"]) == `"`+watch+`"` {
		return true
	}
	n := f.Intent()
	return n == "SeatTelemetry" || protocol.Lookup(n).Class == protocol.ClassTelemetry
}

// Live says whether f goes out as it comes and is never kept as it is.
func (f *Frame) Live() bool {
	return f.Stream() || f.Observation() || protocol.Lookup(f.Intent()).Keeping == protocol.Live
}

// RecoveryKey is the id under which the sender means to hear of f again. The legacy messageId counts for CUSTOM only:
// for text streams it names the stream (fault B26).
func (f *Frame) RecoveryKey() (protocol.MsgID, bool) {
	if f.Observation() {
		return "", false
	}
	key := f.MsgID
	if key == "" && f.Type == TypeCustom {
		key = f.MessageID
	}
	return protocol.MsgID(key), key != ""
}

// Reserved says, as a Refusal, that only the hub sends what f claims to be (fault B13), or nil.
func (f *Frame) Reserved() *protocol.Refusal {
	for _, name := range [2]string{f.Type, f.Name} {
		if name != "" && protocol.Lookup(protocol.Intent(strings.TrimSpace(name))).HubOnly {
			return protocol.Refuse(protocol.CodeReservedName, "only the hub sends %s", "", protocol.CutText(name, 64))
		}
	}
	return nil
}

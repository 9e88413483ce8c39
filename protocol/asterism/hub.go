package asterism

import (
	"encoding/json"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// Encoder makes the frames that the hub itself sends, each with an id of its own (clients drop one that they have seen), a
// rising seq and a time. One Encoder serves all connections of a hub, so a frame for everybody is made once.
type Encoder struct {
	id  func() string
	seq int64
}

// NewEncoder takes what makes frame ids; it must never give the same twice, also not after a restart.
func NewEncoder(id func() string) *Encoder { return &Encoder{id: id} }

// open appends the beginning of a hub's frame up to and with source.
func (e *Encoder) open(at time.Time, frameType string) []byte {
	e.seq++
	b := appendText(append(make([]byte, 0, 256), '{'), "type", frameType)
	b = appendText(b, "id", e.id())
	b = appendInt(b, "seq", e.seq)
	b = appendInt(b, "timestamp", at.UnixMilli())
	return appendText(b, "source", string(protocol.SourceServer))
}

// Custom is one hub-made frame by name: key replies, HandoffRequested, SelectionExpired and whatever has no method here.
type Custom struct {
	Name    protocol.Intent
	To      protocol.AgentID // empty: for whoever gets it
	MsgID   protocol.MsgID   // set: the recipient acknowledges it, without a target
	Context string
	Parent  string
	Room    protocol.RoomID
	Value   json.RawMessage // JSON; empty becomes {}
}

// Custom encodes c. Its value is trusted to be JSON.
func (e *Encoder) Custom(at time.Time, c Custom) []byte {
	b := appendText(e.open(at, TypeCustom), "name", string(c.Name))
	b = appendText(b, "targetAgentId", string(c.To))
	b = appendText(b, "msgId", string(c.MsgID))
	b = appendText(b, "contextId", c.Context)
	b = appendText(b, "parentId", c.Parent)
	b = appendText(b, "roomId", string(c.Room))
	if len(c.Value) == 0 {
		c.Value = json.RawMessage("{}")
	}
	return append(dropComma(appendRaw(b, "value", c.Value)), '}')
}

// valued is Custom for a value of our own, which always encodes.
func (e *Encoder) valued(at time.Time, name protocol.Intent, to protocol.AgentID, value any) []byte {
	return e.Custom(at, Custom{Name: name, To: to, Value: protocol.EncodeBody(value)})
}

// ServerHello is the first frame on a connection that is not refused by its key alone. session names the connection; can is what
// the hub does beyond the contract.
func (e *Encoder) ServerHello(at time.Time, session string, can ...string) []byte {
	b := appendText(e.open(at, "SERVER_HELLO"), "sessionId", session)
	b = appendText(b, "protocolVersion", ProtocolVersion)
	b = appendText(b, "serverTime", at.UTC().Format("2006-01-02T15:04:05.000Z"))
	if len(can) > 0 {
		b = append(append(append(b, `"capabilities":`...), protocol.EncodeBody(can)...), ',')
	}
	return append(dropComma(b), '}')
}

// Agent is one row of AgentList.
type Agent struct {
	ID   protocol.AgentID
	Name string
	Role protocol.Role
}

// AgentList encodes the roster. It stays below protocol.HubFrameBytesMax: what does not fit is counted in value.more, so
// the caller puts the agents that matter to the viewer first.
func (e *Encoder) AgentList(at time.Time, agents []Agent) []byte {
	b := append(appendText(e.open(at, TypeCustom), "name", "AgentList"), `"value":{"agents":[`...)
	more := 0
	for i, a := range agents {
		if len(b) > protocol.HubFrameBytesMax-4096 {
			more = len(agents) - i
			break
		}
		name := a.Name
		if name == "" {
			name = string(a.ID)
		}
		b = appendText(append(b, '{'), "agentId", string(a.ID))
		b = appendText(b, "agentName", name)
		b = append(dropComma(appendText(b, "role", string(a.Role))), '}', ',')
	}
	b = append(dropComma(b), ']')
	if more > 0 {
		b = dropComma(appendInt(append(b, ','), "more", int64(more)))
	}
	return append(b, '}', '}')
}

// ConnectionInfo tells an agent that it is accepted, and as what.
type ConnectionInfo struct {
	AgentID          protocol.AgentID `json:"agentId"`
	Role             protocol.Role    `json:"role"`
	Surface          string           `json:"surface"` // "agent" or "mcp"
	MayManageKeys    bool             `json:"mayManageKeys"`
	MayRelayTargeted bool             `json:"mayRelayTargeted"`
	Keyed            bool             `json:"keyed"`
	HistoryScope     string           `json:"historyScope"`
	// Tiers repeats that receipts by tier will be sent (ours; clients that did not ask do not see it).
	Tiers bool `json:"tiers,omitempty"`
}

// ConnectionInfo encodes info; an empty HistoryScope becomes the contract's own.
func (e *Encoder) ConnectionInfo(at time.Time, info ConnectionInfo) []byte {
	if info.HistoryScope == "" {
		info.HistoryScope = "active-channels+stubs"
	}
	return e.valued(at, "ConnectionInfo", "", info)
}

// Rejection says why a connection ends.
type Rejection struct {
	Code      string `json:"code"`
	Reason    string `json:"reason"`
	Hint      string `json:"hint,omitempty"`
	Surface   string `json:"surface,omitempty"`
	IP        string `json:"ip,omitempty"`
	AgentID   string `json:"agentId,omitempty"`
	Label     string `json:"label,omitempty"`     // of the key
	ExpiresAt int64  `json:"expiresAt,omitempty"` // of the key, ms
	// PriorStateDelivered is true when this connection had been given the roster and history before.
	PriorStateDelivered bool `json:"priorStateDelivered"`
}

// ConnectionRejected encodes r; the caller closes with Rejection.CloseCode after it.
func (e *Encoder) ConnectionRejected(at time.Time, r Rejection) []byte {
	return e.valued(at, "ConnectionRejected", "", r)
}

// Ack says that an adapter of the recipient took a message (kind "delivered"), or, to clients with aster.tiers, a tier.
type Ack struct {
	For     protocol.MsgID
	Kind    string           // KindDelivered or a protocol.Tier
	From    protocol.AgentID // the recipient; "room:ID" for a room
	Reason  string           // of Kind "refused"
	Room    bool             // of a room: Reached and Offline hold
	Reached int              // how many have it on a socket
	Offline []string         // of a room: whose copy waits
}

// KindDelivered is the only kind of Ack that every client knows.
const KindDelivered = "delivered"

// Ack encodes a for the sender of the message.
func (e *Encoder) Ack(at time.Time, to protocol.AgentID, a Ack) []byte {
	b := appendText(e.open(at, TypeCustom), "name", string(protocol.Ack))
	b = append(appendText(b, "targetAgentId", string(to)), `"value":{`...)
	b = appendText(b, "ackFor", string(a.For))
	b = appendText(b, "kind", a.Kind)
	b = appendText(b, "from", string(a.From))
	b = appendText(b, "reason", a.Reason)
	if a.Room {
		b = appendTexts(appendInt(b, "recipients", int64(a.Reached)), "offline", a.Offline)
	}
	return append(dropComma(b), '}', '}')
}

// Processed is an AckProcessed as it is relayed to the sender of the message that it is about.
type Processed struct {
	From     Sender // who acknowledges
	For      protocol.MsgID
	Tier     string // "delivered-persist", or empty: the agent itself says so
	DedupHit bool
}

// AckProcessed encodes p for the sender of the message. It has no msgId: nobody acknowledges an acknowledgement.
func (e *Encoder) AckProcessed(at time.Time, to protocol.AgentID, p Processed) []byte {
	b := appendText(append(make([]byte, 0, 256), '{'), "type", TypeCustom)
	b = appendText(b, "id", e.id())
	b = appendInt(b, "timestamp", at.UnixMilli())
	b = appendText(b, "source", string(protocol.SourceAgent))
	b = appendText(b, "agentId", string(p.From.ID))
	b = appendText(b, "agentName", p.From.Name)
	b = appendText(b, "name", string(protocol.AckProcessed))
	b = append(appendText(b, "targetAgentId", string(to)), `"value":{`...)
	b = appendText(b, "ackFor", string(p.For))
	b = appendText(b, "tier", p.Tier)
	return append(dropComma(appendFlag(b, "dedupHit", p.DedupHit)), '}', '}')
}

// The contract's words for why a message is given up.
const (
	UnreachableNoAck     = "commitment-ack-absent"
	UnreachableAbsent    = "recipient-absent"
	UnreachableUntracked = "recipient-absent-untracked"
)

// Unreachable says that a message is dead.
type Unreachable struct {
	MsgID         *protocol.MsgID  `json:"msgId"` // null when its sender gave none
	TargetAgentID protocol.AgentID `json:"targetAgentId"`
	AttemptCount  int              `json:"attemptCount"`
	LastError     string           `json:"lastError"`
	Reason        string           `json:"reason,omitempty"` // ours: a sentence for a person
}

// RelayUnreachable encodes u for the sender alone.
func (e *Encoder) RelayUnreachable(at time.Time, to protocol.AgentID, u Unreachable) []byte {
	return e.valued(at, "RelayUnreachable", to, u)
}

// Notice is a ServerNotice of the node itself. Kinds of the contract: online, offline, restarting, key-expiry,
// flap-rejected; ours: queued, refused.
type Notice struct {
	Kind    string           `json:"kind"`
	Text    string           `json:"text"`
	Target  string           `json:"target,omitempty"`
	AgentID protocol.AgentID `json:"agentId,omitempty"`
	MsgID   protocol.MsgID   `json:"msgId,omitempty"` // the message concerned
	Code    string           `json:"code,omitempty"`
	Hint    string           `json:"hint,omitempty"`
	RetryMs int64            `json:"retryAfterMs,omitempty"` // of code rate: the same may be tried again then
}

// ServerNotice encodes n, for one agent or, with an empty to, for everybody.
func (e *Encoder) ServerNotice(at time.Time, to protocol.AgentID, n Notice) []byte {
	return e.valued(at, protocol.ServerNotice, to, n)
}

// Refused is the error frame: it tells the sender of a frame why nothing came of it. msg is the frame's msgId, if known.
func (e *Encoder) Refused(at time.Time, to protocol.AgentID, msg protocol.MsgID, no *protocol.Refusal) []byte {
	return e.ServerNotice(at, to, Notice{Kind: "refused", Text: no.Error(), MsgID: msg, Code: no.Code, Hint: no.Hint, RetryMs: no.RetryMs})
}

// MainChanged tells boards who is main.
func (e *Encoder) MainChanged(at time.Time, agent protocol.AgentID) []byte {
	return e.valued(at, "MainChanged", "", struct {
		AgentID protocol.AgentID `json:"agentId"`
	}{agent})
}

// HandoffRequested asks the current main to make ready for another.
func (e *Encoder) HandoffRequested(at time.Time, main, to protocol.AgentID, msg protocol.MsgID, reason string) []byte {
	return e.Custom(at, Custom{Name: "HandoffRequested", To: main, MsgID: msg, Value: protocol.EncodeBody(struct {
		To     protocol.AgentID `json:"to"`
		Reason string           `json:"reason,omitempty"`
	}{to, reason})})
}

package protocol

import "encoding/json"

// RoomOp says what a room's record does.
type RoomOp string

// What happens to a room. Its messages are msg records.
const (
	RoomCreated   RoomOp = "create"
	RoomJoined    RoomOp = "join"
	RoomLeft      RoomOp = "leave"
	RoomClosed    RoomOp = "close"
	RoomArtifacts RoomOp = "artifacts"
	RoomFloor     RoomOp = "floor"
	RoomStall     RoomOp = "stall"
	RoomShared    RoomOp = "share" // tells a member outside of a room that an agent of it came into; its create there
)

// RoomBody is one step in a room's life, written where it was asked for. Its limits were checked there.
type RoomBody struct {
	Room RoomID  `json:"room"`
	Op   RoomOp  `json:"op"`
	By   AgentID `json:"by,omitempty"` // empty: a person or the node

	// Of create and share.
	Topic        string      `json:"topic,omitempty"`
	Mode         string      `json:"mode,omitempty"` // temporary or persistent
	Moderated    bool        `json:"moderated,omitempty"`
	Moderator    AgentID     `json:"moderator,omitempty"`
	Participants []AgentID   `json:"participants,omitempty"`
	Budgets      RoomBudgets `json:"budgets,omitzero"`

	// Outside are, of create and join, the members outside where agents live who come in by it, by folded id.
	Outside map[AgentID]PeerID `json:"outside,omitempty"`

	Agent  AgentID `json:"agent,omitempty"`  // of join, leave, floor and stall
	Reason string  `json:"reason,omitempty"` // of close and stall
	MsgID  MsgID   `json:"msg,omitempty"`    // of stall: what waits
	Intent string  `json:"intent,omitempty"` // of floor: request, release, yield
	Bid    float64 `json:"bid,omitempty"`    // of floor

	// Of artifacts; a create may have a header.
	Header   *RoomText `json:"header,omitempty"`
	Decision *RoomText `json:"decision,omitempty"`
	Summary  *RoomText `json:"summary,omitempty"`
}

// RoomBudgets bound what agents may say in a room without a person; zero: the default (wire 7.1).
type RoomBudgets struct {
	MaxConsecutive int `json:"maxConsecutive,omitempty"` // messages of one agent in a row
	RatePerMin     int `json:"ratePerMin,omitempty"`     // messages of one agent in 60 s
	MaxAutoHop     int `json:"maxAutoHop,omitempty"`     // messages of agents since a person spoke
	StallRounds    int `json:"stallRounds,omitempty"`    // messages in a row that name nobody
}

// RoomText is something agreed in a room.
type RoomText struct {
	Text        string `json:"text"`
	Supersedes  string `json:"supersedes,omitempty"`   // of a decision: the id of an earlier one
	CoversUntil string `json:"covers_until,omitempty"` // of a summary: a message id
}

// FloorIntent is a wish for the floor: a word alone, or with a bid.
type FloorIntent struct {
	Intent string  `json:"intent"`
	Bid    float64 `json:"bid,omitempty"`
}

// UnmarshalJSON reads both forms.
func (f *FloorIntent) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		return json.Unmarshal(raw, &f.Intent)
	}
	type plain FloorIntent
	return json.Unmarshal(raw, (*plain)(f))
}

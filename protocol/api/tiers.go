package api

import "github.com/aster-mesh/aster/protocol"

// TierAt is a tier with its moment.
type TierAt struct {
	Tier   protocol.Tier    `json:"tier"`
	At     int64            `json:"at"` // wall clock of whoever says so, ms
	By     protocol.PeerID  `json:"by,omitempty"`
	Agent  protocol.AgentID `json:"agent,omitempty"`
	Reason string           `json:"reason,omitempty"`
}

// Waits says what a message to another board waits for, as its node knows it now. Of a room it is the floor: the board's hub takes
// nothing more of the sender for the moment.
type Waits struct {
	Board string           `json:"board"`
	Room  protocol.AgentID `json:"room,omitempty"` // as called here
	For   WaitsFor         `json:"for"`
}

// WaitsFor is what ends a wait.
type WaitsFor string

// Ends of a wait.
const (
	WaitsBoard  WaitsFor = "board"  // there is no connection to the board
	WaitsTurn   WaitsFor = "turn"   // somebody else in the room speaks
	WaitsMinute WaitsFor = "minute" // a minute is over
	WaitsPerson WaitsFor = "person" // a person speaks in the room
)

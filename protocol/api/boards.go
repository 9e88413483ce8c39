package api

import "github.com/aster-mesh/aster/protocol"

// BoardRequest joins a board that is not ours. POST /boards.
type BoardRequest struct {
	URL    string             `json:"url"`              // ws:// or wss://, without a key
	Name   string             `json:"name,omitempty"`   // what it is called here: its agents are NAME@…; empty: its host
	Key    string             `json:"key,omitempty"`    // of that board
	Agents []protocol.AgentID `json:"agents,omitempty"` // of this node; empty: whom commands speak as
	All    bool               `json:"all,omitempty"`    // every agent of this node, those to come included
	As     protocol.AgentID   `json:"as,omitempty"`     // what the one agent is called there; empty: as here
}

// Board is a board that this node has joined. GET /boards.
type Board struct {
	URL   string             `json:"url"`
	Name  string             `json:"name"`
	Keyed bool               `json:"keyed"`
	All   bool               `json:"all,omitempty"`
	Seats []Seat             `json:"seats"`
	There []protocol.AgentID `json:"there"` // its agents that are present now, as they are called here
	Rooms []FarRoom          `json:"rooms,omitempty"`
	// Undone, of the answer to a POST: it let nobody in, and neither it nor the agents that were made for it are here.
	Undone bool `json:"undone,omitempty"`
}

// FarRoom is a room of another board in which agents of ours are.
type FarRoom struct {
	ID    protocol.AgentID   `json:"id"` // as called here: whom to send to
	Topic string             `json:"topic,omitempty"`
	In    []protocol.AgentID `json:"in"` // ours
}

// SeatState says how one of our agents stands at a board.
type SeatState string

const (
	SeatConnecting SeatState = "connecting"
	SeatJoined     SeatState = "joined"
	SeatWaiting    SeatState = "waiting" // it tries again by itself
	SeatStopped    SeatState = "stopped" // a person must do something first
)

// Seat is one of our agents at a board.
type Seat struct {
	Agent protocol.AgentID `json:"agent"`
	As    protocol.AgentID `json:"as"` // as called there
	Role  string           `json:"role,omitempty"`
	State SeatState        `json:"state"`
	Why   string           `json:"why,omitempty"`
	Since int64            `json:"since"`           // ms
	Again int64            `json:"again,omitempty"` // ms: when it tries again
}

// BoardLeave gives a board up. POST /boards/leave.
type BoardLeave struct {
	URL string `json:"url"` // or the board's name here
}

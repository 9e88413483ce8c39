package api

import "github.com/aster-mesh/aster/protocol"

// NodeFile is node.json in the home (0600): how commands find and convince their node.
type NodeFile struct {
	PID     int             `json:"pid"`
	Board   string          `json:"board"` // http://127.0.0.1:7878
	Token   string          `json:"token"` // Authorization: Bearer; 32 random bytes, new at each start
	Peer    protocol.PeerID `json:"peer"`
	Version string          `json:"version"`
}

// Ready is the first line of `aster up --json`.
type Ready struct {
	Event string           `json:"event"` // "ready"
	Board string           `json:"board"`
	Peer  protocol.PeerID  `json:"peer"`
	Agent protocol.AgentID `json:"agent"`
	Mesh  []string         `json:"mesh"`
	PID   int              `json:"pid"`
	Name  string           `json:"name"`
	Role  protocol.Role    `json:"role"`
	// Joined is set after --join: what the first comparison brought.
	Joined *Joined `json:"joined,omitempty"`
	// Warnings are said on stderr by the command.
	Warnings []string `json:"warnings,omitempty"`
}

// Joined says how this node entered its mesh.
type Joined struct {
	Through   string `json:"through"` // name of the inviting node
	Transport string `json:"transport"`
	Direct    bool   `json:"direct"`
	RTTMicros int64  `json:"rttMicros"`
	Records   uint64 `json:"records"`
	Of        uint64 `json:"of"`
}

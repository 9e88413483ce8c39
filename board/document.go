package board

import (
	"encoding/json"

	"github.com/aster-mesh/aster/protocol"
)

// Document is the mesh's state document: the newest that main's home published.
type Document struct {
	At   pos             `json:"at"`
	Wall int64           `json:"wall"` // its author's clock, ms
	By   protocol.PeerID `json:"by"`
	Text string          `json:"text"` // JSON
}

// publish takes a state document; of two the later holds. Only members of the inside publish one.
func (s *State) publish(at pos, wall int64, body protocol.StateBody) {
	if at.log.Scope != protocol.ScopeInside || len(body.Text) > protocol.StateBytesMax || !json.Valid([]byte(body.Text)) {
		return
	}
	if s.document == nil || s.document.At.before(at) {
		s.document = &Document{at, wall, at.log.Peer, body.Text}
	}
}

// Document is the state document in force, or nil. It is not changed afterwards.
func (s *State) Document() *Document { return s.document }

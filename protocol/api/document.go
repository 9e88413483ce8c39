package api

import (
	"encoding/json"

	"github.com/aster-mesh/aster/protocol"
)

// StateDocument answers GET /document: the mesh's state document, and what people said about it.
type StateDocument struct {
	Doc    json.RawMessage `json:"doc,omitempty"` // as main's home published it; absent: there is none yet
	At     int64           `json:"at,omitempty"`  // when, ms
	By     protocol.PeerID `json:"by,omitempty"`
	ByName string          `json:"byName,omitempty"`
	// Lists are current, planned, done and decisions in the order in which people see them.
	Lists map[string][]DocumentItem `json:"lists"`
	Words []DocumentWord            `json:"words"`           // oldest first
	Older bool                      `json:"older,omitempty"` // more was said before
}

// DocumentItem says where an item of a list stands in the document. One that is fixed has no name of its own.
type DocumentItem struct {
	Key   string `json:"key"`
	Index int    `json:"index"`
	Fixed bool   `json:"fixed,omitempty"`
}

// DocumentWord is a person's word about the document, which went to main as OperatorFeedback.
type DocumentWord struct {
	ID       protocol.MsgID  `json:"id"`
	Short    string          `json:"short"`
	At       int64           `json:"at"`
	Node     protocol.PeerID `json:"node"`
	NodeName string          `json:"nodeName"`
	Kind     string          `json:"kind"`          // the contract's: decision, context-feedback, reorder, proceed, request, mode, …
	Ref      string          `json:"ref,omitempty"` // the item that it is about
	Tab      string          `json:"tab,omitempty"`
	Choice   string          `json:"choice,omitempty"`
	Text     string          `json:"text,omitempty"`    // as much as a row shows
	Files    int             `json:"files,omitempty"`   // attachments that go with it
	Standby  *bool           `json:"standby,omitempty"` // of mode: what the person wishes
	Tier     protocol.Tier   `json:"tier"`              // how far it got
	Open     bool            `json:"open,omitempty"`    // main's document was published without knowing it
}

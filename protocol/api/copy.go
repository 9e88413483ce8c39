package api

import "github.com/aster-mesh/aster/protocol"

// Copy says that a node's home was copied and both ran: the older start has stopped writing. It is shown until a start that
// is newer than both is known.
type Copy struct {
	Peer    protocol.PeerID `json:"peer"`
	Node    string          `json:"node"`
	Stopped string          `json:"stopped"`        // the start that writes no more
	By      string          `json:"by"`             // the newer one
	Host    string          `json:"host,omitempty"` // of the one that stopped, as it says
	Home    string          `json:"home,omitempty"` // likewise
	// This is true where the asked process is the one that stopped: its writes are refused.
	This bool  `json:"this,omitempty"`
	At   int64 `json:"at"` // wall clock of the one that stopped, ms since 1970
}

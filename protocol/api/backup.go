package api

import "github.com/aster-mesh/aster/protocol"

// StoreCopy is a copy of the running node's store in a folder of its home; whoever asked for it removes the folder.
type StoreCopy struct {
	Dir     string `json:"dir"`
	At      int64  `json:"at"` // ms since 1970
	Records uint64 `json:"records"`
}

// Exported is a home in a file.
type Exported struct {
	File    string          `json:"file,omitempty"`
	Peer    protocol.PeerID `json:"peer"`
	Name    string          `json:"name"`
	Mesh    string          `json:"mesh"`
	At      int64           `json:"at"` // of the copy of the store, ms since 1970
	Records uint64          `json:"records"`
	Parts   int             `json:"parts"`
	Bytes   int64           `json:"bytes"`   // of the parts together
	MeshKey bool            `json:"meshKey"` // the mesh key is inside
	Fenced  bool            `json:"fenced,omitempty"`
	Left    []string        `json:"left,omitempty"` // what lies in the home and did not come along
	// Damage is why the store could not be taken whole, if so.
	Damage string `json:"damage,omitempty"`
}

// Imported is a home that came out of a file.
type Imported struct {
	Home    string          `json:"home"`
	Peer    protocol.PeerID `json:"peer"`
	Name    string          `json:"name"`
	Mesh    string          `json:"mesh"`
	Version string          `json:"version"` // of the aster that wrote the file
	At      int64           `json:"at"`      // when the copy was made, ms since 1970
	Records uint64          `json:"records"`
	Parts   int             `json:"parts"`
	Bytes   int64           `json:"bytes"`
	MeshKey bool            `json:"meshKey"`
	Fenced  bool            `json:"fenced,omitempty"`
}

// MeshKeyFile is a mesh key outside of its home.
type MeshKeyFile struct {
	What string `json:"what"` // MeshKeyWhat
	Mesh string `json:"mesh"`
	Key  string `json:"key"` // the seed, base64
}

// MeshKeyWhat is what a file with a mesh key says of itself.
const MeshKeyWhat = "aster mesh key"

// StoreHealth is how a node's store is, and what became of one that was damaged.
type StoreHealth struct {
	// Faults are what is wrong now.
	Faults []StoreFault `json:"faults,omitempty"`
	// Reason says why the store was rebuilt; SetAside are the files that were kept of the damaged one, Salvaged the records
	// that were taken over from it.
	Reason   string   `json:"reason,omitempty"`
	SetAside []string `json:"setAside,omitempty"`
	Salvaged uint64   `json:"salvaged,omitempty"`
	// Missing are the records that are not here any more and have not come again from other nodes.
	Missing []MissingRecords `json:"missing,omitempty"`
	// Contents are the hashes of attachments whose content was damaged and has not come again.
	Contents []string `json:"contents,omitempty"`
}

// StoreFault is one thing that is wrong with a store.
type StoreFault struct {
	Code string `json:"code"`
	What string `json:"what"`
}

// MissingRecords is a range of one log, both ends included.
type MissingRecords struct {
	Log  string `json:"log"`
	Node string `json:"node,omitempty"` // whose log, by name if that is known
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

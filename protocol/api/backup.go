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

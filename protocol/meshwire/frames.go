package meshwire

import "github.com/aster-mesh/aster/protocol"

// Version is what Hello carries; it rises when a frame changes its meaning, not when keys or types are added.
const Version = 1

// Frame is one thing a node says to another. The set is closed.
type Frame interface {
	// Type is the byte that stands before the body.
	Type() byte
}

// The types of frame; a number is never used again for something else.
const (
	TypeHello    byte = 1
	TypeVector   byte = 2
	TypeRecords  byte = 3
	TypeHave     byte = 4
	TypeNeed     byte = 5
	TypeLive     byte = 6
	TypePresence byte = 7
	TypeRoster   byte = 8
	TypeAddrs    byte = 9
	TypeBlobGet  byte = 10
	TypeBlobData byte = 11
	TypePing     byte = 12
	TypePong     byte = 13
	TypeBye      byte = 14
	TypeOffice   byte = 15
	TypeClaims   byte = 16
	TypeStarted  byte = 17
	TypeBase     byte = 18
)

// Hello is the first frame on a link, in both directions. Who speaks is known from the link itself.
type Hello struct {
	Version  int
	Mesh     string // mesh id
	Start    protocol.Start
	Name     string // of the node, for people
	Role     protocol.Role
	Board    string // address of its board, for people
	Wall     int64  // its wall clock, ms since 1970
	Software string
}

// Mark says how far a log is held: the highest seq without a gap.
type Mark struct {
	Log protocol.LogID
	Seq uint64
	// Hash is the first eight bytes of the hash of the record at Seq; zero: not stated. Only a Vector carries it.
	Hash [8]byte
}

// Past stands for all logs of an author's former starts: equal sums, equal logs.
type Past struct {
	Author protocol.PeerID
	Sum    [16]byte
}

// Vector is a comparison: what the sender holds of what the receiver may see. Without Of it speaks of everything: an
// author that it does not name is one of whom nothing is held. With Of it speaks of the former starts of these authors
// only. A vector of several frames has More on all but its last; Join puts it together.
type Vector struct {
	Marks []Mark
	Past  []Past
	Of    []protocol.PeerID
	More  bool
}

// Records is a range of one log: whole commits without a gap. What each record repeats of the log and of its
// predecessor does not travel.
type Records struct {
	Log     protocol.LogID
	First   uint64
	Prev    protocol.Hash // of the record before First; zero for 1
	Records []Rec
}

// Rec is the part of a record that Records cannot derive.
type Rec struct {
	At   protocol.HLC
	Wall int64
	Kind protocol.Kind
	Body []byte
	Sig  []byte // 64 bytes at the end of a commit, else none
}

// Have says what the sender has on disk without a gap, blobs included. Its marks carry no hash.
type Have struct {
	Marks []Mark
}

// Need asks for a log from From on; the asker holds all before From. With To it asks for that range once, as a proof,
// and says nothing about what the asker holds.
type Need struct {
	Log  protocol.LogID
	From uint64
	To   uint64 // 0: to the end
}

// Live is a frame of the board that never enters the journal.
type Live struct {
	Agent protocol.AgentID
	Kind  string
	Frame []byte // JSON
}

// AgentPresence is how an agent is now, as its home knows it.
type AgentPresence struct {
	ID          protocol.AgentID
	Name        string
	Role        protocol.Role
	State       protocol.AgentState
	SinceMillis int64 // wall clock, ms since 1970
	Unread      int
	Wakes       string // how it is woken, in words
	Doing       string
	Attached    []string // "ws", "files", "mcp", …
}

// Presence is all agents of the sending node; one with a greater (Start, Counter) replaces it. Several frames of one
// Counter have More on all but the last.
type Presence struct {
	Start   protocol.Start
	Counter uint64
	Agents  []AgentPresence
	More    bool
}

// RosterAgent is an agent of any node.
type RosterAgent struct {
	AgentPresence
	Home     protocol.PeerID
	NodeName string
}

// RosterNode is a node that the receiver may see.
type RosterNode struct {
	Peer   protocol.PeerID
	Name   string
	Role   protocol.Role
	Online bool
}

// Roster is what an outside member may see of the mesh; it takes no part in gossip. Several frames of one Counter have
// More on all but the last.
type Roster struct {
	Counter uint64
	Agents  []RosterAgent
	Nodes   []RosterNode
	More    bool
}

// Addrs is where a node can be reached, signed by itself (see SignAddrs), so that others may pass it on.
type Addrs struct {
	Peer  protocol.PeerID
	Addrs []string // multiaddrs
	At    int64    // its wall clock, ms since 1970; the greater one holds
	Sig   []byte
}

// Started says that a start of a node runs, signed by that node's key (see SignStarted), so that others may pass it on.
type Started struct {
	Peer  protocol.PeerID
	Start protocol.Start
	Sig   []byte
}

// Base says that the sender does not hold what the receiver lacks: its logs begin at a base, whose snapshot it gives to who asks
// for it by a stream. A node that does not know this frame passes over it.
type Base struct {
	Digest [32]byte // of the snapshot
	Bytes  uint64   // it is long, at most BaseBytesMax
}

// BaseBytesMax bounds a snapshot: the fold of a mesh and one line for each of its logs.
const BaseBytesMax = 256 << 20

// BlobGet asks for a piece of a blob.
type BlobGet struct {
	SHA256 string // 64 hex digits, lower case
	Offset int64
	Length int64
}

// BlobData answers a BlobGet.
type BlobData struct {
	SHA256  string
	Offset  int64
	Total   int64 // bytes of the whole blob
	Data    []byte
	Missing bool // not here, or not to be seen by the asker: the two look alike
	Left    bool // with Missing: it was here, or was known, and left because it was over
}

// Ping asks for a Pong of the same ID. Wall is the sender's clock, ms since 1970.
type Ping struct {
	ID   uint64
	Wall int64
}

// Pong answers a Ping with the answerer's clock.
type Pong struct {
	ID   uint64
	Wall int64
}

// Bye is the last frame of a link that ends on purpose.
type Bye struct {
	Reason string
	Code   string // a refusal's code, or empty
}

// Unknown is a frame of a newer node.
type Unknown struct{ Kind byte }

func (Hello) Type() byte     { return TypeHello }
func (Vector) Type() byte    { return TypeVector }
func (Records) Type() byte   { return TypeRecords }
func (Have) Type() byte      { return TypeHave }
func (Need) Type() byte      { return TypeNeed }
func (Live) Type() byte      { return TypeLive }
func (Presence) Type() byte  { return TypePresence }
func (Roster) Type() byte    { return TypeRoster }
func (Addrs) Type() byte     { return TypeAddrs }
func (Started) Type() byte   { return TypeStarted }
func (Base) Type() byte      { return TypeBase }
func (BlobGet) Type() byte   { return TypeBlobGet }
func (BlobData) Type() byte  { return TypeBlobData }
func (Ping) Type() byte      { return TypePing }
func (Pong) Type() byte      { return TypePong }
func (Bye) Type() byte       { return TypeBye }
func (u Unknown) Type() byte { return u.Kind }

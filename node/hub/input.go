package hub

import (
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/room"
)

// ConnID names one attachment of an agent or a board for the life of the process; 0 is none.
type ConnID uint64

// Token names whoever waits for the answer to one input; 0 is nobody.
type Token uint64

// Ref names one record.
type Ref struct {
	Log protocol.LogID
	Seq uint64
}

// Input is anything that can happen to a hub. The set is closed.
type Input interface{ isInput() }

// Attach says that an authenticated agent is reachable through a connection.
type Attach struct {
	Conn   ConnID
	Agent  protocol.AgentID
	Name   string
	Role   protocol.Role // what its key or the node's own rule says; main is decided by the term
	Client string        // "ws", "files", "cli", "mcp", "worker"
	Wakes  string        // how it is woken, in words; "" for a socket
	// Tiers: its HELLO lists aster.tiers. AckLayer: it lists ack-layer.
	Tiers, AckLayer bool
	Token           Token
}

// Detach ends a connection of an agent or board.
type Detach struct{ Conn ConnID }

// OpenBoard is a socket without HELLO that watches everything.
type OpenBoard struct {
	Conn ConnID
}

// Say is one message of an authenticated sender.
type Say struct {
	Conn ConnID           // 0: through the command line or the API
	As   protocol.AgentID // the sender; "" with Env.Source board: a person
	Env  protocol.Envelope
	// Seen is what the journal holds under Env.Identity(), if anything.
	Seen  *Seen
	Token Token
	// Values go into the same commit (an outbox cursor).
	Values map[string][]byte
	// Parent is the envelope that Env.Re names, if the journal has it: the hop chain continues it.
	Parent *protocol.Envelope
	// Declared is what the board holds, for a RoleState or SeatTelemetry.
	Declared Declared
	// BindAs is the client word for a binding that this message makes (first use of the node's own agent).
	BindAs string
	// Far is what the shell knows where the message is for a room of another board.
	Far *Far
}

// Seen is an earlier message under the same identity.
type Seen struct {
	Content protocol.Digest
	Ref     Ref
}

// SayLive is a frame that never enters the journal.
type SayLive struct {
	Conn  ConnID
	As    protocol.AgentID
	To    protocol.AgentID
	Frame []byte
}

// Acked is an agent's AckProcessed. Processed: the agent itself vouches; else its adapter has persisted it.
type Acked struct {
	Agent     protocol.AgentID
	Of        protocol.MsgID
	From      protocol.AgentID // the original sender when the ack names it
	Processed bool
	Token     Token
}

// Taken says that an adapter took a delivery: the socket's peer has read it.
type Taken struct {
	Conn ConnID
	Refs []Ref
}

// Applied is a record of another node, verified, that will be in the same commit as what it causes.
type Applied struct {
	Record *protocol.Record
	Env    *protocol.Envelope // of messages that count
	// Disbelieved is a message that does not count here since its speaker's name is another's.
	Disbelieved *protocol.Envelope
	Seen        *Seen // of messages for an agent here: an earlier one under the same identity
	// Parent is, of a report to an agent here, the Delegate that it is on.
	Parent *protocol.Envelope
	// Settled: a home of the recipient has said that it was processed or refused: a former one, of an agent that moved here,
	// or this one, whose disk was replaced by an older copy since.
	Settled bool
	// Later: its recipient is known here again since this turn, and takes it with what was passed over before (Missed).
	Later bool
	// Over names those of whom the same is known of a room's message: this home's own word, come back to it.
	Over []protocol.AgentID
	// Held says how far a log is held here. Nil: the author is believed to speak of messages that there are.
	Held func(protocol.LogID) uint64
}

// DeliveredElsewhere is a peer's hint that an adapter of the recipient took a message.
// Kept: the adapter has it on its own disk.
type DeliveredElsewhere struct {
	Ref   Ref
	Agent protocol.AgentID
	Kept  bool
}

// Replicated says that another inside node has our log on disk up to Seq.
type Replicated struct {
	Log protocol.LogID
	Seq uint64
}

// PeerPresence replaces what is known of a peer's agents.
type PeerPresence struct {
	Peer   protocol.PeerID
	Agents []Presence
}

// PeerGone says that no link to a peer is left.
type PeerGone struct{ Peer protocol.PeerID }

// Presence is one agent's state at its home.
type Presence struct {
	Agent    protocol.AgentID
	Name     string
	Role     protocol.Role
	Home     protocol.PeerID
	State    protocol.AgentState
	Since    time.Time
	Wakes    string
	Doing    string
	Unread   int
	Bytes    int // of these; of agents here alone
	Attached []string
}

// Members replaces what is known of the mesh's members; Term of who is main.
type Members struct{ All map[protocol.PeerID]Member }

// Member is what the hub must know of a node.
type Member struct {
	Name   string
	Role   protocol.Role
	Inside bool
	Gone   bool // revoked or left
	// Admitted is when it was first let in, by the clock of who did, ms.
	Admitted int64
}

// Rooms replaces what is known of rooms, after a cut took records back.
type Rooms struct {
	All    map[protocol.RoomID]*room.Room
	Shared map[protocol.PeerID]map[protocol.RoomID]*room.Room // as members outside were told of them
}

// Term names the main agent.
type Term struct{ protocol.TermBody }

// Wait asks to be answered when mail is unread that was not announced before.
type Wait struct {
	Agent protocol.AgentID
	Token Token
}

// Unwait withdraws a Wait.
type Unwait struct{ Token Token }

// Declare binds an agent here before it is attached (the worker's agent).
type Declare struct {
	Agent  protocol.AgentID
	Client string
	Wakes  string
	Token  Token
}

// Forget withdraws the binding of an agent of this node that is not attached.
type Forget struct {
	Agent protocol.AgentID
	Token Token
	// Left names the board of which the agent is and that was left: who wrote to it is told so.
	Left string
}

// Doing says what an agent is at, for the roster.
type Doing struct {
	Agent protocol.AgentID
	State protocol.AgentState
	Text  string
}

// Author writes one record of the node itself (member, revoke, term, invite-used).
type Author struct {
	Scope protocol.Scope
	Kind  protocol.Kind
	Body  []byte
	Token Token
}

// Announce is a message of the node itself to an agent here, in the inside's log.
type Announce struct{ Env protocol.Envelope }

// Fence says that this start writes nothing more: a newer one of the same home runs. Whoever asks is told Refusal, nobody is
// given mail, and no record comes of anything. What was stepped before in the same turn still counts.
type Fence struct{ Refusal *protocol.Refusal }

// Tick says that time passed.
type Tick struct{}

func (Attach) isInput()             {}
func (Detach) isInput()             {}
func (OpenBoard) isInput()          {}
func (Say) isInput()                {}
func (SayLive) isInput()            {}
func (Acked) isInput()              {}
func (Taken) isInput()              {}
func (Applied) isInput()            {}
func (DeliveredElsewhere) isInput() {}
func (Replicated) isInput()         {}
func (PeerPresence) isInput()       {}
func (PeerGone) isInput()           {}
func (Members) isInput()            {}
func (Term) isInput()               {}
func (Wait) isInput()               {}
func (Unwait) isInput()             {}
func (Declare) isInput()            {}
func (Forget) isInput()             {}
func (Doing) isInput()              {}
func (Author) isInput()             {}
func (Rooms) isInput()              {}
func (Announce) isInput()           {}
func (Fence) isInput()              {}
func (Tick) isInput()               {}

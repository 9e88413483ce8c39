package hub

import (
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// Draft is a record of this node's own, complete but for its predecessor's hash and its signature.
type Draft struct {
	Record protocol.Record
	Env    *protocol.Envelope // of messages
}

// InboxPut says that a message is now in the inbox of an agent here.
type InboxPut struct {
	Agent protocol.AgentID
	Ref   Ref
}

// TierPut is a tier of a message that the journal keeps for queries.
type TierPut struct {
	Ref    Ref
	Tier   protocol.Tier
	Agent  protocol.AgentID
	At     protocol.HLC
	Wall   int64
	By     protocol.PeerID
	Reason string
}

// Ready is what the loop owes the world after a batch of Steps: Drafts, Inbox, Tiers and Values durable in one commit
// before anything in Out leaves, then Out in order.
type Ready struct {
	Drafts  []Draft
	Inbox   []InboxPut
	Tiers   []TierPut
	Renames []InboxRename      // follow Inbox and Tiers
	Left    []protocol.AgentID // what is unread there is another home's now; before all else
	Values  map[string][]byte
	Out     []Out
}

// Out is one thing to do after the commit. The set is closed.
type Out interface{ isOut() }

// Deliver gives a message to an attached agent. Env nil: read it from the journal.
type Deliver struct {
	Conn ConnID
	Ref  Ref
	Env  *protocol.Envelope
	To   protocol.AgentID // the recipient: a room's message names many
	Try  int              // 1 the first time on this connection
}

// Copy shows a message to the boards; Except is the board that said it.
type Copy struct {
	Ref    Ref
	Env    *protocol.Envelope
	Except ConnID
}

// LiveCopy passes a live frame to an agent's sockets here, or to all boards when To is empty.
type LiveCopy struct {
	Conns []ConnID // of the target; nil with Boards
	Board bool
	From  protocol.AgentID
	Frame []byte
}

// LiveOut passes a live frame to other nodes: Home, or every inside peer when empty.
type LiveOut struct {
	Home  protocol.PeerID
	From  protocol.AgentID
	To    protocol.AgentID
	Frame []byte
}

// Told answers a Token.
type Told struct {
	Token   Token
	Refusal *protocol.Refusal
	Ref     Ref
	ID      protocol.MsgID
	To      protocol.AgentID // whom a message that named nobody went to
	Repeat  bool
	Wait    *Waited
	// Of a Move: how much unread mail goes along, and whether main decided it.
	Unread int
	Forced bool
}

// Waited answers a Wait.
type Waited struct {
	Agent  protocol.AgentID
	Unread int
	IDs    []protocol.MsgID
	Again  bool
}

// Refused tells the connection that spoke why its message was not taken.
type Refused struct {
	Conn    ConnID
	Env     *protocol.Envelope
	Refusal *protocol.Refusal
}

// TierReached says that a message reached a tier; the shell tells its sender's sockets, waiters and pages.
// Delivered and Kept mark the two hints that are no tiers: an adapter took it, an adapter has it on its disk.
type TierReached struct {
	Ref       Ref
	Tier      protocol.Tier
	Delivered bool
	Kept      bool
	Agent     protocol.AgentID // of whom: the recipient
	Reason    string
}

// HintDelivered tells the sender's home that an adapter took a message.
type HintDelivered struct {
	Home  protocol.PeerID
	Ref   Ref
	Agent protocol.AgentID
	Kept  bool
}

// QueuedNotice tells a sender that its recipient has been absent for QueuedNoticeAfter.
type QueuedNotice struct {
	Ref    Ref
	Sender protocol.AgentID
	Target protocol.AgentID
	ID     protocol.MsgID
	Since  time.Time
}

// Roster asks for one AgentList to Conn, or to every connection when 0.
type Roster struct{ Conn ConnID }

// Welcome tells a connection who it is now: ConnectionInfo.
type Welcome struct {
	Conn  ConnID
	Agent protocol.AgentID
	Role  protocol.Role
}

// Replaced closes a socket whose agent attached through a newer one; Flap refuses the newcomer instead.
type Replaced struct {
	Conn ConnID
	Flap bool
}

// MovedAway closes a connection whose agent lives on another node now.
type MovedAway struct {
	Conn  ConnID
	Agent protocol.AgentID
	Home  protocol.PeerID
}

// Recalled tells a connection that its agent is called otherwise from now on: another's binding of the name prevailed.
type Recalled struct {
	Conn    ConnID
	Was, Is protocol.AgentID
	Role    protocol.Role
}

// PresenceChanged asks for our agents' presence to be sent to peers.
type PresenceChanged struct{}

// Mail says that an agent here has new mail (files, wakes).
type Mail struct{ Agent protocol.AgentID }

// MainChanged tells boards, and whoever is and was it, of a new main.
type MainChanged struct{ Agent, Was protocol.AgentID }

// RoomEvent tells participants' sockets, and the boards here or everywhere, what happened in a room.
type RoomEvent struct {
	Name       protocol.Intent
	Room       protocol.RoomID
	Value      []byte // JSON
	Conns      []ConnID
	To         protocol.AgentID // of a guard: the offender
	Boards     bool
	Everywhere bool
}

// RoomAcked tells a room's speaker how many have its message on a socket and whose copies wait.
type RoomAcked struct {
	Sender  protocol.AgentID
	Room    protocol.RoomID
	ID      protocol.MsgID
	Reached int
	Offline []string
}

func (RoomEvent) isOut()       {}
func (RoomAcked) isOut()       {}
func (Deliver) isOut()         {}
func (Copy) isOut()            {}
func (LiveCopy) isOut()        {}
func (LiveOut) isOut()         {}
func (Told) isOut()            {}
func (Refused) isOut()         {}
func (TierReached) isOut()     {}
func (HintDelivered) isOut()   {}
func (QueuedNotice) isOut()    {}
func (Roster) isOut()          {}
func (Welcome) isOut()         {}
func (Replaced) isOut()        {}
func (MovedAway) isOut()       {}
func (Recalled) isOut()        {}
func (PresenceChanged) isOut() {}
func (Mail) isOut()            {}
func (MainChanged) isOut()     {}

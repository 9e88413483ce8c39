package web

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// Backend is the node as the board sees it. All methods may be called by many goroutines at once and return when ctx
// ends. An error that is (or wraps) a *protocol.Refusal is the caller's to see; any other is answered "internal" and
// logged. Ids of messages and tasks may be whole, short, or short with their prefix (t-7kq2m).
type Backend interface {
	Viewer
	Watched
	Page
	Mail
	Members
	Keys
	Blobs
	Sockets
	Office
	Backups
	Pushes
}

// Backups is what an export and a repair ask of the running node.
type Backups interface {
	// CopyStore makes a copy of the store as of one moment in a folder of the home, which the caller removes.
	CopyStore(ctx context.Context) (api.StoreCopy, error)
	StoreHealth(ctx context.Context) (api.StoreHealth, error)
	// RepairStore reads everything again, asks other nodes for what is damaged, and waits half a minute at most for it.
	RepairStore(ctx context.Context) (api.StoreHealth, error)
	// CompareBoards has the members of the inside compare their boards, and waits half a minute at most for those linked.
	CompareBoards(ctx context.Context) (api.Compared, error)
}

// Watched is what machines ask that watch over the node. It answers whatever is broken.
type Watched interface {
	// Layers looks at each thing that the node stands on by itself, at once, and gives up on one after a second.
	Layers(ctx context.Context) []api.Layer
	// ServeMetrics answers with figures in Prometheus' text format.
	ServeMetrics(w http.ResponseWriter, r *http.Request)
}

// Viewer reads what the node knows.
type Viewer interface {
	Status(ctx context.Context) (api.Status, error)
	Peers(ctx context.Context) ([]api.Peer, error)
	Agents(ctx context.Context) ([]api.Agent, error)
	Snapshot(ctx context.Context) (api.Snapshot, error)
	Message(ctx context.Context, id string) (api.Message, error)
	// WaitTier returns the message once it has the tier, or is refused; until then it blocks.
	WaitTier(ctx context.Context, id string, tier protocol.Tier) (api.Message, error)
	// Messages are oldest first, at most q.Limit: the first ones after q.After or since q.Since when either is set,
	// else the last ones before q.Before.
	Messages(ctx context.Context, q MessageQuery) ([]api.Message, error)
	// Search finds words in what was said; newest first, at most limit, with Pos below before unless that is 0.
	Search(ctx context.Context, words string, before uint64, limit int) ([]api.Message, error)
	Tasks(ctx context.Context) ([]api.Task, error) // open ones first, then ended ones, newest first
	Task(ctx context.Context, id string) (api.Task, error)
	// Subscribe gives every event whose Pos is above since, then what happens from now on; since SinceNow gives only the
	// latter. Events without a Pos are never replayed. "agents" and "peers" events carry the whole list, "task" the whole
	// task without its reports. An event of type "reset" says that too much was missed to be replayed: the reader takes
	// a new snapshot. The channel is closed when ctx ends or the reader is too slow;
	// who still cares subscribes again from its last Pos.
	Subscribe(ctx context.Context, since uint64) <-chan api.Event
	// State is the mesh's state document (state.json), or nil when there is none.
	State(ctx context.Context) ([]byte, error)
}

// SinceNow asks Subscribe for nothing of the past.
const SinceNow = ^uint64(0)

// MessageQuery selects messages. Zero fields select nothing away.
type MessageQuery struct {
	Agent  protocol.AgentID // sender or target
	Intent protocol.Intent
	Before uint64 // Pos, exclusive
	After  uint64 // Pos, exclusive
	Since  int64  // author's wall clock, ms, inclusive
	Limit  int    // 1 to MessagesMax
}

// MessagesMax is the largest page of messages or inbox items: 1,000 rows of some 600 bytes stay below a megabyte.
const MessagesMax = 1000

// Mail is what agents and people do.
type Mail interface {
	Send(ctx context.Context, req api.SendRequest) (api.SendResult, error) // returns when logged
	// Inbox is oldest first. Agent empty: the node's rule chooses.
	Inbox(ctx context.Context, q InboxQuery) ([]api.InboxItem, error)
	// Outbox is what agent sent and nobody has processed yet; dead: what was given up. Agent empty: all of this node's.
	Outbox(ctx context.Context, agent protocol.AgentID, dead bool) ([]api.Message, error)
	Ack(ctx context.Context, req api.AckRequest) (api.AckResult, error)
	// Wait blocks until agent has something that neither a wait nor a hook has announced.
	Wait(ctx context.Context, agent protocol.AgentID, isNew bool) (api.WaitResult, error)
	CancelTask(ctx context.Context, id string) (api.Task, error)
}

// InboxQuery selects inbox items: the unread, or all, or the dead ones.
type InboxQuery struct {
	Agent protocol.AgentID
	All   bool
	Dead  bool
	After uint64 // Pos, exclusive
	Limit int    // 0: all
}

// Members is what the node's owner does.
type Members interface {
	Invite(ctx context.Context, req api.InviteRequest) (api.InviteResult, error)
	RenewMember(ctx context.Context, peer protocol.PeerID) (api.Peer, error)
	RevokeMember(ctx context.Context, peer protocol.PeerID, reason string) error
	Leave(ctx context.Context) error
	ForgetAgent(ctx context.Context, agent protocol.AgentID) error
	// RenameAgent gives an agent of this node another name; its inbox goes along.
	RenameAgent(ctx context.Context, agent, to protocol.AgentID) (api.Agent, error)
	// MoveAgent hands an agent and its unread mail over to the node of this name or peer id.
	MoveAgent(ctx context.Context, agent protocol.AgentID, node string) (api.Moved, error)
	// Shutdown begins the end of the process and returns; the answer is still sent.
	Shutdown(ctx context.Context) error
}

// Keys are the contract's keys, for the node's owner and for the pages of who joins. A ref is a kr-…, or a label that only
// one key has.
type Keys interface {
	// Keys are the oldest first; all: those that are over as well.
	Keys(ctx context.Context, all bool) ([]api.Key, error)
	IssueKey(ctx context.Context, req api.KeyRequest) (api.KeyIssued, error)
	// RenewKey gives a key another life of ttl milliseconds; nil: as long as the last.
	RenewKey(ctx context.Context, ref string, ttl *int64) (api.Key, error)
	LabelKey(ctx context.Context, ref, label string) (api.Key, error)
	RevokeKey(ctx context.Context, ref, mode string) (api.KeyRevoked, error)
	// JoinKey is the key of a string, or a refusal unless it may be used now.
	JoinKey(ctx context.Context, secret string) (api.Key, error)
	// JoinLocal is the local key of a label that may be used now, with the path of the file that holds it.
	JoinLocal(ctx context.Context, label string) (api.Key, string, error)
}

// Office is who is main, and what agents hold for themselves alone.
type Office interface {
	Main(ctx context.Context) (api.Main, error)
	// Handoff returns when main was asked to hand over, wherever it is.
	Handoff(ctx context.Context, req api.HandoffRequest) error
	// TakeMain makes this node main without an election.
	TakeMain(ctx context.Context) (api.TakeResult, error)
	Claims(ctx context.Context) ([]api.Claim, error)
	// Acquire returns when main has granted the claim, or refused it.
	Acquire(ctx context.Context, req api.ClaimRequest) (api.Claim, error)
	ReleaseClaim(ctx context.Context, id string) error
}

// Blobs are attachments by content hash.
type Blobs interface {
	// PutBlob stores what r gives, at most protocol.BlobBytesMax bytes (the reader ends with an error beyond). want, if
	// not empty, is the hex SHA-256 that it must have; otherwise nothing is kept and a bad-frame refusal says so.
	PutBlob(ctx context.Context, r io.Reader, want string) (protocol.BlobRef, error)
	// PutPart stores the next piece of content of a size and hash, which begins at offset; what does not continue what is
	// here is refused. A piece of nothing asks how far it is.
	PutPart(ctx context.Context, sha256 string, offset, total int64, r io.Reader) (api.Upload, error)
	// Attachment returns content of the message that names it, with what the message says of it and its size in bytes; the
	// caller closes it.
	Attachment(ctx context.Context, msg, sha256 string) (io.ReadSeekCloser, protocol.BlobRef, error)
	// OpenBlob returns the content and its size in bytes; the caller closes it.
	OpenBlob(ctx context.Context, sha256 string) (io.ReadSeekCloser, int64, error)
}

// Sockets takes the upgrade of /ws. Host and Origin were checked; rights are still to be decided from who.
type Sockets interface {
	ServeSocket(w http.ResponseWriter, r *http.Request, who Caller)
}

// Standing says which credential came with a request.
type Standing string

const (
	Nobody   Standing = "none"     // no credential: the socket's own rules apply (key, HELLO, the system's user)
	Operator Standing = "operator" // a browser with a session of this board
	Token    Standing = "token"    // whoever can read node.json
)

// Caller is what the checks found out about whoever opens a socket.
type Caller struct {
	Standing Standing
	// Origin is true when the request came from a page; without a session such a socket is nobody's.
	Origin bool
	// Loopback is true when both ends of the connection are loopback addresses and nothing says it was forwarded.
	Loopback bool
	// While is done when what lets the caller in is over before its time: a session that was ended, or for somebody
	// without any credential, when the first account is made. Nil: nothing but the connection ends it.
	While context.Context
}

// ErrNotReady says that the node does not serve yet; it is answered 503.
var ErrNotReady = errors.New("the node is not ready")

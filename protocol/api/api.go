package api

import (
	"encoding/json"

	"github.com/aster-mesh/aster/protocol"
)

// Upload is how far content has come that is given in pieces.
type Upload struct {
	SHA256   string `json:"sha256"`
	Bytes    int64  `json:"bytes"`
	Have     int64  `json:"have"` // bytes from its beginning: where to go on
	Complete bool   `json:"complete"`
}

// Prefix stands before every path of the API.
const Prefix = "/api/v1"

// Error is the body of every answer that is not 2xx. Codes are protocol's refusal codes or "internal".
//
//	400 malformed request · 401 no credential · 403 refused (rights, host, origin) · 404 unknown id
//	408 timed out · 409 state forbids it · 413 too large · 507 disk full
type Error struct {
	Error protocol.Refusal `json:"error"`
}

// Status answers GET /status: one screen of health.
type Status struct {
	Name          string           `json:"name"`
	Peer          protocol.PeerID  `json:"peer"`
	PID           int              `json:"pid"`
	Version       string           `json:"version"`
	Home          string           `json:"home"`
	Since         int64            `json:"since"` // start of the process, ms
	Now           int64            `json:"now"`
	MeshID        string           `json:"meshId"`
	Role          protocol.Role    `json:"role"`             // main while it holds the term, else its certificate's: local, upstream, collab, peer
	Fenced        bool             `json:"fenced,omitempty"` // a newer start of this node is known: this one writes nothing, and what it says of main is old
	Board         string           `json:"board"`
	Listen        []string         `json:"listen"` // multiaddrs
	Loopback      bool             `json:"loopback"`
	Agent         protocol.AgentID `json:"agent,omitempty"` // whom commands speak as by default
	Main          Main             `json:"main"`
	Nodes         int              `json:"nodes"`  // members, this one included
	Linked        int              `json:"linked"` // of the others
	Records       uint64           `json:"records"`
	Behind        uint64           `json:"behind"` // records known to exist elsewhere and not here
	Disk          int64            `json:"disk"`
	DiskMax       int64            `json:"diskMax"`
	DiskFull      bool             `json:"diskFull"`
	DiskShort     bool             `json:"diskShort,omitempty"` // it is the disk itself that is full, not this node's share of it
	Journal       string           `json:"journal"`             // digest: hex SHA-256 over (log, last contiguous seq, its hash), sorted
	BoardDigest   string           `json:"boardDigest"`
	Goroutines    int              `json:"goroutines"`
	ResidentBytes int64            `json:"residentBytes"`
	Warnings      []string         `json:"warnings,omitempty"`
	WarningKinds  []string         `json:"warningKinds,omitempty"` // of each warning, for who says it in words of its own; a "/" ends the kind
	Boards        []Board          `json:"boards,omitempty"`       // other boards that this node has joined
	Copies        []Copy           `json:"copies,omitempty"`
	Retention     Retention        `json:"retention"`
	Compared      *Compared        `json:"compared,omitempty"` // nil: never yet
}

// Held is content that one reason holds: young, unread, open-task, question, shown, damaged, or member, which then is named.
type Held struct {
	Why      string `json:"why"`
	Member   string `json:"member,omitempty"`
	Contents int    `json:"contents"`
	Bytes    int64  `json:"bytes"`
}

// Main says who is main and since which term.
type Main struct {
	Term  uint64           `json:"term"`
	Peer  protocol.PeerID  `json:"peer,omitempty"`
	Node  string           `json:"node,omitempty"`
	Agent protocol.AgentID `json:"agent,omitempty"`
	Here  bool             `json:"here"`
	// Fenced: a newer start of this node is known, so this one does not know who is main now; the rest is what it knew last.
	Fenced bool `json:"fenced,omitempty"`
	// Of the main's own node. Sure: nobody else can have been elected meanwhile. Handing: it was asked to hand over.
	Sure    bool `json:"sure,omitempty"`
	Handing bool `json:"handing,omitempty"`
	// Ended: it has handed over, and the next main is not in office yet.
	Ended   bool     `json:"ended,omitempty"`
	Voters  []string `json:"voters,omitempty"`  // nodes that elect, by name
	Missing []string `json:"missing,omitempty"` // of them, those that the main does not reach
	// Reach is how many of Voters this node reaches, itself included: with a majority of them it may take part in an election.
	Reach int `json:"reach,omitempty"`
	// Lost is when this node last had a link to main's, by its own wall clock, ms; 0 while it has one.
	Lost int64 `json:"lost,omitempty"`
}

// HandoffRequest asks main to hand over to an agent. POST /main/handoff.
type HandoffRequest struct {
	Agent  protocol.AgentID `json:"agent"`
	Reason string           `json:"reason,omitempty"`
}

// TakeResult is what became of taking the office by force, and which claims may be held twice until their leases end.
// POST /main/take.
type TakeResult struct {
	Main  Main    `json:"main"`
	Twice []Claim `json:"twice"`
}

// ClaimRequest asks main for a claim, held until it is released or the process ends. POST /claims.
type ClaimRequest struct {
	Agent  protocol.AgentID `json:"agent,omitempty"`
	New    bool             `json:"new,omitempty"` // Agent is a new agent, however much it looks like another
	Scopes []string         `json:"scopes"`        // paths, or "contract:NAME"
	Why    string           `json:"why,omitempty"`
	PID    int              `json:"pid"`
}

// Claim is what an agent holds for itself alone. GET /claims.
type Claim struct {
	ID       string           `json:"id"`
	Agent    protocol.AgentID `json:"agent"`
	Home     protocol.PeerID  `json:"home"`
	NodeName string           `json:"nodeName,omitempty"`
	Scopes   []string         `json:"scopes"`
	Why      string           `json:"why,omitempty"`
	Since    int64            `json:"since"` // main's wall clock at the grant, ms
	Term     uint64           `json:"term"`
	Here     bool             `json:"here"`           // held by an agent of this node
	Left     int64            `json:"left,omitempty"` // of a claim held here: ms until it must be given up unless it is renewed
}

// Peer is one member of the mesh, as seen from here. GET /peers.
type Peer struct {
	Peer      protocol.PeerID `json:"peer"`
	Name      string          `json:"name"`
	Role      protocol.Role   `json:"role"`
	Inside    bool            `json:"inside"`
	Self      bool            `json:"self"`
	Linked    bool            `json:"linked"`
	Alive     string          `json:"alive"`               // gossip's word: "alive", "suspect", "dead", "unknown"
	Transport string          `json:"transport,omitempty"` // "tcp", "quic", "ws"
	Addr      string          `json:"addr,omitempty"`
	Relayed   bool            `json:"relayed,omitempty"`
	RTTMicros int64           `json:"rttMicros,omitempty"`
	BytesIn   uint64          `json:"bytesIn,omitempty"`  // of frames on its links since our start; pings, gossip and blobs apart
	BytesOut  uint64          `json:"bytesOut,omitempty"` // the same, to it
	Behind    uint64          `json:"behind"`             // records we hold and it has not confirmed
	LastSeen  int64           `json:"lastSeen,omitempty"`
	// SkewMillis is its wall clock less ours when it last linked; the way here is in it, so that less than a second says nothing.
	SkewMillis int64           `json:"skewMillis,omitempty"`
	Until      int64           `json:"until"` // its certificate's end, ms
	Issuer     protocol.PeerID `json:"issuer,omitempty"`
	Revoked    bool            `json:"revoked,omitempty"`
	Board      string          `json:"board,omitempty"`
	Version    string          `json:"version,omitempty"`
}

// Agent is one row of the roster. GET /agents.
type Agent struct {
	ID    protocol.AgentID    `json:"id"`
	Name  string              `json:"name,omitempty"`
	Role  protocol.Role       `json:"role"`
	Home  protocol.PeerID     `json:"home"`
	Node  string              `json:"node"`
	Here  bool                `json:"here"`
	State protocol.AgentState `json:"state"`
	Since int64               `json:"since,omitempty"` // of the state, ms; 0 unknown
	// AsOf says that its home is not linked: State is the last that was heard of it, and held then, ms.
	AsOf   int64  `json:"asOf,omitempty"`
	Wakes  string `json:"wakes,omitempty"` // how it is woken, in words
	Unread int    `json:"unread"`
	// UnreadBytes is what these take of the inbox, of agents here alone.
	UnreadBytes int `json:"unreadBytes,omitempty"`
	// Filled is how much of its share of the inbox the sender has used that has most of it, in percent, of agents here alone; 0:
	// less than people need to know.
	Filled   int      `json:"filled,omitempty"`
	Doing    string   `json:"doing,omitempty"`
	Attached []string `json:"attached,omitempty"` // adapters: "ws", "files", "cli", "worker"
	// Room says that it stands for a room of another board; its Name is what that room is about, in that board's words.
	Room bool `json:"room,omitempty"`
}

// SendRequest is POST /send. From empty: DESIGN 8's rule chooses, or the person when FromBoard.
type SendRequest struct {
	From      protocol.AgentID   `json:"from,omitempty"`
	New       bool               `json:"new,omitempty"`       // From is a new agent, however much it looks like another
	FromBoard bool               `json:"fromBoard,omitempty"` // a person speaks
	To        protocol.AgentID   `json:"to"`
	Room      protocol.RoomID    `json:"room,omitempty"` // instead of To
	Intent    protocol.Intent    `json:"intent"`
	Value     json.RawMessage    `json:"value"`
	MsgID     protocol.MsgID     `json:"msgId,omitempty"` // of the sender's own making; else ours
	Re        protocol.MsgID     `json:"re,omitempty"`
	NoWake    bool               `json:"noWake,omitempty"`
	Trace     string             `json:"traceparent,omitempty"` // W3C's; what is none counts as absent
	Blobs     []protocol.BlobRef `json:"blobs,omitempty"`       // put before by PUT /blobs
}

// SendResult is returned when the message is logged.
type SendResult struct {
	MsgID   protocol.MsgID      `json:"msgId"`
	Short   string              `json:"short"`
	Tier    protocol.Tier       `json:"tier"`
	To      protocol.AgentID    `json:"to"`
	Repeat  bool                `json:"repeat,omitempty"` // the same message was here before; nothing new was written
	Alone   bool                `json:"alone,omitempty"`  // no other inside node exists: replicated cannot come now
	ToState protocol.AgentState `json:"toState,omitempty"`
	ToWakes string              `json:"toWakes,omitempty"`
}

// Message is an envelope as the board and `aster show` see it. GET /messages, GET /messages/ID.
type Message struct {
	Pos      uint64            `json:"pos"`   // order of arrival here; cursors use it
	Short    string            `json:"short"` // t-7kq2m for Delegates, m-7kq2m for others
	At       int64             `json:"at"`    // author's wall clock, ms
	Node     protocol.PeerID   `json:"node"`
	NodeName string            `json:"nodeName,omitempty"`
	Log      string            `json:"log"`
	Seq      uint64            `json:"seq"`
	Doubt    bool              `json:"doubt,omitempty"` // its author's clock is off by more than a minute
	Envelope protocol.Envelope `json:"envelope"`
	Text     string            `json:"text"` // headline, cut
	Tiers    []TierAt          `json:"tiers"`
	Waits    *Waits            `json:"waits,omitempty"`
	// Late: of a past moment, that it came here after something that was said later than the moment.
	Late bool `json:"late,omitempty"`
}

// InboxItem is one line of `aster inbox --json`.
type InboxItem struct {
	Pos       uint64             `json:"pos"`
	MsgID     protocol.MsgID     `json:"msgId"`
	Short     string             `json:"short"`
	From      protocol.AgentID   `json:"from,omitempty"`
	Source    protocol.Source    `json:"source"`
	Intent    protocol.Intent    `json:"intent"`
	At        int64              `json:"at"`
	Re        protocol.MsgID     `json:"re,omitempty"`
	Text      string             `json:"text"`
	Value     json.RawMessage    `json:"value,omitempty"`
	Blobs     []protocol.BlobRef `json:"blobs,omitempty"`
	Processed bool               `json:"processed,omitempty"`
	Dead      string             `json:"dead,omitempty"` // refusal code
}

// AckRequest is POST /ack: of the messages that IDs name, which may be short, or of all that is unread, or of all from one agent.
type AckRequest struct {
	Agent protocol.AgentID `json:"agent,omitempty"`
	IDs   []string         `json:"ids,omitempty"`
	All   bool             `json:"all,omitempty"`
	From  protocol.AgentID `json:"from,omitempty"`
}

// AckResult answers it. Acked holds Before: those that were processed before.
type AckResult struct {
	Acked  []protocol.MsgID `json:"acked"`
	Before []protocol.MsgID `json:"before,omitempty"`
	Agent  protocol.AgentID `json:"agent,omitempty"` // whose inbox
	Left   int              `json:"left,omitempty"`  // of others, unread as before
	Work   []string         `json:"work,omitempty"`  // Delegates among Acked, as commands name them: who gave them waits for a report
}

// WaitResult answers GET /wait: counts and ids only, never bodies (U53).
type WaitResult struct {
	Agent  protocol.AgentID `json:"agent"`
	Unread int              `json:"unread"`
	IDs    []string         `json:"ids"`             // short ids, oldest first, at most 20
	Again  bool             `json:"again,omitempty"` // announced before, still unacknowledged
}

// TaskState is where a Delegate is on its way.
type TaskState string

const (
	TaskQueued      TaskState = "queued"    // logged, not yet in its worker's inbox
	TaskDelivered   TaskState = "delivered" // in the inbox, not started
	TaskRunning     TaskState = "running"
	TaskDone        TaskState = "done"
	TaskBlocked     TaskState = "blocked"
	TaskFailed      TaskState = "failed"
	TaskInterrupted TaskState = "interrupted"
	TaskCancelled   TaskState = "cancelled"
	TaskRefused     TaskState = "refused"
)

// Final says whether no further report can change the state.
func (s TaskState) Final() bool {
	switch s {
	case TaskDone, TaskBlocked, TaskFailed, TaskInterrupted, TaskCancelled, TaskRefused:
		return true
	}
	return false
}

// Diff is what a result changes.
type Diff struct {
	Files   int `json:"files"`
	Added   int `json:"added"`
	Removed int `json:"removed"`
	// Paths are the changed files, at most 20.
	Paths []string `json:"paths,omitempty"`
}

// Task is a Delegate with what became of it. GET /tasks, GET /tasks/ID.
type Task struct {
	ID       protocol.TaskID   `json:"id"`
	Short    string            `json:"short"`
	Title    string            `json:"title"`
	From     protocol.AgentID  `json:"from,omitempty"`
	To       protocol.AgentID  `json:"to"`
	Node     protocol.PeerID   `json:"node"`
	NodeName string            `json:"nodeName,omitempty"`
	State    TaskState         `json:"state"`
	Summary  string            `json:"summary,omitempty"`
	Attempt  int               `json:"attempt,omitempty"`
	At       int64             `json:"at"`
	Started  int64             `json:"started,omitempty"`
	Ended    int64             `json:"ended,omitempty"`
	Exit     *int              `json:"exit,omitempty"`
	Millis   int64             `json:"durationMs,omitempty"`
	Diff     *Diff             `json:"diff,omitempty"`
	Commit   string            `json:"commit,omitempty"`
	Branch   string            `json:"branch,omitempty"`
	Base     string            `json:"base,omitempty"`
	Repo     string            `json:"repo,omitempty"`   // directory named by --repo, on the delegator's node only
	Root     string            `json:"root,omitempty"`   // root commit of the repository
	Result   *protocol.BlobRef `json:"result,omitempty"` // git bundle
	Output   *protocol.BlobRef `json:"output,omitempty"` // tail
	Tail     string            `json:"tail,omitempty"`   // last lines, while it runs
	Tiers    []TierAt          `json:"tiers,omitempty"`
	Reports  []Message         `json:"reports,omitempty"` // GET /tasks/ID only
}

// RenameRequest is POST /agents/{id}/rename.
type RenameRequest struct {
	To protocol.AgentID `json:"to"`
}

// MoveRequest is POST /agents/{id}/move. Node is a member's name or its peer id.
type MoveRequest struct {
	Node string `json:"node"`
}

// Moved says where an agent lives now.
type Moved struct {
	Agent    protocol.AgentID `json:"agent"`
	From     protocol.PeerID  `json:"from"`
	FromNode string           `json:"fromNode"`
	To       protocol.PeerID  `json:"to"`
	Node     string           `json:"node"`
	Unread   int              `json:"unread"` // that went along; of a forced move unknown
	// Forced: its home was gone, so what that had in hand is not known, and may be delivered again.
	Forced bool `json:"forced,omitempty"`
	Taken  bool `json:"taken"` // the new home has taken the mail over
	// Runner: this node's runner worked as it, and has nobody to work as now.
	Runner bool `json:"runner,omitempty"`
}

// InviteRequest is POST /invites.
type InviteRequest struct {
	Role      protocol.Role `json:"role"`
	TTLMillis int64         `json:"ttlMillis"`
	LAN       bool          `json:"lan"` // open the mesh port to this machine's networks from now on
}

// InviteResult holds the token: it is shown once and kept nowhere.
type InviteResult struct {
	Token    string   `json:"token"`
	Expires  int64    `json:"expires"`
	Listen   []string `json:"listen"`
	Loopback bool     `json:"loopback"` // only this machine can use it
}

// Snapshot is the page's first request: GET /snapshot, at most 64 KiB.
type Snapshot struct {
	Status   Status    `json:"status"`
	Peers    []Peer    `json:"peers"`
	Agents   []Agent   `json:"agents"`
	Tasks    []Task    `json:"tasks"`    // open ones first, then the last ended
	Messages []Message `json:"messages"` // the last 100, oldest first
	Asks     Asks      `json:"asks"`
	Pos      uint64    `json:"pos"` // events after this follow by GET /events?since=
}

// Event is one line of GET /events (server-sent events, event name = Type, id = Pos where there is one).
type Event struct {
	Type    string   `json:"type"` // "message", "tiers", "agents", "peers", "task", "status", "live", "channel", "asks" (ask again: GET /asks), "document" (GET /document)
	Pos     uint64   `json:"pos,omitempty"`
	Message *Message `json:"message,omitempty"`
	// Of "tiers": the message and all its tiers now.
	MsgID  protocol.MsgID   `json:"msgId,omitempty"`
	From   protocol.AgentID `json:"from,omitempty"`
	Tiers  []TierAt         `json:"tiers,omitempty"`
	Waits  *Waits           `json:"waits,omitempty"`
	Agents []Agent          `json:"agents,omitempty"`
	Peers  []Peer           `json:"peers,omitempty"`
	Task   *Task            `json:"task,omitempty"`
	// Of "channel": its words were deleted; what was said there since comes with a new snapshot.
	Channel string  `json:"channel,omitempty"`
	Status  *Status `json:"status,omitempty"`
}

package api

import "github.com/aster-mesh/aster/protocol"

// Found answers GET /find: one stretch of messages, oldest first.
type Found struct {
	Messages []Message `json:"messages"`
	Of       uint64    `json:"of"` // messages that this node holds
	// Before and After continue towards older and newer messages; 0: there are none that way.
	Before uint64 `json:"before,omitempty"`
	After  uint64 `json:"after,omitempty"`
	// Behind is how many records the word index has not reached yet.
	Behind uint64 `json:"behind,omitempty"`
}

// Thread answers GET /messages/{id}/thread: what a message answers, what answers it, and what shares its thread, oldest
// first. Cut says that there is more.
type Thread struct {
	Messages []Message `json:"messages"`
	Cut      bool      `json:"cut,omitempty"`
}

// Proof answers GET /messages/{id}/proof: the record behind a message, and who signed for it.
type Proof struct {
	Log      string          `json:"log"`
	Seq      uint64          `json:"seq"`
	Node     protocol.PeerID `json:"node"`
	NodeName string          `json:"nodeName"`
	At       string          `json:"at"`   // hybrid time
	Wall     int64           `json:"wall"` // author's clock, ms
	Hash     string          `json:"hash"`
	Prev     string          `json:"prev"`
	Bytes    int             `json:"bytes"`
	SignedBy uint64          `json:"signedBy"` // seq of the record whose signature covers this one; 0: it is not here
	Sig      []byte          `json:"sig,omitempty"`
	Holds    bool            `json:"holds"` // hash chain and signature were checked now, and hold
	Receipts []TierAt        `json:"receipts"`
}

// AskKind says what a person is asked for.
type AskKind string

const (
	AskApproval AskKind = "approval" // an agent's question whose clock denies
	AskChoice   AskKind = "choice"   // an agent's question, with or without a clock
	AskBlocked  AskKind = "blocked"  // a task that cannot go on
	AskQuestion AskKind = "question" // an agent says that it needs a person
	AskReview   AskKind = "review"   // somebody asks for a review
	AskKey      AskKind = "key"      // a key that lapses soon
	AskDecision AskKind = "decision" // a decision of main's state document
)

// Ask is something that waits for a person. GET /asks.
type Ask struct {
	ID       string           `json:"id"` // the same over restarts
	Kind     AskKind          `json:"kind"`
	Text     string           `json:"text"`
	Options  []AskOption      `json:"options,omitempty"`
	Many     bool             `json:"many,omitempty"` // several options may be chosen
	Free     bool             `json:"free,omitempty"` // words of one's own are an answer, too
	At       int64            `json:"at"`
	Until    int64            `json:"until,omitempty"`   // when its clock runs out, ms; 0: it has none
	Default  string           `json:"default,omitempty"` // what happens then
	Asker    protocol.AgentID `json:"asker,omitempty"`
	Node     protocol.PeerID  `json:"node"`
	NodeName string           `json:"nodeName"`
	// Owner is the node whose person it is for; from AlsoAt on it is main's owner's as well.
	Owner     protocol.PeerID `json:"owner"`
	OwnerName string          `json:"ownerName"`
	AlsoAt    int64           `json:"alsoAt,omitempty"`
	Prompt    string          `json:"prompt,omitempty"` // promptId of a choice or approval
	Message   protocol.MsgID  `json:"message,omitempty"`
	Task      protocol.TaskID `json:"task,omitempty"`
	TaskShort string          `json:"taskShort,omitempty"`
	Key       string          `json:"key,omitempty"`       // kr-…
	Decision  string          `json:"decision,omitempty"`  // what main's document calls it; an answer is OperatorFeedback about it
	Recommend string          `json:"recommend,omitempty"` // the answer that main recommends
}

// AskOption is one answer.
type AskOption struct {
	Label  string `json:"label"`
	Detail string `json:"detail,omitempty"`
}

// AskEnded says how a question ended a moment ago.
type AskEnded struct {
	ID       string         `json:"id"`
	How      string         `json:"how"` // answered, cancelled, proceed-default, denied-fail-closed
	Labels   []string       `json:"labels,omitempty"`
	By       protocol.MsgID `json:"by,omitempty"` // the answer that holds
	NodeName string         `json:"nodeName,omitempty"`
	At       int64          `json:"at"`
}

// Asks answers GET /asks.
type Asks struct {
	Asks  []Ask      `json:"asks"`
	Ended []AskEnded `json:"ended"`
}

// Health answers GET /health: what the node measured of itself, oldest first.
type Health struct {
	EveryMillis int64    `json:"everyMillis"`
	Samples     []Sample `json:"samples"`
}

// Figures answers GET /figures: what each inside member measured of itself, this node first.
type Figures struct {
	Nodes []NodeFigures `json:"nodes"`
}

// NodeFigures are those of one node, in minutes. OK: it answered just now; else they are as of At, ms by this node's
// clock, or there are none and At is 0.
type NodeFigures struct {
	Peer protocol.PeerID `json:"peer"`
	Name string          `json:"name"`
	Self bool            `json:"self,omitempty"`
	OK   bool            `json:"ok"`
	At   int64           `json:"at,omitempty"`
	Health
}

// Sample is one measurement. Counts are since the one before.
type Sample struct {
	At            int64                      `json:"at"`
	Messages      int64                      `json:"messages"`
	Records       uint64                     `json:"records"`
	Receipts      int64                      `json:"receipts"`      // persisted receipts of messages written here
	ReceiptMillis int64                      `json:"receiptMillis"` // from logged to persisted: the mean
	ReceiptMax    int64                      `json:"receiptMax"`
	Redelivered   int64                      `json:"redelivered"`
	Jobs          int                        `json:"jobs"`   // inputs that waited for the loop
	Queued        int                        `json:"queued"` // bytes that waited for other nodes
	Disk          int64                      `json:"disk"`
	Resident      int64                      `json:"resident"`
	Links         map[protocol.PeerID]uint32 `json:"links,omitempty"` // round trip by peer, µs
}

// Room is an open room. GET /rooms.
type Room struct {
	ID           protocol.RoomID    `json:"id"`
	Topic        string             `json:"topic"`
	By           protocol.AgentID   `json:"by,omitempty"` // empty: a person
	NodeName     string             `json:"nodeName"`
	At           int64              `json:"at"`
	Participants []protocol.AgentID `json:"participants"`
	Lines        int                `json:"lines"` // of its newest messages, as far as they are remembered
}

// InviteRow is one invite that this node made. GET /invites. Its token is nowhere.
type InviteRow struct {
	ID       string          `json:"id"`
	Role     protocol.Role   `json:"role"`
	Made     int64           `json:"made"`
	Expires  int64           `json:"expires"`
	UsedBy   protocol.PeerID `json:"usedBy,omitempty"`
	UsedName string          `json:"usedName,omitempty"`
	UsedAt   int64           `json:"usedAt,omitempty"`
}

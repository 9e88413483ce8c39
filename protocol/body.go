package protocol

import (
	"encoding/json"
	"fmt"
)

// BindBody says where an agent lives: it is an agent's first record in every log that speaks of it (DESIGN 5). Of two
// bindings of one id the smaller (Since, Home) keeps it; the other's becomes Renamed. An agent is known for ever by its id
// and the node that bound it first; where it lives may change (MoveBody).
type BindBody struct {
	Agent  AgentID `json:"agent"`
	Home   PeerID  `json:"home"`
	Since  HLC     `json:"since"` // of the first attach; the same in every log that repeats the binding
	Name   string  `json:"name,omitempty"`
	Role   Role    `json:"role"`
	Client string  `json:"client,omitempty"` // "worker", "ws", "files", "cli", …
	// Forgotten withdraws the binding (aster agent forget).
	Forgotten bool `json:"forgotten,omitempty"`
	// RenamedTo withdraws it because the agent has another name on the same home (aster agent rename); that name's
	// binding says what it Was.
	RenamedTo AgentID `json:"renamedTo,omitempty"`
	Was       AgentID `json:"was,omitempty"`
	// Called is what the agent is called since another's binding of the same id prevailed: it speaks under that.
	Called AgentID `json:"called,omitempty"`
	// Of an agent that has moved: the node that bound it first, how often it has moved, and whether main decided the last
	// move because its home was gone.
	Origin PeerID `json:"origin,omitempty"`
	Moves  uint64 `json:"moves,omitempty"`
	Forced bool   `json:"forced,omitempty"`
}

// First is the node that bound the agent first.
func (b *BindBody) First() PeerID {
	if b.Origin != "" {
		return b.Origin
	}
	return b.Home
}

// MoveBody says that an agent lives on another node from now on. Its home writes it, or main's node when that is gone
// (Forced). What of the agent's mail lies at or below Seen its former homes have dealt with, but for Unread.
type MoveBody struct {
	Agent  AgentID `json:"agent"` // as its first home bound it
	Origin PeerID  `json:"origin"`
	Since  HLC     `json:"since"`
	Name   string  `json:"name,omitempty"`
	Role   Role    `json:"role"`
	Client string  `json:"client,omitempty"`
	Was    AgentID `json:"was,omitempty"`
	From   PeerID  `json:"from"`
	To     PeerID  `json:"to"`
	Moves  uint64  `json:"moves"` // with this one
	Forced bool    `json:"forced,omitempty"`
	// In the inside's log only. Seen has of each log the last seq: of a forced move only what the new home must hold before
	// it takes the mail. Given, a part of Unread, was given to a client that does not acknowledge.
	Seen   map[string]uint64 `json:"seen,omitempty"` // LogID.String() → seq
	Unread []LogRange        `json:"unread,omitempty"`
	Given  []LogRange        `json:"given,omitempty"`
}

// Bind is the binding that a move amounts to.
func (m *MoveBody) Bind() BindBody {
	return BindBody{
		Agent: m.Agent, Home: m.To, Since: m.Since, Name: m.Name, Role: m.Role, Client: m.Client, Was: m.Was,
		Origin: m.Origin, Moves: m.Moves, Forced: m.Forced,
	}
}

// LogRange names messages of one log by their seqs, both ends included.
type LogRange struct {
	Log    string   `json:"log"` // LogID.String()
	Ranges []uint64 `json:"r"`   // from, to, from, to, …
}

// ReceiptsBody is what a recipient's home says of messages, one a commit for all they concern (DESIGN 4 Receipts).
type ReceiptsBody struct {
	Tier   Tier       `json:"tier"` // Persisted, Processed or Refused
	Agent  AgentID    `json:"agent,omitempty"`
	Of     []LogRange `json:"of"`
	Reason string     `json:"reason,omitempty"` // of Refused: a refusal's code
}

// MemberBody admits a node, or renews it. Chain is roles/member's encoding of the certificate chain.
type MemberBody struct {
	Peer  PeerID   `json:"peer"`
	Name  string   `json:"name"`
	Role  Role     `json:"role"`
	Chain []byte   `json:"chain"`
	Addrs []string `json:"addrs,omitempty"` // multiaddrs it listened on when admitted
}

// RevokeBody ends a membership. Cuts name, of every log of the member, the last seq that counts.
type RevokeBody struct {
	Peer   PeerID            `json:"peer"`
	Cuts   map[string]uint64 `json:"cuts"` // LogID.String() → seq
	Reason string            `json:"reason,omitempty"`
	Left   bool              `json:"left,omitempty"` // it left by itself (aster leave)
}

// InviteUsedBody makes an invite's single use durable before its user is answered.
type InviteUsedBody struct {
	Invite string `json:"invite"` // the public id, never the secret
	Peer   PeerID `json:"peer"`
}

// TermBody names who is main: terms compare by (Number, Peer). It is written by whoever takes the office, and again by the
// same node when it names its main agent later, or another one.
type TermBody struct {
	Number uint64  `json:"number"`
	Peer   PeerID  `json:"peer"`            // the main agent's home
	Agent  AgentID `json:"agent,omitempty"` // empty until the main agent is named
	// Prev is the term that this one follows. Cuts name, of each log in which Prev's main decided, the last seq that counts:
	// the highest that the new main holds. What Prev's main decided in a log not named counts nowhere.
	Prev   Term              `json:"prev,omitzero"`
	Cuts   map[string]uint64 `json:"cuts,omitempty"` // LogID.String() → seq
	Forced bool              `json:"forced,omitempty"`
	// Ended is the main's last word of its term: it hands over to To, whose main agent is to be ToAgent.
	Ended   bool    `json:"ended,omitempty"`
	To      PeerID  `json:"to,omitempty"`
	ToAgent AgentID `json:"toAgent,omitempty"`
}

// Term is the term that b speaks of.
func (b TermBody) Term() Term { return Term{b.Number, b.Peer} }

// VotersBody is a decision of the main on who elects: a majority of those who did before has agreed to it.
type VotersBody struct {
	Stamp
	Voters []PeerID `json:"voters"`
}

// ClaimOp says what a ClaimBody does.
type ClaimOp string

const (
	ClaimGrant ClaimOp = "grant"
	ClaimEnd   ClaimOp = "end" // released, expired, its holder's process ended, or void
)

// ClaimBody is main's decision on one claim. It counts as far as its term's decisions do. A claim that a new main takes over
// keeps its ID and gets the new term; Of then names the term of the grant that it takes the place of.
type ClaimBody struct {
	Op      ClaimOp  `json:"op"`
	ID      string   `json:"id"`
	Term    Term     `json:"term"`             // of the main that decides
	Of      Term     `json:"of,omitzero"`      // of the grant that ends, or is taken over
	Agent   AgentID  `json:"agent,omitempty"`  // of a grant: who holds it
	Home    PeerID   `json:"home,omitempty"`   // and through which node
	Scopes  []string `json:"scopes,omitempty"` // "path:DIR/" or "contract:NAME"
	Why     string   `json:"why,omitempty"`
	Lease   int64    `json:"lease,omitempty"` // ms; its holder renews without a record
	Session string   `json:"session,omitempty"`
	Reason  string   `json:"reason,omitempty"` // of an end
}

// PresenceBody is presence that has held for PresenceSettles.
type PresenceBody struct {
	Agent AgentID `json:"agent"`
	State string  `json:"state"` // an AgentState
}

// KeyStep names what a KeyBody does.
type KeyStep string

const (
	KeyIssue  KeyStep = "issue"
	KeyUse    KeyStep = "use"    // a HELLO with it was accepted; the first one binds it
	KeyLabel  KeyStep = "label"  // Label
	KeyRenew  KeyStep = "renew"  // TTL, counted from the record's wall time
	KeyRevoke KeyStep = "revoke" // at once, or with Until as the end of its grace
	KeyEnd    KeyStep = "end"    // the last session of a key that was being revoked has ended
	KeyLapse  KeyStep = "lapse"  // whoever's clock set its end says that Until has passed
)

// KeyBody is one step in the life of a key of the contract (wire 3.8). Only the hash of its string is ever written.
type KeyBody struct {
	Step  KeyStep `json:"step"`
	Hash  string  `json:"hash"`            // hex SHA-256 of the string
	Kind  string  `json:"kind,omitempty"`  // of an issue: upstream, collab, peer or local
	Label string  `json:"label,omitempty"` // of an issue or label
	Note  string  `json:"note,omitempty"`  // of an issue: the contract's roleDescription
	TTL   int64   `json:"ttl,omitempty"`   // of an issue or renewal, ms; 0 never ends
	Agent AgentID `json:"agent,omitempty"` // of an issue: bound from the beginning; of a use: who
	Until int64   `json:"until,omitempty"` // ms since 1970
}

// StateBytesMax is the largest state document: its record stays below RecordBytesMax whatever JSON must escape in it.
const StateBytesMax = 256 << 10

// StateBody is the mesh's state document (state.json) as main's home read it: the bytes of the file, which are JSON.
type StateBody struct {
	Text string `json:"text"`
}

// ChannelStep says what a ChannelBody does.
type ChannelStep string

const (
	ChannelArchive ChannelStep = "archive" // boards are shown no more of it until somebody asks for it
	ChannelRestore ChannelStep = "restore"
	ChannelDelete  ChannelStep = "delete" // nobody is shown what was said before
	ChannelClose   ChannelStep = "close"  // the same by the contract's other name
)

// ChannelBytesMax bounds a channel's name.
const ChannelBytesMax = 256

// ChannelBody is a person's step on a channel. It is about what was said before the record, in the order of hybrid time,
// log and seq: a message that stands before it and comes later is one of them, on every node.
type ChannelBody struct {
	Step    ChannelStep `json:"step"`
	Channel string      `json:"channel"` // Envelope.ChannelKey
	// Of an archive, as the node that wrote it counted: how many messages, and the time of the newest, ms since 1970.
	Count int   `json:"count,omitempty"`
	Last  int64 `json:"last,omitempty"`
}

// EncodeBody returns the JSON of a body. The bodies here always encode; it panics otherwise, since that is our own
// broken invariant.
func EncodeBody(body any) []byte {
	out, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("protocol: a body that does not encode: %v", err))
	}
	return out
}

// DecodeBody reads a body of type T.
func DecodeBody[T any](r *Record) (T, error) {
	var body T
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return body, fmt.Errorf("%w: %s body: %w", ErrBadRecord, r.Kind, err)
	}
	return body, nil
}

// AgentState is what is known of an agent's presence. Unknown is a value: nothing is green by default.
type AgentState string

const (
	StateWorking    AgentState = "working"
	StateIdle       AgentState = "idle"
	StatePullOnly   AgentState = "pull-only"
	StateNeedsHuman AgentState = "needs-human"
	StateDeaf       AgentState = "deaf"
	StateAway       AgentState = "away"
	StateUnknown    AgentState = "unknown"
)

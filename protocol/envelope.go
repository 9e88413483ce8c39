package protocol

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Source says what stands behind an envelope; the hub sets it, never the sender (wire 2.2).
type Source string

const (
	SourceAgent  Source = "agent"
	SourceBoard  Source = "board"  // a person at a board or the command line as operator
	SourceServer Source = "server" // the node itself
)

// Envelope is one message with sender, target, intent, id and parent. Its sender fields are what the hub
// authenticated, never what the sender claimed.
type Envelope struct {
	ID       MsgID   `json:"id"`
	From     AgentID `json:"from,omitempty"` // empty: a person or the node
	FromName string  `json:"fromName,omitempty"`
	FromRole Role    `json:"fromRole,omitempty"`
	Source   Source  `json:"source"`
	// FromWas is the former name under which the sender was given what Re names; ToWas the former name that this was sent
	// to. The hub sets them; the board files reports and cancels under the name that the Delegate has.
	FromWas AgentID `json:"fromWas,omitempty"`
	ToWas   AgentID `json:"toWas,omitempty"`

	To   AgentID `json:"to,omitempty"`   // empty: nobody in particular (to main, and every board)
	Room RoomID  `json:"room,omitempty"` // rooms carry it instead of To

	// Of a room's message. Rcpt is who gets a copy, as the node decided where it entered.
	Addressee    []AgentID       `json:"addressee,omitempty"` // whom it names
	ReplyTo      string          `json:"replyTo,omitempty"`   // the message of the room that it answers
	Notice       bool            `json:"notice,omitempty"`    // it needs no reply
	Floor        json.RawMessage `json:"floorIntent,omitempty"`
	SpeakerClass string          `json:"speakerClass,omitempty"` // human-operator or agent, from the hub
	AutoHop      int             `json:"autoHop,omitempty"`      // messages of agents since a person spoke, with this one
	Rcpt         []AgentID       `json:"rcpt,omitempty"`
	Copy         bool            `json:"copy,omitempty"` // once more, for a member outside: the inside has it in its own log

	Intent Intent          `json:"intent"`
	Value  json.RawMessage `json:"value,omitempty"` // JSON of any shape; absent when ValueBlob is set
	// ValueBlob holds a value above ValueBytesInline: the blob's content is the JSON.
	ValueBlob *BlobRef  `json:"valueBlob,omitempty"`
	Blobs     []BlobRef `json:"blobs,omitempty"` // attachments by content hash

	Re      MsgID  `json:"re,omitempty"`     // the message answered (value.re_msgId); of a report, its Delegate
	Parent  string `json:"parent,omitempty"` // parentId: frame id of the request
	Context string `json:"context,omitempty"`
	Thread  string `json:"thread,omitempty"`
	Run     string `json:"run,omitempty"`
	Channel string `json:"channel,omitempty"`

	Frame    string    `json:"frame,omitempty"`    // the frame's own id on the wire
	Declared int64     `json:"declared,omitempty"` // sender's own timestamp, ms since 1970; 0 = none
	Hops     []AgentID `json:"hops,omitempty"`     // of a Delegate: who delegated before, first is the origin
	NoWake   bool      `json:"noWake,omitempty"`
	Trace    string    `json:"trace,omitempty"` // the message's own span, as a TraceParent; empty: nobody traces it
}

// BlobRef names content by its hash.
type BlobRef struct {
	SHA256 string `json:"sha256"` // 64 hex digits
	Bytes  int64  `json:"bytes"`
	Name   string `json:"name,omitempty"`
	Mime   string `json:"mime,omitempty"`
	// Role of the blob for its envelope: "base", "result" (git bundles), "output", or empty for an attachment.
	Use string `json:"use,omitempty"`
}

// Identity is the digest of (sender, message id) under which a repeat is recognised (DESIGN 4).
func (e *Envelope) Identity() Digest { return IdentityOf(e.From, e.ID) }

// IdentityOf is Identity for a sender and an id.
func IdentityOf(from AgentID, id MsgID) Digest {
	return digest([]byte(FoldAgentID(from)), []byte(id))
}

// Content is the digest of what makes a repeat the same message: name, target, room and value, not time, seq or frame
// id. Values are compared without insignificant space.
func (e *Envelope) Content() Digest {
	value := e.Value
	if e.ValueBlob != nil {
		value = json.RawMessage(e.ValueBlob.SHA256)
	} else if !dense(value) {
		var flat bytes.Buffer
		if json.Compact(&flat, value) == nil {
			value = flat.Bytes()
		}
	}
	return digest([]byte(e.Intent), []byte(e.To), []byte(e.Room), value)
}

// dense says that json.Compact would change nothing: no space stands outside the texts. Most values come so.
func dense(value []byte) bool {
	within := false
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case '"':
			within = !within
		case '\\':
			i++ // within a text, or no JSON at all
		case ' ', '\t', '\r', '\n':
			if !within {
				return false
			}
		}
	}
	return true
}

func digest(parts ...[]byte) Digest {
	h := sha256.New()
	var n [4]byte
	for _, p := range parts {
		n[0], n[1], n[2], n[3] = byte(len(p)>>24), byte(len(p)>>16), byte(len(p)>>8), byte(len(p))
		h.Write(n[:])
		h.Write(p)
	}
	return Digest(h.Sum(nil)[:16])
}

// Check says why e may not enter a log, as a Refusal, or nil. It looks at shape and size only; rights are roles.May's.
func (e *Envelope) Check() *Refusal {
	if err := CheckMsgID(e.ID); err != nil {
		return Refuse(CodeBadFrame, err.Error(), "")
	}
	if e.From != "" {
		if err := CheckAgentID(e.From); err != nil {
			return Refuse(CodeBadAgentID, err.Error(), "")
		}
	}
	if e.To != "" {
		if err := CheckAgentID(e.To); err != nil {
			return Refuse(CodeBadAgentID, err.Error(), "")
		}
	}
	if e.Intent == "" || len(e.Intent) > IntentBytesMax || !utf8.ValidString(string(e.Intent)) {
		return Refuse(CodeUnknownIntent, "an intent is a name of 1 to %d bytes", "", IntentBytesMax)
	}
	if len(e.Value) > 0 && !json.Valid(e.Value) {
		return Refuse(CodeBadFrame, "the value is not JSON", "")
	}
	if len(e.Value) > ValueBytesInline {
		return Refuse(CodeFrameTooLarge, "a value above %d bytes travels as a blob", "", ValueBytesInline)
	}
	if len(e.Hops) > HopsMax {
		return Refuse(CodeHopDepth, "the chain of Delegates is longer than %d", "answer the one who delegated to you instead", HopsMax)
	}
	if CleanTraceParent(e.Trace) != e.Trace {
		return Refuse(CodeBadFrame, "trace is no traceparent", "")
	}
	for _, b := range append(slices.Clone(e.Blobs), deref(e.ValueBlob)...) {
		if len(b.SHA256) != 64 || b.Bytes < 0 || b.Bytes > BlobBytesMax {
			return Refuse(CodeBadFrame, "an attachment needs a sha256 of 64 hex digits and at most %d bytes", "", BlobBytesMax)
		}
	}
	return nil
}

// Names says whether a room's message names an agent.
func (e *Envelope) Names(id AgentID) bool {
	for _, a := range e.Addressee {
		if FoldAgentID(a) == FoldAgentID(id) {
			return true
		}
	}
	return false
}

func deref(b *BlobRef) []BlobRef {
	if b == nil {
		return nil
	}
	return []BlobRef{*b}
}

// AllBlobs lists every blob that e needs on disk before a node may say that it has e.
func (e *Envelope) AllBlobs() []BlobRef { return append(deref(e.ValueBlob), e.Blobs...) }

// Text is what a person reads first of a value: the first non-empty of the fields that producers use (wire 7.8),
// or a JSON string itself. It is cut to n bytes at a character.
func (e *Envelope) Text(n int) string {
	var s string
	if json.Unmarshal(e.Value, &s) == nil {
		return CutText(s, n)
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(e.Value, &fields) != nil {
		return ""
	}
	if e.Intent == "OperatorFeedback" {
		if s := feedbackText(fields); s != "" {
			return CutText(s, n)
		}
	}
	for _, k := range []string{"text", "task", "summary", "topic", "re", "subject", "title", "headline", "message", "notice", "reason", "question", "ask", "note", "body", "detail", "label", "status"} {
		if json.Unmarshal(fields[k], &s) == nil && s != "" {
			return CutText(s, n)
		}
	}
	return ""
}

// CutText returns s cut to at most n bytes at a character, with "…" when something went.
func CutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	cut := n - len("…")
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:max(cut, 0)] + "…"
}

func (e *Envelope) String() string {
	return fmt.Sprintf("%s %s -> %s %s", ShortID(e.ID), e.From, e.To, e.Intent)
}

package protocol

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Refusal is a well-formed no: data, not a failure of ours. It crosses the wire as it stands.
type Refusal struct {
	// Code is stable and made for programs, e.g. "msgid-reused".
	Code string `json:"code"`
	// Reason says what was wrong in one sentence for a person; it holds no secret and no body.
	Reason string `json:"reason"`
	// Hint names what to do, a command where there is one.
	Hint string `json:"hint,omitempty"`
	// RetryMs is after how long the same may be tried again, in ms; 0: time alone changes nothing.
	RetryMs int64 `json:"retryAfterMs,omitempty"`
}

func (r *Refusal) Error() string {
	if r.Hint == "" {
		return r.Reason
	}
	if first, _ := utf8.DecodeRuneInString(r.Hint); unicode.IsLower(first) {
		return r.Reason + "; " + r.Hint
	}
	return r.Reason + ". " + r.Hint
}

// Refuse makes a Refusal.
func Refuse(code, reason, hint string, args ...any) *Refusal {
	if len(args) > 0 {
		reason = fmt.Sprintf(reason, args...)
	}
	return &Refusal{Code: code, Reason: reason, Hint: hint}
}

// The codes, one a kind of refusal.
const (
	CodeBadFrame         = "bad-frame"
	CodeFrameTooLarge    = "frame-too-large"
	CodeTooDeep          = "too-deep"
	CodeNotUTF8          = "not-utf8"
	CodeDuplicateKey     = "duplicate-key"
	CodeWrongType        = "wrong-type"
	CodeNoAgentID        = "no-agent-id"
	CodeBadAgentID       = "bad-agent-id"
	CodeSecondHello      = "second-hello"
	CodeNotHello         = "hello-first"
	CodeReservedName     = "hub-only-name"
	CodeMsgIDReused      = "msgid-reused"
	CodeUnknownAgent     = "unknown-agent"
	CodeAgentRenamed     = "agent-renamed"
	CodeUnknownIntent    = "unknown-intent"
	CodeNotAllowed       = "not-allowed"
	CodeInboxFull        = "inbox-full"
	CodeExpired          = "expired"
	CodeHopLoop          = "hop-loop"
	CodeHopDepth         = "hop-depth"
	CodeRate             = "rate"
	CodeDiskFull         = "disk-full"
	CodeFenced           = "fenced"
	CodeIdentityMismatch = "key-identity-mismatch"
	CodeFlap             = "flap-rejected"
	CodeBadKey           = "key-invalid"
	CodeKeyRequired      = "key-required"
	CodeKeyExpired       = "key-expired"
	CodeKeyRevoked       = "key-revoked"
	CodeKeyRemote        = "local-key-remote"
	CodeInviteUsed       = "invite-used"
	CodeInviteExpired    = "invite-expired"
	CodeInviteUnknown    = "invite-unknown"
	CodeInviteBad        = "invite-bad"
	CodeRevoked          = "member-revoked"
	CodeNotMember        = "not-a-member"
	CodeWrongRole        = "wrong-role"
	CodeCertExpired      = "certificate-expired"
	CodeCertBad          = "certificate-bad"
	CodeRepoMismatch     = "repo-mismatch"
	CodeNoWorker         = "no-worker"
	CodeUnknownID        = "unknown-id"
	CodeAmbiguousID      = "ambiguous-id"
	CodeSelectionClosed  = "selection-closed"
	CodeTooMany          = "too-many"
	CodeBusy             = "busy"
	CodeUnreachable      = "unreachable"
)

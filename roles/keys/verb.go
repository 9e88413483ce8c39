package keys

import (
	"regexp"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/aster-mesh/aster/protocol"
)

// The contract's codes of KeyError (wire 3.8).
const (
	CodeUnknownKind  = "UNKNOWN_KIND"
	CodeLabel        = "INVALID_LABEL"
	CodeNote         = "INVALID_ROLE_DESC"
	CodeTTL          = "INVALID_TTL"
	CodeLimit        = "LIMIT_EXCEEDED"
	CodeBoundAgent   = "INVALID_BOUND_AGENT"
	CodeFile         = "LOCAL_FILE_WRITE"
	CodeNotFound     = "KEY_NOT_FOUND"
	CodeRevoked      = "ALREADY_REVOKED"
	CodeMode         = "INVALID_MODE"
	CodeSameLabel    = "NOOP_LABEL"
	CodeNotRenewable = "NOT_RENEWABLE"
	CodeNoEnd        = "NO_EXPIRY"
	CodePermission   = "PERMISSION_DENIED"
	CodeFields       = "INVALID_VALUE" // ours: a field of a type for which the contract has no code
)

// Modes of a revocation.
const (
	Immediate  = "immediate"
	SessionEnd = "sessionEnd"
)

var (
	localLabel = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	boundAgent = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
)

const noteRunesMax = 256

// Issue is what a new key shall be.
type Issue struct {
	Kind  Kind
	Label string // empty: the kind
	Note  string
	TTL   *int64           // ms, 0 for no end; nil: the contract's fourteen days
	Bound protocol.AgentID // empty: whoever uses it first
}

// Issue says how a key of a hash begins, or refuses by a code of the contract. One rule of numbers holds for all verbs
// that make keys (fault KB23); onTheWay are keys that were issued and are not yet in the ring.
func (r *Ring) Issue(in Issue, h Hash, onTheWay int, self protocol.PeerID, now time.Time) (protocol.KeyBody, *protocol.Refusal) {
	if in.Kind == "" {
		in.Kind = Upstream
	}
	if in.Label == "" {
		in.Label = string(in.Kind)
	}
	ttl := protocol.KeyLife.Milliseconds()
	if in.TTL != nil {
		ttl = *in.TTL
	}
	var none protocol.KeyBody
	switch {
	case !in.Kind.Known():
		return none, protocol.Refuse(CodeUnknownKind, "kind must be local, collab, upstream or peer", "")
	case !LabelOK(in.Kind, in.Label):
		return none, badLabel(in.Kind)
	case utf8.RuneCountInString(in.Note) > noteRunesMax || !plain(in.Note):
		return none, protocol.Refuse(CodeNote, "roleDescription has at most 256 characters and none that controls", "")
	case ttl < 0 || ttl > protocol.KeyLifeMax.Milliseconds():
		return none, badTTL()
	case in.Bound != "" && !boundAgent.MatchString(string(in.Bound)):
		return none, protocol.Refuse(CodeBoundAgent, "boundAgent is an agent id: 1 to 64 letters, digits, dots, dashes or underscores", "")
	case r.Active(self, now)+onTheWay >= protocol.KeysActiveMax:
		return none, protocol.Refuse(CodeLimit, "%d keys are valid already", "revoke one that nobody needs: aster key list", protocol.KeysActiveMax)
	}
	return protocol.KeyBody{Step: protocol.KeyIssue, Hash: h.String(), Kind: string(in.Kind), Label: in.Label, Note: in.Note, TTL: ttl, Agent: in.Bound}, nil
}

// LabelOK says whether a key of a kind may be called so: 1 to 64 characters of which none controls; a local key's label
// names a file.
func LabelOK(k Kind, label string) bool {
	if k == Local {
		return localLabel.MatchString(label)
	}
	return label != "" && utf8.RuneCountInString(label) <= 64 && plain(label)
}

// plain refuses what controls a terminal or the direction of a line.
func plain(text string) bool {
	for _, c := range text {
		if unicode.IsControl(c) || unicode.Is(unicode.Cf, c) {
			return false
		}
	}
	return utf8.ValidString(text)
}

func badLabel(k Kind) *protocol.Refusal {
	if k == Local {
		return protocol.Refuse(CodeLabel, "a local key's label names a file: 1 to 64 letters, digits, dashes or underscores", "")
	}
	return protocol.Refuse(CodeLabel, "label has 1 to 64 characters and none that controls", "")
}

func badTTL() *protocol.Refusal {
	return protocol.Refuse(CodeTTL, "ttl is a whole number of milliseconds, at most a hundred years", "")
}

// notFound refuses what no verb reaches.
func notFound() *protocol.Refusal {
	return protocol.Refuse(CodeNotFound, "there is no such key", "aster key list shows them")
}

// Named finds the key that a verb means, by its string or its keyRef. A key that is over for long is not found.
func (r *Ring) Named(secret, ref string, self protocol.PeerID, now time.Time) (Key, *protocol.Refusal) {
	k, ok := Key{}, false
	switch {
	case secret != "":
		k, ok = r.Find(secret)
	case ref != "":
		k, ok = r.ByRef(ref)
	}
	if !ok || k.State(self, now) == Deleted {
		return Key{}, notFound()
	}
	return k, nil
}

// Revoke ends a key: at once, or with a grace for its open session, if it has one (inUse).
func (k *Key) Revoke(mode string, inUse bool, now time.Time) (protocol.KeyBody, *protocol.Refusal) {
	body := protocol.KeyBody{Step: protocol.KeyRevoke, Hash: k.Hash.String()}
	switch {
	case mode != Immediate && mode != SessionEnd:
		return body, protocol.Refuse(CodeMode, "mode is immediate or sessionEnd", "")
	case k.Revoked > 0, k.Pending > 0 && mode == SessionEnd:
		return body, protocol.Refuse(CodeRevoked, "this key is revoked already", "")
	}
	if mode == SessionEnd && inUse {
		body.Until = now.Add(protocol.KeyGrace).UnixMilli()
	}
	return body, nil
}

// Relabel gives a key another label.
func (k *Key) Relabel(label string) (protocol.KeyBody, *protocol.Refusal) {
	body := protocol.KeyBody{Step: protocol.KeyLabel, Hash: k.Hash.String(), Label: label}
	switch {
	case !LabelOK(k.Kind, label):
		return body, badLabel(k.Kind)
	case label == k.Label:
		return body, protocol.Refuse(CodeSameLabel, "the key is called so already", "")
	}
	return body, nil
}

// Renew gives a key another life from now on, by ttl or, when nil, as long as the last. Explicit revocation is final.
func (k *Key) Renew(ttl *int64) (protocol.KeyBody, *protocol.Refusal) {
	body := protocol.KeyBody{Step: protocol.KeyRenew, Hash: k.Hash.String(), TTL: k.TTL}
	switch {
	case k.Final():
		return body, protocol.Refuse(CodeNotRenewable, "a revoked key stays revoked", "issue another: aster key issue")
	case ttl != nil && (*ttl <= 0 || *ttl > protocol.KeyLifeMax.Milliseconds()):
		return body, badTTL()
	case k.TTL == 0:
		return body, protocol.Refuse(CodeNoEnd, "this key has no end that could be put off", "")
	}
	if ttl != nil {
		body.TTL = *ttl
	}
	return body, nil
}

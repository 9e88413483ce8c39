package keys

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// Ring holds every key of a mesh. It is a join: the records of one log come in order and once each, the logs in any
// order and interleaving, and equal sets of records give equal Encode bytes. Of two agents that used one key first,
// unseen by each other, the smaller (hybrid time, peer id) keeps it (DESIGN 5).
type Ring struct {
	keys map[Hash]*entry
	refs map[string]Hash
}

// NewRing is a ring without keys.
func NewRing() *Ring { return &Ring{keys: map[Hash]*entry{}, refs: map[string]Hash{}} }

// step is one record that an entry keeps of its kind.
type step struct {
	At   protocol.HLC     `json:"at"`
	Peer protocol.PeerID  `json:"peer"`
	Log  string           `json:"log"`
	Seq  uint64           `json:"seq"`
	Wall int64            `json:"wall"`
	Body protocol.KeyBody `json:"body"`
}

func (s *step) compare(o *step) int {
	return cmp.Or(cmp.Compare(s.At, o.At), strings.Compare(string(s.Peer), string(o.Peer)), strings.Compare(s.Log, o.Log), cmp.Compare(s.Seq, o.Seq))
}

// entry is one key as folded: of each kind of step the one that counts.
type entry struct {
	Hash    string `json:"hash"`
	Issue   *step  `json:"issue,omitempty"`   // the first
	Bind    *step  `json:"bind,omitempty"`    // the first use
	Seen    *step  `json:"seen,omitempty"`    // the last use
	Label   *step  `json:"label,omitempty"`   // the last
	Renew   *step  `json:"renew,omitempty"`   // the last
	Renewed int    `json:"renewed,omitempty"` // how many
	Pending *step  `json:"pending,omitempty"` // the first revocation with grace
	Revoked *step  `json:"revoked,omitempty"` // the first revocation at once, or end
	Lapsed  int64  `json:"lapsed,omitempty"`  // the greatest end that passed
}

func first(old, s *step) *step {
	if old == nil || s.compare(old) < 0 {
		return s
	}
	return old
}

func last(old, s *step) *step {
	if old == nil || s.compare(old) > 0 {
		return s
	}
	return old
}

// Apply takes a record of kind key; others, those outside the inside's scope, and bodies that no node of ours writes
// change nothing.
func (r *Ring) Apply(rec *protocol.Record) {
	if rec.Kind != protocol.KindKey || rec.Log.Scope != protocol.ScopeInside {
		return
	}
	body, err := protocol.DecodeBody[protocol.KeyBody](rec)
	if err != nil {
		return
	}
	hash, ok := parseHash(body.Hash)
	if !ok || !possible(&body) {
		return
	}
	e := r.keys[hash]
	if e == nil {
		e = &entry{Hash: body.Hash}
		r.keys[hash] = e
		r.refs[hash.Ref()] = hash
	}
	e.take(&step{At: rec.At, Peer: rec.Log.Peer, Log: rec.Log.String(), Seq: rec.Seq, Wall: rec.Wall, Body: body})
}

// possible refuses what would break later sums and checks.
func possible(b *protocol.KeyBody) bool {
	if b.TTL < 0 || b.TTL > protocol.KeyLifeMax.Milliseconds() || b.Until < 0 {
		return false
	}
	switch b.Step {
	case protocol.KeyIssue:
		return Kind(b.Kind).Known()
	case protocol.KeyUse:
		return protocol.CheckAgentID(b.Agent) == nil
	case protocol.KeyRenew:
		return b.TTL > 0
	}
	return true
}

func (e *entry) take(s *step) {
	switch s.Body.Step {
	case protocol.KeyIssue:
		e.Issue = first(e.Issue, s)
	case protocol.KeyUse:
		e.Bind, e.Seen = first(e.Bind, s), last(e.Seen, s)
	case protocol.KeyLabel:
		e.Label = last(e.Label, s)
	case protocol.KeyRenew:
		e.Renew = last(e.Renew, s)
		e.Renewed++
	case protocol.KeyRevoke:
		if s.Body.Until > 0 {
			e.Pending = first(e.Pending, s)
		} else {
			e.Revoked = first(e.Revoked, s)
		}
	case protocol.KeyEnd:
		e.Revoked = first(e.Revoked, s)
	case protocol.KeyLapse:
		e.Lapsed = max(e.Lapsed, s.Body.Until)
	}
}

// Find returns the key of a string.
func (r *Ring) Find(secret string) (Key, bool) { return r.ByHash(HashOf(secret)) }

// ByHash returns the key of a hash.
func (r *Ring) ByHash(h Hash) (Key, bool) {
	if e := r.keys[h]; e != nil && e.Issue != nil {
		return e.key(h), true
	}
	return Key{}, false
}

// ByRef returns the key that a keyRef names.
func (r *Ring) ByRef(ref string) (Key, bool) {
	h, ok := r.refs[ref]
	if !ok {
		return Key{}, false
	}
	return r.ByHash(h)
}

// All lists every key, the oldest first.
func (r *Ring) All() []Key {
	out := make([]Key, 0, len(r.keys))
	for h, e := range r.keys {
		if e.Issue != nil {
			out = append(out, e.key(h))
		}
	}
	slices.SortFunc(out, func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.Issued, b.Issued), strings.Compare(a.Hash.String(), b.Hash.String()))
	})
	return out
}

// Active counts the keys that may be used at now, by the clock of self.
func (r *Ring) Active(self protocol.PeerID, now time.Time) (n int) {
	for h, e := range r.keys {
		if e.Issue == nil {
			continue
		}
		k := e.key(h)
		if s := k.State(self, now); s == Issued || s == Active {
			n++
		}
	}
	return n
}

// Encode returns the ring in one order, for checkpoints and for comparing folds.
func (r *Ring) Encode() json.RawMessage {
	all := make([]*entry, 0, len(r.keys))
	for _, e := range r.keys {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *entry) int { return strings.Compare(a.Hash, b.Hash) })
	return protocol.EncodeBody(all)
}

// DecodeRing reads what Encode wrote; nothing at all is a ring without keys.
func DecodeRing(raw json.RawMessage) (*Ring, error) {
	r := NewRing()
	if len(raw) == 0 {
		return r, nil
	}
	var all []*entry
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("key ring: %w", err)
	}
	for _, e := range all {
		if e == nil {
			return nil, fmt.Errorf("key ring: an empty entry")
		}
		h, ok := parseHash(e.Hash)
		if !ok || (e.Bind == nil) != (e.Seen == nil) {
			return nil, fmt.Errorf("key ring: not an entry: %q", protocol.CutText(e.Hash, 80))
		}
		r.keys[h], r.refs[h.Ref()] = e, h
	}
	return r, nil
}

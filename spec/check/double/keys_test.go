package double

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// key is one key and its life.
type key struct {
	secret, ref, kind, label string
	bound                    protocol.AgentID
	ttl                      time.Duration
	issued, renewed          time.Time
	expires                  time.Time // zero: never
	revoked, ending          bool      // ending: with the session that it has
	renewals                 int
	waiting                  int // connections that have not said HELLO
}

// kinds are what begins a key of a kind, and the name that it has in an address.
var kinds = map[string][2]string{"collab": {"ck-", "key"}, "peer": {"pk-", "peerKey"}, "upstream": {"uk-", "upstreamKey"}}

const (
	keyLife    = 14 * 24 * time.Hour
	keyLifeMax = 100 * 365 * 24 * time.Hour
	waitingMax = 16 // connections of one key that have not said HELLO
)

func (k *key) role() protocol.Role { return protocol.Role(k.kind) }

func (k *key) outside() bool { return k != nil && (k.kind == "collab" || k.kind == "peer") }

// keyIn is the key that an address shows.
func keyIn(q url.Values) string {
	for _, name := range []string{"key", "peerKey", "upstreamKey", "collabKey"} {
		if q.Get(name) != "" {
			return q.Get(name)
		}
	}
	return ""
}

func (h *hub) keyBy(secret, ref string) *key {
	for _, k := range h.keys {
		if secret != "" && k.secret == secret || secret == "" && ref != "" && k.ref == ref {
			return k
		}
	}
	return nil
}

// shown judges a key by itself: which it is, or why it is none. Neither: a fault lets it pass for nothing.
func (h *hub) shown(secret string) (*key, *asterism.Rejection) {
	k := h.keyBy(secret, "")
	switch {
	case secret == "" || k == nil && h.fault == "B17":
		return nil, nil
	case k == nil:
		return nil, &asterism.Rejection{Code: protocol.CodeBadKey, Reason: "no such key"}
	case k.revoked || k.ending:
		if h.fault == "KB5" {
			return nil, nil
		}
		return nil, &asterism.Rejection{Code: "key-revoked", Reason: "the key is revoked"}
	case k.over(h.clock.now()) && h.fault != "B18":
		return nil, &asterism.Rejection{Code: "key-expired", Reason: "the key has run out", Label: k.label, ExpiresAt: k.expires.UnixMilli()}
	}
	return k, nil
}

func (k *key) over(now time.Time) bool { return !k.expires.IsZero() && !now.Before(k.expires) }

// enter counts one more connection that has not said HELLO, unless its key has as many as it may.
func (c *conn) enter(secret string) bool {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	k, no := c.h.shown(secret)
	if k == nil || no != nil {
		return true
	}
	if k.waiting >= waitingMax {
		return false
	}
	k.waiting++
	c.waits = k
	return true
}

// entered says that it waits no more.
func (c *conn) entered() {
	if c.waits != nil {
		c.waits.waiting--
		c.waits = nil
	}
}

// keyVerb answers what is asked about keys, to who asks.
func (c *conn) keyVerb(f *asterism.Frame) {
	if a := c.speaker(); a != nil && !c.h.leads(a.id) {
		c.keyError(f, "PERMISSION_DENIED", "keys are the owner's")
		return
	}
	var v map[string]any
	_ = json.Unmarshal(f.Value, &v)
	text := func(name string) string { s, _ := v[name].(string); return s }
	k := c.h.keyBy(text("key"), text("keyRef"))
	switch f.Intent() {
	case "KeyIssue":
		c.keyIssue(f, v)
		return
	case "KeyList":
		c.h.answer(c, "KeyListResult", asterism.KeyListResult{Keys: c.h.keyRows(), Re: f.MsgID})
		return
	}
	if k == nil {
		c.keyError(f, "KEY_NOT_FOUND", "there is no such key")
		return
	}
	switch f.Intent() {
	case "KeyRevoke":
		c.keyRevoke(f, k, text("mode"))
	case "KeyLabel":
		c.keyLabel(f, k, v["newLabel"])
	case "KeyRenew":
		c.keyRenew(f, k, v["ttl"])
	}
}

func (c *conn) keyError(f *asterism.Frame, code, text string) {
	c.h.answer(c, "KeyError", asterism.KeyError{Code: code, Message: text, Re: f.MsgID})
}

// answer sends a frame that the hub makes to one connection.
func (h *hub) answer(c *conn, name protocol.Intent, v any) {
	raw, _ := json.Marshal(v)
	c.link.Send(h.enc.Custom(h.clock.now(), asterism.Custom{Name: name, Value: raw}))
}

var boundID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// life reads a ttl in ms; nothing is the life that keys have without one.
func life(v any) (time.Duration, bool) {
	if v == nil {
		return keyLife, true
	}
	ms, ok := v.(float64)
	if !ok || ms < 0 || ms > float64(keyLifeMax.Milliseconds()) || ms != float64(int64(ms)) {
		return 0, false
	}
	return time.Duration(ms) * time.Millisecond, true
}

func (c *conn) keyIssue(f *asterism.Frame, v map[string]any) {
	h := c.h
	k := &key{kind: "upstream", issued: h.clock.now()}
	if v["kind"] != nil {
		k.kind, _ = v["kind"].(string)
	}
	if kinds[k.kind] == [2]string{} && h.fault == "B32" {
		k.kind = "upstream"
	}
	var okLife, okBound, okLabel = true, true, true
	k.ttl, okLife = life(v["ttl"])
	if k.label = k.kind; v["label"] != nil {
		k.label, okLabel = v["label"].(string)
	}
	if v["boundAgent"] != nil {
		bound, _ := v["boundAgent"].(string)
		k.bound, okBound = protocol.AgentID(bound), boundID.MatchString(bound)
	}
	switch {
	case kinds[k.kind] == [2]string{}:
		c.keyError(f, "UNKNOWN_KIND", "kind is collab, peer or upstream")
		return
	case !okLabel || k.label == "" || len(k.label) > 64:
		c.keyError(f, "INVALID_LABEL", "a label has 1 to 64 characters")
		return
	case !okLife:
		c.keyError(f, "INVALID_TTL", "ttl is a number of milliseconds")
		return
	case !okBound:
		c.keyError(f, "INVALID_BOUND_AGENT", "boundAgent is an agent's id")
		return
	}
	var random [18]byte
	_, _ = rand.Read(random[:])
	k.secret, k.ref = kinds[k.kind][0]+hex.EncodeToString(random[:12]), "kr-"+hex.EncodeToString(random[12:])
	h.keys = append(h.keys, k)
	out := asterism.KeyIssued{Key: k.secret, Label: k.label, Kind: k.kind, KeyRef: k.ref, TTL: k.ttl.Milliseconds(), IssuedAt: k.issued.UnixMilli(), Re: f.MsgID}
	if k.ttl > 0 {
		h.expires(k, k.issued.Add(k.ttl))
		at := k.expires.UnixMilli()
		out.ExpiresAt = &at
	}
	out.JoinURL = h.url + "?" + kinds[k.kind][1] + "=" + k.secret
	out.JoinURLs = []asterism.JoinURL{{Host: "127.0.0.1", Scope: "loopback", URL: out.JoinURL, Reachable: true}}
	to := []*conn{c}
	if h.fault == "KB11" {
		to = h.conns
	}
	for _, each := range to {
		h.answer(each, "KeyIssued", out)
	}
}

// expires sets when a key ends, and ends what lives by it then.
func (h *hub) expires(k *key, at time.Time) {
	k.expires = at
	if h.fault == "B18" {
		return
	}
	h.clock.after(at.Sub(h.clock.now()), func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if k.expires.Equal(at) {
			h.endAll(k, asterism.Rejection{Code: "key-expired", Reason: "the key has run out", Label: k.label, ExpiresAt: at.UnixMilli()}, "key expired")
		}
	})
}

// endAll ends the connections of a key and says how many were agents'.
func (h *hub) endAll(k *key, why asterism.Rejection, reason string) int {
	agents := 0
	for _, c := range slices.Clone(h.conns) {
		if c.key == k && !c.session.Ended() {
			if c.session.Agent() {
				agents++
			}
			c.do(c.session.Revoke(why, reason))
		}
	}
	return agents
}

// holders are the connections of agents that came with a key.
func (h *hub) holders(k *key) (out []*conn) {
	for _, c := range h.conns {
		if c.key == k && c.session.Agent() {
			out = append(out, c)
		}
	}
	return out
}

func (c *conn) keyRevoke(f *asterism.Frame, k *key, mode string) {
	h := c.h
	out := asterism.KeyRevoked{KeyRef: k.ref, Mode: mode, Re: f.MsgID}
	switch {
	case mode == "immediate" && !k.revoked:
		k.revoked = true
		out.Disconnected = h.endAll(k, asterism.Rejection{Code: "key-revoked", Reason: "the key was revoked"}, "key revoked")
	case mode == "sessionEnd" && !k.revoked && !k.ending:
		k.ending = true
		for _, held := range h.holders(k) {
			out.Notified++
			h.answer(held, "KeyRevokePending", asterism.KeyRevokePending{KeyRef: k.ref, Mode: mode})
		}
	case mode != "immediate" && mode != "sessionEnd":
		c.keyError(f, "INVALID_MODE", "mode is immediate or sessionEnd")
		return
	default:
		c.keyError(f, "ALREADY_REVOKED", "the key is revoked already")
		return
	}
	h.answer(c, "KeyRevoked", out)
}

func (c *conn) keyLabel(f *asterism.Frame, k *key, label any) {
	next, ok := label.(string)
	switch {
	case !ok || next == "" || len(next) > 64:
		c.keyError(f, "INVALID_LABEL", "a label has 1 to 64 characters")
		return
	case next == k.label:
		c.keyError(f, "NOOP_LABEL", "it is called so already")
		return
	}
	out := asterism.KeyLabeled{KeyRef: k.ref, OldLabel: k.label, NewLabel: next}
	k.label = next
	for _, held := range c.h.holders(k) {
		c.h.answer(held, "AgentNameChanged", out)
	}
	out.Re = f.MsgID
	c.h.answer(c, "KeyLabeled", out)
}

func (c *conn) keyRenew(f *asterism.Frame, k *key, ttl any) {
	h, now := c.h, c.h.clock.now()
	next, ok := k.ttl, true
	if ttl != nil {
		next, ok = life(ttl)
	}
	switch {
	case k.revoked || k.ending:
		c.keyError(f, "NOT_RENEWABLE", "a revoked key stays revoked")
		return
	case !ok || next == 0:
		c.keyError(f, "INVALID_TTL", "ttl is a number of milliseconds")
		return
	}
	lapsed := k.over(now)
	k.ttl, k.renewed, k.renewals = next, now, k.renewals+1
	h.expires(k, now.Add(next))
	h.answer(c, "KeyRenewed", asterism.KeyRenewed{KeyRef: k.ref, Label: k.label, Kind: k.kind, TTL: next.Milliseconds(), IssuedAt: k.issued.UnixMilli(),
		RenewedAt: now.UnixMilli(), ExpiresAt: k.expires.UnixMilli(), WasLapsed: lapsed, RenewCount: k.renewals, Re: f.MsgID})
}

func (h *hub) keyRows() []asterism.KeyRow {
	rows := []asterism.KeyRow{}
	for _, k := range h.keys {
		row := asterism.KeyRow{KeyRef: k.ref, Label: k.label, Kind: k.kind, TTL: k.ttl.Milliseconds(), IssuedAt: k.issued.UnixMilli(), State: "ACTIVE", Connection: "never", RenewCount: k.renewals}
		if k.revoked {
			row.State = "REVOKED"
		} else if k.over(h.clock.now()) {
			row.State, row.Lapsed = "LAPSED", true
		}
		if k.bound != "" {
			bound := k.bound
			row.Bound, row.LastAgent, row.Connection = &bound, &bound, "disconnected"
		}
		if len(h.holders(k)) > 0 {
			row.Connection = "connected"
		}
		if h.fault == "KB12" {
			secret := k.secret
			row.Key = &secret
		}
		rows = append(rows, row)
	}
	return rows
}

// mayEnter says why an agent may not come by a key. It binds a key to the first that does.
func (k *key) mayEnter(id protocol.AgentID) *asterism.Rejection {
	if k.bound != "" && !strings.EqualFold(string(k.bound), string(id)) {
		return &asterism.Rejection{Code: "key-identity-mismatch", Reason: "the key is another agent's"}
	}
	k.bound = id
	return nil
}

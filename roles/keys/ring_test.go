package keys

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/aster-mesh/aster/protocol"
)

func peerID(n byte) protocol.PeerID {
	return protocol.PeerIDOf(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, 32)).Public().(ed25519.PublicKey))
}

var (
	here, there = peerID(1), peerID(2)
	began       = time.UnixMilli(1_790_000_000_000)
)

// writer makes records of one node's log, one a millisecond.
type writer struct {
	log protocol.LogID
	seq uint64
	at  protocol.HLC
}

func newWriter(p protocol.PeerID) *writer {
	return &writer{log: protocol.LogID{Peer: p, Start: protocol.Start{At: 1, Rand: 1}, Scope: protocol.ScopeInside}, at: protocol.HLCAt(began)}
}

func (w *writer) write(at time.Time, b protocol.KeyBody) *protocol.Record {
	w.seq++
	w.at = max(w.at+1, protocol.HLCAt(at))
	return &protocol.Record{Log: w.log, Seq: w.seq, At: w.at, Wall: at.UnixMilli(), Kind: protocol.KindKey, Body: protocol.EncodeBody(b)}
}

func hashN(n int) Hash { return HashOf(fmt.Sprint("key", n)) }

func issueOf(h Hash, k Kind, ttl time.Duration) protocol.KeyBody {
	return protocol.KeyBody{Step: protocol.KeyIssue, Hash: h.String(), Kind: string(k), Label: "l", TTL: ttl.Milliseconds()}
}

// TestLifeOfAKeyByInstants walks a key through its states by both nodes' clocks: the one whose clock set an end keeps it
// to the millisecond, the other gives ten minutes unless it is told.
func TestLifeOfAKeyByInstants(t *testing.T) {
	h := hashN(1)
	at := func(d time.Duration) time.Time { return began.Add(d) }
	use := protocol.KeyBody{Step: protocol.KeyUse, Hash: h.String(), Agent: "partner"}
	type instant struct {
		at          time.Duration
		here, there State
	}
	for _, c := range []struct {
		name  string
		steps []protocol.KeyBody
		looks []instant
	}{
		{"issued and lapsed", nil, []instant{{0, Issued, Issued}, {time.Hour - 1e6, Issued, Issued}, {time.Hour, Revoked, Issued},
			{time.Hour + 10*time.Minute - 1e6, Revoked, Issued}, {time.Hour + 10*time.Minute, Revoked, Revoked}, {91 * 24 * time.Hour, Deleted, Deleted}}},
		{"used", []protocol.KeyBody{use}, []instant{{0, Active, Active}, {time.Hour, Revoked, Active}}},
		{"lapse told", []protocol.KeyBody{use, {Step: protocol.KeyLapse, Hash: h.String(), Until: at(time.Hour).UnixMilli()}}, []instant{{time.Hour, Revoked, Revoked}}},
		{"lapse of another end", []protocol.KeyBody{use, {Step: protocol.KeyLapse, Hash: h.String(), Until: at(time.Hour).UnixMilli() - 1}}, []instant{{time.Minute, Active, Active}}},
		{"revoked", []protocol.KeyBody{use, {Step: protocol.KeyRevoke, Hash: h.String()}}, []instant{{0, Revoked, Revoked}}},
		{"revoked with grace", []protocol.KeyBody{use, {Step: protocol.KeyRevoke, Hash: h.String(), Until: at(5 * time.Minute).UnixMilli()}},
			[]instant{{0, RevokedPending, RevokedPending}, {5*time.Minute - 1e6, RevokedPending, RevokedPending}, {5 * time.Minute, Revoked, RevokedPending}, {15 * time.Minute, Revoked, Revoked}}},
		{"its session ended", []protocol.KeyBody{use, {Step: protocol.KeyRevoke, Hash: h.String(), Until: at(5 * time.Minute).UnixMilli()}, {Step: protocol.KeyEnd, Hash: h.String()}},
			[]instant{{0, Revoked, Revoked}}},
		{"revoked at once after all", []protocol.KeyBody{use, {Step: protocol.KeyRevoke, Hash: h.String(), Until: at(5 * time.Minute).UnixMilli()}, {Step: protocol.KeyRevoke, Hash: h.String()}},
			[]instant{{0, Revoked, Revoked}}},
	} {
		r, w := NewRing(), newWriter(here)
		r.Apply(w.write(began, issueOf(h, Collab, time.Hour)))
		for _, s := range c.steps {
			r.Apply(w.write(began, s))
		}
		k, ok := r.ByHash(h)
		if !ok {
			t.Fatalf("%s: no key", c.name)
		}
		for _, look := range c.looks {
			if got := k.State(here, at(look.at)); got != look.here {
				t.Errorf("%s, after %s here: %s, want %s", c.name, look.at, got, look.here)
			}
			if got := k.State(there, at(look.at)); got != look.there {
				t.Errorf("%s, after %s there: %s, want %s", c.name, look.at, got, look.there)
			}
			if got := k.Valid(here, at(look.at)) == nil; got != (look.here == Issued || look.here == Active) {
				t.Errorf("%s, after %s: valid %v while %s", c.name, look.at, got, look.here)
			}
			if got := k.Holds("partner", here, at(look.at)) == nil; got != (look.here == Issued || look.here == Active || look.here == RevokedPending) {
				t.Errorf("%s, after %s: a session holds %v while %s", c.name, look.at, got, look.here)
			}
			if next := k.Next(here, at(look.at)); !next.IsZero() && k.State(here, next) == k.State(here, next.Add(-time.Millisecond)) {
				t.Errorf("%s, after %s: nothing changes at %s", c.name, look.at, next)
			}
		}
	}
}

// TestRenewalUndoesALapseAndNothingElse.
func TestRenewalUndoesALapseAndNothingElse(t *testing.T) {
	h := hashN(1)
	r, w, o := NewRing(), newWriter(here), newWriter(there)
	r.Apply(w.write(began, issueOf(h, Peer, time.Hour)))
	late := began.Add(2 * time.Hour)
	r.Apply(w.write(late, protocol.KeyBody{Step: protocol.KeyLapse, Hash: h.String(), Until: began.Add(time.Hour).UnixMilli()}))
	k, _ := r.ByHash(h)
	if no := k.Valid(there, late); no == nil || no.Code != protocol.CodeKeyExpired {
		t.Fatalf("after its end: %v", no)
	}
	body, no := k.Renew(nil)
	if no != nil || body.TTL != time.Hour.Milliseconds() {
		t.Fatalf("renewal: %+v %v", body, no)
	}
	r.Apply(o.write(late, body))
	if k, _ = r.ByHash(h); k.State(here, late) != Issued || k.ExpiresAt() != late.Add(time.Hour).UnixMilli() || k.RenewCount != 1 || !k.Clock(there) || k.Clock(here) {
		t.Errorf("renewed: %+v is %s", k, k.State(here, late))
	}
	r.Apply(w.write(late, protocol.KeyBody{Step: protocol.KeyRevoke, Hash: h.String()}))
	r.Apply(o.write(late, body))
	if k, _ = r.ByHash(h); k.State(here, late) != Revoked {
		t.Errorf("renewed after its revocation: %s", k.State(here, late))
	}
	if _, no := k.Renew(nil); no == nil || no.Code != CodeNotRenewable {
		t.Errorf("renewal of a revoked key: %v", no)
	}
}

// TestShuffledLogsGiveOneRing: interleavings of four nodes' logs fold to the same bytes, a checkpoint in the middle
// included, and of two first uses the smaller (hybrid time, peer id) keeps the key.
func TestShuffledLogsGiveOneRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var logs [][]*protocol.Record
		steps := []protocol.KeyStep{protocol.KeyIssue, protocol.KeyUse, protocol.KeyLabel, protocol.KeyRenew, protocol.KeyRevoke, protocol.KeyEnd, protocol.KeyLapse, "unheard-of"}
		for n := range 4 {
			w := newWriter(peerID(byte(n + 1)))
			var log []*protocol.Record
			for range rapid.IntRange(0, 8).Draw(t, "records") {
				b := protocol.KeyBody{
					Step: rapid.SampledFrom(steps).Draw(t, "step"), Hash: hashN(rapid.IntRange(0, 2).Draw(t, "key")).String(), Kind: "collab",
					Label: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "label"), TTL: rapid.Int64Range(-1, 5000).Draw(t, "ttl"),
					Agent: protocol.AgentID(rapid.SampledFrom([]string{"x", "y", ""}).Draw(t, "agent")), Until: rapid.Int64Range(0, 2).Draw(t, "until"),
				}
				log = append(log, w.write(began.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "ms"))*time.Millisecond), b))
			}
			logs = append(logs, log)
		}
		want := foldIn(t, logs, rand.New(rand.NewPCG(0, 0)), false)
		for seed := range uint64(6) {
			if got := foldIn(t, logs, rand.New(rand.NewPCG(1, seed)), seed%2 == 0); !bytes.Equal(got, want) {
				t.Fatalf("another order gives\n%s, not\n%s", got, want)
			}
		}
	})
}

func foldIn(t interface{ Fatal(...any) }, logs [][]*protocol.Record, dice *rand.Rand, pause bool) []byte {
	r, at := NewRing(), make([]int, len(logs))
	for {
		var left []int
		for i := range logs {
			if at[i] < len(logs[i]) {
				left = append(left, i)
			}
		}
		if len(left) == 0 {
			return r.Encode()
		}
		i := left[dice.IntN(len(left))]
		r.Apply(logs[i][at[i]])
		at[i]++
		if pause && dice.IntN(3) == 0 {
			var err error
			if r, err = DecodeRing(r.Encode()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestFirstUseInTwoPlacesIsKeptByTheSmaller(t *testing.T) {
	h := hashN(1)
	for _, swapped := range []bool{false, true} {
		a, b := newWriter(here), newWriter(there)
		records := []*protocol.Record{
			a.write(began, issueOf(h, Collab, 0)),
			a.write(began.Add(time.Second), protocol.KeyBody{Step: protocol.KeyUse, Hash: h.String(), Agent: "later"}),
			b.write(began.Add(time.Millisecond), protocol.KeyBody{Step: protocol.KeyUse, Hash: h.String(), Agent: "sooner"}),
		}
		if swapped {
			records[1], records[2] = records[2], records[1]
		}
		r := NewRing()
		for _, rec := range records {
			r.Apply(rec)
		}
		k, _ := r.ByHash(h)
		if k.Bound != "sooner" || k.Holds("later", here, began) == nil || k.Holds("SOONER", here, began) != nil {
			t.Errorf("swapped %v: the key is %q's", swapped, k.Bound)
		}
	}
}

// TestOnlyTheInsideWritesKeys: the same bytes in an outsider's log change nothing.
func TestOnlyTheInsideWritesKeys(t *testing.T) {
	r, w := NewRing(), newWriter(here)
	rec := w.write(began, issueOf(hashN(1), Collab, 0))
	rec.Log.Scope = protocol.ScopeOutside(here)
	r.Apply(rec)
	for _, body := range []string{`null`, `[]`, `{"step":"issue"}`, `{"step":"issue","hash":"zz","kind":"collab"}`, `{"step":"issue","hash":"` + hashN(1).String() + `","kind":"root"}`,
		`{"step":"issue","hash":"` + hashN(1).String() + `","kind":"collab","ttl":9223372036854775807}`, `{"step":"issue","hash":"` + strings.ToUpper(hashN(1).String()) + `","kind":"collab"}`} {
		r.Apply(&protocol.Record{Log: w.log, Seq: 1, At: 1, Kind: protocol.KindKey, Body: []byte(body)})
	}
	if n := len(r.All()); n != 0 {
		t.Errorf("%d keys came of it", n)
	}
}

func TestAdmission(t *testing.T) {
	secret := map[Kind]string{}
	r, w := NewRing(), newWriter(here)
	for i, kind := range []Kind{Collab, Peer, Upstream, Local} {
		secret[kind] = Secret(kind, [SecretBytes]byte{byte(i)})
		r.Apply(w.write(began, issueOf(HashOf(secret[kind]), kind, time.Hour)))
	}
	r.Apply(w.write(began, protocol.KeyBody{Step: protocol.KeyUse, Hash: HashOf(secret[Peer]).String(), Agent: "partner"}))
	for _, c := range []struct {
		secret string
		local  bool
		agent  protocol.AgentID
		after  time.Duration
		code   string
	}{
		{secret[Collab], false, "", 0, ""}, {secret[Collab], false, "anybody", 0, ""},
		{secret[Peer], false, "", 0, ""}, {secret[Peer], false, "Partner", 0, ""}, {secret[Peer], false, "thief", 0, protocol.CodeIdentityMismatch},
		{secret[Peer], false, "thief", time.Hour, protocol.CodeKeyExpired},
		{secret[Local], true, "w", 0, ""}, {secret[Local], false, "w", 0, protocol.CodeKeyRemote}, {secret[Local], false, "", 2 * time.Hour, protocol.CodeKeyExpired},
		{"", true, "w", 0, protocol.CodeBadKey}, {"ck-", true, "w", 0, protocol.CodeBadKey}, {secret[Collab] + " ", true, "w", 0, protocol.CodeBadKey},
		{strings.ToUpper(secret[Collab]), true, "w", 0, protocol.CodeBadKey}, {HashOf(secret[Collab]).String(), true, "w", 0, protocol.CodeBadKey},
	} {
		_, no := r.Admit(Presented{Hash: HashOf(c.secret), HostLocal: c.local, Agent: c.agent}, here, began.Add(c.after))
		code := ""
		if no != nil {
			code = no.Code
			if strings.Contains(no.Error(), "k-") || no.Hint == "" {
				t.Errorf("the refusal says %q", no.Error())
			}
		}
		if code != c.code {
			t.Errorf("%.6s as %q after %s, host-local %v: %q, want %q", c.secret, c.agent, c.after, c.local, code, c.code)
		}
	}
}

// TestNumbersAreBoundedForEveryVerb. Guards: KB23.
func TestNumbersAreBoundedForEveryVerb(t *testing.T) {
	r, w := NewRing(), newWriter(here)
	for i := range protocol.KeysActiveMax {
		body, no := r.Issue(Issue{Kind: Collab}, hashN(i), 0, here, began)
		if no != nil {
			t.Fatalf("key %d: %v", i, no)
		}
		r.Apply(w.write(began, body))
	}
	if _, no := r.Issue(Issue{Kind: Collab}, hashN(99), 0, here, began); no == nil || no.Code != CodeLimit {
		t.Errorf("one more: %v", no)
	}
	r.Apply(w.write(began, protocol.KeyBody{Step: protocol.KeyRevoke, Hash: hashN(0).String()}))
	if _, no := r.Issue(Issue{Kind: Collab}, hashN(99), 0, here, began); no != nil {
		t.Errorf("after a revocation: %v", no)
	}
	if _, no := r.Issue(Issue{Kind: Collab}, hashN(99), 1, here, began); no == nil {
		t.Error("one on its way was not counted")
	}
}

// TestWrongValuesOfIssueAreRefusedByTheirField: the contract's code for each. Guards: KA3, KA12, B32.
func TestWrongValuesOfIssueAreRefusedByTheirField(t *testing.T) {
	for _, c := range []struct{ value, code string }{
		{``, ""}, {`null`, ""}, {`{}`, ""}, {`{"kind":null,"label":null,"ttl":null,"boundAgent":null,"roleDescription":null}`, ""},
		{`{"kind":"local","label":"A-b_9"}`, ""}, {`{"ttl":0}`, ""}, {`{"ttl":1e3}`, ""}, {`{"ttl":3153600000000}`, ""}, {`{"label":"` + strings.Repeat("é", 64) + `"}`, ""},
		{`[]`, CodeFields}, {`"x"`, CodeFields}, {`1`, CodeFields}, {`true`, CodeFields},
		{`{"kind":"banana"}`, CodeUnknownKind}, {`{"kind":""}`, CodeUnknownKind}, {`{"kind":{}}`, CodeUnknownKind}, {`{"kind":"Collab"}`, CodeUnknownKind}, {`{"kind":["collab"]}`, CodeUnknownKind},
		{`{"label":""}`, CodeLabel}, {`{"label":{"toString":1}}`, CodeLabel}, {`{"label":7}`, CodeLabel}, {`{"label":"` + strings.Repeat("x", 65) + `"}`, CodeLabel},
		{`{"label":"a\nb"}`, CodeLabel}, {`{"label":"a\u202eb"}`, CodeLabel}, {`{"kind":"local","label":"bad label!"}`, CodeLabel}, {`{"kind":"local","label":"../x"}`, CodeLabel},
		{`{"roleDescription":[]}`, CodeNote}, {`{"roleDescription":"` + strings.Repeat("x", 257) + `"}`, CodeNote}, {`{"roleDescription":"a\u0007"}`, CodeNote},
		{`{"ttl":-1}`, CodeTTL}, {`{"ttl":1e20}`, CodeTTL}, {`{"ttl":1.5}`, CodeTTL}, {`{"ttl":"60"}`, CodeTTL}, {`{"ttl":{}}`, CodeTTL}, {`{"ttl":1e300}`, CodeTTL}, {`{"ttl":true}`, CodeTTL},
		{`{"ttl":9223372036854775807}`, CodeTTL}, {`{"ttl":99999999999999999999}`, CodeTTL},
		{`{"boundAgent":"bad id!"}`, CodeBoundAgent}, {`{"boundAgent":""}`, CodeBoundAgent}, {`{"boundAgent":{}}`, CodeBoundAgent}, {`{"boundAgent":"` + strings.Repeat("x", 65) + `"}`, CodeBoundAgent},
	} {
		in, no := ParseIssue(json.RawMessage(c.value))
		if no == nil {
			_, no = NewRing().Issue(in, hashN(1), 0, here, began)
		}
		code := ""
		if no != nil {
			code = no.Code
		}
		if code != c.code {
			t.Errorf("KeyIssue %.80s: %q, want %q", c.value, code, c.code)
		}
	}
}

func TestVerbsRefuseByTheContractsCodes(t *testing.T) {
	ms := func(v int64) *int64 { return &v }
	plainKey := Key{Hash: hashN(1), Kind: Collab, Label: "l", TTL: 1000, Issued: began.UnixMilli()}
	gone, going, endless := plainKey, plainKey, plainKey
	gone.Revoked, going.Pending, endless.TTL = 1, began.UnixMilli()+1, 0
	code := func(_ protocol.KeyBody, no *protocol.Refusal) string {
		if no == nil {
			return ""
		}
		return no.Code
	}
	for name, c := range map[string][2]string{
		"no mode":                 {code(plainKey.Revoke("", false, began)), CodeMode},
		"another mode":            {code(plainKey.Revoke("soon", false, began)), CodeMode},
		"at once":                 {code(plainKey.Revoke(Immediate, true, began)), ""},
		"twice":                   {code(gone.Revoke(Immediate, false, began)), CodeRevoked},
		"gently twice":            {code(going.Revoke(SessionEnd, true, began)), CodeRevoked},
		"at once while it goes":   {code(going.Revoke(Immediate, true, began)), ""},
		"same label":              {code(plainKey.Relabel("l")), CodeSameLabel},
		"no label":                {code(plainKey.Relabel("")), CodeLabel},
		"renew":                   {code(plainKey.Renew(nil)), ""},
		"renew by nothing":        {code(plainKey.Renew(ms(0))), CodeTTL},
		"renew for ever":          {code(plainKey.Renew(ms(1 << 62))), CodeTTL},
		"renew one without end":   {code(endless.Renew(ms(5))), CodeNoEnd},
		"renew a revoked one":     {code(gone.Renew(ms(5))), CodeNotRenewable},
		"renew one that is going": {code(going.Renew(nil)), CodeNotRenewable},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: %q, want %q", name, c[0], c[1])
		}
	}
	if body, _ := plainKey.Revoke(SessionEnd, false, began); body.Until != 0 {
		t.Error("a key that nobody uses was given a grace")
	}
	if body, _ := plainKey.Revoke(SessionEnd, true, began); body.Until != began.Add(protocol.KeyGrace).UnixMilli() {
		t.Errorf("grace until %d", body.Until)
	}
}

// FuzzParseIssue lets anybody write a verb's value: what is let in holds to every bound.
func FuzzParseIssue(f *testing.F) {
	f.Add([]byte(`{"kind":"local","label":"x","ttl":5,"boundAgent":"a","roleDescription":"d"}`))
	f.Add([]byte(`{"ttl":1e20,"label":{"toString":1}}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		in, no := ParseIssue(value)
		if no != nil {
			return
		}
		body, no := NewRing().Issue(in, hashN(1), 0, here, began)
		if no != nil {
			return
		}
		rec := &protocol.Record{Log: newWriter(here).log, Seq: 1, At: 1, Wall: began.UnixMilli(), Kind: protocol.KindKey, Body: protocol.EncodeBody(body)}
		r := NewRing()
		r.Apply(rec)
		k, ok := r.ByHash(hashN(1))
		if !ok || !LabelOK(k.Kind, k.Label) || k.ExpiresAt() < 0 || k.State(here, began) != Issued && k.TTL != 0 {
			t.Errorf("%s became %+v", value, k)
		}
	})
}

// FuzzDecodeRing reads any bytes as a checkpoint.
func FuzzDecodeRing(f *testing.F) {
	r, w := NewRing(), newWriter(here)
	r.Apply(w.write(began, issueOf(hashN(1), Collab, time.Hour)))
	f.Add([]byte(r.Encode()))
	f.Add([]byte(`[null]`))
	f.Add([]byte(`[{"hash":"x"}]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := DecodeRing(raw)
		if err != nil {
			return
		}
		for _, k := range r.All() {
			k.State(here, began)
			k.Next(here, began)
		}
		r.Active(here, began)
	})
}

package member

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

func TestVerifyNamesWhatIsWrong(t *testing.T) {
	dev := founder(t)
	mini := dev.admits(t, newParty(2, "mac-mini"), protocol.RoleLocal, 0, day0.Add(day))
	guest := mini.admits(t, newParty(3, "guest"), protocol.RoleCollab, 0, day0.Add(2*day))
	stranger := newParty(9, "stranger")
	forged := func(change func(*Cert), by *party) Chain {
		c := guest.chain[0].Cert
		change(&c)
		return append(Chain{sign(c, by.key)}, by.chain...)
	}
	changed := func(change func(Chain) Chain) Chain {
		chain, err := ParseChain(EncodeChain(guest.chain))
		if err != nil {
			t.Fatal(err)
		}
		return change(chain)
	}
	now := day0.Add(3 * day)
	end := day0.Add(2 * day).Add(protocol.CertLife)
	for name, c := range map[string]struct {
		mesh  MeshID
		chain Chain
		now   time.Time
		want  string
	}{
		"sound":                     {mesh, guest.chain, now, ""},
		"at its end, within grace":  {mesh, guest.chain, end.Add(protocol.ClockGrace), ""},
		"after its end":             {mesh, guest.chain, end.Add(protocol.ClockGrace + time.Second), protocol.CodeCertExpired},
		"a clock slow within grace": {mesh, guest.chain, day0.Add(2*day - protocol.ClockGrace), ""},
		"before its beginning":      {mesh, guest.chain, day0.Add(2*day - protocol.ClockGrace - time.Second), protocol.CodeCertExpired},
		"another mesh":              {MeshIDOf(ed25519.PublicKey(stranger.key[32:])), guest.chain, now, protocol.CodeNotMember},
		"no mesh":                   {"mesh", guest.chain, now, protocol.CodeCertBad},
		"empty":                     {mesh, nil, now, protocol.CodeCertBad},
		"name changed":              {mesh, changed(func(c Chain) Chain { c[0].Cert.Name = "boss"; return c }), now, protocol.CodeCertBad},
		"role changed":              {mesh, changed(func(c Chain) Chain { c[0].Cert.Role = protocol.RolePeer; return c }), now, protocol.CodeCertBad},
		"signature cut":             {mesh, changed(func(c Chain) Chain { c[0].Sig = c[0].Sig[:10]; return c }), now, protocol.CodeCertBad},
		"chain cut":                 {mesh, guest.chain[:2], now, protocol.CodeCertBad},
		"a link left out":           {mesh, Chain{guest.chain[0], guest.chain[2]}, now, protocol.CodeCertBad},
		"signed by a stranger":      {mesh, append(Chain{sign(guest.chain[0].Cert, stranger.key)}, mini.chain...), now, protocol.CodeCertBad},
		"issued by an outsider":     {mesh, forged(func(c *Cert) { c.Peer, c.Issuer = stranger.peer, guest.peer }, guest), now, protocol.CodeWrongRole},
		"more than its issuer":      {mesh, forged(func(c *Cert) { c.Role, c.Inside, c.Caps = protocol.RoleLocal, true, []Cap{CapIssue, "rule"} }, mini), now, protocol.CodeWrongRole},
		"an outsider with a cap":    {mesh, forged(func(c *Cert) { c.Caps = []Cap{CapIssue} }, mini), now, protocol.CodeCertBad},
		"main as a role":            {mesh, forged(func(c *Cert) { c.Role, c.Inside = protocol.RoleMain, true }, mini), now, protocol.CodeCertBad},
		"outside called inside":     {mesh, forged(func(c *Cert) { c.Inside = true }, mini), now, protocol.CodeCertBad},
		"too long a life":           {mesh, forged(func(c *Cert) { c.NotAfter++ }, mini), now, protocol.CodeCertBad},
		"by itself":                 {mesh, forged(func(c *Cert) { c.Issuer = c.Peer }, guest), now, protocol.CodeCertBad},
		"outside its issuer's life": {mesh, forged(func(c *Cert) {
			c.NotBefore = mini.chain[0].Cert.NotAfter + day.Milliseconds()
			c.NotAfter = c.NotBefore + day.Milliseconds()
		}, mini), now, protocol.CodeCertExpired},
		"bad name": {mesh, forged(func(c *Cert) { c.Name = "a\u202eb" }, mini), now, protocol.CodeCertBad},
	} {
		cert, r := Verify(c.mesh, c.chain, c.now, nil)
		if code(r) != c.want {
			t.Errorf("%s: %v, want %q", name, r, c.want)
		}
		if r == nil && cert.Peer != guest.peer || r != nil && cert.Peer != "" {
			t.Errorf("%s: certificate of %q", name, cert.Peer)
		}
	}
}

func TestACertificateOfARevokedIssuerIsRefusedUnlessTheRosterKnowsIt(t *testing.T) {
	dev := founder(t)
	mini := dev.admits(t, newParty(2, "mac-mini"), protocol.RoleLocal, 0, day0)
	known := mini.admits(t, newParty(3, "known"), protocol.RoleLocal, 0, day0)
	later := mini.admits(t, newParty(4, "later"), protocol.RoleLocal, 0, day0)
	d, m := dev.pen(1), mini.pen(2)
	r := rosterOf(d.admits(10, dev), d.admits(20, mini), m.admits(30, known), m.admits(60, later),
		d.revokes(50, mini, map[protocol.LogID]uint64{m.log: 1}))
	for p, want := range map[*party]string{mini: "", known: "", later: protocol.CodeRevoked} {
		if _, got := Verify(mesh, p.chain, day0, r.Withdrawn); code(got) != want {
			t.Errorf("%s: %v, want %q", p.name, got, want)
		}
	}
	if got := r.Standing(mini.peer, day0); code(got) != protocol.CodeRevoked {
		t.Errorf("mini itself stands: %v", got)
	}
	if got := r.Standing(later.peer, day0); code(got) != protocol.CodeNotMember {
		t.Errorf("a member admitted beyond the cut stands: %v", got)
	}
}

func TestAnyIssuerRenewsFromDay30AndTheMeshKeyShortensTheChain(t *testing.T) {
	dev := founder(t)
	mini := dev.admits(t, newParty(2, "mac-mini"), protocol.RoleLocal, 7, day0)
	third := mini.admits(t, newParty(3, "third"), protocol.RoleLocal, 0, day0)
	if _, r := Renew(dev.key, dev.chain, third.chain[0].Cert, day0.Add(30*day-time.Second)); code(r) != protocol.CodeNotAllowed {
		t.Errorf("renewed before day 30: %v", r)
	}
	now := day0.Add(30 * day)
	chain, r := Renew(dev.key, dev.chain, third.chain[0].Cert, now)
	if r != nil {
		t.Fatal(r)
	}
	if len(third.chain) != 3 || len(chain) != 2 {
		t.Errorf("chain of %d became %d, want 3 and 2", len(third.chain), len(chain))
	}
	chain, r = RenewByMesh(meshParty.key, mini.chain[0].Cert, now)
	if r != nil || len(chain) != 1 || chain[0].Cert.Lifts != 7 || chain[0].Cert.NotAfter != now.Add(protocol.CertLife).UnixMilli() {
		t.Errorf("renewed by the mesh key: %+v, %v", chain, r)
	}
	if _, r := Verify(mesh, third.chain, day0.Add(protocol.CertLife), nil); r != nil {
		t.Errorf("at the end of its issuer's certificate: %v", r)
	}
}

func TestAChainGrowsNoLongerThanAllowed(t *testing.T) {
	at := founder(t)
	for n := byte(2); ; n++ {
		next := newParty(n, "node")
		chain, r := Issue(at.key, at.chain, Admit{Peer: next.peer, Name: next.name, Role: protocol.RoleLocal}, day0)
		if len(at.chain) == protocol.CertChainMax {
			if code(r) != protocol.CodeCertBad || r.Hint == "" {
				t.Fatalf("link %d: %v", n, r)
			}
			return
		}
		if r != nil {
			t.Fatalf("link %d: %v", n, r)
		}
		if _, err := ParseChain(EncodeChain(chain)); err != nil {
			t.Fatalf("link %d: %v", n, err)
		}
		next.chain, at = chain, next
	}
}

func TestIssuingIsRefusedToWhoMayNot(t *testing.T) {
	dev := founder(t)
	guest := dev.admits(t, newParty(2, "guest"), protocol.RoleUpstream, 0, day0)
	other := Admit{Peer: newParty(3, "x").peer, Name: "x", Role: protocol.RoleLocal}
	for name, c := range map[string]struct {
		got  *protocol.Refusal
		want string
	}{
		"an outsider":      {second(Issue(guest.key, guest.chain, other, day0)), protocol.CodeWrongRole},
		"without a chain":  {second(Issue(dev.key, nil, other, day0)), protocol.CodeNotMember},
		"another's chain":  {second(Issue(guest.key, dev.chain, other, day0)), protocol.CodeCertBad},
		"expired":          {second(Issue(dev.key, dev.chain, other, day0.Add(91*day))), protocol.CodeCertExpired},
		"a role of boards": {second(Issue(dev.key, dev.chain, Admit{Peer: other.Peer, Name: "x", Role: protocol.RoleBoard}, day0)), protocol.CodeCertBad},
		"to itself":        {second(Issue(dev.key, dev.chain, Admit{Peer: dev.peer, Name: "x", Role: protocol.RoleLocal}, day0)), protocol.CodeCertBad},
		"founding outside": {second(Found(meshParty.key, Admit{Peer: other.Peer, Name: "x", Role: protocol.RolePeer}, day0)), protocol.CodeWrongRole},
		"a bad name":       {second(Issue(dev.key, dev.chain, Admit{Peer: other.Peer, Name: strings.Repeat("x", 65), Role: protocol.RoleLocal}, day0)), protocol.CodeCertBad},
	} {
		if code(c.got) != c.want {
			t.Errorf("%s: %v, want %s", name, c.got, c.want)
		}
	}
}

func second[T any](_ T, r *protocol.Refusal) *protocol.Refusal { return r }

func TestAChainHasOneEncoding(t *testing.T) {
	dev := founder(t)
	text := EncodeChain(dev.chain)
	for name, other := range map[string][]byte{
		"space":         append([]byte(" "), text...),
		"unknown field": bytes.Replace(text, []byte(`{"cert"`), []byte(`{"more":1,"cert"`), 1),
		"repeated":      bytes.Replace(text, []byte(`{"cert"`), []byte(`{"sig":"","cert"`), 1),
		"null":          []byte("null"),
		"empty":         []byte("[]"),
		"nothing":       nil,
		"escaped":       bytes.Replace(text, []byte(`"devbox"`), []byte(`"\u0064evbox"`), 1),
		"huge":          bytes.Repeat([]byte("["), chainBytesMax+1),
	} {
		if _, err := ParseChain(other); !errors.Is(err, ErrBadCert) {
			t.Errorf("%s: %v, want ErrBadCert", name, err)
		}
	}
}

func FuzzParseChain(f *testing.F) {
	dev := founder(f)
	guest := dev.admits(f, newParty(2, "guest"), protocol.RoleCollab, 3, day0)
	f.Add(EncodeChain(dev.chain))
	f.Add(EncodeChain(guest.chain))
	f.Add([]byte(`[{"cert":{},"sig":null}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		chain, err := ParseChain(text)
		if err != nil {
			return
		}
		if !bytes.Equal(EncodeChain(chain), text) {
			t.Fatalf("%q has a second encoding", text)
		}
		if cert, r := Verify(mesh, chain, day0, nil); r == nil && cert.Peer != dev.peer && cert.Peer != guest.peer {
			t.Fatalf("a certificate nobody signed is sound: %+v", cert)
		}
	})
}

// TestNoFlippedBitOfAChainIsTaken: whichever bit of a chain of certificates is another one, it is nobody's chain.
func TestNoFlippedBitOfAChainIsTaken(t *testing.T) {
	dev := founder(t)
	guest := dev.admits(t, newParty(2, "laptop"), protocol.RoleLocal, 0, day0)
	text := EncodeChain(guest.chain)
	if chain, err := ParseChain(text); err != nil || second(Verify(mesh, chain, day0, nil)) != nil {
		t.Fatalf("the chain as it is: %v", err)
	}
	for bit := range 8 * len(text) {
		text[bit/8] ^= 1 << (bit % 8)
		if chain, err := ParseChain(text); err == nil {
			if c, no := Verify(mesh, chain, day0, nil); no == nil {
				t.Errorf("bit %d makes the chain of %s, %s", bit, c.Name, text)
			}
		}
		text[bit/8] ^= 1 << (bit % 8)
	}
}

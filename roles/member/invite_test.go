package member

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

var someAddrs = []string{"/ip4/192.0.2.14/tcp/41000", "/ip4/192.0.2.14/udp/41000/quic-v1"}

func anInvite(t testing.TB, role protocol.Role) (string, InviteRecord) {
	t.Helper()
	token, rec, err := NewInvite(bytes.NewReader(bytes.Repeat([]byte{0xa5, 0x17, 3}, 8)), mesh, newParty(1, "devbox").peer, someAddrs, role, 77, day0.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return token, rec
}

func TestAnInviteIsReadBackThroughSpaceAndLineBreaks(t *testing.T) {
	token, rec := anInvite(t, protocol.RoleMain)
	for _, text := range []string{token, "\n\t " + token + "\r\n", token[:60] + "\n" + token[60:120] + "\r\n  " + token[120:]} {
		inv, r := ParseInvite(text)
		if r != nil {
			t.Fatalf("%q: %v", text, r)
		}
		if inv.Mesh != mesh || inv.Inviter != newParty(1, "").peer || inv.ID != rec.ID || len(inv.Secret) != secretBytes || !slices.Equal(inv.Addrs, someAddrs) {
			t.Errorf("read back as %+v", inv)
		}
	}
	if rec.Role != protocol.RoleLocal {
		t.Errorf("an invite for main is for role %s, want local", rec.Role)
	}
}

func TestAMistypedOrCutInviteIsToldApartFromNoInvite(t *testing.T) {
	token, _ := anInvite(t, protocol.RoleLocal)
	for n := range len(token) {
		if _, r := ParseInvite(token[:n]); code(r) != protocol.CodeInviteBad {
			t.Fatalf("cut to %d bytes: %v", n, r)
		} else if want := n >= len(tokenPrefix); strings.Contains(r.Reason, "cut off or mistyped") != want {
			t.Fatalf("cut to %d bytes: %q", n, r.Reason)
		}
		if n < len(tokenPrefix) {
			continue
		}
		wrong := []byte(token)
		if wrong[n] = 'A'; token[n] == 'A' {
			wrong[n] = 'B'
		}
		if _, r := ParseInvite(string(wrong)); code(r) != protocol.CodeInviteBad || !strings.Contains(r.Reason, "mistyped") {
			t.Fatalf("mistyped at %d: %v", n, r)
		}
	}
	for _, text := range []string{"", "hello", "aster2-" + token[7:], strings.Repeat("x", 1<<20)} {
		if _, r := ParseInvite(text); code(r) != protocol.CodeInviteBad || !strings.Contains(r.Reason, "not an invite") {
			t.Errorf("%.20q: %v", text, r)
		}
	}
}

func TestTheStoredInviteDoesNotHoldTheSecret(t *testing.T) {
	token, rec := anInvite(t, protocol.RoleLocal)
	inv, _ := ParseInvite(token)
	if stored := protocol.EncodeBody(rec); bytes.Contains(stored, inv.Secret) || bytes.Contains(stored, []byte(protocol.EncodeBody(inv.Secret))[1:20]) {
		t.Errorf("%s holds the secret", stored)
	}
}

func TestAnInviteWorksOnceForOneNode(t *testing.T) {
	token, rec := anInvite(t, protocol.RoleLocal)
	inv, _ := ParseInvite(token)
	dev, mini, other := founder(t), newParty(2, "mac-mini"), newParty(3, "other")
	dev.admits(t, mini, rec.Role, 0, day0)
	now := day0.Add(time.Minute)
	used := rec.Used(mini.peer, mini.name, mini.chain, now)
	wrong := bytes.Repeat([]byte{1}, secretBytes)
	for name, c := range map[string]struct {
		stored *InviteRecord
		secret []byte
		peer   protocol.PeerID
		now    time.Time
		code   string
		said   string
	}{
		"first":                      {&rec, inv.Secret, mini.peer, now, "", ""},
		"again, its answer was lost": {&used, inv.Secret, mini.peer, now.Add(2 * time.Hour), "", ""},
		"by another":                 {&used, inv.Secret, other.peer, now.Add(3*time.Minute + time.Second), protocol.CodeInviteUsed, "invite refused: used 3 min ago by mac-mini. New one, on a member's node: aster invite"},
		"used and ended":             {&used, inv.Secret, other.peer, now.Add(50 * time.Hour), protocol.CodeInviteUsed, "invite refused: used 2 d ago by mac-mini. New one, on a member's node: aster invite"},
		"ended":                      {&rec, inv.Secret, mini.peer, day0.Add(time.Hour + 40*time.Second), protocol.CodeInviteExpired, "invite refused: it ended 40 s ago. New one, on a member's node: aster invite"},
		"at its end":                 {&rec, inv.Secret, mini.peer, day0.Add(time.Hour), protocol.CodeInviteExpired, ""},
		"unknown id":                 {nil, inv.Secret, mini.peer, now, protocol.CodeInviteUnknown, ""},
		"wrong secret":               {&rec, wrong, mini.peer, now, protocol.CodeInviteUnknown, ""},
		"wrong secret, used":         {&used, wrong, mini.peer, now, protocol.CodeInviteUnknown, ""},
		"no secret":                  {&rec, nil, mini.peer, now, protocol.CodeInviteUnknown, ""},
		"damaged record":             {&InviteRecord{}, nil, mini.peer, now, protocol.CodeInviteUnknown, ""},
	} {
		r := Redeem(c.stored, c.secret, c.peer, c.now)
		if code(r) != c.code || c.said != "" && r.Error() != c.said {
			t.Errorf("%s: %v, want %q %q", name, r, c.code, c.said)
		}
	}
	if again := used.Used(other.peer, other.name, nil, now); again.UsedBy != mini.peer || !bytes.Equal(again.Chain, EncodeChain(mini.chain)) {
		t.Errorf("a second use overwrote the first: %+v", again)
	}
}

func TestAnInviteNeedsARoleThatCanBeAdmitted(t *testing.T) {
	for _, role := range []protocol.Role{protocol.RoleBoard, "", "root"} {
		if _, _, err := NewInvite(bytes.NewReader(make([]byte, 99)), mesh, newParty(1, "").peer, nil, role, 0, day0); err == nil {
			t.Errorf("role %q was invited", role)
		}
	}
	if _, _, err := NewInvite(bytes.NewReader(nil), mesh, newParty(1, "").peer, nil, protocol.RoleLocal, 0, day0); err == nil {
		t.Error("an invite without randomness")
	}
}

func FuzzParseInvite(f *testing.F) {
	token, rec := anInvite(f, protocol.RolePeer)
	f.Add(token)
	f.Add(token[:100])
	f.Add(tokenPrefix)
	f.Fuzz(func(t *testing.T, text string) {
		inv, r := ParseInvite(text)
		if r != nil {
			if r.Code != protocol.CodeInviteBad {
				t.Fatalf("%v", r)
			}
			return
		}
		if _, err := inv.Inviter.PublicKey(); err != nil || len(inv.Addrs) > addrsMax || len(inv.Secret) != secretBytes || len(inv.ID) != len(rec.ID) {
			t.Fatalf("%q: %+v", text, inv)
		}
	})
}

func FuzzDecodeAdmission(f *testing.F) {
	dev := founder(f)
	f.Add(JoinRequest{Invite: "0011223344556677", Secret: make([]byte, 16), Name: "n", Version: "1", Addrs: someAddrs}.Encode())
	f.Add(JoinAnswer{Chain: EncodeChain(dev.chain), Members: []Introduction{{EncodeChain(dev.chain), someAddrs}}}.Encode())
	f.Add(JoinAnswer{Refusal: protocol.Refuse(protocol.CodeInviteUsed, "used", "")}.Encode())
	f.Fuzz(func(t *testing.T, text []byte) {
		if q, err := DecodeJoinRequest(text); err == nil {
			if q2, err := DecodeJoinRequest(q.Encode()); err != nil || q2.Name != q.Name {
				t.Fatalf("%q does not survive: %v", text, err)
			}
		}
		if a, err := DecodeJoinAnswer(text); err == nil && (a.Refusal == nil) == (len(a.Chain) == 0) {
			t.Fatalf("%q both admits and refuses", text)
		}
	})
}

func TestAdmissionMessagesAreReadBackAndBounded(t *testing.T) {
	dev := founder(t)
	q := JoinRequest{Invite: "0011223344556677", Secret: make([]byte, 16), Name: "mac-mini", Version: "1.0", Addrs: someAddrs}
	if got, err := DecodeJoinRequest(q.Encode()); err != nil || got.Name != q.Name || !slices.Equal(got.Addrs, q.Addrs) {
		t.Errorf("%+v, %v", got, err)
	}
	for name, bad := range map[string]JoinRequest{
		"no invite": {Secret: q.Secret, Name: "x"}, "short secret": {Invite: q.Invite, Secret: q.Secret[:8], Name: "x"},
		"no name": {Invite: q.Invite, Secret: q.Secret}, "version": {Invite: q.Invite, Secret: q.Secret, Name: "x", Version: strings.Repeat("1", 65)},
		"addresses": {Invite: q.Invite, Secret: q.Secret, Name: "x", Addrs: slices.Repeat(someAddrs, 9)},
		"huge":      {Invite: q.Invite, Secret: q.Secret, Name: "x", Addrs: []string{strings.Repeat("x", 9000)}},
	} {
		if _, err := DecodeJoinRequest(bad.Encode()); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	a := JoinAnswer{Chain: EncodeChain(dev.chain)}
	for range 100 {
		a.Members = append(a.Members, Introduction{Chain: bytes.Repeat([]byte{1}, 20<<10)})
	}
	got, err := DecodeJoinAnswer(a.Encode())
	if err != nil || len(got.Members) == 0 || len(got.Members) == 100 {
		t.Errorf("an answer too long for its frame: %d members, %v", len(got.Members), err)
	}
	if _, err := DecodeJoinAnswer([]byte(`{}`)); err == nil {
		t.Error("an answer that says nothing was accepted")
	}
}

// TestNoFlippedBitOfAnInviteIsTaken: whichever bit of its text is another one, it is no invite, or the same one in the other case.
func TestNoFlippedBitOfAnInviteIsTaken(t *testing.T) {
	token, rec := anInvite(t, protocol.RoleLocal)
	text := []byte(token)
	for bit := range 8 * len(text) {
		text[bit/8] ^= 1 << (bit % 8)
		if inv, no := ParseInvite(string(text)); no == nil && (inv.ID != rec.ID || inv.Mesh != mesh || !slices.Equal(inv.Addrs, someAddrs)) {
			t.Errorf("bit %d makes the invite %+v", bit, inv)
		}
		text[bit/8] ^= 1 << (bit % 8)
	}
}

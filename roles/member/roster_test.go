package member

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aster-mesh/aster/protocol"
)

// village is a mesh with a history: who admitted whom, and all that may go wrong with records.
type village struct {
	dev, mini, third, guest, mole *party
	records                       []*protocol.Record
}

func aVillage(t testing.TB) village {
	dev := founder(t)
	v := village{dev: dev, mini: newParty(2, "mac-mini"), third: newParty(3, "third"), guest: newParty(4, "guest"), mole: newParty(5, "mole")}
	dev.admits(t, v.mini, protocol.RoleLocal, 0, day0)
	v.mini.admits(t, v.third, protocol.RoleLocal, 0, day0)
	v.third.admits(t, v.guest, protocol.RoleCollab, 0, day0)
	v.mini.admits(t, v.mole, protocol.RoleLocal, 0, day0)
	d, m, th, g, mo := dev.pen(1), v.mini.pen(2), v.third.pen(3), v.guest.pen(4), v.mole.pen(5)
	g.log.Scope = protocol.ScopeOutside(v.guest.peer)
	v.records = []*protocol.Record{
		d.admits(10, dev),
		d.write(11, protocol.KindTerm, protocol.TermBody{Number: 1, Peer: dev.peer}),
		d.write(12, protocol.KindTerm, protocol.TermBody{Number: 1, Peer: dev.peer, Agent: "claude-shop"}),
		d.admits(13, v.mini),
		m.admits(20, v.third),
		m.write(21, protocol.KindInviteUsed, protocol.InviteUsedBody{Invite: "0000000000000001", Peer: v.third.peer}),
		th.admits(30, v.guest),
		// The guest decides nothing, whatever it writes.
		g.write(31, protocol.KindTerm, protocol.TermBody{Number: 99, Peer: v.guest.peer}),
		g.revokes(32, dev, nil),
		g.write(33, protocol.KindInviteUsed, protocol.InviteUsedBody{Invite: "0000000000000002", Peer: v.guest.peer}),
		// mini goes; what it wrote beyond its second record counts nowhere, its mole and its own revenge included.
		d.revokes(40, v.mini, map[protocol.LogID]uint64{m.log: 2}),
		m.admits(41, v.mole),
		m.revokes(42, dev, nil),
		m.write(43, protocol.KindTerm, protocol.TermBody{Number: 7, Peer: v.mini.peer}),
		mo.admits(44, v.mole),
		mo.revokes(45, dev, nil),
	}
	return v
}

func TestTheRosterIsAFunctionOfTheSetOfRecords(t *testing.T) {
	v := aVillage(t)
	want := rosterOf(v.records...).Canonical()
	for seed := range uint64(300) {
		records := shuffled(v.records, seed)
		r := rosterOf(append(records, records[:3]...)...)
		if got := r.Canonical(); !bytes.Equal(got, want) {
			t.Fatalf("seed %d:\n got %s\nwant %s", seed, got, want)
		}
	}
}

func TestOnlyIssuersInOfficeDecide(t *testing.T) {
	v := aVillage(t)
	r := rosterOf(v.records...)
	for p, want := range map[*party]string{v.dev: "", v.third: "", v.guest: "", v.mini: protocol.CodeRevoked, v.mole: protocol.CodeNotMember} {
		if got := r.Standing(p.peer, day0); code(got) != want {
			t.Errorf("%s: %v, want %q", p.name, got, want)
		}
	}
	if got, want := r.Term(), (protocol.TermBody{Number: 1, Peer: v.dev.peer, Agent: "claude-shop"}); !cmp.Equal(got, want) {
		t.Errorf("term %+v, want %+v", got, want)
	}
	if p, ok := r.InviteUsed("0000000000000001"); !ok || p != v.third.peer {
		t.Errorf("invite 1 used by %q", p)
	}
	if _, ok := r.InviteUsed("0000000000000002"); ok {
		t.Error("an outsider's word used up an invite")
	}
	if m, _ := r.Member(v.mini.peer); m.RevokedBy != v.dev.peer || m.Reason != "laptop lost" || m.AdmittedBy != v.dev.peer {
		t.Errorf("mini: %+v", m)
	}
	if got := r.Review(); len(got) != 1 || got[0].Peer != v.third.peer {
		t.Errorf("for review: %+v, want third, whom mini admitted", got)
	}
	if !r.Issuer(v.third.peer) || r.Issuer(v.guest.peer) || r.Issuer(v.mini.peer) || r.Issuer("nobody") {
		t.Error("issuers in office are inside and not revoked")
	}
	if got := r.Standing(v.dev.peer, day0.Add(100*day)); code(got) != protocol.CodeCertExpired {
		t.Errorf("dev after its certificate: %v", got)
	}
}

func TestAMemberAdmittedBeforeTheCutStaysThoughItsIssuerGoes(t *testing.T) {
	v := aVillage(t)
	r := rosterOf(v.records...)
	if _, got := Verify(mesh, v.third.chain, day0, r.Withdrawn); got != nil {
		t.Errorf("third: %v", got)
	}
	if _, got := Verify(mesh, v.mole.chain, day0, r.Withdrawn); code(got) != protocol.CodeRevoked {
		t.Errorf("mole: %v, want it refused", got)
	}
}

// TestWhatSaysNothingOfMembersHasThemFoundNoMore: each record of the inside asks how far its log counts, so a flood of used invites or
// terms would have the whole roster found for each.
func TestWhatSaysNothingOfMembersHasThemFoundNoMore(t *testing.T) {
	dev := founder(t)
	d := dev.pen(1)
	r := rosterOf(d.admits(10, dev))
	if r.Bound(d.log) != NoBound || r.stale {
		t.Fatal("members are not found")
	}
	r.Apply(d.write(11, protocol.KindInviteUsed, protocol.InviteUsedBody{Invite: "0123456789abcdef", Peer: dev.peer}))
	r.Apply(d.write(12, protocol.KindTerm, protocol.TermBody{Number: 1, Peer: dev.peer}))
	if r.stale {
		t.Error("members are to be found again")
	}
	if by, ok := r.InviteUsed("0123456789abcdef"); !ok || by != dev.peer || r.Term().Number != 1 {
		t.Errorf("%q, %v, term %d", by, ok, r.Term().Number)
	}
}

func TestARevokedNodeComesBackOnlyByACertificateThatLiftsIt(t *testing.T) {
	dev := founder(t)
	mini := dev.admits(t, newParty(2, "mac-mini"), protocol.RoleLocal, 0, day0)
	d, old := dev.pen(1), mini.pen(2)
	records := []*protocol.Record{d.admits(10, dev), d.admits(11, mini), d.revokes(20, mini, map[protocol.LogID]uint64{old.log: 0})}
	mini.chain, _ = Renew(dev.key, dev.chain, mini.chain[0].Cert, day0.Add(31*day))
	records = append(records, d.admits(30, mini)) // a renewal that crossed the revocation
	r := rosterOf(records...)
	if got := r.Standing(mini.peer, day0); code(got) != protocol.CodeRevoked {
		t.Fatalf("a renewal undid a revocation: %v", got)
	}
	if got := r.MayAdmit(mini.peer, 19); code(got) != protocol.CodeRevoked {
		t.Errorf("an invite made before: %v", got)
	}
	if got := r.MayAdmit(mini.peer, 21); got != nil {
		t.Errorf("an invite made after: %v", got)
	}
	dev.admits(t, mini, protocol.RoleLocal, r.RevokedAt(mini.peer), day0.Add(31*day))
	back, stale := mini.pen(40), old
	records = append(records, d.admits(40, mini), back.write(41, protocol.KindTerm, protocol.TermBody{Number: 2, Peer: mini.peer}),
		stale.write(42, protocol.KindTerm, protocol.TermBody{Number: 3, Peer: mini.peer}))
	for seed := range uint64(60) {
		r = rosterOf(shuffled(records, seed)...)
		if got := r.Standing(mini.peer, day0.Add(31*day)); got != nil {
			t.Fatalf("seed %d: %v", seed, got)
		}
		if got := r.Term().Number; got != 2 {
			t.Fatalf("seed %d: term %d, want 2: logs of later starts count, the cut one does not", seed, got)
		}
	}
	if r.Bound(old.log) != 0 || r.Bound(back.log) != NoBound || r.Bound(d.log) != NoBound {
		t.Errorf("bounds %d, %d, %d", r.Bound(old.log), r.Bound(back.log), r.Bound(d.log))
	}
	again := rosterOf(append(records, d.revokes(50, mini, map[protocol.LogID]uint64{back.log: 1, old.log: 0}))...)
	if got := again.Standing(mini.peer, day0); code(got) != protocol.CodeRevoked {
		t.Errorf("a second revocation: %v", got)
	}
}

func TestOfTwoCutsTheHigherHolds(t *testing.T) {
	dev := founder(t)
	mini := dev.admits(t, newParty(2, "mac-mini"), protocol.RoleLocal, 0, day0)
	third := dev.admits(t, newParty(3, "third"), protocol.RoleLocal, 0, day0)
	d, th, m := dev.pen(1), third.pen(3), mini.pen(2)
	records := []*protocol.Record{d.admits(10, dev), d.admits(11, mini), d.admits(12, third),
		d.revokes(20, mini, map[protocol.LogID]uint64{m.log: 4}), th.revokes(21, mini, map[protocol.LogID]uint64{m.log: 9})}
	for seed := range uint64(50) {
		if got := rosterOf(shuffled(records, seed)...).Bound(m.log); got != 9 {
			t.Fatalf("seed %d: bound %d, want 9", seed, got)
		}
	}
}

func TestWhoDatesItsRevengeBackLosesToWhoAdmittedIt(t *testing.T) {
	dev := founder(t)
	mini := dev.admits(t, newParty(2, "mac-mini"), protocol.RoleLocal, 0, day0)
	d, m := dev.pen(1), mini.pen(2)
	records := []*protocol.Record{d.admits(10, dev), d.admits(11, mini), m.revokes(5, dev, map[protocol.LogID]uint64{d.log: 0}), d.revokes(21, mini, map[protocol.LogID]uint64{m.log: 0})}
	for seed := range uint64(50) {
		r := rosterOf(shuffled(records, seed)...)
		if code(r.Standing(mini.peer, day0)) != protocol.CodeRevoked || r.Standing(dev.peer, day0) != nil {
			t.Fatalf("seed %d: dev %v, mini %v", seed, r.Standing(dev.peer, day0), r.Standing(mini.peer, day0))
		}
	}
}

func TestOfTwoEqualsWhoRevokeOneAnotherTheEarlierRecordHolds(t *testing.T) {
	dev := founder(t)
	mini := dev.admits(t, newParty(2, "mac-mini"), protocol.RoleLocal, 0, day0)
	third := dev.admits(t, newParty(3, "third"), protocol.RoleLocal, 0, day0)
	d, m, th := dev.pen(1), mini.pen(2), third.pen(3)
	records := []*protocol.Record{d.admits(10, dev), d.admits(11, mini), d.admits(12, third),
		m.revokes(20, third, map[protocol.LogID]uint64{th.log: 0}), th.revokes(21, mini, map[protocol.LogID]uint64{m.log: 0})}
	for seed := range uint64(50) {
		r := rosterOf(shuffled(records, seed)...)
		if code(r.Standing(third.peer, day0)) != protocol.CodeRevoked || r.Standing(mini.peer, day0) != nil {
			t.Fatalf("seed %d: third %v, mini %v", seed, r.Standing(third.peer, day0), r.Standing(mini.peer, day0))
		}
	}
}

func TestANodeMayEndItsOwnMembershipAndNoOther(t *testing.T) {
	dev := founder(t)
	guest := dev.admits(t, newParty(2, "guest"), protocol.RoleCollab, 0, day0)
	d, g := dev.pen(1), guest.pen(2)
	g.log.Scope = protocol.ScopeOutside(guest.peer)
	own := g.write(30, protocol.KindRevoke, protocol.RevokeBody{Peer: guest.peer, Left: true, Cuts: map[string]uint64{g.log.String(): 3}})
	again := g.write(31, protocol.KindRevoke, protocol.RevokeBody{Peer: guest.peer, Left: true, Cuts: map[string]uint64{g.log.String(): 3}})
	other := g.write(32, protocol.KindRevoke, protocol.RevokeBody{Peer: dev.peer, Left: true})
	records := []*protocol.Record{d.admits(10, dev), d.admits(11, guest), own, again, other}
	for seed := range uint64(50) {
		r := rosterOf(shuffled(records, seed)...)
		if m, _ := r.Member(guest.peer); !m.Revoked || !m.Left {
			t.Fatalf("seed %d: guest has not left: %+v", seed, m)
		}
		if got := r.Standing(dev.peer, day0); got != nil {
			t.Fatalf("seed %d: dev: %v", seed, got)
		}
		if len(r.writes) != 3 {
			t.Fatalf("seed %d: %d records kept, want 3: an outsider fills no memory", seed, len(r.writes))
		}
	}
}

func TestRecordsThatProveNothingAreLeftOut(t *testing.T) {
	dev := founder(t)
	mini := dev.admits(t, newParty(2, "mac-mini"), protocol.RoleLocal, 0, day0)
	d := dev.pen(1)
	stranger := newParty(9, "stranger")
	foreign := newParty(201, "other mesh")
	foreignChain, _ := Found(foreign.key, Admit{Peer: stranger.peer, Name: "stranger", Role: protocol.RoleLocal}, day0)
	r := rosterOf(d.admits(10, dev))
	for name, rec := range map[string]*protocol.Record{
		"another's chain": d.write(20, protocol.KindMember, protocol.MemberBody{Peer: stranger.peer, Name: "mac-mini", Role: protocol.RoleLocal, Chain: EncodeChain(mini.chain)}),
		"another role":    d.write(21, protocol.KindMember, protocol.MemberBody{Peer: mini.peer, Name: "mac-mini", Role: protocol.RoleUpstream, Chain: EncodeChain(mini.chain)}),
		"another mesh":    d.write(22, protocol.KindMember, protocol.MemberBody{Peer: stranger.peer, Name: "stranger", Role: protocol.RoleLocal, Chain: EncodeChain(foreignChain)}),
		"no chain":        d.write(23, protocol.KindMember, protocol.MemberBody{Peer: stranger.peer, Name: "stranger", Role: protocol.RoleLocal}),
		"term 0":          d.write(24, protocol.KindTerm, protocol.TermBody{Peer: dev.peer}),
		"not JSON":        {Log: d.log, Seq: 99, At: 1, Kind: protocol.KindMember, Body: []byte("{")},
		"a message":       d.write(25, protocol.KindMessage, protocol.Envelope{}),
	} {
		if r.Apply(rec) {
			t.Errorf("%s was kept", name)
		}
	}
	if got := len(r.Members()); got != 1 {
		t.Errorf("%d members, want 1", got)
	}
}

func TestARosterSurvivesItsCheckpoint(t *testing.T) {
	v := aVillage(t)
	r := rosterOf(v.records...)
	back, err := DecodeRoster(mesh, r.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(back.Canonical(), r.Canonical()) || !bytes.Equal(back.Encode(), r.Encode()) {
		t.Error("the roster changed in its checkpoint")
	}
	for _, bad := range []string{"", "{}", `[{"log":"x"}]`, `[{"log":"` + v.dev.pen(1).log.String() + `","seq":1,"kind":"member"}]`} {
		if _, err := DecodeRoster(mesh, []byte(bad)); !errors.Is(err, ErrBadRoster) {
			t.Errorf("%q: %v, want ErrBadRoster", bad, err)
		}
	}
}

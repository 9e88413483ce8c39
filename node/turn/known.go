package turn

import (
	"maps"
	"slices"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/member"
)

// KnownMember is a member from the roster or, until its record has come, from its chain alone.
type KnownMember struct {
	member.Member
	Valid bool // its certificate holds
}

// Seed reads a member's chain. false: it is no chain, or does not hold; a node's own counts whatever its clock says of that.
func Seed(roster *member.Roster, self protocol.PeerID, raw []byte, now time.Time) (KnownMember, bool) {
	chain, err := member.ParseChain(raw)
	if err != nil {
		return KnownMember{}, false
	}
	_, r := member.Verify(roster.Mesh(), chain, now, roster.Withdrawn)
	cert := chain[0].Cert
	return KnownMember{member.Member{Peer: cert.Peer, Name: cert.Name, Role: cert.Role, Inside: cert.Inside, Cert: cert, Chain: raw, AdmittedBy: cert.Issuer}, r == nil},
		r == nil || cert.Peer == self
}

// Known are all members: those of the roster, and the seeded, of whom it does not know yet or who were let in again by a record that is
// still on its way. It takes seeded over.
func Known(roster *member.Roster, seeded map[protocol.PeerID]KnownMember, now time.Time) map[protocol.PeerID]KnownMember {
	for _, m := range roster.Members() {
		s, ok := seeded[m.Peer]
		if ok && m.Revoked && s.Cert.Lifts > 0 && s.Cert.Lifts >= roster.RevokedAt(m.Peer) {
			continue
		}
		seeded[m.Peer] = KnownMember{m, roster.Standing(m.Peer, now) == nil}
	}
	return seeded
}

// MembersOf sorts known members into what the office asks for, each in order of peer.
func MembersOf(known map[protocol.PeerID]KnownMember) (m Members) {
	for _, p := range slices.Sorted(maps.Keys(known)) {
		switch k := known[p]; {
		case k.Revoked:
			m.Gone = append(m.Gone, p)
		case k.Inside && k.Valid:
			m.Inside = append(m.Inside, p)
		case k.Inside:
			m.Lapsed = append(m.Lapsed, p)
		}
	}
	return m
}

package node

import (
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/member"
)

// known is a member from the roster or, until its record has come, from its chain alone.
type knownMember struct {
	member.Member
	valid bool
}

func (l *loop) known() map[protocol.PeerID]knownMember {
	out := map[protocol.PeerID]knownMember{}
	for _, m := range l.seeded() {
		if m.Peer == l.n.home.peer {
			m.Addrs = l.n.mesh.Addrs()
		}
		out[m.Peer] = m
	}
	for _, m := range l.roster().Members() {
		seeded, ok := out[m.Peer]
		if ok && m.Revoked && seeded.Cert.Lifts > 0 && seeded.Cert.Lifts >= l.roster().RevokedAt(m.Peer) {
			continue // let in again; that record is still on its way
		}
		out[m.Peer] = knownMember{m, l.roster().Standing(m.Peer, l.now) == nil}
	}
	return out
}

// seeded are this node and the members known by their chain whose certificates hold. They are verified once for all until
// something about members changes, which it also does when they are looked at for their time.
func (l *loop) seeded() []knownMember {
	if l.n.seeded != nil {
		return l.n.seeded
	}
	self := seedMember{Peer: l.n.home.peer, Chain: l.n.home.mesh.Chain}
	l.n.seeded = []knownMember{}
	for _, s := range append([]seedMember{self}, l.n.home.mesh.Seeds...) {
		chain, err := member.ParseChain(s.Chain)
		if err != nil {
			continue
		}
		_, r := member.Verify(l.roster().Mesh(), chain, l.now, l.roster().Withdrawn)
		cert := chain[0].Cert
		if r == nil || cert.Peer == l.n.home.peer { // this node is what its certificate says, whatever its clock says of that
			l.n.seeded = append(l.n.seeded, knownMember{member.Member{Peer: cert.Peer, Name: cert.Name, Role: cert.Role, Inside: cert.Inside, Cert: cert,
				Chain: s.Chain, Addrs: s.Addrs, AdmittedBy: cert.Issuer}, r == nil})
		}
	}
	return l.n.seeded
}

// shownRole is a node's role as people see it: main while it holds the term, else its certificate's.
func (l *loop) shownRole(p protocol.PeerID, certified protocol.Role) protocol.Role {
	t := l.roster().Term()
	if m, ok := l.roster().Member(p); t.Number > 0 && t.Peer == p && !t.Ended && ok && !m.Revoked {
		return protocol.RoleMain
	}
	return certified
}

package node

import (
	"github.com/aster-mesh/aster/node/turn"
	"github.com/aster-mesh/aster/protocol"
)

// known are all members, as the records and the home's chains say.
func (l *loop) known() map[protocol.PeerID]turn.KnownMember {
	seeded := map[protocol.PeerID]turn.KnownMember{}
	for _, m := range l.seeded() {
		if m.Peer == l.n.home.peer {
			m.Addrs = l.n.mesh.Addrs()
		}
		seeded[m.Peer] = m
	}
	return turn.Known(l.roster(), seeded, l.now)
}

// seeded are this node and the members known by their chain whose certificates hold. They are verified once for all until
// something about members changes, which it also does when they are looked at for their time.
func (l *loop) seeded() []turn.KnownMember {
	if l.n.seeded != nil {
		return l.n.seeded
	}
	self := seedMember{Peer: l.n.home.peer, Chain: l.n.home.mesh.Chain}
	l.n.seeded = []turn.KnownMember{}
	for _, s := range append([]seedMember{self}, l.n.home.mesh.Seeds...) {
		if k, ok := turn.Seed(l.roster(), l.n.home.peer, s.Chain, l.now); ok {
			k.Addrs = s.Addrs
			l.n.seeded = append(l.n.seeded, k)
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

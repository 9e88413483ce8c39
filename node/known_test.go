package node

import (
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// TestWhoIsMainIsSaidAlikeEverywhere: by the rows of members and by status, on every node, as long as the term lasts.
func TestWhoIsMainIsSaidAlikeEverywhere(t *testing.T) {
	_, _, na, nb := pair(t, protocol.RoleLocal)
	for _, n := range []*Node{na, nb} {
		for main := false; !main; { // the term's record is on its way
			rows, err := n.Peers(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range rows {
				main = main || p.Peer == na.home.peer && p.Role == protocol.RoleMain
				if p.Peer == nb.home.peer && p.Role != protocol.RoleLocal {
					t.Fatalf("who holds no term is shown as %s", p.Role)
				}
			}
		}
	}
	for n, want := range map[*Node]protocol.Role{na: protocol.RoleMain, nb: protocol.RoleLocal} {
		s, err := n.Status(t.Context())
		if err != nil || s.Role != want {
			t.Errorf("status says %s, want %s (%v)", s.Role, want, err)
		}
	}
}

// TestCertificatesAreVerifiedOnceUntilMembersChange: who asks for peers and status pays for no signature.
func TestCertificatesAreVerifiedOnceUntilMembersChange(t *testing.T) {
	var n *Node
	start(t, func(c *Config) { c.probe = func(x *Node) { n = x } })
	known := func(change func()) (all int) {
		t.Helper()
		if err := n.loop.call(t.Context(), func() { change(); all = len(n.loop.seeded()) }); err != nil {
			t.Fatal(err)
		}
		return all
	}
	if got := known(func() { n.home.mesh.Chain = nil }); got != 1 {
		t.Errorf("%d members: the own chain was read again", got)
	}
	if got := known(n.loop.membersChanged); got != 1 {
		t.Errorf("after a change %d members, want the one of the record", got)
	}
}

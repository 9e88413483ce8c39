package node

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/member"
)

// halfHome is the home of a node that a member has let in without a record of it.
func halfHome(t *testing.T, by *Node, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "home")
	h, err := openHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	own, err := member.ParseChain(by.home.mesh.Chain)
	if err != nil {
		t.Fatal(err)
	}
	chain, r := member.Issue(by.home.key, own, member.Admit{Peer: h.peer, Name: name, Role: protocol.RoleLocal}, time.Now())
	if r != nil {
		t.Fatal(r)
	}
	h.mesh = meshFile{Mesh: by.home.mesh.Mesh, Name: name, Chain: member.EncodeChain(chain), Inviter: by.home.peer,
		Seeds: []seedMember{{Peer: by.home.peer, Chain: by.home.mesh.Chain, Addrs: by.mesh.Addrs()}}}
	if err := h.saveMesh(); err != nil {
		t.Fatal(err)
	}
	if err := h.close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestHalfAMemberIsToldAndLetInAnew: whose admission stands in no record is told so, as is whoever meets it; it lets nobody in. An
// invite of any other member makes it whole, and what it wrote meanwhile stays.
func TestHalfAMemberIsToldAndLetInAnew(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds of whole nodes")
	}
	var na, nb, nc *Node
	cfg := func(n **Node, name string) func(*Config) {
		return func(c *Config) { c.Name, c.halfAfter, c.probe = name, time.Millisecond, func(got *Node) { *n = got } }
	}
	start(t, cfg(&na, "devbox"))
	inv := invite(t, na)
	b := start(t, func(c *Config) { cfg(&nb, "mac-mini")(c); c.Join = inv })
	b.attach(t, "builder")
	dir := halfHome(t, na, "laptop")
	half := start(t, func(c *Config) { cfg(&nc, "laptop")(c); c.Home = dir })
	until(t, "it and whom it meets say so", func() bool {
		return strings.Contains(warned(t, nc), "no record says that this node is a member, so others do not list it, and it can let nobody in: devbox, which let it in, has lost that") &&
			strings.Contains(warned(t, na), "no record says that laptop is a member")
	})
	if line := warned(t, nc) + warned(t, na); strings.Contains(line, "devbox is a member") || strings.Count(line, "aster up --join -") != 2 {
		t.Errorf("said: %s", line)
	}
	if _, err := nc.Invite(t.Context(), api.InviteRequest{Role: protocol.RoleLocal}); err == nil || !strings.Contains(err.Error(), "no record says that this node is a member") {
		t.Errorf("half a member invites: %v", err)
	}
	knows(t, "builder", nc)
	sent, err := nc.Send(t.Context(), api.SendRequest{FromBoard: true, To: "builder", Intent: "Note", Value: protocol.EncodeBody(map[string]string{"text": "meanwhile"})})
	if err != nil {
		t.Fatal(err)
	}
	half.stop()

	half = start(t, func(c *Config) { cfg(&nc, "laptop")(c); c.Home, c.Join = dir, inv }) // used by another
	if line := warned(t, nc); !strings.Contains(line, "this home is in that mesh already, and the invite was not taken") {
		t.Errorf("an invite that is not taken: %s", line)
	}
	half.stop()
	whole := start(t, func(c *Config) { cfg(&nc, "laptop")(c); c.Home, c.Join = dir, invite(t, nb) })
	if whole.Joined == nil || whole.Joined.Through != "mac-mini" {
		t.Errorf("it is let in by %+v", whole.Joined)
	}
	alike(t, na, nb, nc)
	for _, n := range []*Node{na, nb, nc} {
		if rows, err := n.Peers(t.Context()); err != nil || len(rows) != 3 || strings.Contains(warned(t, n), "no record says") {
			t.Errorf("%d members, %v, %s", len(rows), err, warned(t, n))
		}
		if m, err := n.Message(t.Context(), string(sent.MsgID)); err != nil || !strings.Contains(string(m.Envelope.Value), "meanwhile") {
			t.Errorf("what it wrote meanwhile: %+v, %v", m.Envelope, err)
		}
	}
	invite(t, nc) // it may
}

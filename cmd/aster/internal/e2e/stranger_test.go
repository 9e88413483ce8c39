package e2e

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/member"
)

// TestStrangersGetNoFurtherThanTheGate: real libp2p hosts of nobody's mesh dial again and again, ask for admission with
// rubbish and try to link; the node answers by name or not at all, and serves on.
func TestStrangersGetNoFurtherThanTheGate(t *testing.T) {
	nodes := meshOf(t, nil, "host", "friend")
	host := nodes[0]
	target := host.ready
	named := 0
	for i := range 30 {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		must(t, err)
		stranger, err := mesh.New(mesh.Config{
			Key: key, MeshID: "another",
			Standing: func(p protocol.PeerID) mesh.Standing { // it takes the node for its friend
				if p == target.Peer {
					return mesh.Inside
				}
				return mesh.Unknown
			},
		})
		must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		body := []string{"", "J", "P", "Jnonsense", "P" + strings.Repeat("\xff", 30_000), "X?"}[i%6]
		if answer, _, err := stranger.Admit(ctx, target.Peer, target.Mesh, []byte(body)); err == nil {
			a, err := member.DecodeJoinAnswer(answer)
			if err != nil || a.Refusal == nil || a.Refusal.Code == "" || len(a.Chain) > 0 {
				t.Errorf("asked %.10q: answer %+v, %v", body, a, err)
			}
			named++
		}
		cancel()
		must(t, stranger.Close())
	}
	if named == 0 {
		t.Error("not one stranger was answered by name")
	}
	if st := host.mustStatus(); st.Nodes != 2 || st.Linked != 1 {
		t.Errorf("after strangers: %d members, %d linked", st.Nodes, st.Linked)
	}
	// So many knocks from one address bar its newcomers for a moment, by name; then they get in.
	guest := newNode(t, "guest", "")
	token := host.invite()
	eventually(t, patience, "a guest gets in", func() (bool, string) {
		ready, r := guest.start(token)
		if ready == nil && (r.code != 4 || !strings.Contains(r.stderr, "Try again")) {
			t.Fatalf("want exit 4 and when to try again: %s", r)
		}
		return ready != nil, r.String()
	})
	host.linked(2)
	t.Logf("%d of 30 strangers were refused by name, the rest at the gate", named)
}

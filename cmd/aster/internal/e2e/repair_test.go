package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// hurt changes the database of a home at rest: the words of some messages, and a page somewhere.
func hurt(t *testing.T, home string, rng *rand.Rand, words []string) {
	t.Helper()
	path := filepath.Join(home, "journal", "journal.db")
	raw, err := os.ReadFile(path)
	must(t, err)
	for _, w := range words {
		at := bytes.Index(raw, []byte(w))
		if at < 0 {
			t.Fatalf("%s is not in %s", w, path)
		}
		raw[at] ^= 0x20
	}
	at := (1 + rng.IntN(len(raw)/4096-1)) * 4096
	clear(raw[at+2048 : at+4096])
	must(t, os.WriteFile(path, raw, 0o600))
}

// damaged is the mesh of TestADamagedStoreComesBackFromTheMesh: bee is hurt, ada and cid hold the same.
type damaged struct {
	t     *testing.T
	mesh  []*node
	bee   *node
	acked map[protocol.MsgID]bool
}

// TestADamagedStoreComesBackFromTheMesh damages the store of one of three nodes: doctor finds it by a code and names the
// command, the command keeps what verifies and sets the rest aside, and what is missing comes from the two others, while what
// had been acknowledged stays so. A node that is started without that says the same.
func TestADamagedStoreComesBackFromTheMesh(t *testing.T) {
	s := newDamaged(t)
	bee, rng := s.bee, rand.New(rand.NewPCG(seed(t), 9))
	bee.down()
	hurt(t, bee.home, rng, []string{"the words of toward-bob-04.", "the words of toward-bob-07.", "the words of toward-ann-11."})
	if r := bee.run("doctor"); r.code != 1 || !strings.Contains(r.stdout, "page-damaged") || !strings.Contains(r.stdout, "aster doctor --repair") {
		t.Errorf("doctor finds nothing: %s", r)
	}
	r := bee.run("doctor", "--repair", "--json")
	var h api.StoreHealth
	if err := json.Unmarshal([]byte(r.stdout), &h); err != nil || r.code != 0 || h.Reason == "" || len(h.SetAside) == 0 {
		t.Fatalf("repair: %s", r)
	}
	t.Logf("repair: %s; %d kept, missing %v", h.Reason, h.Salvaged, h.Missing)
	if _, err := os.Stat(h.SetAside[0]); err != nil {
		t.Errorf("what was set aside: %v", err)
	}
	bee.up("")
	s.whole()

	bee.down()
	hurt(t, bee.home, rng, []string{"the words of toward-bob-21.", "the words of toward-ann-30."})
	warned := bee.up("").Warnings // of what a start meets by itself; the rest is met by reading
	if r := bee.run("doctor", "--repair"); r.code == 4 && strings.Contains(r.stderr, "aster down, then aster doctor --repair") {
		bee.down()
		bee.ok("doctor", "--repair")
		bee.up("")
	} else if r.code != 0 {
		t.Errorf("repair while it runs: %s", r)
	} else if !strings.Contains(strings.Join(warned, ""), "aster doctor --repair") && bee.mustStatus().Records == 0 {
		t.Errorf("a start on a damaged store says %q", warned)
	}
	s.whole()
}

func newDamaged(t *testing.T) *damaged {
	s := &damaged{t: t, mesh: meshOf(t, nil, "ada", "bee", "cid"), acked: map[protocol.MsgID]bool{}}
	ada, bee := s.mesh[0], s.mesh[1]
	s.bee = bee
	ada.declare("ann")
	bee.declare("bob")
	ada.knows("bob")
	bee.knows("ann")
	say := func(at *node, from, to protocol.AgentID, id string) {
		_, err := at.say(t.Context(), api.SendRequest{From: from, To: to, Intent: protocol.Request, Value: text("the words of " + id), MsgID: protocol.MsgID(id)})
		must(t, err)
	}
	for i := range 40 {
		say(ada, "ann", "bob", fmt.Sprintf("toward-bob-%02d.", i))
		say(bee, "bob", "ann", fmt.Sprintf("toward-ann-%02d.", i))
	}
	s.alike()
	for i := 0; i < 40; i += 2 {
		id := fmt.Sprintf("toward-bob-%02d.", i)
		_, err := bee.api().Ack(t.Context(), api.AckRequest{Agent: "bob", IDs: []string{id}})
		must(t, err)
		s.acked[protocol.MsgID(id)] = true
	}
	s.alike()
	return s
}

// alike waits until all three hold and show the same.
func (s *damaged) alike() {
	s.t.Helper()
	eventually(s.t, patience, "all show the same", func() (bool, string) {
		var journals, boards []string
		for _, n := range s.mesh {
			st, err := n.status()
			if err != nil {
				return false, err.Error()
			}
			journals, boards = append(journals, st.Journal), append(boards, st.BoardDigest)
		}
		return len(slices.Compact(journals)) == 1 && len(slices.Compact(boards)) == 1, fmt.Sprint(journals, boards)
	})
}

// whole waits until bee lacks nothing, and looks at what it gives out.
func (s *damaged) whole() {
	t, bee := s.t, s.bee
	t.Helper()
	eventually(t, patience, "doctor finds nothing more", func() (bool, string) {
		r := bee.run("doctor")
		return !strings.Contains(r.stdout, "-damaged") && !strings.Contains(r.stdout, "-missing"), r.String()
	})
	s.alike()
	for i := range 40 {
		for _, id := range []string{fmt.Sprintf("toward-bob-%02d.", i), fmt.Sprintf("toward-ann-%02d.", i)} {
			m, err := bee.api().Message(t.Context(), id)
			if err != nil || !strings.Contains(string(m.Envelope.Value), "the words of "+id) {
				t.Errorf("%s: %s, %v", id, m.Envelope.Value, err)
			}
		}
	}
	eventually(t, patience, "bob has the 20 that he never acknowledged", func() (bool, string) {
		out := bee.ok("inbox", "--agent", "bob", "--json")
		for _, line := range strings.Split(out, "\n") {
			var item struct{ MsgID protocol.MsgID }
			if err := json.Unmarshal([]byte(line), &item); err == nil && s.acked[item.MsgID] {
				t.Errorf("%s was acknowledged and is given out again", item.MsgID)
			}
		}
		return strings.Count(out, `"msgId"`) == 20 || t.Failed(), out
	})
}

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// TestADamagedStoreComesBackFromTheMesh damages the store of one of three nodes: doctor finds it by a code and names the
// command, the command keeps what verifies and sets the rest aside, and what is missing comes from the two others, while what
// had been acknowledged stays so. A node that is started without that says the same.
func TestADamagedStoreComesBackFromTheMesh(t *testing.T) {
	mesh := meshOf(t, nil, "ada", "bee", "cid")
	ada, bee := mesh[0], mesh[1]
	ada.declare("ann")
	bee.declare("bob")
	ada.knows("bob")
	bee.knows("ann")
	rng := rand.New(rand.NewPCG(seed(t), 9))
	acked := map[protocol.MsgID]bool{}
	say := func(at *node, from, to protocol.AgentID, id string) {
		_, err := at.say(t.Context(), api.SendRequest{From: from, To: to, Intent: protocol.Request, Value: text("the words of " + id), MsgID: protocol.MsgID(id)})
		must(t, err)
	}
	for i := range 40 {
		say(ada, "ann", "bob", fmt.Sprintf("toward-bob-%02d.", i))
		say(bee, "bob", "ann", fmt.Sprintf("toward-ann-%02d.", i))
	}
	alike := func() {
		t.Helper()
		eventually(t, patience, "all show the same", func() (bool, string) {
			var all []api.Status
			for _, n := range mesh {
				st, err := n.status()
				if err != nil {
					return false, err.Error()
				}
				all = append(all, st)
			}
			same := all[0].Journal == all[1].Journal && all[1].Journal == all[2].Journal && all[0].BoardDigest == all[1].BoardDigest && all[1].BoardDigest == all[2].BoardDigest
			return same, fmt.Sprint(all[0].Records, all[1].Records, all[2].Records, all[0].Journal == all[1].Journal, all[0].BoardDigest == all[1].BoardDigest)
		})
	}
	alike()
	for i := 0; i < 40; i += 2 {
		id := fmt.Sprintf("toward-bob-%02d.", i)
		_, err := bee.api().Ack(t.Context(), api.AckRequest{Agent: "bob", IDs: []string{id}})
		must(t, err)
		acked[protocol.MsgID(id)] = true
	}
	alike()

	bee.down()
	hurt(t, bee.home, rng, []string{"the words of toward-bob-04.", "the words of toward-bob-07.", "the words of toward-ann-11."})
	if r := bee.run("doctor"); r.code != 1 || !strings.Contains(r.stdout, "page-damaged") || !strings.Contains(r.stdout, "aster doctor --repair") {
		t.Errorf("doctor finds nothing: %s", r)
	}
	r := bee.run("doctor", "--repair", "--json")
	var h api.StoreHealth
	if err := json.Unmarshal([]byte(r.stdout), &h); err != nil || r.code != 0 || h.Reason == "" || h.Salvaged == 0 || len(h.SetAside) == 0 {
		t.Fatalf("repair: %s", r)
	}
	t.Logf("repair: %s; %d kept, missing %v", h.Reason, h.Salvaged, h.Missing)
	if _, err := os.Stat(h.SetAside[0]); err != nil {
		t.Errorf("what was set aside: %v", err)
	}
	began := time.Now()
	bee.up("")
	t.Logf("up after %s", time.Since(began))
	whole := func(at *node) {
		t.Helper()
		eventually(t, patience, "doctor finds nothing more", func() (bool, string) {
			r := at.run("doctor")
			return !strings.Contains(r.stdout, "-damaged") && !strings.Contains(r.stdout, "-missing"), r.String()
		})
		alike()
		for _, line := range strings.Split(bee.ok("inbox", "--agent", "bob", "--json"), "\n") {
			var item struct{ MsgID protocol.MsgID }
			must(t, json.Unmarshal([]byte(line), &item))
			if acked[item.MsgID] {
				t.Errorf("%s was acknowledged and is given out again", item.MsgID)
			}
		}
		for i := range 40 {
			for _, id := range []string{fmt.Sprintf("toward-bob-%02d.", i), fmt.Sprintf("toward-ann-%02d.", i)} {
				m, err := at.api().Message(t.Context(), id)
				if err != nil || !strings.Contains(string(m.Envelope.Value), "the words of "+id) {
					t.Errorf("%s: %s, %v", id, m.Envelope.Value, err)
				}
			}
		}
		if got := strings.Count(bee.ok("inbox", "--agent", "bob", "--json"), `"msgId"`); got != 20 {
			t.Errorf("bob has %d unread, want 20", got)
		}
	}
	whole(bee)
	t.Logf("whole after %s", time.Since(began))

	bee.down()
	began = time.Now()
	hurt(t, bee.home, rng, []string{"the words of toward-bob-21.", "the words of toward-ann-30."})
	t.Logf("again: %v", bee.up("").Warnings) // what a start meets by itself; the rest is met by reading
	t.Logf("up again after %s", time.Since(began))
	if r := bee.run("doctor", "--repair"); r.code != 0 && strings.Contains(r.stderr, "aster down, then aster doctor --repair") {
		bee.down()
		bee.ok("doctor", "--repair")
		ready := bee.up("")
		t.Logf("after an end: %v", ready.Warnings)
	} else if r.code != 0 {
		t.Errorf("repair while it runs: %s", r)
	}
	t.Logf("repaired after %s", time.Since(began))
	whole(bee)
	t.Logf("whole again after %s", time.Since(began))
}

package node

import (
	"slices"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/board/web"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// TestAnAgentThatMovedIsStillInItsRoomsElsewhere: what is said in a room of another board reaches an agent that was moved to
// another node of its mesh, once, and so does what an agent says there that has stayed; and it speaks there.
func TestAnAgentThatMovedIsStillInItsRoomsElsewhere(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds of whole nodes")
	}
	one, two := joinedRooms(t, "alice", "al")
	inv, err := one.n.Invite(t.Context(), api.InviteRequest{Role: protocol.RoleLocal})
	if err != nil {
		t.Fatal(err)
	}
	other := &meshOf{log: &safeBuffer{}}
	other.running = start(t, func(c *Config) { c.Name, c.Join = "other", inv.Token; c.probe = func(n *Node) { other.n = n } })
	id := two.opens(t, nil, "bob", "alice", "al")
	here := protocol.RoomID(string(id) + "@two")
	until(t, "al is told that it is in", func() bool { return slices.Equal(one.told(t, "al"), []string{"in"}) })
	until(t, "the other node knows al", func() bool { return other.n.knows(t, "al", one.n) })
	until(t, "al is moved", func() bool { _, err := one.n.MoveAgent(t.Context(), "al", "other"); return err == nil })
	if _, err := two.speaks(t, "bob", id, "from bob"); err != nil {
		t.Fatal(err)
	}
	if _, err := one.speaks(t, "alice", here, "from alice"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"bob@two:from bob", "alice:from alice"} { // of two speakers either may come first
		until(t, "al hears "+want, func() bool { return slices.Contains(other.hears(t, "al"), want) })
	}
	until(t, "al lives on the other node", func() bool { return other.n.knows(t, "al", other.n) })
	var said protocol.MsgID
	until(t, "al speaks", func() bool {
		said, err = other.speaks(t, "al", here, "from al")
		return err == nil
	})
	two.until(t, "bob", "alice:from alice", "al:from al")
	until(t, "alice hears it", func() bool { return slices.Contains(one.hears(t, "alice"), "al:from al") })
	until(t, "al's node has the room's receipt", func() bool { return strings.Contains(other.tiers(t, said), "persisted") })
	if got := other.hears(t, "al"); len(got) != 2 {
		t.Errorf("al hears %q", got)
	}
	// Whatever records it took, a word is one row of Messages, and its short id names one message.
	for name, m := range map[string]*meshOf{"one": one, "other": other} {
		rows := map[string]int{}
		found, err := m.n.Find(t.Context(), web.FindQuery{Room: here})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range found.Messages {
			if row.Envelope.Intent != "Say" {
				continue
			}
			if rows[row.Text]++; rows[row.Text] > 1 {
				t.Errorf("%s shows %q %d times", name, row.Text, rows[row.Text])
			}
			if _, err := m.n.Message(t.Context(), row.Short); err != nil {
				t.Errorf("%s: %s: %v", name, row.Short, err)
			}
		}
		if len(rows) != 3 {
			t.Errorf("%s shows %v", name, rows)
		}
	}
}

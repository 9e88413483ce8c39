package double

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// TestANodesAgentIsInARoomOfAnotherHub, also of one that gives nothing to who is away: each word is said once and in order, and
// what a closed room has not heard is refused, by this node or, if it was given to the hub, by the hub.
func TestANodesAgentIsInARoomOfAnotherHub(t *testing.T) {
	faults := []string{"", "KC13"}
	if testing.Short() {
		faults = faults[:1]
	}
	for _, fault := range faults {
		t.Run("fault "+fault, func(t *testing.T) {
			url := start(t, fault).url
			bob := attach(t, url, "bob")
			g := newGuest(t)
			g.call("POST", "/boards", api.BoardRequest{URL: url, Name: "far"})
			bob.say(map[string]any{"type": "CUSTOM", "name": "RoomCreate", "value": map[string]any{"participants": []string{"bob", "alice"}, "budgets": map[string]any{"maxConsecutive": 1}}})
			var here protocol.AgentID
			until(t, "the room is shown", func() bool {
				var got struct{ Boards []api.Board }
				if err := json.Unmarshal(g.call("GET", "/boards", nil), &got); err != nil {
					t.Fatal(err)
				}
				if len(got.Boards) == 1 && len(got.Boards[0].Rooms) == 1 {
					here = got.Boards[0].Rooms[0].ID
				}
				return here != ""
			})
			sent := []string{g.says(here), g.says(here), g.says(here)} // the second and the third wait
			room := ""
			var heard []string
			hears := func(n int) {
				t.Helper()
				for deadline := time.After(60 * time.Second); len(heard) < n; {
					select {
					case f := <-bob.frames:
						if f.Name == "Say" {
							room, heard = f.RoomID, append(heard, f.MsgID)
							bob.say(map[string]any{"type": "CUSTOM", "name": "AckProcessed", "targetAgentId": f.AgentID, "value": map[string]any{"ackFor": f.MsgID}})
						}
					case <-deadline:
						t.Fatalf("bob heard %d of %d words within 60 s", len(heard), n)
					}
				}
			}
			var turns []string
			for n := 1; n < len(sent); n++ {
				hears(n)
				turns = append(turns, fmt.Sprint("b-", n))
				bob.say(map[string]any{"type": "CUSTOM", "name": "Say", "roomId": room, "msgId": turns[n-1], "value": map[string]any{"text": "my turn"}})
				until(t, "alice has bob's word", func() bool { return slices.Equal(g.inbox("Say"), turns) })
			}
			hears(len(sent))
			if !slices.Equal(heard, sent) {
				t.Errorf("bob heard %q, said were %q", heard, sent)
			}
			late := g.says(here)
			bob.say(map[string]any{"type": "CUSTOM", "name": "RoomClose", "value": map[string]any{"roomId": room}})
			until(t, "what the room has not heard is refused", func() bool {
				var m api.Message
				if err := json.Unmarshal(g.call("GET", "/messages/"+late, nil), &m); err != nil {
					t.Fatal(err)
				}
				return slices.ContainsFunc(m.Tiers, func(at api.TierAt) bool {
					return at.Tier == protocol.Refused && (at.Reason == "room-closed" || at.Reason == "no-such-room")
				})
			})
		})
	}
}

func (g *guest) says(room protocol.AgentID) string {
	g.t.Helper()
	var r api.SendResult
	if err := json.Unmarshal(g.call("POST", "/send", api.SendRequest{To: room, Intent: "Say", Value: json.RawMessage(`{"text":"x"}`)}), &r); err != nil {
		g.t.Fatal(err)
	}
	return string(r.MsgID)
}

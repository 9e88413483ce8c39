package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// TestAnOutsiderFillsNoBoardWithAgents: a changed program outside names thousands of agents, in its log and by presence. Two
// nodes of the inside keep its share of them, the same, and list what else there is; so does one that starts again.
func TestAnOutsiderFillsNoBoardWithAgents(t *testing.T) {
	a, na, nb, main, worker, guest := visited(t)
	inv, err := na.Invite(t.Context(), api.InviteRequest{Role: protocol.RoleLocal})
	if err != nil {
		t.Fatal(err)
	}
	var nc *Node
	start(t, func(c *Config) { c.Name, c.Join = "second", inv.Token; c.probe = func(n *Node) { nc = n } })
	for i := range 3 * protocol.GuestNamesMax {
		name := protocol.AgentID(fmt.Sprint("crowd", i))
		nb.forge(t, protocol.KindBind, protocol.BindBody{Agent: name, Home: nb.home.peer, Since: 1, Role: protocol.RoleCollab})
		nb.forge(t, protocol.KindPresence, protocol.PresenceBody{Agent: name, State: "idle"})
	}
	nb.forge(t, protocol.KindBind, protocol.BindBody{Agent: "guest", Home: nb.home.peer, Since: 1, Role: protocol.RoleCollab}) // else it is forgotten with the others
	flagged(t, guest, main)
	crowd := func(n *Node) (rows, listed int) {
		if err := n.loop.call(t.Context(), func() {
			for _, k := range n.loop.core.Agents(n.loop.now) {
				if k.Home == nb.home.peer {
					rows++
				}
			}
			for _, row := range n.loop.board.Agents() {
				if row.Home == nb.home.peer {
					listed++
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
		return rows, listed
	}
	if rows, listed := crowd(na); rows == 0 || rows > protocol.GuestNamesMax || rows != listed {
		t.Errorf("hub lists %d of it, board %d, at most %d", rows, listed, protocol.GuestNamesMax)
	}
	alike := func(x, y *Node) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); ; {
			p, err := x.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			q, err := y.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if p.Journal == q.Journal && p.BoardDigest == q.BoardDigest {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("the two have not come to hold the same: journals %s %s, boards %s %s", p.Journal, q.Journal, p.BoardDigest, q.BoardDigest)
			}
			<-time.After(10 * time.Millisecond)
		}
	}
	alike(na, nc)
	if rows, listed := crowd(nc); rows == 0 || rows > protocol.GuestNamesMax || rows != listed {
		t.Errorf("there the hub lists %d of it, the board %d", rows, listed)
	}
	main.send(t, map[string]any{"type": "CUSTOM", "name": "Request", "targetAgentId": "worker", "msgId": "on", "value": map[string]any{}})
	for worker.next(t, "Request").MsgID != "on" {
	}
	a.stop()
	start(t, func(c *Config) { c.Home, c.Name = a.home, "devbox"; c.probe = func(n *Node) { na = n } })
	if rows, listed := crowd(na); rows == 0 || rows > protocol.GuestNamesMax || rows != listed {
		t.Errorf("after a restart the hub lists %d of it, the board %d", rows, listed)
	}
}

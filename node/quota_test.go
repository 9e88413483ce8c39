package node

import (
	"strings"
	"testing"

	"github.com/aster-mesh/aster/board/web"
	"github.com/aster-mesh/aster/protocol"
)

// TestOutsideMemberHasItsQuota: what an outside member writes is booked with its records, survives a restart, and beyond its
// bound nothing more of it is taken, which a warning says; others are not touched.
func TestOutsideMemberHasItsQuota(t *testing.T) {
	a, b, na, nb := pair(t, protocol.RoleCollab)
	main, guest := a.attach(t, "main-agent"), b.attach(t, "visitor")
	ask := func(id string) {
		guest.send(t, map[string]any{"type": "CUSTOM", "id": id, "name": "Request", "targetAgentId": "main-agent", "msgId": id, "value": map[string]any{"text": strings.Repeat("x", 1000)}})
	}
	for { // until it knows of main
		if known(t, nb, "main-agent") {
			break
		}
	}
	ask("first")
	if got := main.next(t, "Request"); got.MsgID != "first" {
		t.Fatalf("got %s", got.MsgID)
	}
	booked, _ := na.outsideUsed.Load(nb.home.peer)
	if bytes, _ := booked.(int64); bytes < 1000 || bytes > 10_000 {
		t.Errorf("booked %v bytes for some 1,000", booked)
	}
	if raw, ok, err := na.store.Value(keyOutside + string(nb.home.peer)); err != nil || !ok || string(raw) == "0" {
		t.Errorf("stored count: %s, %v, %v", raw, ok, err)
	}
	na.outsideUsed.Store(nb.home.peer, int64(outsideBytesMax-500))
	ask("second")
	warned := func() bool {
		st, err := na.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(strings.Join(st.Warnings, "\n"), "aster member revoke mac-mini")
	}
	for !warned() {
	}
	if !na.affords(na.home.peer, outsideBytesMax) {
		t.Error("the inside has a quota, too")
	}
	other := a.attach(t, "worker")
	main.send(t, map[string]any{"type": "CUSTOM", "id": "in", "name": "Request", "targetAgentId": "worker", "msgId": "in", "value": map[string]any{}})
	if got := other.next(t, "Request"); got.MsgID != "in" {
		t.Errorf("got %s", got.MsgID)
	}
	rows, err := na.Inbox(t.Context(), inboxOf("main-agent"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.MsgID == "second" {
			t.Error("what lies beyond the quota was taken")
		}
	}
}

func known(t *testing.T, n *Node, id protocol.AgentID) bool {
	t.Helper()
	all, err := n.Agents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if a.ID == id {
			return true
		}
	}
	return false
}

func inboxOf(agent protocol.AgentID) web.InboxQuery { return web.InboxQuery{Agent: agent, All: true} }

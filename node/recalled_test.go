package node

import (
	"encoding/json"
	"testing"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
)

// TestAClashRenamesWithoutAReconnect: another node had bound an attached agent's id before, unseen. Its socket hears its new
// name and goes on: what was unread comes under that, what it says and acknowledges is its own, also what was on its way.
func TestAClashRenamesWithoutAReconnect(t *testing.T) {
	a, b, na, nb := pair(t, protocol.RoleLocal)
	bob, ear := a.attach(t, "bob"), b.attach(t, "ear")
	eventually(t, "the first node knows ear", func() bool { return na.knows(t, "ear", nb) })
	if err := na.request(t, "devbox", "bob", "before"); err != nil {
		t.Fatal(err)
	}
	bob.next(t, "Request")
	nb.loop.set(t, func() {
		nb.loop.core.Step(nb.loop.now, hub.Author{Scope: protocol.ScopeInside, Kind: protocol.KindBind,
			Body: protocol.EncodeBody(protocol.BindBody{Agent: "bob", Home: nb.home.peer, Since: 1, Role: protocol.RoleLocal})})
	})
	var info struct{ AgentID protocol.AgentID }
	if f := bob.next(t, "ConnectionInfo"); json.Unmarshal(f.Value, &info) != nil || info.AgentID != "bob-2" {
		t.Fatalf("told %s", f.Value)
	}
	bob.send(t, map[string]any{"type": "CUSTOM", "name": "AckProcessed", "value": map[string]any{"ackFor": "before"}})
	bob.send(t, map[string]any{"type": "CUSTOM", "name": "Request", "targetAgentId": "bob-2", "msgId": "self", "value": map[string]any{"text": "x"}})
	if f := bob.next(t, "Request"); f.MsgID != "self" || f.AgentID != "bob-2" {
		t.Errorf("got %s of %s", f.MsgID, f.AgentID)
	}
	eventually(t, "the acknowledgement counts", func() bool {
		rows, err := na.store.Inbox("bob-2", inboxUnread)
		return err == nil && len(rows) == 1 && rows[0].Envelope.ID == "self"
	})
	// The other node has not looked at its own word, and believes the agent under its new name all the same.
	bob.send(t, map[string]any{"type": "CUSTOM", "name": "Request", "targetAgentId": "ear", "msgId": "far", "value": map[string]any{"text": "x"}})
	if f := ear.next(t, "Request"); f.MsgID != "far" || f.AgentID != "bob-2" {
		t.Errorf("far away got %s of %s", f.MsgID, f.AgentID)
	}
}

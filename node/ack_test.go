package node

import (
	"fmt"
	"testing"

	"github.com/aster-mesh/aster/board/web"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// TestMuchIsAcknowledgedAtOnce: all of one sender, then all there is; what is not theirs stays, and work among it is named. One message
// that is named twice was processed before, and one that is not in an inbox is named as commands do.
func TestMuchIsAcknowledgedAtOnce(t *testing.T) {
	var n *Node
	start(t, func(c *Config) { c.probe = func(x *Node) { n = x } })
	send := func(from, to protocol.AgentID, intent protocol.Intent, id string) {
		t.Helper()
		if _, err := n.Send(t.Context(), api.SendRequest{From: from, To: to, Intent: intent, MsgID: protocol.MsgID(id), Value: []byte(`{"text":"x","task":"x"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := n.loop.ask(t.Context(), func(k hub.Token) hub.Input { return hub.Declare{Agent: "here", Client: "cli", Token: k} }); err != nil {
		t.Fatal(err)
	}
	for i := range ackAtOnce + 5 {
		send("zoe", "here", "Note", fmt.Sprint("z", i))
	}
	send("bob", "here", protocol.Delegate, "0198c0de-0000-7000-8000-000000000001")
	send("bob", "here", "Note", "b1")
	got, err := n.Ack(t.Context(), api.AckRequest{Agent: "here", From: "ZOE"})
	if err != nil || len(got.Acked) != ackAtOnce+5 || got.Left != 2 || len(got.Work) != 0 || got.Agent != "here" {
		t.Fatalf("of zoe: %d, %d left, work %v, %v", len(got.Acked), got.Left, got.Work, err)
	}
	if left, err := n.Inbox(t.Context(), web.InboxQuery{Agent: "here"}); err != nil || len(left) != 2 {
		t.Fatalf("%d unread, %v", len(left), err)
	}
	if got, err = n.Ack(t.Context(), api.AckRequest{Agent: "here", All: true}); err != nil || len(got.Acked) != 2 || len(got.Work) != 1 || got.Work[0][:2] != "t-" {
		t.Fatalf("of all: %+v, %v", got, err)
	}
	if got, err = n.Ack(t.Context(), api.AckRequest{IDs: []string{"b1"}}); err != nil || len(got.Before) != 1 || len(got.Acked) != 1 {
		t.Errorf("again: %+v, %v", got, err)
	}
	_, err = n.Ack(t.Context(), api.AckRequest{Agent: "bob", IDs: []string{"b1"}})
	if want := "m-" + protocol.ShortID("b1") + " is not in the inbox of bob"; err == nil || err.Error()[:len(want)] != want {
		t.Errorf("of another inbox: %v", err)
	}
}

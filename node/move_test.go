package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// eventually waits for a condition that other nodes bring about.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	end := time.Now().Add(20 * time.Second)
	for !is() {
		if time.Now().After(end) {
			t.Fatal("not within 20 s: " + what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// request sends a Request as an agent of this node.
func (n *Node) request(t testing.TB, from, to protocol.AgentID, id string) error {
	t.Helper()
	_, err := n.Send(t.Context(), api.SendRequest{From: from, To: to, Intent: "Request", MsgID: protocol.MsgID(id), Value: json.RawMessage(`{"text":"x"}`)})
	return err
}

func (n *Node) knows(t testing.TB, agent protocol.AgentID, home *Node) bool {
	t.Helper()
	all, err := n.Agents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if a.ID == agent && a.Home == home.home.peer {
			return true
		}
	}
	return false
}

// TestMovedAgentGetsEachMessageOnce: what was processed at the old home is not delivered at the new one, what was unread
// and what comes later is, in order; the old home says where the agent lives; and back again.
func TestMovedAgentGetsEachMessageOnce(t *testing.T) {
	a, b, na, nb := pair(t, protocol.RoleLocal)
	bob := a.attach(t, "bob")
	for i := range 3 {
		if err := na.request(t, "devbox", "bob", fmt.Sprint("m", i)); err != nil {
			t.Fatal(err)
		}
	}
	bob.next(t, "Request")
	bob.send(t, map[string]any{"type": "CUSTOM", "name": "AckProcessed", "value": map[string]any{"ackFor": "m0"}})
	eventually(t, "the other node knows bob", func() bool { return nb.knows(t, "bob", na) })
	eventually(t, "bob has read one", func() bool {
		rows, err := na.store.Inbox("bob", inboxUnread)
		return err == nil && len(rows) == 2
	})
	moved, err := na.MoveAgent(t.Context(), "bob", "mac-mini")
	if err != nil || !moved.Taken || moved.Unread != 2 || moved.Forced {
		t.Fatalf("moved %+v, %v", moved, err)
	}
	notice := bob.next(t, "ServerNotice")
	var told struct{ Kind, Text, Target, Code string }
	if json.Unmarshal(notice.Value, &told) != nil || told.Kind != "agent-moved" || told.Target != "mac-mini" || told.Code != protocol.CodeIdentityMismatch {
		t.Errorf("the socket was told %s", notice.Value)
	}
	if err := na.request(t, "devbox", "bob", "m3"); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{na.request(t, "bob", "devbox", "no"), second(na.Wait(t.Context(), "bob", false)), second(na.MoveAgent(t.Context(), "bob", "mac-mini"))} {
		var no *protocol.Refusal
		if !errors.As(err, &no) {
			t.Errorf("at the old home: %v", err)
		}
	}
	bob = b.attach(t, "bob")
	for i := 1; i <= 3; i++ {
		if got := bob.next(t, "Request"); got.MsgID != fmt.Sprint("m", i) {
			t.Errorf("got %s, want m%d", got.MsgID, i)
		}
		bob.send(t, map[string]any{"type": "CUSTOM", "name": "AckProcessed", "value": map[string]any{"ackFor": fmt.Sprint("m", i)}})
	}
	eventually(t, "the sender's node has all receipts", func() bool {
		m, err := na.Message(t.Context(), "m3")
		return err == nil && m.Tiers[len(m.Tiers)-1].Tier == protocol.Processed
	})
	if moved, err = nb.MoveAgent(t.Context(), "bob", "devbox"); err != nil || !moved.Taken || moved.Unread != 0 {
		t.Fatalf("moved back %+v, %v", moved, err)
	}
	rows, err := na.store.Inbox("bob", inboxUnread)
	if err != nil || len(rows) != 0 {
		t.Errorf("%d unread at home again, %v", len(rows), err)
	}
}

func second[T any](_ T, err error) error { return err }

// TestMoveWaitsForWhatItNames: the new home was down while mail came, and takes it over when it is up; a new home that is
// not heard of, and one that is unknown, are refused by name.
func TestMoveWaitsForWhatItNames(t *testing.T) {
	_, b, na, nb := pair(t, protocol.RoleLocal)
	if _, err := na.loop.ask(t.Context(), func(tok hub.Token) hub.Input { return hub.Declare{Agent: "bob", Client: "cli", Token: tok} }); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other node knows bob", func() bool { return nb.knows(t, "bob", na) })
	b.stop()
	eventually(t, "its link is down", func() bool {
		up := true
		_ = na.loop.call(t.Context(), func() { up = na.loop.peers[nb.home.peer] != nil })
		return !up
	})
	for i := range 5 {
		if err := na.request(t, "devbox", "bob", fmt.Sprint("w", i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := na.MoveAgent(t.Context(), "bob", "nowhere"); codeOf(err) != protocol.CodeNotMember {
		t.Errorf("to an unknown node: %v", err)
	}
	na.loop.set(t, func() { na.cfg.goneAfter = time.Nanosecond })
	eventually(t, "gossip knows too", func() (gone bool) {
		na.loop.set(t, func() { gone = na.loop.unheard(nb.home.peer) })
		return gone
	})
	if _, err := na.MoveAgent(t.Context(), "bob", "mac-mini"); codeOf(err) != protocol.CodeUnreachable {
		t.Errorf("to a node that is gone: %v", err)
	}
	na.loop.set(t, func() { na.cfg.goneAfter = time.Hour })
	moved, err := na.MoveAgent(t.Context(), "bob", "mac-mini")
	if err != nil || moved.Taken || moved.Unread != 5 {
		t.Fatalf("moved %+v, %v", moved, err)
	}
	b = again(t, b, &nb)
	eventually(t, "the mail is there", func() bool {
		rows, err := nb.store.Inbox("bob", inboxUnread)
		return err == nil && len(rows) == 5
	})
	bob := b.attach(t, "bob")
	for i := range 5 {
		if got := bob.next(t, "Request"); got.MsgID != fmt.Sprint("w", i) {
			t.Errorf("got %s, want w%d", got.MsgID, i)
		}
	}
}

// TestMainTakesAnAgentFromAHomeThatIsGone: and what that home says when it comes back changes nothing but what it had
// processed; it serves the agent no more, and what it was told meanwhile reaches the new home.
func TestMainTakesAnAgentFromAHomeThatIsGone(t *testing.T) {
	_, b, na, nb := pair(t, protocol.RoleLocal)
	if _, err := nb.loop.ask(t.Context(), func(tok hub.Token) hub.Input { return hub.Declare{Agent: "bob", Client: "cli", Token: tok} }); err != nil {
		t.Fatal(err)
	}
	eventually(t, "main knows bob", func() bool { return na.knows(t, "bob", nb) })
	for i := range 2 {
		if err := na.request(t, "devbox", "bob", fmt.Sprint("g", i)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "bob has both", func() bool {
		rows, err := nb.store.Inbox("bob", inboxUnread)
		return err == nil && len(rows) == 2
	})
	if _, err := nb.Ack(t.Context(), api.AckRequest{Agent: "bob", IDs: []string{"g0"}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "main has the receipt", func() bool {
		m, err := na.Message(t.Context(), "g0")
		return err == nil && m.Tiers[len(m.Tiers)-1].Tier == protocol.Processed
	})
	if _, err := na.MoveAgent(t.Context(), "bob", "devbox"); codeOf(err) != protocol.CodeIdentityMismatch {
		t.Errorf("while its home is up: %v", err)
	}
	b.stop()
	na.loop.set(t, func() { na.cfg.goneAfter = time.Nanosecond })
	var moved api.Moved
	eventually(t, "main may take it", func() (ok bool) {
		var err error
		moved, err = na.MoveAgent(t.Context(), "bob", "devbox")
		return err == nil
	})
	if !moved.Forced || !moved.Taken {
		t.Fatalf("moved %+v", moved)
	}
	rows, err := na.store.Inbox("bob", inboxUnread)
	if err != nil || len(rows) != 1 || rows[0].Envelope.ID != "g1" {
		t.Fatalf("taken over: %d, %v", len(rows), err)
	}
	again(t, b, &nb)
	eventually(t, "the old home knows", func() bool { return nb.knows(t, "bob", na) })
	if rows, err := nb.store.Inbox("bob", inboxUnread); err != nil || len(rows) != 0 {
		t.Errorf("%d still unread at the old home, %v", len(rows), err)
	}
}

var inboxUnread = journal.InboxQuery{}

func codeOf(err error) string {
	var no *protocol.Refusal
	if errors.As(err, &no) {
		return no.Code
	}
	return ""
}

// set changes in the loop what the loop reads.
func (l *loop) set(t testing.TB, f func()) {
	t.Helper()
	if err := l.call(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

// again starts a node that was stopped, in its home.
func again(t testing.TB, r *running, n **Node) *running {
	t.Helper()
	return start(t, func(c *Config) { c.Home, c.Name = r.home, ""; c.probe = func(x *Node) { *n = x } })
}

package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// pair is two inside nodes in this process, the second joined by an invite of the first.
func pair(t testing.TB, role protocol.Role) (a, b *running, na, nb *Node) {
	t.Helper()
	a = start(t, func(c *Config) { c.Name = "devbox"; c.probe = func(n *Node) { na = n } })
	inv, err := na.Invite(t.Context(), api.InviteRequest{Role: role})
	if err != nil {
		t.Fatal(err)
	}
	b = start(t, func(c *Config) { c.Name, c.Join = "mac-mini", inv.Token; c.probe = func(n *Node) { nb = n } })
	return a, b, na, nb
}

// TestLiveTextReachesBoardsElsewhere: the pieces of a stream arrive in order at a board of another node, and whom it is
// addressed to gets the joined utterance once.
func TestLiveTextReachesBoardsElsewhere(t *testing.T) {
	a, b, na, _ := pair(t, protocol.RoleLocal)
	to := b.attach(t, "listener")
	board := b.watch(t)
	from := a.attach(t, "main-agent")
	for {
		if all, err := na.Agents(t.Context()); err != nil {
			t.Fatal(err)
		} else if len(all) == 2 {
			break
		}
	}
	frame := func(typ, delta string) {
		f := map[string]any{"type": typ, "messageId": "s1", "targetAgentId": "listener"}
		if delta != "" {
			f["delta"] = delta
		}
		from.send(t, f)
	}
	var said, heard strings.Builder
	frame("TEXT_MESSAGE_START", "")
	for i := range 500 {
		word := fmt.Sprint(i, " ")
		said.WriteString(word)
		frame("TEXT_MESSAGE_CONTENT", word)
	}
	frame("TEXT_MESSAGE_END", "")
	if got := to.next(t, "AgentText"); !strings.Contains(string(got.Value), " 499 ") || got.MsgID == "" {
		t.Errorf("joined utterance: msgId %q, %.80s", got.MsgID, got.Value)
	}
	for heard.Len() < said.Len() {
		heard.WriteString(board.next(t, "TEXT_MESSAGE_CONTENT").Delta)
	}
	if heard.String() != said.String() {
		t.Errorf("the stream arrived as %d bytes in another order", heard.Len())
	}
}

// TestOutsiderSeesOnlyItsOwn: of two conversations an outside node holds the one that is with it.
func TestOutsiderSeesOnlyItsOwn(t *testing.T) {
	a, b, na, nb := pair(t, protocol.RoleUpstream)
	main, local, out := a.attach(t, "main-agent"), a.attach(t, "worker"), b.attach(t, "builder")
	for {
		if all, err := na.Agents(t.Context()); err != nil {
			t.Fatal(err)
		} else if len(all) == 3 {
			break
		}
	}
	say := func(to, id, words string) {
		main.send(t, map[string]any{"type": "CUSTOM", "id": id, "name": "Delegate", "targetAgentId": to, "msgId": id, "value": map[string]any{"task": words}})
	}
	say("worker", "secret", "word-of-the-inside")
	local.next(t, "Delegate")
	say("builder", "open", "word-for-the-outside")
	if got := out.next(t, "Delegate"); !strings.Contains(string(got.Value), "word-for-the-outside") || got.AgentID != "main-agent" {
		t.Errorf("the outside got %s from %q", got.Value, got.AgentID)
	}
	stored, err := nb.store.Since(0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, s := range stored {
		if strings.Contains(string(s.Record.Body), "word-of-the-inside") {
			t.Errorf("the outside holds a record of the inside: %s", s.Record.Body)
		}
		found = found || strings.Contains(string(s.Record.Body), "word-for-the-outside")
	}
	if !found {
		t.Error("the outside does not hold what was said to it: the test proves nothing")
	}
}

package node

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/board/web"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/protocol/asterism"
	"github.com/aster-mesh/aster/roles/retain"
)

const oneDay = 24 * time.Hour

// retainAt looks through content as if it were later.
func (n *Node) retainAt(t *testing.T, later time.Duration, rules retain.Rules) {
	t.Helper()
	if err := n.retain(t.Context(), time.Now().Add(later), rules, func() bool { return true }); err != nil {
		t.Fatal(err)
	}
}

// heldBy says what holds content, as status shows it.
func (n *Node) heldBy(t *testing.T) string {
	t.Helper()
	st, err := n.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, h := range st.Retention.Held {
		all = append(all, strings.TrimSpace(h.Why+" "+h.Member))
	}
	return strings.Join(all, ", ")
}

// bulky is a value that is kept as content, and its hash.
func bulky(word string) (value map[string]any, sha string) {
	value = map[string]any{"text": word + strings.Repeat("x", 100_000)}
	raw, _ := json.Marshal(value)
	return value, asterism.HashOf(raw)
}

// knows waits until all nodes know an agent.
func knows(t *testing.T, agent protocol.AgentID, nodes ...*Node) {
	t.Helper()
	for _, n := range nodes {
		until(t, "every node knows "+string(agent), func() bool {
			known := false
			_ = n.loop.call(t.Context(), func() { _, known = n.loop.core.Agent(agent) })
			return known
		})
	}
}

func digests(t *testing.T, n *Node) [2]string {
	t.Helper()
	st, err := n.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return [2]string{st.Journal, st.BoardDigest}
}

// alike waits until nodes hold the same records and show the same board.
func alike(t *testing.T, nodes ...*Node) {
	t.Helper()
	until(t, "all nodes hold and show the same", func() bool {
		first := digests(t, nodes[0])
		for _, n := range nodes[1:] {
			if digests(t, n) != first {
				return false
			}
		}
		return true
	})
}

// TestContentLeavesWhenItIsOver: not before its recipient has processed it, then on every node, and nothing else changes; a
// newcomer waits for none of it.
func TestContentLeavesWhenItIsOver(t *testing.T) {
	a, b, na, nb := pair(t, protocol.RoleLocal)
	asker, builder := a.attach(t, "asker"), b.attach(t, "builder")
	knows(t, "builder", na, nb)
	value, sha := bulky("word")
	asker.send(t, map[string]any{"type": "CUSTOM", "name": "Report", "msgId": "r1", "targetAgentId": "builder", "value": value})
	builder.next(t, "Report")
	day := retain.Rules{Age: oneDay}
	for _, n := range []*Node{na, nb} {
		n.retainAt(t, 2*oneDay, day)
		if !n.store.HasBlob(sha) || n.heldBy(t) != "unread" {
			t.Fatalf("not processed: here %v, held by %q", n.store.HasBlob(sha), n.heldBy(t))
		}
	}
	builder.send(t, map[string]any{"type": "CUSTOM", "name": "AckProcessed", "value": map[string]any{"ackFor": "r1"}})
	for _, n := range []*Node{na, nb} {
		until(t, "it leaves", func() bool { n.retainAt(t, 2*oneDay, day); return !n.store.HasBlob(sha) })
	}
	alike(t, na, nb)
	before := digests(t, na)
	a.stop()
	a = start(t, func(c *Config) { c.Home = a.home; c.Name = "devbox"; c.probe = func(n *Node) { na = n } })
	until(t, "the second start links", func() bool { return len(na.mesh.Links()) > 0 })
	alike(t, na, nb)
	if now := digests(t, na); now[0] == before[0] {
		t.Log("the start wrote nothing") // a start may bind and say so; what matters is that both are alike
	}
	for _, n := range []*Node{na, nb} {
		m, err := n.Message(t.Context(), "r1")
		if err != nil || !strings.Contains(string(m.Envelope.Value), "kept here until "+time.Now().Format("2006")) || !strings.Contains(m.Text, "kept here until") {
			t.Errorf("its message says %.200s, %q, %v", m.Envelope.Value, m.Text, err)
		}
	}
	rows, err := nb.Inbox(t.Context(), web.InboxQuery{Agent: "builder", All: true})
	if err != nil || len(rows) != 1 || !strings.Contains(string(rows[0].Value), "kept here until") {
		t.Errorf("the inbox: %v, %v", rows, err)
	}
	inv, err := na.Invite(t.Context(), api.InviteRequest{Role: protocol.RoleLocal})
	if err != nil {
		t.Fatal(err)
	}
	var nc *Node
	start(t, func(c *Config) { c.Name, c.Join = "late", inv.Token; c.probe = func(n *Node) { nc = n } })
	alike(t, na, nb, nc)
	if _, left := nc.store.LeftAt(sha); !left || nc.blobs.failed[sha] > 0 {
		t.Errorf("the newcomer knows that it left: %v, vain rounds %d", left, nc.blobs.failed[sha])
	}
}

// TestContentOfATaskStaysUntilItEnds, however old.
func TestContentOfATaskStaysUntilItEnds(t *testing.T) {
	a, b, na, nb := pair(t, protocol.RoleLocal)
	asker, builder := a.attach(t, "asker"), b.attach(t, "builder")
	knows(t, "builder", na, nb)
	value, sha := bulky("task")
	asker.send(t, map[string]any{"type": "CUSTOM", "name": "Delegate", "msgId": "d1", "targetAgentId": "builder", "value": value})
	builder.next(t, "Delegate")
	builder.send(t, map[string]any{"type": "CUSTOM", "name": "AckProcessed", "value": map[string]any{"ackFor": "d1"}})
	year := retain.Rules{Age: 300 * oneDay}
	until(t, "its task alone holds it", func() bool { na.retainAt(t, 400*oneDay, year); return na.heldBy(t) == "open-task" })
	if !na.store.HasBlob(sha) {
		t.Fatal("an open task's words left")
	}
	builder.send(t, map[string]any{"type": "CUSTOM", "name": "WorkerReport", "msgId": "w1", "targetAgentId": "asker",
		"value": map[string]any{"re_msgId": "d1", "status": "done", "outcome": "done"}})
	asker.next(t, "WorkerReport")
	until(t, "it leaves once the task has ended", func() bool { na.retainAt(t, 400*oneDay, year); return !na.store.HasBlob(sha) })
	until(t, "there too", func() bool { nb.retainAt(t, 400*oneDay, year); return !nb.store.HasBlob(sha) })
	alike(t, na, nb)
}

// TestAMemberAwayHoldsContentUntilItIsGoneForTooLong: then it gets the record without, and what it lacks holds up nothing.
func TestAMemberAwayHoldsContentUntilItIsGoneForTooLong(t *testing.T) {
	a, b, na, nb := pair(t, protocol.RoleLocal)
	asker, here := a.attach(t, "asker"), a.attach(t, "here")
	until(t, "both are alike once", func() bool {
		all := false
		_ = na.loop.call(t.Context(), func() { na.loop.noteHoldings(); all = na.loop.rep.HoldsAll(nb.home.peer) })
		return all
	})
	b.stop()
	value, sha := bulky("missed")
	asker.send(t, map[string]any{"type": "CUSTOM", "name": "Report", "msgId": "r1", "targetAgentId": "here", "value": value})
	here.next(t, "Report")
	here.send(t, map[string]any{"type": "CUSTOM", "name": "AckProcessed", "value": map[string]any{"ackFor": "r1"}})
	day := retain.Rules{Age: oneDay}
	until(t, "the member away alone holds it", func() bool { na.retainAt(t, 2*oneDay, day); return na.heldBy(t) == "member mac-mini" })
	if !na.store.HasBlob(sha) {
		t.Fatal("it left though a member may come for it")
	}
	if err := na.loop.call(t.Context(), func() { na.loop.holdings[nb.home.peer].Seen = time.Now().Add(-25 * time.Hour) }); err != nil {
		t.Fatal(err)
	}
	until(t, "it leaves", func() bool { na.retainAt(t, 2*oneDay, day); return !na.store.HasBlob(sha) })
	start(t, func(c *Config) { c.Home = b.home; c.Name = "mac-mini"; c.probe = func(n *Node) { nb = n } })
	alike(t, na, nb)
	if _, left := nb.store.LeftAt(sha); !left {
		t.Error("the member that was away does not know what became of it")
	}
}

// TestShortRoomTakesWhatAnotherKeeps: neither its sender's node nor its recipient's lets it go; elsewhere it leaves, and who
// looks at it there has it again.
func TestShortRoomTakesWhatAnotherKeeps(t *testing.T) {
	a, b, na, nb := pair(t, protocol.RoleLocal)
	inv, err := na.Invite(t.Context(), api.InviteRequest{Role: protocol.RoleLocal})
	if err != nil {
		t.Fatal(err)
	}
	var nc *Node
	start(t, func(c *Config) { c.Name, c.Join = "third", inv.Token; c.probe = func(n *Node) { nc = n } })
	asker, builder := a.attach(t, "asker"), b.attach(t, "builder")
	knows(t, "builder", na, nb, nc)
	data := content(3, 50_000)
	asker.give(t, data, 0, -1)
	sha := asterism.HashOf(data)
	asker.send(t, map[string]any{"type": "CUSTOM", "name": "Report", "msgId": "r1", "targetAgentId": "builder", "value": named(data)})
	builder.next(t, "Report")
	builder.send(t, map[string]any{"type": "CUSTOM", "name": "AckProcessed", "value": map[string]any{"ackFor": "r1"}})
	pressed := retain.Rules{Age: 30 * oneDay, Pressed: true}
	until(t, "it leaves the third node", func() bool {
		for _, n := range []*Node{na, nb, nc} {
			n.retainAt(t, 2*time.Hour, pressed)
		}
		_, left := nc.store.LeftAt(sha)
		return left
	})
	if !na.store.HasBlob(sha) || !nb.store.HasBlob(sha) {
		t.Errorf("the sender's node has it: %v, the recipient's: %v", na.store.HasBlob(sha), nb.store.HasBlob(sha))
	}
	r, _, err := nc.Attachment(t.Context(), "r1", sha)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || string(got) != string(data) || !nc.store.HasBlob(sha) {
		t.Errorf("%d bytes came, %v", len(got), err)
	}
	for _, n := range []*Node{na, nb, nc} {
		until(t, "it leaves for its age", func() bool { n.retainAt(t, 40*oneDay, retain.Rules{Age: 30 * oneDay}); return !n.store.HasBlob(sha) })
	}
	var no *protocol.Refusal
	if _, _, err := nc.Attachment(context.Background(), "r1", sha); !errors.As(err, &no) || !strings.Contains(no.Reason, "kept here until") {
		t.Errorf("once all have let it go: %v", err)
	}
	if _, code := builder.ask(t, asterism.ArtifactGet, map[string]any{"artifact": sha, "chunk_index": 0, "of": "r1"}); code != asterism.CodeAttachmentUnknown {
		t.Errorf("a client is told %q", code)
	}
}

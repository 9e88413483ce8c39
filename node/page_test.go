package node

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/aster-mesh/aster/board/web"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// asksUntil looks again until what waits for people is as wanted.
func asksUntil(t *testing.T, n *Node, want string, ok func(api.Asks) bool) api.Asks {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		got, err := n.Asks(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ok(got) {
			return got
		}
		select {
		case <-late:
			raw, _ := json.Marshal(got)
			t.Fatalf("not within 20 s: %s: %s", want, raw)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// TestAnAskIsTheSameOnEveryNodeUntilOneAnswerHolds: a question shows on both nodes with its options, clock and owner, goes
// from both with the answer that holds, and each node says where that was given.
func TestAnAskIsTheSameOnEveryNodeUntilOneAnswerHolds(t *testing.T) {
	a, _, na, nb := pair(t, protocol.RoleLocal)
	asker := a.attach(t, "worker")
	asker.send(t, prompt("s1", `,"timeout":{"kind":"clarify","seconds":600},"default":"B"`))
	one := func(got api.Asks) bool { return len(got.Asks) == 1 }
	for _, n := range []*Node{na, nb} {
		got := asksUntil(t, n, "one question", one).Asks[0]
		if got.Kind != api.AskChoice || got.Asker != "worker" || len(got.Options) != 2 || got.Options[1].Label != "B" || got.Default != "B" || got.Until-got.At != 600_000 {
			t.Errorf("%s shows %+v", n.home.mesh.Name, got)
		}
		if got.OwnerName != "devbox" {
			t.Errorf("it is for %s, want the owner of the asker's node", got.OwnerName)
		}
	}
	value := json.RawMessage(`{"promptId":"s1","selectedLabels":["A"]}`)
	sent, err := nb.Send(t.Context(), api.SendRequest{FromBoard: true, To: "worker", Intent: "SelectionAnswer", Value: value})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []*Node{na, nb} {
		got := asksUntil(t, n, "the question is over", func(got api.Asks) bool {
			return len(got.Asks) == 0 && len(got.Ended) == 1 && got.Ended[0].NodeName != ""
		})
		if e := got.Ended[0]; e.How != "answered" || e.By != sent.MsgID || e.NodeName != "mac-mini" || len(e.Labels) != 1 || e.Labels[0] != "A" {
			t.Errorf("%s says it ended with %+v", n.home.mesh.Name, e)
		}
	}
}

// TestWhatNeedsAPersonGoesWithAnAnswer: an agent that says it needs a person, and a task that is blocked, wait until a
// person says something on them.
func TestWhatNeedsAPersonGoesWithAnAnswer(t *testing.T) {
	var n *Node
	a := start(t, func(c *Config) { c.probe = func(node *Node) { n = node } })
	worker := a.attach(t, "worker")
	worker.send(t, map[string]any{"type": "CUSTOM", "name": "NEEDS_HUMAN", "msgId": "help-1", "targetAgentId": "worker", "value": map[string]string{"question": "Which account pays?"}})
	asks := asksUntil(t, n, "a question", func(got api.Asks) bool { return len(got.Asks) == 1 })
	if got := asks.Asks[0]; got.Kind != api.AskQuestion || got.Text != "Which account pays?" || got.Message != "help-1" {
		t.Errorf("shown as %+v", got)
	}
	task, err := n.Send(t.Context(), api.SendRequest{FromBoard: true, To: "worker", Intent: protocol.Delegate, Value: json.RawMessage(`{"task":"pay"}`)})
	if err != nil {
		t.Fatal(err)
	}
	worker.send(t, map[string]any{"type": "CUSTOM", "name": "WorkerReport", "msgId": "r-1", "value": map[string]string{"status": "blocked", "summary": "no account", "re_msgId": string(task.MsgID)}})
	asksUntil(t, n, "question and blocked task", func(got api.Asks) bool {
		return len(got.Asks) == 2 && got.Asks[1].Kind == api.AskBlocked && got.Asks[1].Text == "no account"
	})
	for _, re := range []protocol.MsgID{"help-1", task.MsgID} {
		if _, err := n.Send(t.Context(), api.SendRequest{FromBoard: true, To: "worker", Intent: protocol.UserPrompt, Re: re, Value: json.RawMessage(`{"text":"the travel account"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	asksUntil(t, n, "nothing", func(got api.Asks) bool { return len(got.Asks) == 0 })
}

// TestFindGoesBothWaysAndSaysWhereToGoOn: pages of what words and filters select join without a gap or a repeat.
func TestFindGoesBothWaysAndSaysWhereToGoOn(t *testing.T) {
	var n *Node
	a := start(t, func(c *Config) { c.probe = func(node *Node) { n = node } })
	a.attach(t, "reader")
	from := time.Now().UnixMilli()
	var ids []protocol.MsgID
	for i := range 25 {
		words := "tax"
		if i%2 == 1 {
			words = "세금"
		}
		got, err := n.Send(t.Context(), api.SendRequest{FromBoard: true, To: "reader", Intent: protocol.UserPrompt, Value: json.RawMessage(fmt.Sprintf(`{"text":"%s %d"}`, words, i))})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, got.MsgID)
	}
	collect := func(q web.FindQuery, up bool) (out []protocol.MsgID) {
		t.Helper()
		for {
			got, err := n.Find(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			var page []protocol.MsgID
			for _, m := range got.Messages {
				page = append(page, m.Envelope.ID)
			}
			if up {
				out = append(out, page...)
				if q.At, q.After = 0, got.After; got.After == 0 {
					return out
				}
				continue
			}
			out = append(page, out...)
			if q.Before = got.Before; got.Before == 0 {
				return out
			}
		}
	}
	same := func(what string, got, want []protocol.MsgID) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %d messages, want %d", what, len(got), len(want))
		}
	}
	same("downwards", collect(web.FindQuery{Agent: "reader", Limit: 7}, false), ids)
	same("from a moment on", collect(web.FindQuery{Agent: "reader", At: from, Limit: 7}, true), ids)
	var korean []protocol.MsgID
	for i := 1; i < len(ids); i += 2 {
		korean = append(korean, ids[i])
	}
	same("words", collect(web.FindQuery{Words: "세금", Agent: "reader", Limit: 5}, false), korean)
	same("of a role that nobody has", collect(web.FindQuery{Words: "tax", Role: protocol.RoleCollab, Limit: 5}, false), nil)
	if got, err := n.Find(t.Context(), web.FindQuery{Words: "nothing", Limit: 5}); err != nil || got.Of < 25 {
		t.Errorf("it looked through %d messages, %v", got.Of, err)
	}
}

// TestAProofHoldsAndAThreadIsWhole: the record behind a message verifies, and its thread has question and answers.
func TestAProofHoldsAndAThreadIsWhole(t *testing.T) {
	_, b, na, nb := pair(t, protocol.RoleLocal)
	b.attach(t, "answerer")
	asksUntil(t, na, "the answerer", func(api.Asks) bool {
		all, err := na.Agents(t.Context())
		return err == nil && len(all) > 0
	})
	root, err := na.Send(t.Context(), api.SendRequest{From: "devbox", To: "answerer", Intent: "Request", Value: json.RawMessage(`{"text":"may I?"}`)})
	if err != nil {
		t.Fatal(err)
	}
	asksUntil(t, nb, "who asked", func(api.Asks) bool {
		all, err := nb.Agents(t.Context())
		return err == nil && len(all) > 1
	})
	for range 2 {
		if _, err := nb.Send(t.Context(), api.SendRequest{From: "answerer", To: "devbox", Intent: "Response", Re: root.MsgID, Value: json.RawMessage(`{"text":"yes"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	late := time.After(20 * time.Second)
	for {
		thread, err := na.Thread(t.Context(), string(root.MsgID), 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(thread.Messages) == 3 && !thread.Cut {
			break
		}
		select {
		case <-late:
			t.Fatalf("the thread has %d messages", len(thread.Messages))
		case <-time.After(5 * time.Millisecond):
		}
	}
	proof, err := nb.Proof(t.Context(), string(root.MsgID))
	if err != nil || !proof.Holds || proof.NodeName != "devbox" || proof.SignedBy < proof.Seq || len(proof.Sig) != 64 {
		t.Errorf("proof %+v, %v", proof, err)
	}
}

// TestSettingsDoWhatTheySay: an invite that was withdrawn lets nobody in, a room opens and closes by a person's word.
func TestSettingsDoWhatTheySay(t *testing.T) {
	var n *Node
	start(t, func(c *Config) { c.probe = func(node *Node) { n = node } })
	inv, err := n.Invite(t.Context(), api.InviteRequest{Role: protocol.RoleLocal})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := n.Invites(t.Context())
	if err != nil || len(rows) != 1 || rows[0].Expires != inv.Expires {
		t.Fatalf("invites %+v, %v", rows, err)
	}
	if err := n.WithdrawInvite(t.Context(), rows[0].ID); err != nil {
		t.Fatal(err)
	}
	cfg := Config{Home: t.TempDir(), Name: "late", Board: "127.0.0.1:0", Version: "test", Join: inv.Token}
	if err := Run(t.Context(), cfg); err == nil {
		t.Error("a withdrawn invite let a node in")
	}
	say := func(intent protocol.Intent, value string) {
		t.Helper()
		if _, err := n.Send(t.Context(), api.SendRequest{FromBoard: true, Intent: intent, Value: json.RawMessage(value)}); err != nil {
			t.Fatal(err)
		}
	}
	say("RoomCreate", `{"topic":"release","participants":["a","b"]}`)
	rooms, err := n.Rooms(t.Context())
	if err != nil || len(rooms) != 1 || rooms[0].Topic != "release" || len(rooms[0].Participants) != 2 {
		t.Fatalf("rooms %+v, %v", rooms, err)
	}
	if _, err := n.Send(t.Context(), api.SendRequest{FromBoard: true, Room: rooms[0].ID, Intent: protocol.UserPrompt, Value: json.RawMessage(`{"text":"hello"}`)}); err != nil {
		t.Errorf("a person's word in a room: %v", err)
	}
	say("RoomClose", `{"roomId":"`+string(rooms[0].ID)+`"}`)
	if rooms, err = n.Rooms(t.Context()); err != nil || len(rooms) != 0 {
		t.Errorf("rooms after closing: %+v, %v", rooms, err)
	}
}

func TestHealthIsBounded(t *testing.T) {
	var h health
	h.message()
	h.redelivered()
	h.persisted(8 * time.Millisecond)
	h.persisted(4 * time.Millisecond)
	for range healthKept + 5 {
		h.take(api.Sample{At: 1})
	}
	if len(h.samples) != healthKept {
		t.Errorf("%d samples are kept", len(h.samples))
	}
	h = health{}
	h.message()
	h.persisted(8 * time.Millisecond)
	h.persisted(4 * time.Millisecond)
	h.take(api.Sample{At: 2})
	h.take(api.Sample{At: 3})
	if s := h.samples[0]; s.Messages != 1 || s.Receipts != 2 || s.ReceiptMillis != 6 || s.ReceiptMax != 8 {
		t.Errorf("sample %+v", s)
	}
	if s := h.samples[1]; s.Messages != 0 || s.Receipts != 0 {
		t.Errorf("the counts of a sample stay in the next: %+v", s)
	}
}

// TestPagesHearThatATaskIsInTheInbox: of a Delegate to another node, once that node has said so.
func TestPagesHearThatATaskIsInTheInbox(t *testing.T) {
	_, b, na, _ := pair(t, protocol.RoleLocal)
	b.attach(t, "worker")
	na.sees(t, "worker", false)
	events := na.Subscribe(t.Context(), web.SinceNow)
	task, err := na.Send(t.Context(), api.SendRequest{FromBoard: true, To: "worker", Intent: protocol.Delegate, Value: json.RawMessage(`{"task":"pay"}`)})
	if err != nil {
		t.Fatal(err)
	}
	for late := time.After(20 * time.Second); ; {
		select {
		case e := <-events:
			if e.Type == "task" && e.Task.ID == task.MsgID && e.Task.State == api.TaskDelivered {
				return
			}
		case <-late:
			t.Fatal("not within 20 s")
		}
	}
}

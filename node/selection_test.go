package node

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

func raw(text string) json.RawMessage { return json.RawMessage(text) }

func prompt(id, rest string) map[string]any {
	return map[string]any{"type": "CUSTOM", "name": "SelectionPrompt", "value": raw(`{"promptId":"` + id + `","text":"Which?","options":[{"label":"A"},{"label":"B"}]` + rest + `}`)}
}

func answer(id, label, msg string) map[string]any {
	return map[string]any{"type": "CUSTOM", "name": "SelectionAnswer", "msgId": msg, "value": raw(`{"promptId":"` + id + `","selectedLabels":["` + label + `"],"answeredAt":1}`)}
}

// TestAPersonAnywhereAnswersAnAgentAnywhere: an agent asks on one node, people at boards of two nodes answer; the asker
// gets the first, every board hears which holds, and whoever came second hears that it came too late.
// Guards: KC18, KC19.
func TestAPersonAnywhereAnswersAnAgentAnywhere(t *testing.T) {
	a, b, _, _ := pair(t, protocol.RoleLocal)
	asker, here, there := a.attach(t, "worker"), a.watch(t), b.watch(t)
	asker.send(t, prompt("s1", ""))
	if got := there.next(t, "SelectionPrompt"); got.AgentID != "worker" || got.TargetAgentID != "" {
		t.Fatalf("the other node's board sees a question of %q for %q", got.AgentID, got.TargetAgentID)
	}
	here.next(t, "SelectionPrompt")
	there.send(t, answer("s1", "B", "ans-there"))
	if got := asker.next(t, "SelectionAnswer"); !strings.Contains(string(got.Value), `"B"`) || got.MsgID != "ans-there" {
		t.Fatalf("the asker got %s %s", got.MsgID, got.Value)
	}
	for _, board := range []*client{here, there} {
		if got := board.next(t, "SelectionResolved"); !strings.Contains(string(got.Value), `"answered"`) || !strings.Contains(string(got.Value), `"ans-there"`) {
			t.Errorf("resolved: %s", got.Value)
		}
	}
	for _, board := range []*client{here, there} {
		board.send(t, answer("s1", "A", "ans-late"))
		if got := board.next(t, "ServerNotice"); !strings.Contains(string(got.Value), protocol.CodeSelectionClosed) {
			t.Errorf("late answer: %s", got.Value)
		}
	}
}

// TestAnApprovalIsDeniedInTime: at its end the asker and all boards hear it, also when the node was stopped in between.
func TestAnApprovalIsDeniedInTime(t *testing.T) {
	dir := t.TempDir()
	home := func(c *Config) { c.Home = dir + "/home" }
	a := start(t, home)
	asker := a.attach(t, "worker")
	board := a.watch(t)
	asker.send(t, prompt("quick", `,"timeout":{"kind":"approval","seconds":0.2}`))
	asker.send(t, prompt("slow", `,"timeout":{"kind":"approval","seconds":1}`))
	for _, c := range []*client{asker, board} {
		if got := c.next(t, "SelectionExpired"); got.MsgID != "sel-exp-quick" || !strings.Contains(string(got.Value), "denied-fail-closed") {
			t.Errorf("expired: %s %s", got.MsgID, got.Value)
		}
	}
	a.stop()
	b := start(t, home)
	for again := b.attach(t, "worker"); ; { // the first may come again: it was not acknowledged
		if got := again.next(t, "SelectionExpired"); got.MsgID == "sel-exp-slow" {
			break
		}
	}
}

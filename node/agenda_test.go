package node

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// agendaShows waits until a node shows its planned items so.
func (n *Node) agendaShows(t *testing.T, want string) api.StateDocument {
	t.Helper()
	var got api.StateDocument
	until(t, "it shows "+want, func() bool {
		if err := n.loop.call(t.Context(), func() {}); err != nil {
			t.Fatalf("does not show %s: %v", want, err)
		}
		var err error
		if got, err = n.Document(t.Context()); err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, e := range got.Lists["planned"] {
			keys = append(keys, e.Key)
		}
		return fmt.Sprint(keys) == want
	})
	return got
}

// TestTwoPeopleWhoReorderAtOnceSeeTheSame: one at each of two nodes; both moves hold on both, words that came with them too,
// and main's next document, written in knowledge of them, ends them on both.
func TestTwoPeopleWhoReorderAtOnceSeeTheSame(t *testing.T) {
	a, _, na, nb := pair(t, protocol.RoleLocal)
	main := a.attach(t, "main-agent")
	nb.sees(t, "main-agent", false)
	until(t, "the other node knows who is main", func() (knows bool) {
		if err := nb.loop.call(t.Context(), func() { knows = nb.loop.roster().Term().Agent == "main-agent" }); err != nil {
			t.Fatal(err)
		}
		return knows
	})
	file := filepath.Join(a.home, "state.json")
	writeState(t, file, `{"planned":[{"id":"a"},{"id":"b"},{"id":"c"},{"id":"d"}]}`)
	na.agendaShows(t, "[a b c d]")
	nb.agendaShows(t, "[a b c d]")
	events := nb.Subscribe(t.Context(), ^uint64(0))
	move := func(n *Node, item, before string) error {
		value := json.RawMessage(fmt.Sprintf(`{"kind":"reorder","tab":"planned","moved":{"id":%q,"before":%q}}`, item, before))
		_, err := n.Send(t.Context(), api.SendRequest{FromBoard: true, Intent: operatorFeedback, Value: value})
		return err
	}
	errs := make(chan error, 2)
	go func() { errs <- move(na, "d", "a") }()
	go func() { errs <- move(nb, "b", "") }()
	for range 2 {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	if _, err := nb.Send(t.Context(), api.SendRequest{FromBoard: true, Intent: operatorFeedback, Value: raw(`{"kind":"context-feedback","refId":"b","text":"later"}`)}); err != nil {
		t.Fatal(err)
	}
	na.agendaShows(t, "[d a c b]")
	nb.agendaShows(t, "[d a c b]")
	for heard := 0; heard < 3; {
		got := main.next(t, string(operatorFeedback))
		main.send(t, map[string]any{"type": "CUSTOM", "name": "AckProcessed", "value": raw(`{"ackFor":"` + got.MsgID + `"}`)})
		heard++
	}
	dealt := func(w api.DocumentWord) bool { return w.Tier == protocol.Processed }
	for _, n := range []*Node{na, nb} {
		until(t, "its words are dealt with", func() bool {
			got := n.agendaShows(t, "[d a c b]")
			return len(got.Words) == 3 && !slices.ContainsFunc(got.Words, func(w api.DocumentWord) bool { return !dealt(w) })
		})
	}
	writeState(t, file, `{"planned":[{"id":"c"},{"id":"a"},{"id":"b"},{"id":"d"}]}`)
	for _, n := range []*Node{na, nb} {
		got := n.agendaShows(t, "[c a b d]")
		at := slices.IndexFunc(got.Words, func(w api.DocumentWord) bool { return w.Kind == "context-feedback" })
		if at < 0 || got.Words[at].Text != "later" || got.Words[at].Ref != "b" || got.Words[at].Open || got.ByName == "" {
			t.Errorf("words: %+v", got.Words)
		}
	}
	for e := range events {
		if e.Type == "document" {
			break
		}
	}
}

// TestAnAgentsFeedbackIsNoPersonsWord: it reorders nothing, whatever it calls itself.
func TestAnAgentsFeedbackIsNoPersonsWord(t *testing.T) {
	var n *Node
	a := start(t, func(c *Config) { c.Name, c.probe = "devbox", func(got *Node) { n = got } })
	main := a.attach(t, "main-agent")
	worker := a.attach(t, "worker")
	writeState(t, filepath.Join(a.home, "state.json"), `{"planned":[{"id":"a"},{"id":"b"}]}`)
	n.agendaShows(t, "[a b]")
	worker.send(t, map[string]any{"type": "CUSTOM", "name": "OperatorFeedback", "source": "board", "targetAgentId": "main-agent", "msgId": "m1", "value": raw(`{"kind":"reorder","tab":"planned","moved":{"id":"b","before":"a"}}`)})
	main.next(t, string(operatorFeedback))
	if got := n.agendaShows(t, "[a b]"); len(got.Words) != 0 {
		t.Errorf("words: %+v", got.Words)
	}
}

// TestADecisionOfTheDocumentWaitsForAPerson of main's node until one has said something on it, and again when main's document was
// written in knowledge of that and has it still; pages are told by whom it was answered, and web push counts it.
func TestADecisionOfTheDocumentWaitsForAPerson(t *testing.T) {
	var n *Node
	a := start(t, func(c *Config) { c.Name, c.probe = "devbox", func(got *Node) { n = got } })
	main := a.attach(t, "main-agent")
	file := filepath.Join(a.home, "state.json")
	writeState(t, file, `{"decisions":[{"id":"d1","kind":"choice","question":"Which table?","options":["2025",{"id":"2026","detail":"announced"}],"recommendChoice":"2026"},
		{"id":"d2","kind":"approval","title":"Delete it"},{"id":"d3","status":"resolved","question":"Its name?"},"Ship on Friday?"]}`)
	asks := func() (out api.Asks) {
		t.Helper()
		out, err := n.Asks(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	waiting := func(want string) {
		t.Helper()
		until(t, "it asks for "+want, func() bool {
			var ids []string
			for _, k := range asks().Asks {
				ids = append(ids, k.ID)
			}
			note, err := n.PushNote(t.Context())
			return err == nil && fmt.Sprint(ids) == want && note.Waiting == len(ids)
		})
	}
	waiting("[d:Ship on Friday? d:d1 d:d2]")
	got := asks().Asks[1]
	if got.Kind != api.AskDecision || got.Text != "Which table?" || got.Owner != n.home.peer || got.Asker != "main-agent" || !got.Free || got.Decision != "d1" || got.Recommend != "2026" ||
		len(got.Options) != 2 || got.Options[1].Label != "2026" || got.Options[1].Detail != "announced" {
		t.Errorf("ask: %+v", got)
	}
	if two := asks().Asks[2]; len(two.Options) != 2 || two.Options[0].Label != "approve" {
		t.Errorf("approval: %+v", two)
	}
	sent, err := n.Send(t.Context(), api.SendRequest{FromBoard: true, Intent: operatorFeedback, Value: raw(`{"kind":"decision","id":"d1","choice":"2026","accept":true}`)})
	if err != nil {
		t.Fatal(err)
	}
	waiting("[d:Ship on Friday? d:d2]")
	if ended := asks().Ended; len(ended) != 1 || ended[0].ID != "d:d1" || ended[0].How != "answered" || ended[0].By != sent.MsgID || ended[0].NodeName != "devbox" || fmt.Sprint(ended[0].Labels) != "[2026]" {
		t.Errorf("ended: %+v", ended)
	}
	heard := main.next(t, string(operatorFeedback))
	main.send(t, map[string]any{"type": "CUSTOM", "name": "AckProcessed", "value": raw(`{"ackFor":"` + heard.MsgID + `"}`)})
	until(t, "main has dealt with it", func() bool {
		got, err := n.Document(t.Context())
		return err == nil && len(got.Words) == 1 && got.Words[0].Tier == protocol.Processed
	})
	writeState(t, file, `{"decisions":[{"id":"d1","question":"Which table, really?"},{"id":"d2","status":"resolved"}]}`)
	waiting("[d:d1]")
}

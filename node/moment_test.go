package node

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/board/web"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/member"
)

// then is a time after all that was said so far, and before all that is said from now on.
func (n *Node) then(t testing.TB) int64 {
	t.Helper()
	at := time.Now().UnixMilli()
	eventually(t, "the clock has gone on", func() bool { return time.Now().UnixMilli() > at+1 })
	return at
}

// TestAMomentIsTheBoardAsItStood: tasks, questions, agents and messages at each of several times are what they were, and
// none of what came later; a task's reports and a thread are cut at the moment too.
func TestAMomentIsTheBoardAsItStood(t *testing.T) {
	var n *Node
	a := start(t, func(c *Config) { c.probe = func(node *Node) { n = node } })
	before := n.then(t)
	worker := a.attach(t, "worker")
	task, err := n.Send(t.Context(), api.SendRequest{FromBoard: true, To: "worker", Intent: protocol.Delegate, Value: json.RawMessage(`{"task":"pay"}`)})
	if err != nil {
		t.Fatal(err)
	}
	worker.next(t, "Delegate")
	inbox := func() bool {
		got, err := n.Task(t.Context(), string(task.MsgID))
		return err == nil && got.State == api.TaskDelivered
	}
	eventually(t, "it is in the inbox", inbox)
	delivered := n.then(t)
	report := func(id, status, summary string) {
		worker.send(t, map[string]any{"type": "CUSTOM", "name": "WorkerReport", "msgId": id, "value": map[string]string{"status": status, "summary": summary, "re_msgId": string(task.MsgID)}})
		n.holds(t, protocol.MsgID(id))
	}
	report("r-1", "blocked", "no account")
	blocked := n.then(t)
	if _, err := n.Send(t.Context(), api.SendRequest{FromBoard: true, To: "worker", Intent: protocol.UserPrompt, Re: task.MsgID, Value: json.RawMessage(`{"text":"the travel account"}`)}); err != nil {
		t.Fatal(err)
	}
	worker.send(t, prompt("s1", `,"timeout":{"kind":"clarify","seconds":600}`))
	asksUntil(t, n, "a question", func(got api.Asks) bool { return len(got.Asks) == 1 })
	asked := n.then(t)
	if _, err := n.Send(t.Context(), api.SendRequest{FromBoard: true, To: "worker", Intent: "SelectionAnswer", Value: json.RawMessage(`{"promptId":"s1","selectedLabels":["A"]}`)}); err != nil {
		t.Fatal(err)
	}
	asksUntil(t, n, "no question", func(got api.Asks) bool { return len(got.Asks) == 0 })
	report("r-2", "done", "paid")
	done := n.then(t)
	for _, want := range []struct {
		at       int64
		state    api.TaskState // "" there is none
		ask      api.AskKind
		reports  int
		messages int
	}{{done, api.TaskDone, "", 2, 7}, {before, "", "", 0, 0}, {delivered, api.TaskDelivered, "", 0, 1}, {asked, api.TaskBlocked, api.AskChoice, 1, 4}, {blocked, api.TaskBlocked, api.AskBlocked, 1, 2}} {
		m, err := n.Moment(t.Context(), want.at, true)
		if err != nil {
			t.Fatal(err)
		}
		if want.state == "" {
			if len(m.Tasks)+len(m.Messages)+len(m.Asks)+len(m.Agents) > 0 {
				t.Errorf("before anything there are %+v", m)
			}
			if _, err := n.TaskAt(t.Context(), string(task.MsgID), want.at); err == nil {
				t.Error("before it was given the task is there")
			}
			continue
		}
		if len(m.Tasks) != 1 || m.Tasks[0].State != want.state || len(m.Messages) != want.messages || len(m.Agents) != 1 || m.Agents[0].ID != "worker" {
			t.Errorf("when it was %s: %d messages, tasks %+v, agents %+v", want.state, len(m.Messages), m.Tasks, m.Agents)
		}
		if kinds := fmt.Sprint(len(m.Asks)); kinds != map[bool]string{true: "0", false: "1"}[want.ask == ""] || want.ask != "" && m.Asks[0].Kind != want.ask {
			t.Errorf("when it was %s the asks are %+v, want %q", want.state, m.Asks, want.ask)
		}
		got, err := n.TaskAt(t.Context(), string(task.MsgID), want.at)
		if err != nil || got.State != want.state || len(got.Reports) != want.reports {
			t.Errorf("the task is %s with %d reports (%v), want %s with %d", got.State, len(got.Reports), err, want.state, want.reports)
		}
		found, err := n.Find(t.Context(), web.FindQuery{Until: want.at, Limit: 100})
		if err != nil || len(found.Messages) != want.messages {
			t.Errorf("found %d messages (%v), want %d", len(found.Messages), err, want.messages)
		}
		thread, err := n.Thread(t.Context(), string(task.MsgID), want.at)
		if err != nil || len(thread.Messages) == 0 || len(thread.Messages) > want.messages {
			t.Errorf("the thread has %d messages (%v)", len(thread.Messages), err)
		}
		if m.Next != 0 && m.Next <= want.at || m.Prev > want.at || len(m.Ticks) != 7 {
			t.Errorf("beside %d: %d and %d, ticks %v", want.at, m.Prev, m.Next, m.Ticks)
		}
	}
	if _, err := n.Moment(t.Context(), 1<<60, false); err == nil {
		t.Error("a time beyond all clocks was taken")
	}
}

// TestAMomentMarksWhatCameLate: what another node had said by then and this one heard of only after something later is in
// the moment, and marked; a moment later it is as any other.
func TestAMomentMarksWhatCameLate(t *testing.T) {
	a, b, na, nb := pair(t, protocol.RoleLocal)
	main, worker := a.attach(t, "main-agent"), b.attach(t, "worker")
	na.sees(t, "worker", false)
	nb.sees(t, "main-agent", false)
	worker.send(t, report("main-agent", "r0", "first"))
	main.next(t, "Report")
	a.stop()
	worker.send(t, report("main-agent", "r1", "said while nobody listened"))
	nb.holds(t, "r1")
	said := nb.then(t)
	b.stop()
	a = start(t, func(c *Config) { c.Home, c.probe = a.home, func(n *Node) { na = n } })
	if _, err := na.Send(t.Context(), api.SendRequest{FromBoard: true, To: "main-agent", Intent: protocol.UserPrompt, Value: json.RawMessage(`{"text":"later"}`)}); err != nil {
		t.Fatal(err)
	}
	if m, err := na.Moment(t.Context(), said, false); err != nil || len(m.Messages) != 1 {
		t.Errorf("before it came there were %d messages (%v), want 1", len(m.Messages), err)
	}
	start(t, func(c *Config) { c.Home, c.probe = b.home, func(n *Node) { nb = n } })
	na.holds(t, "r1")
	m, err := na.Moment(t.Context(), said, false)
	if err != nil || len(m.Messages) != 2 || m.Messages[0].Late || !m.Messages[1].Late || m.Messages[1].Envelope.ID != "r1" {
		t.Errorf("got %+v, %v; want r1 marked as late", m.Messages, err)
	}
	if m, err = na.Moment(t.Context(), na.then(t), false); err != nil || len(m.Messages) != 3 || m.Messages[2].Late {
		t.Errorf("now got %+v, %v; want nothing marked", m.Messages, err)
	}
}

// TestKeptFoldsGiveWhatAFoldFromTheBeginningGives: in whatever order moments are asked for, and with folds kept all along.
func TestKeptFoldsGiveWhatAFoldFromTheBeginningGives(t *testing.T) {
	a, b, na, nb := pair(t, protocol.RoleLocal)
	main, worker := a.attach(t, "main-agent"), b.attach(t, "worker")
	na.sees(t, "worker", false)
	nb.sees(t, "main-agent", false)
	for i := range 40 {
		worker.send(t, report("main-agent", fmt.Sprintf("r%d", i), "words"))
		main.next(t, "Report")
	}
	all, err := na.store.Since(0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	mesh := member.MeshID(na.home.mesh.Mesh)
	p := newPast(na.store, mesh, na.begins.Load)
	p.every = 8
	for _, i := range []int{len(all) - 1, 3, len(all) / 2, len(all)/2 + 1, len(all) / 4, len(all) - 5, 0} {
		until := all[i].Record.At
		want := board.New(mesh)
		for j := range all {
			if all[j].Record.At <= until {
				if err := want.Apply(&all[j].Record, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		got := ""
		if err := p.at(t.Context(), until, func(st *board.State) { got = st.Digest() }); err != nil || got != want.Digest() {
			t.Errorf("at record %d of %d: another fold (%v)", i, len(all), err)
		}
	}
	if len(p.kept) < 5 {
		t.Errorf("%d folds are kept", len(p.kept))
	}
}

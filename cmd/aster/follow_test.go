package main

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// delegation serves one Delegate from its sending to the end that value says.
func delegation(t *testing.T, value string, task api.Task) *fake {
	t.Helper()
	env := protocol.Envelope{ID: "id-1", From: "codex-shop", To: "mac-mini", Intent: protocol.Delegate}
	report := func(id, value string) api.Event {
		return api.Event{Type: "message", Message: &api.Message{Pos: 6, Envelope: protocol.Envelope{ID: protocol.MsgID(id), From: "mac-mini", To: "codex-shop", Intent: protocol.WorkerReport, Re: "id-1", Value: []byte(value)}}}
	}
	logged, replicated := api.TierAt{Tier: protocol.Logged, At: 1}, api.TierAt{Tier: protocol.Replicated, At: 2}
	persisted, processed := api.TierAt{Tier: protocol.Persisted, At: 3}, api.TierAt{Tier: protocol.Processed, At: 4}
	return newFake(t, map[string]any{
		"POST /send":         api.SendResult{MsgID: "id-1", Short: "7kq2m", Tier: protocol.Logged, To: "mac-mini", ToState: protocol.StateIdle, ToWakes: "worker"},
		"GET /messages/{id}": api.Message{Pos: 5, Envelope: env},
		"GET /tasks/{id}":    task,
		"GET /tail": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if got := r.URL.Query().Get("after"); got != "4" {
				t.Errorf("tail after %q", got)
			}
			writeLine(w, api.Event{Type: "message", Message: &api.Message{Pos: 5, Envelope: env, Tiers: []api.TierAt{logged}}})
			writeLine(w, api.Event{Type: "tiers", MsgID: "id-1", From: "codex-shop", Tiers: []api.TierAt{persisted, logged, replicated}})
			writeLine(w, api.Event{Type: "tiers", MsgID: "id-1", From: "someone-else", Tiers: []api.TierAt{{Tier: protocol.Refused}}})
			writeLine(w, report("r-1", `{"status":"in_progress","summary":"go test runs"}`))
			writeLine(w, report("r-1", `{"status":"in_progress","summary":"go test runs"}`))
			writeLine(w, api.Event{Type: "tiers", MsgID: "id-1", From: "codex-shop", Tiers: []api.TierAt{logged, replicated, persisted, processed}})
			writeLine(w, report("r-2", value))
			<-r.Context().Done()
		}),
	})
}

func TestDelegateFollowsTiersInOrderAndReportsToTheEnd(t *testing.T) {
	for outcome, c := range map[string]struct {
		value string
		code  int
	}{
		"done":        {`{"status":"done","outcome":"done","summary":"3 tests pass"}`, 0},
		"blocked":     {`{"status":"blocked","summary":"which table?"}`, 1},
		"failed":      {`{"status":"blocked","outcome":"failed","summary":"exit 1"}`, 1},
		"interrupted": {`{"status":"blocked","outcome":"interrupted"}`, 1},
		"cancelled":   {`{"status":"blocked","outcome":"cancelled"}`, 1},
	} {
		f := delegation(t, c.value, api.Task{Commit: "3f9c2abdeadbeef", Millis: 3100, Diff: &api.Diff{Files: 1, Added: 2, Removed: 1, Paths: []string{"cart/total.go"}}})
		got := f.type_(t, "", "delegate", "--to", "mac-mini", "--wait", "--json", "--accept", "go test ./cart", "make", "./cart", "pass")
		var events []string
		for line := range strings.Lines(got.out) {
			var e followLine
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			events = append(events, strings.TrimSpace(e.Event+" "+string(e.Tier)+e.Status+" "+e.Outcome))
		}
		want := "tier logged,tier replicated,tier persisted,report in_progress,tier processed,report " + map[bool]string{true: "done", false: "blocked"}[outcome == "done"] + " " + outcome + ",end  " + outcome
		if strings.Join(events, ",") != want || got.code != c.code {
			t.Errorf("%s: exit %d, %s\nwant %d, %s\n%s", outcome, got.code, strings.Join(events, ","), c.code, want, got.err)
		}
		f.mu.Lock()
		if sent := f.asked[0]; !strings.Contains(sent, `"value":{"task":"make ./cart pass","accept":["go test ./cart"]}`) {
			t.Errorf("sent %s", sent)
		}
		f.mu.Unlock()
	}
}

func TestDelegateSaysItsEndInOneLine(t *testing.T) {
	f := delegation(t, `{"status":"done","outcome":"done"}`, api.Task{Commit: "3f9c2abdeadbeef", Millis: 3100, Diff: &api.Diff{Files: 1, Added: 2, Removed: 1, Paths: []string{"cart/total.go"}}})
	got := f.type_(t, "", "delegate", "--to", "mac-mini", "--wait", "make it pass")
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	if got.code != 0 || lines[0] != "t-7kq2m logged; mac-mini is idle, wakes by worker" || lines[len(lines)-1] != "done in 3.1 s  +2 -1 cart/total.go  commit 3f9c2ab" {
		t.Errorf("exit %d\n%s", got.code, got.out)
	}
	if got.err != "in the repository: aster task fetch t-7kq2m\n" {
		t.Errorf("stderr %q", got.err)
	}
}

func TestDelegateGivesUpFollowingInTime(t *testing.T) {
	f := delegation(t, `{"status":"in_progress"}`, api.Task{})
	got := f.type_(t, "", "delegate", "--to", "mac-mini", "--wait", "--timeout", "50ms", "x")
	if got.code != 5 || !strings.Contains(got.err, "no end after 50 ms; the work goes on. Follow it: aster task show t-7kq2m") {
		t.Errorf("exit %d, %q", got.code, got.err)
	}
}

func TestWaitOutlivesItsNode(t *testing.T) {
	var first, second *fake
	gone := make(chan struct{})
	second = newFake(t, map[string]any{"GET /status": api.Status{}, "GET /wait": api.WaitResult{Agent: "a", Unread: 1, IDs: []string{"m-1"}}})
	first = newFake(t, map[string]any{"GET /wait": http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(gone)
		panic(http.ErrAbortHandler) // the connection breaks
	})})
	var back atomic.Bool
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-gone
		first.server.Listener.Close()
		back.Store(true)
		first.writeNodeFile(t, second.server.URL)
	}()
	got := typeCtx(ctx, nil, "", "wait", "--home", first.home)
	if got.code != 0 || got.out != "1 unread for a: m-1\n" || !back.Load() {
		t.Errorf("exit %d, %q", got.code, got.out)
	}
	if got.err != "the node is gone; waiting for it to return\nthe node is back\n" {
		t.Errorf("stderr %q", got.err)
	}
}

func TestAnInterruptedFollowIsNoFailureAndAnInterruptedWaitIs(t *testing.T) {
	hang := func(stop context.CancelFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			stop()
			<-r.Context().Done()
		}
	}
	for args, want := range map[string]int{"inbox --follow": 0, "tail": 0, "wait": 1} {
		ctx, stop := context.WithCancel(t.Context())
		f := newFake(t, map[string]any{"GET /status": api.Status{}, "GET /inbox": hang(stop), "GET /tail": hang(stop), "GET /wait": hang(stop)})
		got := typeCtx(ctx, nil, "", append(strings.Fields(args), "--home", f.home)...)
		if got.code != want {
			t.Errorf("aster %s: exit %d, want %d (%q)", args, got.code, want, got.err)
		}
	}
}

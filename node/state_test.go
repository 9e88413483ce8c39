package node

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

func writeState(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// serves waits until a node serves a state document.
func (n *Node) serves(t *testing.T, want string) {
	t.Helper()
	for {
		var got []byte
		err := n.loop.call(t.Context(), func() { got, _ = n.State(t.Context()) })
		if err != nil {
			t.Fatalf("still serves %s: %v", got, err)
		}
		if string(got) == want {
			return
		}
	}
}

// TestEveryNodeServesTheStateDocument: main's home publishes each valid content of the file; a broken one leaves the last
// good one in place and shows in status; a file beside a node that is not main's home says nothing; a restart keeps it.
func TestEveryNodeServesTheStateDocument(t *testing.T) {
	dir := t.TempDir()
	var na *Node
	home := func(c *Config) {
		c.Name, c.Home, c.probe = "devbox", filepath.Join(dir, "home"), func(n *Node) { na = n }
	}
	a := start(t, home)
	if doc, err := na.State(t.Context()); err != nil || doc != nil {
		t.Fatalf("before any: %s, %v", doc, err)
	}
	inv, err := na.Invite(t.Context(), api.InviteRequest{Role: protocol.RoleLocal})
	if err != nil {
		t.Fatal(err)
	}
	var nb *Node
	b := start(t, func(c *Config) { c.Name, c.Join, c.probe = "mac-mini", inv.Token, func(n *Node) { nb = n } })
	writeState(t, filepath.Join(b.home, "state.json"), `{"standby":false,"of":"nobody"}`)
	events := b.stateEvents(t)
	good := "{\n \"standby\": true,\n \"text\": \"<&>\"\n}\n"
	file := filepath.Join(a.home, "state.json")
	writeState(t, file, good)
	na.serves(t, good)
	nb.serves(t, good)
	if line := <-events; !strings.Contains(line, `"standby": true`) {
		t.Errorf("event: %s", line)
	}
	writeState(t, file, `{"standby":`)
	broken := func() bool {
		st, err := na.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(st.Warnings, func(w string) bool {
			return strings.Contains(w, "state document is not readable") && strings.Contains(w, "Mend ") && strings.Contains(w, "state.json")
		})
	}
	until(t, "status says that it is broken", broken)
	na.serves(t, good)
	a.stop()
	start(t, home)
	na.serves(t, good)
	until(t, "status says so after a restart", broken)
	writeState(t, file, `{"standby":false}`)
	nb.serves(t, `{"standby":false}`)
	until(t, "status says so no more", func() bool { return !broken() })
}

// stateEvents reads the data lines of /api/events.
func (r *running) stateEvents(t *testing.T) <-chan string {
	t.Helper()
	var file api.NodeFile
	raw, err := os.ReadFile(filepath.Join(r.home, "node.json"))
	if err == nil {
		err = json.Unmarshal(raw, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", r.Board+"/api/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+file.Token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	lines, done := make(chan string, 16), make(chan struct{})
	go func() {
		defer close(done)
		for sc := bufio.NewScanner(resp.Body); sc.Scan(); {
			if data, ok := strings.CutPrefix(sc.Text(), "data: "); ok {
				lines <- data
			}
		}
	}()
	t.Cleanup(func() { cancel(); _ = resp.Body.Close(); <-done })
	return lines
}

// TestAPersonsFeedbackReachesMain: kept, with receipts, also when main is away when it is given, from any node; without a
// main nobody pretends that it was heard. Guards: B39.
func TestAPersonsFeedbackReachesMain(t *testing.T) {
	a, _, na, nb := pair(t, protocol.RoleLocal)
	feedback := api.SendRequest{FromBoard: true, Intent: "OperatorFeedback", Value: raw(`{"kind":"decision","id":"d1","choice":"yes"}`)}
	if _, err := na.Send(t.Context(), feedback); err == nil || !strings.Contains(err.Error(), "no main agent") {
		t.Errorf("without main: %v", err)
	}
	main := a.attach(t, "main-agent")
	main.conn.Close(1000, "")
	na.sees(t, "main-agent", true)
	nb.sees(t, "main-agent", true)
	for knows := false; !knows; {
		if err := nb.loop.call(t.Context(), func() { knows = nb.loop.roster().Term().Agent == "main-agent" }); err != nil {
			t.Fatal(err)
		}
	}
	sent, err := nb.Send(t.Context(), feedback)
	if err != nil || sent.To != "main-agent" {
		t.Fatalf("feedback on the other node: %+v, %v", sent, err)
	}
	if _, err := nb.WaitTier(t.Context(), string(sent.MsgID), protocol.Persisted); err != nil {
		t.Fatal(err)
	}
	again := a.attach(t, "main-agent")
	if got := again.next(t, "OperatorFeedback"); got.MsgID != string(sent.MsgID) || got.Source != "board" || !strings.Contains(string(got.Value), `"d1"`) {
		t.Errorf("main got %+v", got)
	}
	again.send(t, map[string]any{"type": "CUSTOM", "name": "AckProcessed", "value": raw(`{"ackFor":"` + string(sent.MsgID) + `"}`)})
	if m, err := nb.WaitTier(t.Context(), string(sent.MsgID), protocol.Processed); err != nil || len(m.Tiers) == 0 {
		t.Fatal(m, err)
	}
}

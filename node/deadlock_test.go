package node

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// TestBoardsHearOfAgentsThatWaitForEachOther: where the owner wants it, on whichever node they are, once a wait; agents
// are told nothing, and an answer ends it.
func TestBoardsHearOfAgentsThatWaitForEachOther(t *testing.T) {
	var na *Node
	watch := func(c *Config) { c.Deadlock = DeadlockConfig{Detect: true, After: 400 * time.Millisecond} }
	a := start(t, func(c *Config) { watch(c); c.probe = func(n *Node) { na = n } })
	inv, err := na.Invite(t.Context(), api.InviteRequest{Role: protocol.RoleLocal})
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, func(c *Config) { watch(c); c.Name, c.Join = "mac-mini", inv.Token })
	boards := []*client{a.watch(t), b.watch(t)}
	one, two := a.attach(t, "one"), b.attach(t, "two")
	ask := func(from *client, to, id string) {
		eventually(t, to+" is known", func() bool { all, err := na.Agents(t.Context()); return err == nil && len(all) == 2 })
		from.send(t, verb("Request", id, map[string]any{"targetAgentId": to, "text": "your turn?"}))
	}
	next := func(asks ...string) {
		t.Helper()
		for _, board := range boards {
			f := board.next(t, "DeadlockProbe")
			p := into[deadlockProbe](t, f)
			var got []string
			for _, e := range p.Edges {
				got = append(got, string(e.Ask))
			}
			slices.Sort(got)
			if f.Source != string(protocol.SourceServer) || !slices.Equal(got, asks) || len(p.Members) != 2 || p.Class != "strict" || !strings.Contains(p.Proposed, " answers ") {
				t.Errorf("from %s: %+v", f.Source, p)
			}
		}
	}
	ask(one, "two", "q1")
	two.next(t, "Request")
	ask(two, "one", "q2")
	one.next(t, "Request")
	next("q1", "q2")
	two.send(t, verb("Response", "r1", map[string]any{"targetAgentId": "one", "re_msgId": "q1"}))
	one.next(t, "Response")
	eventually(t, "the warning is withdrawn", func() bool {
		st, err := na.Status(t.Context())
		return err == nil && !slices.ContainsFunc(st.Warnings, func(w string) bool { return strings.Contains(w, "wait for each other") })
	})
	ask(one, "two", "q3")
	two.next(t, "Request")
	next("q2", "q3") // the next one is of the next wait: the first was told once
	one.send(t, verb("Report", "done", map[string]any{"targetAgentId": "two"}))
	for {
		if f := <-two.frames; f.Name == "DeadlockProbe" {
			t.Error("an agent was told")
		} else if f.Name == "Report" {
			break
		}
	}
}

package node

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/board/web"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

func report(to, id, words string) map[string]any {
	return map[string]any{"type": "CUSTOM", "name": "Report", "targetAgentId": to, "msgId": id, "value": map[string]any{"summary": words}}
}

// reads asks a board or agent for a channel and returns what it says.
func (c *client) reads(t *testing.T, key string) string {
	t.Helper()
	c.send(t, verb("RequestChannelHistory", "", map[string]any{"channelKey": key}))
	return string(c.next(t, "ChannelHistory").Value)
}

// holds waits until a node has a message, deleted or not.
func (n *Node) holds(t *testing.T, id protocol.MsgID) {
	t.Helper()
	eventually(t, "a node has "+string(id), func() bool {
		found, err := n.store.Resolve(string(id))
		return err == nil && len(found) == 1
	})
}

// finds says whether any list of a node shows a word.
func (n *Node) finds(t *testing.T, word string) (where []string) {
	t.Helper()
	found, err := n.Find(t.Context(), web.FindQuery{Words: word})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Messages) > 0 {
		where = append(where, "search of the page")
	}
	list, err := n.Find(t.Context(), web.FindQuery{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := n.Messages(t.Context(), web.MessageQuery{})
	if err != nil {
		t.Fatal(err)
	}
	searched, err := n.Search(t.Context(), word, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	for name, list := range map[string]any{"list of the page": list.Messages, "tail": all, "search": searched, "history of a board": n.history("").Channels, "history of an agent": n.history("main-agent").Channels} {
		raw, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), word) {
			where = append(where, name)
		}
	}
	slices.Sort(where)
	return where
}

// TestWhatIsDeletedIsGoneOnEveryNode: what one board deletes is in no list, history or search of any node, nor after a
// restart; boards of all nodes are told; unread mail is delivered all the same; a member outside has no say; the journal
// keeps its records.
func TestWhatIsDeletedIsGoneOnEveryNode(t *testing.T) {
	a, b, na, nb := pair(t, protocol.RoleLocal)
	main, worker := a.attach(t, "main-agent"), b.attach(t, "Worker-1")
	boardA, boardB := a.watch(t), b.watch(t)
	na.sees(t, "Worker-1", false)
	nb.sees(t, "main-agent", false)
	worker.send(t, report("main-agent", "r1", "ephemeron"))
	main.next(t, "Report")
	boardA.next(t, "Report")
	if got := na.finds(t, "ephemeron"); len(got) != 6 {
		t.Fatalf("before it, only in %v: the test proves little", got)
	}
	boardB.send(t, verb("DeleteChannelHistory", "", map[string]any{"agentId": "worker-1"}))
	for name, board := range map[string]*client{"there": boardB, "here": boardA} {
		if got := board.next(t, "DeleteChannelHistory"); !strings.Contains(string(got.Value), `"agentId":"Worker-1"`) || got.Source != "server" {
			t.Errorf("the board %s is told %s of %s", name, got.Value, got.Source)
		}
	}
	for name, c := range map[string]*client{"board": boardA, "agent": main, "itself": worker} {
		if got := c.reads(t, "Worker-1"); strings.Contains(got, "ephemeron") {
			t.Errorf("%s still reads %s", name, got)
		}
	}
	for name, n := range map[string]*Node{"here": na, "there": nb} {
		if got := n.finds(t, "ephemeron"); len(got) > 0 {
			t.Errorf("%s it is in %v", name, got)
		}
		if _, err := n.Message(t.Context(), "r1"); err == nil {
			t.Errorf("%s it is shown by its id", name)
		}
		n.holds(t, "r1")
	}
	worker.send(t, report("main-agent", "r2", "afterwards"))
	if got := main.next(t, "Report"); got.MsgID != "r2" {
		t.Errorf("main got %s", got.MsgID)
	}
	if got := boardB.reads(t, "worker-1"); !strings.Contains(got, "afterwards") {
		t.Errorf("what was said later is not there: %s", got)
	}
	a.stop()
	var again *Node
	start(t, func(c *Config) { c.Home, c.probe = a.home, func(n *Node) { again = n } })
	if got := again.finds(t, "ephemeron"); len(got) > 0 {
		t.Errorf("after a restart it is in %v", got)
	}
	if got := again.finds(t, "afterwards"); len(got) != 6 {
		t.Errorf("after a restart the later word is only in %v", got)
	}
}

// TestAMessageThatComesLateIntoADeletedChannelStaysOut: its place in the order of all decides, not when it came: what was
// said before the deletion, at a node that was away, is deleted, and what was said after it is not.
func TestAMessageThatComesLateIntoADeletedChannelStaysOut(t *testing.T) {
	a, b, na, nb := pair(t, protocol.RoleLocal)
	main, worker := a.attach(t, "main-agent"), b.attach(t, "worker")
	na.sees(t, "worker", false)
	nb.sees(t, "main-agent", false)
	worker.send(t, report("main-agent", "r0", "first"))
	main.next(t, "Report")
	a.stop()
	worker.send(t, report("main-agent", "r1", "ephemeron"))
	nb.holds(t, "r1")
	b.stop()
	a = start(t, func(c *Config) { c.Home, c.probe = a.home, func(n *Node) { na = n } })
	board := a.watch(t)
	board.send(t, verb("DeleteChannelHistory", "", map[string]any{"agentId": "worker"}))
	board.next(t, "DeleteChannelHistory")
	main = a.attach(t, "main-agent")
	b = start(t, func(c *Config) { c.Home, c.probe = b.home, func(n *Node) { nb = n } })
	for got := ""; got != "r1"; { // it is mail, and is delivered
		got = main.next(t, "Report").MsgID
	}
	worker = b.attach(t, "worker")
	eventually(t, "the deletion is known there", func() bool { return nb.hidden().Of("worker") != nil })
	worker.send(t, report("main-agent", "r2", "afterwards"))
	for got := ""; got != "r2"; {
		got = main.next(t, "Report").MsgID
	}
	for name, n := range map[string]*Node{"here": na, "there": nb} {
		if got := n.finds(t, "ephemeron"); len(got) > 0 {
			t.Errorf("%s the late word is in %v", name, got)
		}
		if got := n.finds(t, "afterwards"); len(got) < 5 {
			t.Errorf("%s the later word is only in %v", name, got)
		}
	}
}

// TestWrongValuesInEveryFieldOfEveryChannelVerb: the node lives, the sender gets the contract's error, boards notice
// nothing, and nothing is put away or deleted.
func TestWrongValuesInEveryFieldOfEveryChannelVerb(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.probe = func(in *Node) { n = in } })
	main, worker := r.attach(t, "main-agent"), r.attach(t, "worker")
	board := r.watch(t)
	worker.send(t, report("main-agent", "r1", "kept"))
	main.next(t, "Report")
	values := []any{map[string]any{"toString": 1}, []any{}, []any{map[string]any{}}, true, -1, 1.5, 1e300, nil, "", "\u202e", strings.Repeat("x", 5000), "nobody", "room:rt-0"}
	refused := func(c *client, frame map[string]any) string {
		c.send(t, frame)
		var v asterism.Notice
		if err := json.Unmarshal(c.next(t, "ServerNotice").Value, &v); err != nil || string(v.MsgID) != frame["msgId"] {
			t.Fatalf("%v is answered with %+v %v", frame, v, err)
		}
		return v.Code
	}
	count := 0
	for name := range channelVerbs {
		for _, value := range values {
			for _, v := range []any{value, map[string]any{"agentId": value}, map[string]any{"channelKey": value}, map[string]any{"agentId": "worker", "channelKey": value}} {
				if whole, object := v.(map[string]any); object && whole["agentId"] == "worker" && (value == nil || value == "") {
					continue // then only the other one counts
				}
				count++
				frame := map[string]any{"type": "CUSTOM", "name": string(name), "msgId": fmt.Sprint("q", count), "value": v}
				if code := refused(board, frame); code != protocol.CodeWrongType && code != protocol.CodeUnknownID {
					t.Errorf("%s with %.60v: %s", name, v, code)
				}
				for _, c := range []*client{main, worker} {
					if code := refused(c, frame); code != protocol.CodeNotAllowed {
						t.Errorf("%s of an agent: %s", name, code)
					}
				}
			}
		}
	}
	if all := *n.hidden(); len(all) != 0 {
		t.Errorf("after it there are steps on %v", all)
	}
	if got := board.reads(t, "worker"); !strings.Contains(got, "kept") {
		t.Errorf("the channel holds %s", got)
	}
}

// TestMembersOutsideNeitherDeleteNorHide: at their own node it is refused, and a record that one writes counts nowhere.
func TestMembersOutsideNeitherDeleteNorHide(t *testing.T) {
	a, b, na, nb := pair(t, protocol.RoleUpstream)
	main, out := a.attach(t, "main-agent"), b.attach(t, "builder")
	board := b.watch(t)
	na.sees(t, "builder", false)
	nb.sees(t, "main-agent", false)
	out.send(t, report("main-agent", "r1", "kept"))
	main.next(t, "Report")
	board.send(t, verb("DeleteChannelHistory", "q", map[string]any{"agentId": "builder"}))
	if got := board.next(t, "ServerNotice"); !strings.Contains(string(got.Value), protocol.CodeNotAllowed) {
		t.Errorf("answered with %s", got.Value)
	}
	if got := board.reads(t, "builder"); !strings.Contains(got, "kept") {
		t.Errorf("outside the channel holds %s", got)
	}
}

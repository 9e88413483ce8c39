package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// TestARenamedAgentKeepsItsMailItsWorkAndItsAnswers: two nodes, mail on its way, work given under the old name, kill -9.
func TestARenamedAgentKeepsItsMailItsWorkAndItsAnswers(t *testing.T) {
	nodes := meshOf(t, nil, "west", "east")
	west, east := nodes[0], nodes[1]
	west.declare("anna")
	east.declare("bert")
	west.knows("bert")
	east.knows("anna")
	before := west.sendBy("anna", "bert", "said before")
	question := east.sendBy("bert", "anna", "a question of bert's")
	var work api.SendResult
	must(t, json.Unmarshal([]byte(west.ok("delegate", "--json", "--from", "anna", "--to", "bert", "count the lines")), &work))
	holds(east, "bert", before, work.MsgID)
	holds(west, "anna", question)

	if got := east.ok("agent", "rename", "bert", "carl"); !strings.Contains(got, "bert is called carl now, with 2 unread") {
		t.Errorf("rename says %q", got)
	}
	holds(east, "carl", before, work.MsgID)
	west.knows("carl")
	for _, n := range nodes {
		r := n.run("send", "--from", "dora", "--to", "bert", "too late")
		if n == west && (r.code != 4 || !strings.Contains(r.stderr, `agent "bert" is called "carl" now`)) {
			t.Errorf("new mail to the old name on %s: %s", n.name, r)
		}
		if n == east && (r.code != 4 || !strings.Contains(r.stderr, `"carl"`)) {
			t.Errorf("new mail to the old name on %s: %s", n.name, r)
		}
	}
	if r := east.run("send", "--from", "bert", "--to", "anna", "as of old"); r.code != 4 || !strings.Contains(r.stderr, "carl") {
		t.Errorf("speaking under the old name: %s", r)
	}
	east.kill()
	east.up("")
	holds(east, "carl", before, work.MsgID)
	// The answer to what bert said is for carl; the report on what bert was given ends the task.
	must(t, json.Unmarshal([]byte(west.ok("report", "--json", "--from", "anna", "--re", string(question), "--status", "done", "--summary", "an answer")), new(api.SendResult)))
	eventually(t, patience, "carl has the answer", func() (bool, string) {
		got := inboxOf(east, "carl")
		return len(got) == 3, fmt.Sprintf("%d messages", len(got))
	})
	east.ok("report", "--from", "carl", "--re", string(work.MsgID), "--status", "done", "--summary", "12 lines")
	for _, n := range nodes {
		eventually(t, patience, "the task is done on "+n.name, func() (bool, string) {
			task, err := n.api().Task(t.Context(), string(work.MsgID))
			return err == nil && task.State == api.TaskDone, fmt.Sprintf("%+v, %v", task.State, err)
		})
	}
	for id := range inboxOf(east, "carl") {
		east.ok("ack", string(id))
	}
	if got := strings.TrimSpace(east.ok("inbox", "--agent", "carl")); strings.Contains(got, "said before") {
		t.Errorf("acknowledged mail is unread: %s", got)
	}
	east.kill()
	east.up("")
	sameEverywhere(t, nodes)
	if got := inboxOf(east, "carl"); len(got) != 3 {
		t.Errorf("%d messages in carl's inbox after all", len(got))
	}
	east.ok("agent", "forget", "bert")
	east.declare("bert")
	if got := inboxOf(east, "bert"); len(got) != 0 {
		t.Errorf("the new bert has the old one's mail: %v", got)
	}
}

// holds waits until an inbox has just these messages, each once.
func holds(n *node, agent protocol.AgentID, want ...protocol.MsgID) {
	n.t.Helper()
	eventually(n.t, patience, fmt.Sprintf("the inbox of %s", agent), func() (bool, string) {
		got := inboxOf(n, agent)
		for _, id := range want {
			if len(got[id]) != 1 {
				return false, fmt.Sprintf("%s %d times", id, len(got[id]))
			}
		}
		return len(got) == len(want), fmt.Sprintf("%d of %d", len(got), len(want))
	})
}

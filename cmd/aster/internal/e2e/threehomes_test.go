package e2e

import (
	"bufio"
	"encoding/json"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// followed is one line of delegate --wait --json.
type followed struct {
	Event, MsgID, Status, Outcome, Summary, Reason string
	Tier                                           protocol.Tier
	Exit                                           *int
}

func followLines(t *testing.T, out string) []followed {
	t.Helper()
	var all []followed
	for s := bufio.NewScanner(strings.NewReader(out)); s.Scan(); {
		var f followed
		if err := json.Unmarshal(s.Bytes(), &f); err != nil {
			t.Fatalf("%q: %v", s.Text(), err)
		}
		all = append(all, f)
	}
	return all
}

const greets = `
[worker]
command = ["sh", "-c", "read task; echo working; case $task in fail*) exit 7;; esac; echo \"did $task\""]
`

// TestThreeHomes is acceptance 2: three homes on one machine, delegations to each, exit codes as written.
func TestThreeHomes(t *testing.T) {
	main := newNode(t, "devbox", "")
	if r := main.run("status"); r.code != 3 {
		t.Errorf("status where nothing runs: want exit 3: %s", r)
	}
	if r := main.run("delegate", "--to", "x", "--wait", "y"); r.code != 3 {
		t.Errorf("delegate where nothing runs: want exit 3: %s", r)
	}
	main.up("")
	mini, builder := newNode(t, "mac-mini", greets), newNode(t, "build-1", greets)
	for _, n := range []*node{mini, builder} {
		ready := n.up(main.invite())
		if ready.Role != protocol.RoleLocal || ready.Joined == nil || ready.Joined.Through != "devbox" || len(ready.Warnings) > 0 {
			t.Errorf("%s: ready says %+v", n.name, ready)
		}
		main.knows(protocol.AgentID(n.name))
	}
	for _, to := range []string{"mac-mini", "build-1"} {
		r := main.run("delegate", "--to", to, "--wait", "--json", "--timeout", "40s", "say hello")
		checkDone(t, to, r)
	}
	t.Run("exit codes", func(t *testing.T) {
		for _, c := range []struct {
			code int
			args []string
		}{
			{1, []string{"delegate", "--to", "mac-mini", "--wait", "--timeout", "40s", "fail now"}},
			{4, []string{"delegate", "--to", "nobody-here", "--wait", "--timeout", "40s", "x"}},
			{5, []string{"delegate", "--to", "mac-mini", "--wait", "--timeout", "1ms", "x"}},
			{2, []string{"delegate", "--wait", "x"}},
			{2, []string{"delegate", "--to", "mac-mini", "--no-such-flag", "x"}},
			{2, []string{"no-such-command"}},
			{4, []string{"show", "no-such-id"}},
			{0, []string{"status", "--json"}},
			{0, []string{"send", "--to", "mac-mini", "hello"}},
			{4, []string{"wait", "--timeout", "50ms", "--agent", "quiet"}},
			{5, []string{"wait", "--timeout", "50ms", "--agent", "quiet", "--new"}},
		} {
			if r := main.run(c.args...); r.code != c.code {
				t.Errorf("aster %s: want exit %d: %s", strings.Join(c.args, " "), c.code, r)
			}
		}
	})
	main.down()
	if r := main.run("send", "--to", "mac-mini", "hello"); r.code != 3 {
		t.Errorf("send after down: want exit 3: %s", r)
	}
}

// checkDone wants the tiers in their order, then reports, the final one done, then the end.
func checkDone(t *testing.T, to string, r result) {
	t.Helper()
	if r.code != 0 {
		t.Fatalf("delegate to %s: %s", to, r)
	}
	lines := followLines(t, r.stdout)
	var tiers []protocol.Tier
	final := 0
	for _, l := range lines {
		switch {
		case l.Event == "tier":
			tiers = append(tiers, l.Tier)
		case l.Event == "report" && l.Outcome != "":
			final++
			if l.Status != "done" || l.Outcome != "done" || !strings.Contains(string(r.stdout), "did say hello") {
				t.Errorf("final report of %s: %+v", to, l)
			}
		}
	}
	if len(tiers) == 0 || tiers[0] != protocol.Logged {
		t.Errorf("%s: tiers %v, want logged first", to, tiers)
	}
	rank := map[protocol.Tier]int{protocol.Logged: 0, protocol.Replicated: 1, protocol.Persisted: 2, protocol.Processed: 3}
	for i := range tiers {
		if i > 0 && rank[tiers[i]] <= rank[tiers[i-1]] {
			t.Errorf("%s: tiers out of order: %v", to, tiers)
		}
	}
	if len(tiers) != 4 {
		t.Errorf("%s: tiers %v, want all four", to, tiers)
	}
	if last := lines[len(lines)-1]; final != 1 || last.Event != "end" || last.Outcome != "done" || last.Exit == nil || *last.Exit != 0 {
		t.Errorf("%s: %d final reports, last line %+v", to, final, last)
	}
}

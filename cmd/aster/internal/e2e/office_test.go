package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol/api"
)

// main is who is main as a node sees it; false: it does not say.
func (n *node) main() (m api.Main, ok bool) {
	m, err := n.api().Main(n.t.Context())
	return m, err == nil
}

// elects waits until a node's voters are as many, so that killing one of them is a fair trial.
func (n *node) elects(voters int) {
	n.t.Helper()
	eventually(n.t, patience, fmt.Sprintf("%s has %d voters", n.name, voters), func() (bool, string) {
		m, _ := n.main()
		return len(m.Voters) == voters, fmt.Sprint(m.Voters)
	})
}

// sleeper is a process that holds claims until it is killed.
func sleeper(t *testing.T) (pid string, kill func()) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = dieWithUs()
	must(t, startProcess(cmd))
	done := false
	kill = func() {
		if !done {
			done = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	t.Cleanup(kill)
	return fmt.Sprint(cmd.Process.Pid), kill
}

// The main's node dies: one successor within 10 s, nothing that is held is granted again, and the former main follows.
func TestMainsDeathMovesTheOfficeAndKeepsClaims(t *testing.T) {
	all := meshOf(t, nil, "first", "second", "third")
	for _, n := range all {
		n.elects(3)
	}
	pid, kill := sleeper(t)
	all[1].ok("claim", "acquire", "src/api", "contract:login", "--from", "ann", "--pid", pid)
	if r := all[2].run("claim", "acquire", "SRC/api/x.go", "--from", "bob", "--pid", pid); r.code != 4 {
		t.Errorf("what is held was granted again: %s", r)
	}
	all[0].kill()
	died := time.Now()
	eventually(t, patience, "a successor on both", func() (bool, string) {
		a, _ := all[1].main()
		b, _ := all[2].main()
		return a.Term > 1 && a.Peer == b.Peer && (a.Sure || b.Sure), fmt.Sprint(a, b)
	})
	t.Logf("another main %s after the first died", time.Since(died).Round(time.Millisecond))
	if took := time.Since(died); took > 15*time.Second && !raced { // 10 s of an idle machine (roles/election), and what a busy one adds
		t.Errorf("a successor after %s", took)
	}
	after, _ := all[1].main()
	if r := all[2].run("claim", "acquire", "src", "--from", "bob", "--pid", pid); r.code != 4 {
		t.Errorf("what a dead main granted was granted again: %s", r)
	}
	all[0].up("")
	eventually(t, patience, "the former main follows", func() (bool, string) {
		m, _ := all[0].main()
		return m.Term == after.Term && m.Peer == after.Peer && !m.Sure, fmt.Sprint(m)
	})
	eventually(t, patience, "what is free is granted when all have answered", func() (bool, string) {
		r := all[2].run("claim", "acquire", "docs", "--from", "bob", "--pid", pid)
		return r.code == 0, r.String()
	})
	kill()
	eventually(t, patience, "claims end with the process that held them", func() (bool, string) {
		out := all[0].ok("claim", "list", "--json")
		return strings.TrimSpace(out) == "", out
	})
}

// Of two nodes the sitting main goes on, the other takes the office by force alone, and the former main then follows.
func TestOfTwoNodesOneTakesTheOfficeByForce(t *testing.T) {
	all := meshOf(t, nil, "one", "two")
	for _, n := range all {
		n.elects(2)
	}
	pid, _ := sleeper(t)
	all[0].ok("claim", "acquire", "src", "--from", "ann", "--pid", pid)
	eventually(t, patience, "the claim is known", func() (bool, string) {
		out := all[1].ok("claim", "list", "--json")
		return strings.Contains(out, "path:src"), out
	})
	all[0].kill()
	if r := all[1].run("main", "take"); r.code != 2 {
		t.Errorf("taken without --force: %s", r)
	}
	var took api.TakeResult
	must(t, json.Unmarshal([]byte(all[1].ok("main", "take", "--force", "--json")), &took))
	if len(took.Twice) != 1 || took.Twice[0].Agent != "ann" {
		t.Errorf("told of claims that may be held twice: %+v", took.Twice)
	}
	eventually(t, patience, "it may act", func() (bool, string) {
		m, _ := all[1].main()
		return m.Sure && m.Here && m.Term == 2, fmt.Sprint(m)
	})
	all[0].up("")
	eventually(t, patience, "the former main follows", func() (bool, string) {
		m, _ := all[0].main()
		return m.Term == 2 && !m.Here, fmt.Sprint(m)
	})
}

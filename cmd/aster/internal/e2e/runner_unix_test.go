//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// working is a node alone in its mesh whose own agent has a runner; ann delegates to it.
func working(t *testing.T, config string, command ...string) *node {
	t.Helper()
	argv, err := json.Marshal(command)
	must(t, err)
	n := newNode(t, "n", fmt.Sprintf("[worker]\ncommand = %s\n%s", argv, config))
	n.up("")
	n.knows("main-agent")
	return n
}

func (n *node) delegate(words string) (r result, end followed) {
	n.t.Helper()
	r = n.run("delegate", "--from", "ann", "--to", "main-agent", "--wait", "--json", "--timeout", "50s", words)
	lines := followLines(n.t, r.stdout)
	finals := 0
	for _, l := range lines {
		if l.Event == "report" && l.Outcome != "" {
			finals++
		}
	}
	if len(lines) == 0 || finals != 1 || lines[len(lines)-1].Event != "end" {
		n.t.Fatalf("%d final reports: %s", finals, r)
	}
	return r, lines[len(lines)-1]
}

// lives checks that a bad run has hurt nothing: the node answers and takes the next one.
func (n *node) lives() {
	n.t.Helper()
	if st := n.mustStatus(); st.DiskFull {
		n.t.Errorf("%+v", st)
	}
	n.declare("bob")
	n.ok("send", "--from", "ann", "--to", "bob", "still here")
}

// TestRunnerThatIsMissing: a wrong name is found when the node starts, a program that went away when it is to run.
func TestRunnerThatIsMissing(t *testing.T) {
	wrong := newNode(t, "wrong", "[worker]\ncommand = [\"/no/such/program\"]\n")
	if ready, r := wrong.start(""); ready != nil || r.code != 1 || !strings.Contains(r.stderr, "/no/such/program") {
		t.Errorf("want exit 1, naming the program: %v %s", ready, r)
	}
	program := filepath.Join(t.TempDir(), "program")
	must(t, os.WriteFile(program, []byte("#!/bin/sh\necho fine\n"), 0o700))
	n := working(t, "", program)
	must(t, os.Remove(program))
	r, end := n.delegate("do it")
	if r.code != 1 || end.Outcome != "failed" || !strings.Contains(end.Summary, program) {
		t.Errorf("want failed, naming the program: %s", r)
	}
	n.lives()
}

func TestRunnerThatHangs(t *testing.T) {
	n := working(t, "wall = \"1s\"\n", "sh", "-c", "trap '' TERM; echo begun; while :; do sleep 1; done")
	began := time.Now()
	r, end := n.delegate("do it")
	if r.code != 1 || end.Outcome != "failed" || !strings.Contains(end.Summary, "longer than 1s") {
		t.Errorf("want failed for its time: %s", r)
	}
	if took := time.Since(began); took > promised(15*time.Second) {
		t.Errorf("it took %s to end a run of 1 s", took)
	}
	n.lives()
}

// TestRunnerThatForksAway: what left its session and its parent ends with the run all the same.
func TestRunnerThatForksAway(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	n := working(t, "", "sh", "-c", fmt.Sprintf(`setsid sh -c 'echo $$ >> %s; trap "" TERM HUP; while :; do sleep 1; done' >/dev/null 2>&1 & while ! [ -s %s ]; do sleep 0.02; done; echo done`, pids, pids))
	r, end := n.delegate("do it")
	if r.code != 0 || end.Outcome != "done" {
		t.Errorf("want done: %s", r)
	}
	raw, err := os.ReadFile(pids)
	must(t, err)
	var pid int
	_, err = fmt.Sscan(string(raw), &pid)
	must(t, err)
	eventually(t, patience, "what forked away is gone", func() (bool, string) {
		return syscall.Kill(pid, 0) == syscall.ESRCH, fmt.Sprintf("pid %d lives", pid)
	})
	n.lives()
}

func TestRunnerThatPrintsGigabytes(t *testing.T) {
	n := working(t, "output_bytes = 3000000\n", "sh", "-c", "yes 'and again and again and again'")
	r, end := n.delegate("do it")
	if r.code != 1 || end.Outcome != "failed" || !strings.Contains(end.Summary, "printed more than") {
		t.Errorf("want failed for its output: %s", r)
	}
	var bytes int64
	must(t, filepath.WalkDir(n.home, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it went away meanwhile
		}
		if info, err := d.Info(); err == nil && d.Type().IsRegular() {
			bytes += info.Size()
		}
		return nil
	}))
	if bytes > 16<<20 {
		t.Errorf("the home holds %d MB after it", bytes>>20)
	}
	n.lives()
}

// TestRunSurvivesItsNodeAndIsCancelled: the run goes on while its node is gone, and ends when a person says so.
func TestRunSurvivesItsNodeAndIsCancelled(t *testing.T) {
	ledger := filepath.Join(t.TempDir(), "starts")
	n := working(t, "", "sh", "-c", fmt.Sprintf("echo $$ >> %s; while :; do sleep 0.1; done", ledger))
	got, err := n.api().Send(t.Context(), api.SendRequest{From: "ann", To: "main-agent", Intent: protocol.Delegate, Value: text("for ever")})
	must(t, err)
	pid := 0
	eventually(t, patience, "it runs", func() (bool, string) {
		raw, err := os.ReadFile(ledger)
		if err != nil {
			return false, err.Error()
		}
		_, err = fmt.Sscan(string(raw), &pid)
		return err == nil, string(raw)
	})
	n.kill()
	if err := syscall.Kill(pid, 0); err != nil {
		t.Errorf("the run ended with its node: %v", err)
	}
	n.up("")
	eventually(t, patience, "it is running again in the node's eyes", func() (bool, string) {
		task, err := n.api().Task(t.Context(), string(got.MsgID))
		return err == nil && task.State == api.TaskRunning, fmt.Sprint(task.State, err)
	})
	n.ok("task", "cancel", string(got.MsgID))
	eventually(t, patience, "it is cancelled", func() (bool, string) {
		task, err := n.api().Task(t.Context(), string(got.MsgID))
		return err == nil && task.State == api.TaskCancelled, fmt.Sprint(task.State, err)
	})
	eventually(t, patience, "its process is gone", func() (bool, string) {
		return syscall.Kill(pid, 0) == syscall.ESRCH, fmt.Sprintf("pid %d lives", pid)
	})
	if starts := linesOf(t, ledger); len(starts) != 1 {
		t.Errorf("it was started %d times", len(starts))
	}
	n.lives()
}

// TestRunnerHasTheFilesOfItsTask: under safe names, beside its work tree.
func TestRunnerHasTheFilesOfItsTask(t *testing.T) {
	n := working(t, "", "sh", "-c", `cd "$ASTER_TASK_FILES" && grep -qx first plan.md && grep -qx second plan-2.md && ! test -e "$ASTER_TASK_DIR"/plan.md`)
	dir := t.TempDir()
	args := []string{"delegate", "--from", "ann", "--to", "main-agent", "--wait", "--json", "--timeout", "50s"}
	for _, words := range []string{"first", "second"} {
		must(t, os.MkdirAll(filepath.Join(dir, words), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, words, "plan.md"), []byte(words+"\n"), 0o600))
		args = append(args, "--attach", filepath.Join(dir, words, "plan.md"))
	}
	if r := n.run(append(args, "read the plans")...); r.code != 0 {
		t.Error(r)
	}
	n.lives()
}

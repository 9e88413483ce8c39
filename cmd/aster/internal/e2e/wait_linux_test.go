package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// costs are what the system counted of a process: of all its threads.
type costs struct {
	rchar, wchar, syscr, syscw int64
	wakes                      int64 // voluntary context switches: each is one sleep that ended
	ticks                      int64 // of CPU, user and system
}

func costsOf(t *testing.T, pid int) costs {
	t.Helper()
	var c costs
	io := fields(t, fmt.Sprintf("/proc/%d/io", pid))
	c.rchar, c.wchar, c.syscr, c.syscw = io["rchar"], io["wchar"], io["syscr"], io["syscw"]
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	must(t, err)
	for _, task := range tasks {
		c.wakes += fields(t, task)["voluntary_ctxt_switches"]
	}
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(t, err)
	var user, system int64
	rest := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	_, err = fmt.Sscan(rest[11]+" "+rest[12], &user, &system)
	must(t, err)
	c.ticks = user + system
	return c
}

// fields reads "name: number" lines.
func fields(t *testing.T, path string) map[string]int64 {
	t.Helper()
	raw, err := os.ReadFile(path)
	must(t, err)
	out := map[string]int64{}
	for s := bufio.NewScanner(bytes.NewReader(raw)); s.Scan(); {
		name, value, _ := strings.Cut(s.Text(), ":")
		var n int64
		if _, err := fmt.Sscan(value, &n); err == nil {
			out[name] = n
		}
	}
	return out
}

// TestWaitWakes is acceptance 6 on the process itself: waiting costs nothing, and a message wakes within 2 s.
func TestWaitWakes(t *testing.T) {
	nodes := meshOf(t, nil, "here", "there")
	here, there := nodes[0], nodes[1]
	here.declare("sleeper")
	there.knows("sleeper")
	argv := here.argv("wait", "--agent", "sleeper", "--timeout", "10m", "--json")
	cmd := exec.Command(argv[0], argv[1:]...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = &out, &errs, dieWithUs()
	must(t, startProcess(cmd))
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })

	// It has come to rest when nothing was counted for half a second.
	before := costsOf(t, cmd.Process.Pid)
	eventually(t, patience, "it rests", func() (bool, string) {
		instant(500 * time.Millisecond)
		now := costsOf(t, cmd.Process.Pid)
		rests := now == before
		before = now
		return rests, fmt.Sprintf("%+v", now)
	})
	span := 5 * time.Second
	if long {
		span = time.Minute
	}
	instant(span)
	after := costsOf(t, cmd.Process.Pid)
	// Go's own monitor thread looks about once a minute, whatever the program does (runtime.sysmon): two sleeps that end.
	if idle := after.wakes - before.wakes; idle > 0 && idle <= 2*int64(span/time.Minute) {
		after.wakes = before.wakes
	}
	if after != before {
		t.Errorf("waiting for %s cost something: from %+v to %+v", span, before, after)
	}
	t.Logf("%s of waiting: %d reads, %d writes, %d wake-ups", span, after.syscr-before.syscr, after.syscw-before.syscw, after.wakes-before.wakes)

	began := time.Now()
	there.ok("send", "--from", "waker", "--to", "sleeper", "wake up")
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatalf("it still waits: %s%s", out.String(), errs.String())
	}
	took := time.Since(began)
	if cmd.ProcessState.ExitCode() != 0 || !strings.Contains(out.String(), `"unread":1`) || strings.Contains(out.String(), "wake up") {
		t.Errorf("exit %d, said %s%s", cmd.ProcessState.ExitCode(), out.String(), errs.String())
	}
	t.Logf("woken after %s", took.Round(time.Millisecond))
	if took > promised(2*time.Second) {
		t.Errorf("woken after %s, want at most 2 s", took)
	}
}

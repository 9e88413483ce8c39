package demo_test

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol/api"
)

// homes are the node files of a demo by node.
func (s *shown) homes(t *testing.T) map[string]api.NodeFile {
	t.Helper()
	roots := s.left(t)
	if len(roots) != 1 {
		t.Fatalf("one demo runs, and there are %q", roots)
	}
	out := map[string]api.NodeFile{}
	for _, name := range []string{"devbox", "mac-mini", "build-1", "guest"} {
		raw, err := os.ReadFile(filepath.Join(roots[0], "demo", name, "node.json"))
		if err != nil {
			t.Fatal(err)
		}
		var f api.NodeFile
		if err := json.Unmarshal(raw, &f); err != nil {
			t.Fatal(err)
		}
		out[name] = f
	}
	return out
}

func kill(t *testing.T, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestANodeThatDiesIsNamedAndTheOthersGoOn: until none is left; then there is a log to read.
func TestANodeThatDiesIsNamedAndTheOthersGoOn(t *testing.T) {
	s := show(t)
	homes := s.homes(t)
	kill(t, homes["build-1"].PID)
	if line := <-s.more; !strings.HasPrefix(line, "node build-1: ") || !strings.HasSuffix(line, "; 3 nodes go on") {
		t.Errorf("said %q", line)
	}
	res, err := http.Get(homes["devbox"].Board + "/healthz")
	if err != nil {
		t.Fatalf("the main's node is gone, too: %v", err)
	}
	res.Body.Close()
	for _, name := range []string{"guest", "devbox"} {
		kill(t, homes[name].PID)
		if line := <-s.more; !strings.HasPrefix(line, "node "+name+": ") {
			t.Errorf("said %q", line)
		}
	}
	kill(t, homes["mac-mini"].PID)
	for line := range s.more {
		t.Errorf("said after the end: %q", line)
	}
	_ = s.cmd.Wait()
	said := s.err.String()
	if code := s.cmd.ProcessState.ExitCode(); code != 1 || !strings.HasPrefix(said, "node mac-mini: ") {
		t.Errorf("exit %d, said %q", code, said)
	}
	for line := range strings.Lines(said) {
		if log, ok := strings.CutPrefix(strings.TrimSpace(line), "its log: "); ok {
			if info, err := os.Stat(log); err != nil || info.Size() == 0 {
				t.Errorf("the log that it names: %v", err)
			}
			return
		}
	}
	t.Errorf("no log is named: %q", said)
}

// A demo that was killed cannot clean up. The next one does, also where nodes still run, and takes another port for its
// board than the one that is in use.
func TestTheNextDemoClearsWhatAKilledOneLeft(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the cache folder cannot be shared by an environment variable there")
	}
	first := show(t)
	before := first.homes(t)
	kill(t, first.cmd.Process.Pid)
	for range first.more {
		continue
	}
	_ = first.cmd.Wait()
	if len(first.left(t)) != 1 {
		t.Fatal("there is nothing to clear")
	}
	devbox := strings.TrimPrefix(before["devbox"].Board, "http://")
	if c, err := net.Dial("tcp", devbox); err != nil {
		t.Fatalf("devbox ended with its demo, so this test shows nothing: %v", err)
	} else {
		_ = c.Close()
	}
	second := showIn(t, first.own)
	now := second.homes(t)
	for name, f := range before {
		if f.PID == now[name].PID {
			t.Errorf("%s is the same process", name)
		}
		if f.Board == now[name].Board {
			continue // the port was free again
		}
		if c, err := net.Dial("tcp", strings.TrimPrefix(f.Board, "http://")); err == nil {
			_ = c.Close()
			t.Errorf("%s of the killed demo still runs", name)
		}
	}
	if code := second.end(t); code != 0 || len(second.left(t)) > 0 {
		t.Errorf("exit %d, left behind: %q", code, second.left(t))
	}
}

// TestASecondInterruptLeavesNothingBehind: people press it again and again, and some tools send it twice.
func TestASecondInterruptLeavesNothingBehind(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no process is interrupted from outside there")
	}
	s := show(t)
	homes := s.homes(t)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for ended := false; !ended; {
		_ = s.cmd.Process.Signal(os.Interrupt)
		select {
		case _, more := <-s.more:
			ended = !more
		case <-again.C:
		}
	}
	_ = s.cmd.Wait()
	if code := s.cmd.ProcessState.ExitCode(); code != 0 || len(s.left(t)) > 0 {
		t.Errorf("exit %d, said %q, left behind: %q", code, s.err.String(), s.left(t))
	}
	for name, f := range homes {
		if p, err := os.FindProcess(f.PID); err == nil && p.Signal(syscall.Signal(0)) == nil {
			t.Errorf("%s still runs", name)
		}
	}
}

func TestATakenPortIsNoFault(t *testing.T) {
	aster(t)
	if l, err := net.Listen("tcp", "127.0.0.1:7878"); err == nil { // else somebody has it, which is as good
		defer l.Close()
	}
	s := show(t)
	if link := s.part(t, `^board +(http://\S+) `); strings.Contains(link, ":7878/") {
		t.Errorf("the board is at a port that is taken: %s", link)
	}
	if code := s.end(t); code != 0 {
		t.Errorf("exit %d", code)
	}
}

func TestADemoThatNobodyReadsEndsCleanly(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("pipes end otherwise there")
	}
	s := prepare(t, t.TempDir())
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait()
	if code := s.cmd.ProcessState.ExitCode(); code != 0 || s.err.Len() > 0 || len(s.left(t)) > 0 {
		t.Errorf("exit %d, said %q, left behind: %q", code, s.err.String(), s.left(t))
	}
}

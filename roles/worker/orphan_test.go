//go:build unix

package worker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/aster-mesh/aster/roles/worker/keeper"
)

func TestRunWhoseKeeperIsKilledIsInterruptedWithItsTail(t *testing.T) {
	t.Parallel()
	for _, node := range []string{"up", "down"} {
		t.Run("node "+node, func(t *testing.T) {
			s := newStage(t, "hang")
			s.cfg.Repo = newRepo(t, "one\n")
			w, crash := s.open()
			task := s.task("t1")
			s.start(w, task)
			s.running(w, "thinking")
			dir := s.dir(task)
			var l keeper.Launch
			var child keeper.Process
			if err := errors.Join(keeper.ReadJSON(dir, keeper.FileLaunch, &l), keeper.ReadJSON(dir, keeper.FileChild, &child)); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "work", "half.txt"), "half\n")
			if node == "down" {
				crash()
			}
			if err := syscall.Kill(l.Keeper.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if node == "down" {
				w, _ = s.open()
			}
			r := s.final(w)
			if r.Outcome != Interrupted || !strings.Contains(r.Tail, "thinking") || r.Output == "" || r.Commit == "" {
				t.Errorf("report %+v", r)
			}
			eventually(t, "the command is gone", func() bool { return syscall.Kill(child.PID, 0) != nil || isZombie(child.PID) })
			s.wantOneStart()
		})
	}
}

// isZombie: the orphan of a killed keeper is reaped by whoever is its parent now, which may be nobody in a container.
func isZombie(pid int) bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Contains(string(b), ") Z ")
}

func TestWhatForkedAwayEndsThoughItsKeeperWasKilled(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("found by /proc")
	}
	s := newStage(t, "fork")
	w, _ := s.open()
	task := s.task("t1")
	task.Accept = []string{"setsid sleep 600 & echo $! > ../pid; echo begun; sleep 600"}
	s.start(w, task)
	s.running(w, "begun")
	var l keeper.Launch
	if err := keeper.ReadJSON(s.dir(task), keeper.FileLaunch, &l); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(l.Keeper.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if r := s.final(w); r.Outcome != Interrupted {
		t.Errorf("report %+v", r)
	}
	pid := forked(t, filepath.Join(s.dir(task), "pid"))
	eventually(t, "the session of its own is gone", func() bool { return syscall.Kill(pid, 0) != nil || isZombie(pid) })
}

func TestWhatForksAwayEndsWithTheRun(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a subreaper; see package keeper")
	}
	s := newStage(t, "fork")
	w, _ := s.open()
	s.start(w, s.task("t1"))
	r := s.final(w)
	if r.Outcome != Done {
		t.Fatalf("report %+v", r)
	}
	if pid := forked(t, s.flag); syscall.Kill(pid, 0) == nil {
		t.Errorf("process %d, which forked away twice into its own session, still runs", pid)
	}
}

func forked(t *testing.T, file string) int {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

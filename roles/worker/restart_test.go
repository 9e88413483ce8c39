package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/worker/keeper"
)

func TestRunOutlivesTheNodeAndIsReportedOnce(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"while it still runs", "after it ended"} {
		t.Run(when, func(t *testing.T) {
			s := newStage(t, "hang")
			s.cfg.Repo = newRepo(t, "one\n")
			w, crash := s.open()
			task := s.task("t1")
			s.start(w, task)
			s.running(w, "thinking")
			crash()
			if when == "after it ended" {
				write(t, s.flag, "")
				eventually(t, "result", func() bool { return keeper.Has(s.dir(task), keeper.FileResult) })
			}
			w, crash = s.open()
			if err := w.Start(task); !errors.Is(err, ErrStarted) {
				t.Errorf("second start: %v", err)
			}
			if when == "while it still runs" {
				s.running(w, "thinking")
				write(t, s.flag, "")
			}
			first := s.final(w)
			if first.Outcome != Done || first.Diff == nil || first.Diff.Files != 1 {
				t.Errorf("report %+v", first)
			}
			s.wantOneStart()
			// Not yet durable at the node: the same report again. Then never again.
			crash()
			w, crash = s.open()
			if again := s.final(w); again.Commit != first.Commit || again.Outcome != first.Outcome {
				t.Errorf("again %+v, before %+v", again, first)
			}
			w.Reported(task.ID, task.Attempt)
			crash()
			w, _ = s.open()
			s.quiet(w)
			if err := w.Start(task); !errors.Is(err, ErrStarted) {
				t.Errorf("start after the end: %v", err)
			}
			s.wantOneStart()
		})
	}
}

// quiet runs another task to its end and wants no report of any other.
func (s *stage) quiet(w *Worker) {
	s.t.Helper()
	write(s.t, s.flag, "")
	other := s.task("other")
	command := w.cfg.Command
	w.cfg.Command = []string{os.Args[0], "runner", "nothing", s.ledger + "-other"}
	s.start(w, other)
	w.cfg.Command = command
	if r := s.final(w); r.Task != other.ID {
		s.t.Errorf("a report of %s, which was reported", r.Task)
	}
}

// nodeUntilKilled is a node that asks for the task at each start, as one does whose journal holds an open Delegate.
func nodeUntilKilled(dir, repository, ledger string) {
	w, err := New(killConfig(dir, repository, ledger))
	must(err)
	if err := w.Start(killTask()); !errors.Is(err, ErrStarted) {
		must(err)
	}
	must(w.Run(context.Background()))
}

func killConfig(dir, repository, ledger string) Config {
	return Config{
		Command: []string{os.Args[0], "runner", "write", ledger}, Keeper: []string{os.Args[0], "keeper"},
		Dir: dir, Repo: repository, Wall: time.Minute,
	}
}

func killTask() Task {
	return Task{ID: "0192f3a0-0000-7000-8000-00000000000b", Attempt: 1, From: "m", To: "w", Text: "write", Accept: []string{"grep -q TWO a.txt"}}
}

func TestNodeKilledAtAnyInstantStartsOnceAndReportsOnce(t *testing.T) {
	t.Parallel()
	kills := 8
	if testing.Short() {
		kills = 3
	}
	for seed := range kills {
		dice := rand.New(rand.NewPCG(uint64(seed), 0))
		s := newStage(t, "write")
		repository := newRepo(t, "one\n")
		s.cfg = killConfig(s.cfg.Dir, repository, s.ledger)
		for range 1 + dice.IntN(3) {
			node := exec.Command(os.Args[0], "node", s.cfg.Dir, repository, s.ledger)
			if err := node.Start(); err != nil {
				t.Fatal(err)
			}
			// The instant is what the test is about, so it is drawn and not waited for.
			time.AfterFunc(time.Duration(dice.IntN(250))*time.Millisecond, func() { _ = node.Process.Kill() })
			if err := node.Wait(); err == nil {
				t.Fatal("the node ended by itself")
			}
		}
		w, crash := s.open()
		if err := w.Start(killTask()); err != nil && !errors.Is(err, ErrStarted) {
			t.Fatal(err)
		}
		r := s.final(w)
		if r.Outcome != Done || r.Commit == "" {
			t.Errorf("seed %d: report %+v", seed, r)
		}
		s.wantOneStart()
		if got := run(t, repository, "git", "rev-list", "--count", "main.."+r.Branch); got != "1" {
			t.Errorf("seed %d: %s commits on the branch", seed, got)
		}
		w.Reported(r.Task, r.Attempt)
		crash()
	}
}

// The keeper claims the attempt before it starts the command. Here the node is cut off at each step before that.
func TestAttemptCutOffBeforeItBeganIsRunOnce(t *testing.T) {
	t.Parallel()
	for _, at := range []string{keeper.FileText, keeper.FileStart, keeper.FileTree} {
		t.Run("after "+at, func(t *testing.T) {
			s := newStage(t, "write")
			s.cfg.Repo = newRepo(t, "one\n")
			w, err := New(s.cfg)
			if err != nil {
				t.Fatal(err)
			}
			task := s.task("t1")
			s.start(w, task) // Run is never called: the node dies here
			a := w.attempts[folderName(task.ID, 1)]
			switch at {
			case keeper.FileText:
				if err := os.Remove(filepath.Join(a.dir, keeper.FileStart)); err != nil {
					t.Fatal(err)
				}
			case keeper.FileTree:
				a.ctx = t.Context()
				if err := w.prepare(a); err != nil {
					t.Fatal(err)
				}
			case keeper.FileStart:
				// In the middle of preparing: a work tree stands that no file vouches for.
				run(t, s.cfg.Repo, "git", "worktree", "add", "-q", "-b", "aster/"+protocol.ShortID(task.ID)+"-1", filepath.Join(a.dir, "work"))
			}
			w, _ = s.open()
			if at == keeper.FileText {
				s.start(w, task) // it was never accepted, so the node asks again
			}
			if r := s.final(w); r.Outcome != Done || r.Commit == "" {
				t.Errorf("report %+v", r)
			}
			s.wantOneStart()
		})
	}
}

func TestTwoKeepersForOneAttemptStartItOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t, "hang")
	gate := t.TempDir()
	s.cfg.Keeper = []string{os.Args[0], "keeper-slow", gate}
	w, err := New(s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	task := s.task("t1")
	s.start(w, task)
	a := w.attempts[folderName(task.ID, 1)]
	a.ctx = t.Context()
	if err := w.prepare(a); err != nil {
		t.Fatal(err)
	}
	// The node dies while its keeper has not yet come to run; the next node finds no keeper and starts another.
	spawned := make(chan error, 1)
	go func() {
		cmd, err := w.spawn(a)
		if cmd != nil {
			_ = cmd.Wait()
		}
		spawned <- err
	}()
	s.cfg.Keeper = []string{os.Args[0], "keeper"}
	w2, _ := s.open()
	s.running(w2, "thinking")
	write(t, filepath.Join(gate, "go"), "")
	if err := <-spawned; err != nil {
		t.Errorf("the late keeper: %v", err)
	}
	write(t, s.flag, "")
	if r := s.final(w2); r.Outcome != Done {
		t.Errorf("report %+v", r)
	}
	s.wantOneStart()
}

func TestCancelBeforeTheBeginningSurvivesACrash(t *testing.T) {
	t.Parallel()
	s := newStage(t, "write")
	w, err := New(s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	task := s.task("t1")
	s.start(w, task)
	if err := w.Cancel(task.ID); err != nil {
		t.Fatal(err)
	}
	w, _ = s.open()
	if r := s.final(w); r.Outcome != Cancelled {
		t.Errorf("report %+v", r)
	}
	if s.starts() != 0 {
		t.Error("it was run all the same")
	}
}

func TestKeeperThatCannotBeginIsReported(t *testing.T) {
	t.Parallel()
	s := newStage(t, "write")
	s.cfg.Keeper = []string{os.Args[0], "keeper-dies"}
	w, _ := s.open()
	s.start(w, s.task("t1"))
	if r := s.final(w); r.Outcome != Failed || !strings.Contains(r.Summary, "could not be begun") {
		t.Errorf("report %+v", r)
	}
}

func TestPrunedAttemptIsNeverStartedAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t, "nothing")
	w, crash := s.open()
	for i := range foldersKept + 2 {
		task := s.task(fmt.Sprintf("t%d", i))
		if err := w.Start(task); err != nil {
			t.Fatal(err)
		}
		if err := w.Cancel(task.ID); err != nil && !errors.Is(err, ErrNotRunning) {
			t.Fatal(err)
		}
		s.final(w)
		w.Reported(task.ID, 1)
	}
	first := s.task("t0")
	eventually(t, "the oldest folder goes", func() bool {
		_, err := os.Stat(s.dir(first))
		return os.IsNotExist(err)
	})
	for range 2 {
		if err := w.Start(first); !errors.Is(err, ErrStarted) {
			t.Errorf("start of a pruned attempt: %v", err)
		}
		crash()
		w, crash = s.open()
	}
	retry := first
	retry.Attempt = 2
	s.start(w, retry)
	if r := s.final(w); r.Attempt != 2 || r.Outcome != Done {
		t.Errorf("retry %+v", r)
	}
}

func TestAnotherSendersTaskWithTheSameIDIsRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t, "write")
	w, err := New(s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	task := s.task("1")
	s.start(w, task)
	task.From = "somebody-else"
	var no *protocol.Refusal
	if err := w.Start(task); !errors.As(err, &no) || no.Code != protocol.CodeMsgIDReused {
		t.Errorf("got %v", err)
	}
}

func TestConfigIsRefusedNamingWhatToMend(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	run(t, empty, "git", "init", "-q")
	plain := filepath.Join(t.TempDir(), "plain")
	write(t, plain, "no program\n")
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"no command":     {func(c *Config) { c.Command = nil }, "name the runner"},
		"missing":        {func(c *Config) { c.Command = []string{"no-such-runner"} }, `"no-such-runner" cannot be run`},
		"not executable": {func(c *Config) { c.Command = []string{plain} }, "permission denied"},
		"no folder":      {func(c *Config) { c.Repo = plain + "x" }, "is not a folder"},
		"no repository":  {func(c *Config) { c.Repo = t.TempDir() }, "is not a git repository"},
		"no commit":      {func(c *Config) { c.Repo = empty }, "has no commit yet"},
	} {
		s := newStage(t, "nothing")
		c.change(&s.cfg)
		if _, err := New(s.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestRunnerThatWentMissingIsReported(t *testing.T) {
	t.Parallel()
	runner := filepath.Join(t.TempDir(), "runner")
	write(t, runner, "#!/bin/sh\n")
	if err := os.Chmod(runner, 0o700); err != nil {
		t.Fatal(err)
	}
	s := newStage(t, "")
	s.cfg.Command = []string{runner}
	w, _ := s.open()
	if err := os.Remove(runner); err != nil {
		t.Fatal(err)
	}
	s.start(w, s.task("t1"))
	if r := s.final(w); r.Outcome != Failed || !strings.Contains(r.Summary, "the runner cannot be run") || r.Exit != nil {
		t.Errorf("report %+v", r)
	}
}

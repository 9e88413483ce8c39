package worker

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/worker/repo"
)

func TestResultReachesAnotherCloneAsACommit(t *testing.T) {
	t.Parallel()
	origin := newRepo(t, "one\ntwo\nthree\n")
	clone := filepath.Join(t.TempDir(), "clone")
	run(t, ".", "git", "clone", "-q", origin, clone)
	write(t, filepath.Join(origin, "b.txt"), "only there\n")
	run(t, origin, "git", "add", ".")
	run(t, origin, "git", "commit", "-q", "-m", "second, which the worker lacks")

	root, head, name, err := repo.Describe(origin)
	if err != nil {
		t.Fatal(err)
	}
	bundle := filepath.Join(t.TempDir(), "base.bundle")
	if err := repo.BundleBase(origin, head, bundle); err != nil {
		t.Fatal(err)
	}
	for _, local := range []string{clone, ""} {
		s := newStage(t, "write")
		s.cfg.Repo = local
		w, _ := s.open()
		task := s.task("0192f3a0-0000-7000-8000-00000000000a")
		task.Repo = &RepoSpec{Root: root, Head: head, Name: name, Bundle: bundle}
		task.Accept = []string{"grep -q TWO a.txt", "test -f b.txt && echo garbage > junk.txt"}
		s.start(w, task)
		r := s.final(w)
		if r.Outcome != Done || r.Exit == nil || *r.Exit != 0 || r.Base != head {
			t.Fatalf("local %q: report %+v", local, r)
		}
		want := &api.Diff{Files: 1, Added: 2, Removed: 1, Paths: []string{"a.txt"}}
		if d := cmp.Diff(want, r.Diff); d != "" {
			t.Errorf("local %q: diff stat: %s", local, d)
		}
		if !strings.Contains(r.Tail, "asked: make it pass\nplease") || !strings.Contains(r.Tail, "all written") {
			t.Errorf("local %q: tail %q", local, r.Tail)
		}
		ref := "refs/heads/aster/" + protocol.ShortID(task.ID) + strconv.Itoa(len(local))
		if err := repo.Fetch(origin, r.Bundle, r.Commit, ref); err != nil {
			t.Fatalf("local %q: fetch: %v", local, err)
		}
		shown := run(t, origin, "git", "show", "--format=%an|%s", ref)
		if !strings.HasPrefix(shown, "worker-1|make it pass\n") || !strings.Contains(shown, "+TWO") || strings.Contains(shown, "junk") {
			t.Errorf("local %q: commit shows %s", local, shown)
		}
		eventually(t, "work tree removed", func() bool {
			_, err := os.Stat(filepath.Join(s.dir(task), "work"))
			return os.IsNotExist(err)
		})
		if local != "" {
			if got := run(t, clone, "git", "rev-parse", r.Branch); got != r.Commit {
				t.Errorf("branch %s is at %s, want %s", r.Branch, got, r.Commit)
			}
			eventually(t, "repository forgets the work tree", func() bool {
				return strings.Count(run(t, clone, "git", "worktree", "list"), "\n") == 0
			})
		}
		s.wantOneStart()
	}
}

func TestBaseIsHeadWhenTheTaskNamesNoRepository(t *testing.T) {
	t.Parallel()
	dir := newRepo(t, "one\n")
	s := newStage(t, "commit")
	s.cfg.Repo = dir
	w, _ := s.open()
	s.start(w, s.task("t1"))
	r := s.final(w)
	if r.Outcome != Done || r.Base != run(t, dir, "git", "rev-parse", "main") {
		t.Fatalf("report %+v", r)
	}
	if r.Diff == nil || r.Diff.Files != 2 {
		t.Errorf("diff %+v, want own.txt and rest.txt", r.Diff)
	}
	// The runner moved to a branch of its own; what it left uncommitted lands on the attempt's branch alone.
	if got := run(t, dir, "git", "rev-list", "--count", r.Base+".."+r.Branch); got != "2" {
		t.Errorf("%s commits on the branch, want its own and ours", got)
	}
	if got := run(t, dir, "git", "rev-list", "--count", r.Base+"..elsewhere"); got != "1" {
		t.Errorf("%s commits on the runner's branch, want only its own", got)
	}
}

func TestNoChangeMeansNoCommitAndNoBranch(t *testing.T) {
	t.Parallel()
	dir := newRepo(t, "one\n")
	s := newStage(t, "nothing")
	s.cfg.Repo = dir
	w, _ := s.open()
	s.start(w, s.task("t1"))
	r := s.final(w)
	if r.Outcome != Done || r.Commit != "" || r.Bundle != "" || r.Branch != "" || r.Diff != nil || !strings.Contains(r.Summary, "no change") {
		t.Errorf("report %+v", r)
	}
	if got := run(t, dir, "git", "branch", "--format=%(refname:short)"); got != "main" {
		t.Errorf("branches %q, want main alone", got)
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	minute := time.Minute
	for name, c := range map[string]struct {
		argv    []string
		accept  []string
		wall    time.Duration
		outcome string
		exit    int // -1: not looked at
		summary string
	}{
		"non-zero":     {[]string{"exit", "LEDGER", "xxx"}, nil, minute, Failed, 3, "exit code 3: cannot multiply"},
		"blocked line": {[]string{"blocked", "LEDGER"}, []string{"false"}, minute, Blocked, 0, "blocked: which tax table?"},
		"blocked 75":   {[]string{"exit", "LEDGER", strings.Repeat("x", 75)}, nil, minute, Blocked, 75, "cannot multiply"},
		"accept": {[]string{"nothing", "LEDGER"}, []string{"true", "echo got 7.7, want 7.70; exit 4", "true"}, minute, Failed, 0,
			"1 of 3 failed: echo got 7.7, want 7.70; exit 4: got 7.7, want 7.70"},
		"accept nothing": {[]string{"nothing", "LEDGER"}, []string{"", " \t"}, minute, Done, 0, ""},
		"wall":           {[]string{"hang", "LEDGER", "/nonexistent"}, nil, 300 * time.Millisecond, Failed, 128 + 15, "it ran longer than 300ms"},
		"wall, accept":   {[]string{"nothing", "LEDGER"}, []string{"sleep 50"}, 4 * time.Second, Failed, 0, "longer than 4s, in accept 1 of 1"},
		"prints 1 GiB":   {[]string{"yes", "LEDGER"}, nil, minute, Failed, -1, "it printed more than 1 MiB"},
		"tokens":         {[]string{"tokens", "LEDGER", "/nonexistent"}, nil, minute, Failed, -1, "tokens of 5000"},
		"runner's fail":  {[]string{"nothing"}, nil, minute, Failed, 2, "exit code 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "")
			for i, a := range c.argv {
				c.argv[i] = strings.Replace(a, "LEDGER", s.ledger, 1)
			}
			s.cfg.Command = append([]string{os.Args[0], "runner"}, c.argv...)
			s.cfg.OutputBytesMax, s.cfg.Tokens = 1<<20, 5000
			w, _ := s.open()
			task := s.task("t-" + name)
			task.Accept, task.Wall = c.accept, c.wall
			begun := time.Now()
			s.start(w, task)
			r := s.final(w)
			if r.Outcome != c.outcome || !strings.Contains(r.Summary, c.summary) {
				t.Errorf("outcome %s, summary %q; want %s, %q", r.Outcome, r.Summary, c.outcome, c.summary)
			}
			if len(strings.Join(c.accept, "")) < 3 && (len(r.Accepts) > 0 || strings.Contains(r.Summary, "passed")) {
				t.Errorf("nothing was checked: %+v, summary %q", r.Accepts, r.Summary)
			}
			if c.exit >= 0 && (r.Exit == nil || *r.Exit != c.exit) {
				t.Errorf("exit %v, want %d", r.Exit, c.exit)
			}
			if took := time.Since(begun); took > 15*time.Second {
				t.Errorf("it took %s", took)
			}
			if info, err := os.Stat(filepath.Join(s.dir(task), "output")); err == nil && info.Size() > 1<<20 {
				t.Errorf("%d bytes of output on disk", info.Size())
			}
		})
	}
}

func TestStubbornRunIsKilledAfterItsGrace(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.cfg.Command = []string{"sh", "-c", `trap "" TERM; echo stubborn; while :; do sleep 1; done`}
	w, _ := s.open()
	task := s.task("t1")
	s.start(w, task)
	s.running(w, "stubborn")
	if err := w.Cancel(task.ID); err != nil {
		t.Fatal(err)
	}
	if r := s.final(w); r.Outcome != Cancelled || r.Exit == nil || *r.Exit != 128+int(syscall.SIGKILL) {
		t.Errorf("report %+v", r)
	}
}

func TestCancelEndsARunAndKeepsItsWork(t *testing.T) {
	t.Parallel()
	s := newStage(t, "hang")
	s.cfg.Repo = newRepo(t, "one\n")
	w, _ := s.open()
	task := s.task("t1")
	if err := w.Cancel(task.ID); !errors.Is(err, ErrNotRunning) {
		t.Errorf("cancel of nothing: %v", err)
	}
	s.start(w, task)
	s.running(w, "thinking")
	write(t, filepath.Join(s.dir(task), "work", "half.txt"), "half\n")
	if err := w.Cancel(task.ID); err != nil {
		t.Fatal(err)
	}
	r := s.final(w)
	if r.Outcome != Cancelled || r.Commit == "" || !strings.Contains(r.Tail, "thinking") {
		t.Errorf("report %+v", r)
	}
	if got := run(t, s.cfg.Repo, "git", "log", "-1", "--format=%s", r.Branch); got != "unfinished: make it pass" {
		t.Errorf("commit %q", got)
	}
}

func TestSlotsBoundWhatRunsAtOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t, "hang")
	w, _ := s.open()
	first, second, third := s.task("t1"), s.task("t2"), s.task("t3")
	s.start(w, first)
	s.start(w, second)
	s.start(w, third)
	s.running(w, "thinking")
	if got := s.starts(); got != 1 {
		t.Fatalf("%d runs with one slot", got)
	}
	// What waits can be cancelled without waiting for the slot.
	if err := w.Cancel(third.ID); err != nil {
		t.Fatal(err)
	}
	if r := s.final(w); r.Task != third.ID || r.Outcome != Cancelled || r.Exit != nil {
		t.Errorf("report %+v", r)
	}
	write(t, s.flag, "")
	got := []protocol.TaskID{s.final(w).Task, s.final(w).Task}
	if d := cmp.Diff([]protocol.TaskID{first.ID, second.ID}, got); d != "" {
		t.Error(d)
	}
	if got := s.starts(); got != 2 {
		t.Errorf("%d starts, want 2", got)
	}
}

func TestRunWithoutRepositoriesWorksInAnEmptyFolder(t *testing.T) {
	around := newRepo(t, "the home lies in a repository\n")
	t.Setenv("ASTER_JOIN", "aster1-secret")
	t.Setenv("GIT_DIR", "/elsewhere")
	s := newStage(t, "env")
	s.cfg.Dir = filepath.Join(around, "home", "runs")
	w, _ := s.open()
	task := s.task("odd id/../*")
	task.Env = map[string]string{"ASTER_HOME": "/h"}
	s.start(w, task)
	r := s.final(w)
	out, err := os.ReadFile(r.Output)
	if err != nil || r.Outcome != Done {
		t.Fatalf("%v, report %+v", err, r)
	}
	env := "\n" + string(out)
	dir := s.dir(task)
	for _, want := range []string{"ASTER_TASK_ID=odd id/../*", "ASTER_TASK_SHORT=" + protocol.ShortID(task.ID), "ASTER_TASK_ATTEMPT=1",
		"ASTER_TASK_FROM=main-agent", "ASTER_TASK_TEXT_FILE=" + filepath.Join(dir, "task.txt"), "ASTER_TASK_DIR=" + filepath.Join(dir, "work"),
		"ASTER_TASK_BASE=", "ASTER_TASK_BRANCH=", "ASTER_HOME=/h", "cwd=" + filepath.Join(dir, "work"), "git=true"} {
		if !strings.Contains(env, "\n"+want+"\n") {
			t.Errorf("the run does not see %q", want)
		}
	}
	if strings.Contains(env, "secret") || strings.Contains(env, "\nGIT_DIR") {
		t.Error("the run sees the node's own settings")
	}
	t.Setenv("GIT_DIR", filepath.Join(around, ".git"))
	if got := run(t, around, "git", "status", "--porcelain", "--branch", "-uno"); got != "## main" {
		t.Errorf("the repository around the home is touched: %s", got)
	}
}

func TestRepositoryOfAnotherRootIsRefusedNamingBoth(t *testing.T) {
	t.Parallel()
	here, there := newRepo(t, "here\n"), newRepo(t, "there\n")
	root, head, _, err := repo.Describe(there)
	if err != nil {
		t.Fatal(err)
	}
	own, _, _, err := repo.Describe(here)
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t, "write")
	s.cfg.Repo = here
	w, _ := s.open()
	task := s.task("t1")
	task.Repo = &RepoSpec{Root: root, Head: head}
	s.start(w, task)
	r := s.final(w)
	if r.Outcome != Failed || r.Refusal == nil || r.Refusal.Code != protocol.CodeRepoMismatch {
		t.Fatalf("report %+v", r)
	}
	if !strings.Contains(r.Summary, root[:12]) || !strings.Contains(r.Summary, own[:12]) {
		t.Errorf("%q does not name both %s and %s", r.Summary, root, own)
	}
	if s.starts() != 0 {
		t.Error("it was run all the same")
	}
}

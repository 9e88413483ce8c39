package worker

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

const patience = 60 * time.Second

// stage is one machine: a folder of runs, a ledger of starts, perhaps a repository.
type stage struct {
	t      *testing.T
	cfg    Config
	ledger string
	flag   string // file that lets a waiting runner go on

	contents sync.Map // of files, by hash: see offer
}

func newStage(t *testing.T, verb string, more ...string) *stage {
	t.Helper()
	dir := t.TempDir()
	s := &stage{t: t, ledger: filepath.Join(dir, "ledger"), flag: filepath.Join(dir, "flag")}
	s.cfg = Config{
		Command: append([]string{os.Args[0], "runner", verb, s.ledger}, more...),
		Keeper:  []string{os.Args[0], "keeper"},
		Dir:     filepath.Join(dir, "runs"),
		Wall:    time.Minute,
		Log:     slog.New(slog.NewTextHandler(testLog{t}, nil)),
	}
	if len(more) == 0 {
		s.cfg.Command = append(s.cfg.Command, s.flag)
	}
	return s
}

type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// open starts a worker; crash ends it as the end of its process would: nothing is told to the runs.
func (s *stage) open() (w *Worker, crash func()) {
	s.t.Helper()
	w, err := New(s.cfg)
	if err != nil {
		s.t.Fatalf("New: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	stopped := false
	crash = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			s.t.Errorf("Run: %v", err)
		}
	}
	s.t.Cleanup(crash)
	return w, crash
}

func (s *stage) task(id string) Task {
	return Task{ID: protocol.TaskID(id), Attempt: 1, From: "main-agent", To: "worker-1", Text: "make it pass\nplease"}
}

func (s *stage) start(w *Worker, task Task) {
	s.t.Helper()
	if err := w.Start(task); err != nil {
		s.t.Fatalf("Start: %v", err)
	}
}

// next returns the next report that fits.
func (s *stage) next(w *Worker, what string, fits func(Report) bool) Report {
	s.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case r := <-w.Reports():
			if fits(r) {
				return r
			}
			if r.Final {
				s.t.Fatalf("final report instead of %s: %+v", what, r)
			}
		case <-deadline:
			s.t.Fatalf("no %s within %s", what, patience)
		}
	}
}

func (s *stage) final(w *Worker) Report {
	s.t.Helper()
	return s.next(w, "final report", func(r Report) bool { return r.Final })
}

func (s *stage) running(w *Worker, said string) Report {
	s.t.Helper()
	return s.next(w, "progress with "+said, func(r Report) bool { return !r.Final && strings.Contains(r.Tail, said) })
}

// starts counts what the runners themselves wrote.
func (s *stage) starts() int {
	b, _ := os.ReadFile(s.ledger)
	return strings.Count(string(b), "\n")
}

func (s *stage) wantOneStart() {
	s.t.Helper()
	if got := s.starts(); got != 1 {
		s.t.Errorf("the command was started %d times, want 1", got)
	}
}

func (s *stage) dir(task Task) string {
	return filepath.Join(s.cfg.Dir, folderName(task.ID, task.Attempt))
}

// eventually waits for a condition that another process brings about.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("in vain: %s", what)
		}
	}
}

func run(t *testing.T, dir string, argv ...string) string {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@t.invalid", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@t.invalid")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, out)
	}
	return strings.TrimSpace(string(out))
}

// newRepo makes a repository with a commit of its own.
func newRepo(t *testing.T, content string) string {
	t.Helper()
	dir := t.TempDir()
	run(t, dir, "git", "init", "-q", "-b", "main")
	write(t, filepath.Join(dir, "a.txt"), content)
	write(t, filepath.Join(dir, ".gitignore"), "ignored/\n")
	run(t, dir, "git", "add", ".")
	run(t, dir, "git", "commit", "-q", "-m", "start")
	return dir
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

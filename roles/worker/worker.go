package worker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/worker/keeper"
)

var (
	// ErrStarted says that this attempt was started before, in this process or an earlier one.
	ErrStarted = errors.New("this attempt was started before")
	// ErrNotRunning says that no attempt of this task is queued or running here.
	ErrNotRunning = errors.New("no attempt of this task runs here")
)

// Outcomes of a final report.
const (
	Done        = keeper.Done
	Failed      = keeper.Failed
	Blocked     = keeper.Blocked
	Interrupted = keeper.Interrupted
	Cancelled   = keeper.Cancelled
)

// Task is one attempt at a Delegate.
type Task struct {
	ID       protocol.TaskID
	Attempt  int // from 1
	From, To protocol.AgentID
	Text     string
	Accept   []string  // commands that decide whether done is done
	Repo     *RepoSpec // nil: the delegator named none
	Wall     time.Duration
	Env      map[string]string // added to the runner's environment; kept in a file, so no secrets
	Files    []File            // what was attached to it
}

// File is one that goes with a task. The command finds it in ASTER_TASK_FILES, under a name made of this one. What has another
// hash is refused.
type File = keeper.Attached

// RepoSpec names the repository and commit that a task starts from.
type RepoSpec struct {
	Root   string // root commit ids, as repo.Describe gives them
	Head   string // the base commit
	Name   string // for people
	Bundle string // path of the base bundle here, kept until the final report; empty: none travelled
}

// Report says how far an attempt is, or how it ended.
type Report struct {
	Task    protocol.TaskID
	Attempt int
	From    protocol.AgentID
	To      protocol.AgentID
	Final   bool
	Outcome string // of a final report
	Summary string // one line for people
	Stage   string // of a progress report: "preparing", "running", "committing", "accept 1 of 3: …"
	Tail    string // last lines of the output, at most protocol.ShortTextBytesMax bytes, without control characters
	Exit    *int   // of the command; 128+n if signal n ended it; nil if it never ended by itself or by us

	Started  time.Time // wall clock; zero if the command never began
	Duration time.Duration
	Diff     *api.Diff // nil: nothing changed, or no repository
	Commit   string    // empty: nothing changed, or no repository
	Branch   string
	Base     string
	Bundle   string // path of the bundle base..branch; empty: none. Valid until Reported
	Output   string // path of the output's tail (protocol.OutputTailBytesMax); empty: none. Valid until Reported

	OutputBytes int64
	Tokens      int64
	Accepts     []keeper.Accept
	// Refusal is set where the task could not be served here at all, e.g. CodeRepoMismatch. The outcome is failed.
	Refusal *protocol.Refusal
}

// reportsWaiting bounds what waits for a slow reader: progress beyond it is dropped, a final report waits.
const reportsWaiting = 64

// Worker runs tasks. Use New.
type Worker struct {
	// Fixed at creation.
	cfg     Config
	reports chan Report   // never closed
	wake    chan struct{} // capacity 1: the queue or the slots changed
	git     chan struct{} // capacity 1: one work tree is added or removed at a time
	tidying chan struct{} // capacity 1: one tidy at a time
	untidy  atomic.Bool   // something was reported since the last tidy

	starting sync.Mutex // held by Start; before mu

	mu       sync.Mutex
	attempts map[string]*attempt // by folder name; from Start until Reported
	queue    []*attempt          // accepted, nobody attends yet; oldest first
	busy     int                 // slots in use
	gone     goneList            // attempts whose folder is gone
	running  bool
}

// New checks the configuration and looks at what an earlier process left in cfg.Dir; it starts nothing. Its error names
// what is wrong with the configuration and how to mend it: a command that is missing or not executable, a repo that is no
// git repository or has no commit.
func New(cfg Config) (*Worker, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	w := &Worker{
		cfg:      cfg,
		reports:  make(chan Report, reportsWaiting),
		wake:     make(chan struct{}, 1),
		git:      make(chan struct{}, 1),
		tidying:  make(chan struct{}, 1),
		attempts: map[string]*attempt{},
	}
	if err := w.load(); err != nil {
		return nil, err
	}
	return w, nil
}

// Reports is where progress and final reports come out while Run runs. Progress comes at most once a second and task and
// is dropped when nobody reads. A final report comes once a process, and again after a restart, until Reported.
func (w *Worker) Reports() <-chan Report { return w.reports }

// Run attends to the attempts until ctx ends, then returns nil. It first takes over what an earlier process left: runs
// that go on, results that were not reported, tasks that were accepted and never began. Where keeper and result are both
// gone it ends what the run left behind and reports interrupted. Runs go on when Run has ended.
func (w *Worker) Run(ctx context.Context) error {
	w.mu.Lock()
	again := w.running
	w.running = true
	w.mu.Unlock()
	if again {
		return errors.New("worker: Run was called twice")
	}
	var all sync.WaitGroup
	defer all.Wait()
	for {
		if w.untidy.Swap(false) {
			all.Go(func() { w.tidy(ctx) })
		}
		for _, a := range w.next(ctx) {
			all.Go(func() {
				w.attend(ctx, a)
				a.stop(nil)
				w.release(a)
			})
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
		}
	}
}

// next takes from the queue what may be attended to now: as many as slots are free, and whatever needs none because it
// runs already or is cancelled.
func (w *Worker) next(ctx context.Context) []*attempt {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*attempt
	w.queue = slices.DeleteFunc(w.queue, func(a *attempt) bool {
		if w.busy >= w.cfg.Slots && !a.begun && !a.cancelled {
			return false
		}
		w.busy++
		a.ctx, a.stop = context.WithCancelCause(ctx)
		out = append(out, a)
		return true
	})
	return out
}

func (w *Worker) release(a *attempt) {
	w.mu.Lock()
	w.busy--
	a.stop = nil
	w.mu.Unlock()
	w.poke()
}

func (w *Worker) poke() {
	select {
	case w.wake <- struct{}{}:
	default: // Run has not yet seen the last one
	}
}

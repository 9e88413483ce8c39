package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/aster-mesh/aster/roles/worker/keeper"
	"github.com/aster-mesh/aster/roles/worker/repo"
)

const (
	// lookEvery is how often a running attempt is looked at: a stat and a lock that fails, some 20 µs.
	lookEvery = 100 * time.Millisecond
	// tellEvery is the shortest distance between two progress reports of a task.
	tellEvery = time.Second
	// spawnTries is how often a keeper is tried that dies before it has begun.
	spawnTries = 3
)

// attend takes an attempt from where it stands to its final report. It returns early, with everything as it is on disk,
// when ctx ends, which is the worker's own; a.ctx ends also when the attempt is cancelled.
func (w *Worker) attend(ctx context.Context, a *attempt) {
	for tries := 0; ctx.Err() == nil && !keeper.Has(a.dir, keeper.FileLaunch); {
		if keeper.Has(a.dir, keeper.FileCancel) {
			w.void(ctx, a, keeper.Result{Outcome: Cancelled, Summary: "cancelled before it began"})
			continue
		}
		if !keeper.Has(a.dir, keeper.FileTree) {
			if time.Since(a.told) >= tellEvery {
				w.progress(a, keeper.Progress{Stage: "preparing"})
			}
			err := w.bringFiles(a)
			if err == nil {
				err = w.prepare(a)
			}
			if err != nil {
				if ctx.Err() == nil {
					w.void(ctx, a, notPrepared(a, err))
				}
				continue
			}
		}
		child, err := w.spawn(a)
		if err == nil {
			w.watch(ctx, a, child)
			continue
		}
		w.cfg.Log.Warn("keeper did not begin", "task", a.order.Task, "err", err)
		if tries++; tries == spawnTries {
			tries = 0
			w.void(ctx, a, keeper.Result{Outcome: Failed, Summary: "the run could not be begun: " + err.Error()})
		}
	}
	w.watch(ctx, a, nil)
	if ctx.Err() == nil {
		w.conclude(ctx, a)
	}
}

func (w *Worker) prepare(a *attempt) error {
	ctx := a.ctx
	plan := repo.Plan{
		Task: a.order.Task, Attempt: a.order.Attempt,
		Work: filepath.Join(a.dir, keeper.DirWork), Local: w.cfg.Repo,
	}
	if r := a.order.Repo; r != nil {
		plan.Named, plan.Root, plan.Head, plan.Bundle = true, r.Root, r.Head, r.Bundle
	}
	select {
	case w.git <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-w.git }()
	tree, err := repo.Prepare(ctx, plan)
	if err != nil {
		return err
	}
	return keeper.WriteJSON(a.dir, keeper.FileTree, tree, true)
}

func notPrepared(a *attempt, err error) keeper.Result {
	if errors.Is(err, errCancelled) || keeper.Has(a.dir, keeper.FileCancel) {
		return keeper.Result{Outcome: Cancelled, Summary: "cancelled before it began"}
	}
	r := keeper.Result{Outcome: Failed, Summary: "no work tree: " + err.Error()}
	var files *filesError
	if errors.As(err, &files) {
		r.Summary = "its files are not here: " + err.Error()
	}
	if errors.As(err, &r.Refusal) {
		r.Summary = r.Refusal.Error()
	}
	return r
}

// void ends an attempt that never began: from now on no keeper may run it. If one was quicker, it runs.
func (w *Worker) void(ctx context.Context, a *attempt, r keeper.Result) {
	r.Ended = time.Now()
	if _, err := keeper.Claim(a.dir, keeper.Launch{Void: &r}); err != nil {
		w.cfg.Log.Error("attempt cannot be ended on disk", "task", a.order.Task, "err", err)
		pause(ctx) // the caller comes back, perhaps to a disk with room
	}
}

// pause waits a second or until ctx ends.
func pause(ctx context.Context) {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
}

// spawn starts the keeper and returns when it is settled who runs the attempt. The keeper is in a session of its own
// and goes on when this process ends.
func (w *Worker) spawn(a *attempt) (*exec.Cmd, error) {
	argv := append(append([]string{}, w.cfg.Keeper...), a.dir)
	said, its, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer said.Close()
	log, err := os.OpenFile(filepath.Join(a.dir, keeper.FileLog), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		its.Close()
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = a.dir, its, log
	keeper.Detach(cmd)
	err = cmd.Start()
	its.Close()
	if err != nil {
		return nil, fmt.Errorf("start keeper: %w", err)
	}
	// It answers within lockPatience or dies, and death closes the pipe.
	answer := make([]byte, len(keeper.SaidLaunched))
	n, _ := said.Read(answer)
	switch strings.TrimSpace(string(answer[:n])) {
	case keeper.SaidLaunched:
		return cmd, nil
	case keeper.SaidTaken:
		_ = cmd.Wait()
		return nil, nil
	}
	err = cmd.Wait()
	words, _ := os.ReadFile(filepath.Join(a.dir, keeper.FileLog))
	return nil, fmt.Errorf("keeper ended before it began (%w): %s", errors.Join(err, errNoAnswer), lastOf(words))
}

var errNoAnswer = errors.New("no answer")

func lastOf(words []byte) string {
	words = words[max(0, len(words)-500):]
	text := strings.TrimSpace(strings.ToValidUTF8(string(words), ""))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// watch passes progress on until no keeper lives over the attempt or the worker ends. child, if this process started the
// keeper, is reaped.
func (w *Worker) watch(ctx context.Context, a *attempt, child *exec.Cmd) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var seen time.Time
	for {
		held, err := keeper.Held(a.dir)
		if err != nil {
			w.cfg.Log.Warn("lock cannot be read", "task", a.order.Task, "err", err)
			held = true // not known to be gone: a run is never called interrupted on a guess
		}
		if !held {
			if child != nil {
				_ = child.Wait() // it wrote its result or it did not; the folder tells
			}
			return
		}
		info, err := os.Stat(filepath.Join(a.dir, keeper.FileProgress))
		if err == nil && !info.ModTime().Equal(seen) && time.Since(a.told) >= tellEvery {
			var p keeper.Progress
			if keeper.ReadJSON(a.dir, keeper.FileProgress, &p) == nil {
				seen = info.ModTime()
				w.progress(a, p)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// progress is dropped when nobody reads.
func (w *Worker) progress(a *attempt, p keeper.Progress) {
	a.told = time.Now()
	r := a.report()
	r.Stage, r.Summary, r.Tail, r.OutputBytes, r.Tokens = p.Stage, p.Stage, p.Tail, p.OutputBytes, p.Tokens
	select {
	case w.reports <- r:
	default:
	}
}

func (a *attempt) report() Report {
	o := &a.order
	return Report{Task: o.Task, Attempt: o.Attempt, From: o.From, To: o.To}
}

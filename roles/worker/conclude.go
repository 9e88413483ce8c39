package worker

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/worker/keeper"
	"github.com/aster-mesh/aster/roles/worker/repo"
)

// conclude makes the final report of an attempt over which no keeper lives any more, hands it out, and takes the work
// tree away.
func (w *Worker) conclude(ctx context.Context, a *attempt) {
	result, ok := w.settle(ctx, a)
	if !ok {
		return
	}
	w.mu.Lock()
	a.ended = true
	w.mu.Unlock()
	select {
	case w.reports <- a.final(result):
	case <-ctx.Done():
		return
	}
	w.removeTree(ctx, a.dir)
}

// settle returns the attempt's result. Where the keeper left none it writes one, so that every later process reports the
// same. It says no only when the worker ends first.
func (w *Worker) settle(ctx context.Context, a *attempt) (keeper.Result, bool) {
	var r keeper.Result
	if keeper.ReadJSON(a.dir, keeper.FileResult, &r) == nil {
		return r, true
	}
	var l keeper.Launch
	_ = keeper.ReadJSON(a.dir, keeper.FileLaunch, &l) // torn by a crash: somebody began, nobody knows how far
	if l.Void != nil {
		r = *l.Void
	} else {
		r = w.interrupted(a)
	}
	for {
		err := keeper.WriteJSON(a.dir, keeper.FileResult, r, true)
		if err == nil {
			return r, true
		}
		w.cfg.Log.Error("result cannot be written", "task", a.order.Task, "err", err)
		pause(ctx)
		if ctx.Err() != nil {
			return r, false
		}
	}
}

// interrupted is the result of a run whose keeper is gone without one. What still runs is ended first: a retry must not
// meet it. What it left is committed like any other work.
func (w *Worker) interrupted(a *attempt) keeper.Result {
	keeper.Sweep(a.dir)
	r := keeper.Result{Outcome: Interrupted, Summary: "interrupted: its keeper ended without a result"}
	if info, err := os.Stat(filepath.Join(a.dir, keeper.FileLaunch)); err == nil {
		r.Started = info.ModTime()
	}
	if info, err := os.Stat(filepath.Join(a.dir, keeper.FileOutput)); err == nil {
		r.OutputBytes = info.Size()
		r.Ended = info.ModTime() // the last sign of life
		r.Duration = max(r.Ended.Sub(r.Started), 0)
	}
	var p keeper.Progress
	if keeper.ReadJSON(a.dir, keeper.FileProgress, &p) == nil {
		r.Tokens = p.Tokens
	}
	var err error
	if r.Tail, err = keeper.SaveTail(a.dir); err != nil {
		w.cfg.Log.Warn("tail of output cannot be kept", "task", a.order.Task, "err", err)
	}
	var tree repo.Tree
	if keeper.ReadJSON(a.dir, keeper.FileTree, &tree) == nil {
		keeper.Save(a.dir, a.order, tree, &r)
	}
	return r
}

func (a *attempt) final(r keeper.Result) Report {
	out := a.report()
	out.Final = true
	out.Outcome, out.Summary, out.Tail, out.Exit = r.Outcome, r.Summary, r.Tail, r.Exit
	out.Started, out.Duration = r.Started, r.Duration
	out.Diff, out.Commit, out.Branch, out.Base = r.Diff, r.Commit, r.Branch, r.Base
	out.OutputBytes, out.Tokens, out.Accepts, out.Refusal = r.OutputBytes, r.Tokens, r.Accepts, r.Refusal
	if r.Bundled {
		out.Bundle = filepath.Join(a.dir, keeper.FileBundle)
	}
	if keeper.Has(a.dir, keeper.FileTail) {
		out.Output = filepath.Join(a.dir, keeper.FileTail)
	}
	return out
}

// removeTree takes the work tree of an ended attempt away. What is nowhere else stays until the folder goes: files of a
// run without a repository, and a clone whose result could not travel.
func (w *Worker) removeTree(ctx context.Context, dir string) {
	work := filepath.Join(dir, keeper.DirWork)
	if _, err := os.Lstat(work); err != nil {
		return
	}
	tree := repo.Tree{Work: work, Local: w.cfg.Repo}
	if err := keeper.ReadJSON(dir, keeper.FileTree, &tree); err == nil && tree.Local == "" {
		var r keeper.Result
		if tree.Base == "" || keeper.ReadJSON(dir, keeper.FileResult, &r) != nil || (r.Commit != "" && !r.Bundled) {
			return
		}
	}
	select {
	case w.git <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-w.git }()
	if err := repo.Remove(ctx, tree); err != nil && ctx.Err() == nil {
		w.cfg.Log.Warn("work tree cannot be removed", "path", work, "err", err)
	}
}

// Reported says that the final report of an attempt is durable at the node, which then never hears of it again. The
// report's files may go from now on: the folders of the last foldersKept attempts stay for people to look at.
func (w *Worker) Reported(task protocol.TaskID, attemptNo int) {
	name := folderName(task, attemptNo)
	w.mu.Lock()
	a, ok := w.attempts[name]
	ok = ok && a.ended
	if ok {
		delete(w.attempts, name)
	}
	w.mu.Unlock()
	if !ok {
		return
	}
	if err := keeper.WriteFile(a.dir, keeper.FileReported, []byte(time.Now().UTC().Format(time.RFC3339)+"\n"), true); err != nil {
		// It is reported once more after a restart, which the node recognises.
		w.cfg.Log.Warn("report cannot be marked", "task", task, "err", err)
	}
	w.untidy.Store(true)
	w.poke()
}

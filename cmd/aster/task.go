package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/worker/repo"
	"github.com/spf13/cobra"
)

func taskCommand(a *app) *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "Delegates with what became of them", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listTasks(cmd.Context()) },
	}
	show := &cobra.Command{
		Use: "show ID", Short: "One Delegate with its reports and result", Args: whichTask,
		RunE: func(cmd *cobra.Command, args []string) error { return a.showTask(cmd.Context(), args[0]) },
	}
	fetch := &cobra.Command{
		Use: "fetch ID", Short: "Bring a result's commit into the clone in this folder, on a branch of its own", Args: whichTask,
		RunE: func(cmd *cobra.Command, args []string) error { return a.fetchTask(cmd.Context(), args[0]) },
	}
	cancel := &cobra.Command{
		Use: "cancel ID", Short: "Stop a Delegate that is not done", Args: whichTask,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.node()
			if err != nil {
				return err
			}
			defer c.Close()
			t, err := c.CancelTask(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.emit(t)
			}
			if t.State.Final() {
				a.say("%s is %s", taskID(t), t.State)
			} else {
				a.say("%s is asked to stop; it says so itself: %s %s", taskID(t), a.typed("task show"), taskID(t))
			}
			return nil
		},
	}
	return group("task", "Delegates and their results", list, show, fetch, cancel)
}

// whichTask wants one id.
func whichTask(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return usage("which task? %s ID. All of them: aster task list", cmd.CommandPath())
	case 1:
		return nil
	}
	return usage("one task at a time: %s %s", cmd.CommandPath(), args[0])
}

func taskID(t api.Task) string { return idOf(protocol.Delegate, t.Short) }

func (a *app) listTasks(ctx context.Context) error {
	c, err := a.node()
	if err != nil {
		return err
	}
	defer c.Close()
	tasks, err := c.Tasks(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return emitAll(a, tasks)
	}
	if len(tasks) == 0 {
		a.talk("no tasks yet: aster delegate --to AGENT TEXT")
		return nil
	}
	rows := [][]string{{"TASK", "STATE", "WORKER", "SINCE", "RESULT", "TITLE"}}
	for _, t := range tasks {
		result := "-"
		if t.Diff != nil {
			result = fmt.Sprintf("+%d -%d", t.Diff.Added, t.Diff.Removed)
		}
		rows = append(rows, []string{taskID(t), string(t.State), clean(string(t.To)), clock(max(t.At, t.Started, t.Ended)), result, shorten(clean(t.Title), 60)})
	}
	table(a.stdout, rows...)
	return nil
}

func (a *app) showTask(ctx context.Context, id string) error {
	c, err := a.node()
	if err != nil {
		return err
	}
	defer c.Close()
	t, err := c.Task(ctx, id)
	if err != nil {
		return err
	}
	if a.json {
		return a.emit(t)
	}
	from := "a person"
	if t.From != "" {
		from = clean(string(t.From))
	}
	state := string(t.State)
	if t.State.Final() {
		state = endText(state, clean(t.Summary), t)
	}
	rows := [][]string{
		{taskID(t), shorten(clean(t.Title), 100)},
		{"state", state},
		{"from", from},
		{"worker", clean(string(t.To)) + " on " + dash(clean(t.NodeName))},
		{"asked", clock(t.At)},
	}
	if t.Started > 0 {
		rows = append(rows, []string{"started", fmt.Sprintf("%s, attempt %d", clock(t.Started), max(t.Attempt, 1))})
	}
	if t.Ended > 0 {
		rows = append(rows, []string{"ended", clock(t.Ended)})
	}
	if t.Base != "" {
		rows = append(rows, []string{"base", repo.Short(clean(t.Base))})
	}
	for _, tier := range t.Tiers {
		rows = append(rows, []string{string(tier.Tier), reached(tier)})
	}
	for _, r := range t.Reports {
		rows = append(rows, []string{"report", clock(r.At) + "  " + reportLine(r)})
	}
	table(a.stdout, rows...)
	if t.Tail != "" && !t.State.Final() {
		a.say("\n%s", cleanBlock(t.Tail))
	}
	if t.Commit != "" {
		a.talk("in the repository: aster task fetch %s", taskID(t))
	}
	return nil
}

// fetched is what task fetch --json prints.
type fetched struct {
	ID     protocol.TaskID `json:"id"`
	Short  string          `json:"short"`
	Branch string          `json:"branch"`
	Commit string          `json:"commit"`
	State  api.TaskState   `json:"state"` // unless it is done, it was not found good
}

func (a *app) fetchTask(ctx context.Context, id string) error {
	c, err := a.node()
	if err != nil {
		return err
	}
	defer c.Close()
	t, err := c.Task(ctx, id)
	if err != nil {
		return err
	}
	switch {
	case !t.State.Final():
		return failed("%s is %s: there is no result yet. Follow it: aster task show %s", taskID(t), t.State, taskID(t))
	case t.Result == nil || t.Commit == "":
		return failed("%s ended as %s without a commit: nothing was changed", taskID(t), t.State)
	}
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("look at this folder: %w", err)
	}
	if _, _, _, err := repo.Describe(dir); errors.Is(err, repo.ErrNoRepository) {
		return refused("%s is %s, and a result goes into a clone of the repository that the task is about. Go there first: cd CLONE && %s", tilde(dir), repo.ErrNoRepository, a.typed("task fetch "+taskID(t)))
	} else if err != nil {
		return refusedHere(err)
	}
	tmp, err := os.MkdirTemp("", "aster-result-")
	if err != nil {
		return fmt.Errorf("fetch result: %w", err)
	}
	defer os.RemoveAll(tmp)
	path := filepath.Join(tmp, "result.bundle")
	content, err := c.Blob(ctx, t.Result.SHA256)
	if err != nil {
		return err
	}
	if err := save(path, content); err != nil {
		return err
	}
	branch := "aster/" + protocol.ShortID(t.ID)
	if err := repo.Fetch(dir, path, t.Commit, "refs/heads/"+branch); err != nil {
		return refusedHere(err)
	}
	if a.json {
		return a.emit(fetched{t.ID, taskID(t), branch, t.Commit, t.State})
	}
	a.say("%s is on branch %s, commit %s", taskID(t), branch, repo.Short(t.Commit))
	if t.State != api.TaskDone {
		a.talk("it ended as %s, not as done: %s", t.State, cmp.Or(shorten(clean(t.Summary), 200), "nothing says why"))
		a.talk("look:  git show %s\nbefore you take any of it, see what did not pass: %s %s", branch, a.typed("task show"), taskID(t))
		return nil
	}
	a.talk("look:  git show %s\ntake:  git merge %s", branch, branch)
	return nil
}

func save(path string, content io.ReadCloser) error {
	defer content.Close()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keep result: %w", err)
	}
	_, err = io.Copy(f, io.LimitReader(content, protocol.BlobBytesMax+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("keep result: %w", err)
	}
	return nil
}

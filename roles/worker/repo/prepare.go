package repo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/aster-mesh/aster/protocol"
)

// Plan says from where one attempt gets its work tree.
type Plan struct {
	Task    protocol.TaskID
	Attempt int
	Work    string // folder to make; its parent exists
	Local   string // a repository here ([worker] repo), or empty

	// Of the task, when it names a repository.
	Named  bool
	Root   string // as Describe gives it
	Head   string // the base commit
	Bundle string // path of the base bundle, or empty
}

// Tree is a work tree that was made for one attempt. It is plain data and survives in a file.
type Tree struct {
	Work   string `json:"work"`
	Base   string `json:"base,omitempty"`   // empty: no repository, an empty folder
	Branch string `json:"branch,omitempty"` // aster/<short>-<attempt>
	Local  string `json:"local,omitempty"`  // the repository it belongs to; empty: its own
	Keep   string `json:"keep,omitempty"`   // private ref that held the base
}

// Prepare makes the work tree of p on a new branch at the base commit, as DESIGN 7 tells which. It clears what an
// earlier Prepare of the same plan left half done. It returns a *protocol.Refusal where the task's repository cannot be
// served here: another root (CodeRepoMismatch), or a base that neither is here nor travelled.
func Prepare(ctx context.Context, p Plan) (Tree, error) {
	ctx, release, err := hold(ctx, p.Work+".lock")
	if err != nil {
		return Tree{}, err
	}
	defer release()
	if err := clearHalf(ctx, p); err != nil {
		return Tree{}, err
	}
	switch {
	case p.Local != "":
		return prepareLocal(ctx, p)
	case p.Named:
		return prepareOwn(ctx, p)
	}
	if err := os.Mkdir(p.Work, 0o700); err != nil {
		return Tree{}, fmt.Errorf("make work folder: %w", err)
	}
	return Tree{Work: p.Work}, nil
}

func clearHalf(ctx context.Context, p Plan) error {
	if _, err := os.Lstat(p.Work); os.IsNotExist(err) {
		return nil
	}
	return Remove(ctx, Tree{Work: p.Work, Local: p.Local})
}

func prepareLocal(ctx context.Context, p Plan) (Tree, error) {
	t := Tree{Work: p.Work, Local: p.Local}
	var err error
	if p.Named {
		if err := sameRoot(ctx, p.Local, p.Root); err != nil {
			return Tree{}, err
		}
		t.Base = p.Head
		t.Keep = "refs/aster/" + refPart(p.Task) + "/base"
		if err := bringBase(ctx, p, t.Keep); err != nil {
			return Tree{}, err
		}
	} else if t.Base, err = Head(ctx, p.Local); err != nil {
		return Tree{}, err
	}
	t.Branch, err = freeBranch(ctx, p, t.Base)
	if err != nil {
		return Tree{}, err
	}
	if _, err := git(ctx, p.Local, "worktree", "add", "--quiet", "-B", t.Branch, p.Work, t.Base); err != nil {
		return Tree{}, fmt.Errorf("make work tree: %w", err)
	}
	return t, nil
}

// bringBase makes sure that the base is here, under a private ref so that nothing collects it.
func bringBase(ctx context.Context, p Plan, keep string) error {
	if !isCommitID(p.Head) {
		return protocol.Refuse(protocol.CodeBadFrame, "the task's base %q is not a commit id", "", p.Head)
	}
	if hasCommit(ctx, p.Local, p.Head) {
		_, err := git(ctx, p.Local, "update-ref", keep, p.Head)
		return err
	}
	if p.Bundle == "" {
		return protocol.Refuse(protocol.CodeRepoMismatch,
			fmt.Sprintf("the base commit %s is not in %s, and no bundle of it came with the task", Short(p.Head), p.Local),
			"git -C "+p.Local+" fetch, or delegate with a bundle")
	}
	// A base that a crash left, or an earlier task under the same short name.
	_, _ = git(ctx, p.Local, "update-ref", "-d", keep)
	if err := fetchBundle(ctx, p.Local, p.Bundle, p.Head, keep); err != nil {
		return badBase(ctx, err)
	}
	return nil
}

// badBase lets the delegator hear what is wrong with its bundle; a call that was cut off says nothing about it.
func badBase(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return protocol.Refuse(protocol.CodeBadFrame, "the task's base bundle cannot be used: "+err.Error(), "")
}

// prepareOwn makes a repository of the bundle alone, in the attempt's folder.
func prepareOwn(ctx context.Context, p Plan) (Tree, error) {
	if p.Bundle == "" {
		return Tree{}, protocol.Refuse(protocol.CodeRepoMismatch,
			"the task names a repository, but no bundle of it came with the task and this worker has none of its own",
			"set [worker] repo here, or delegate with a bundle")
	}
	if err := os.Mkdir(p.Work, 0o700); err != nil {
		return Tree{}, fmt.Errorf("make work folder: %w", err)
	}
	t := Tree{Work: p.Work, Base: p.Head, Branch: branchName(p, 5), Keep: "refs/aster/base"}
	// The template is empty: no sample hooks, nothing of this machine's.
	if _, err := git(ctx, p.Work, "init", "--quiet", "--template=", "--initial-branch="+t.Branch); err != nil {
		return Tree{}, err
	}
	if err := fetchBundle(ctx, p.Work, p.Bundle, p.Head, t.Keep); err != nil {
		return Tree{}, badBase(ctx, err)
	}
	// Large files of foreign repositories stay pointers: their server is not ours to call.
	env := []string{"GIT_LFS_SKIP_SMUDGE=1"}
	if _, err := gitEnv(ctx, p.Work, env, "checkout", "--quiet", "-B", t.Branch, p.Head, "--"); err != nil {
		return Tree{}, fmt.Errorf("check out %s: %w", Short(p.Head), err)
	}
	return t, nil
}

func branchName(p Plan, n int) string {
	return "aster/" + protocol.ShortIDOf(p.Task, n) + "-" + strconv.Itoa(p.Attempt)
}

// freeBranch returns the shortest name that is free. One that stands exactly at the base is ours, of a Prepare that a
// crash cut off: results stand beyond their base, and branches without one are deleted.
func freeBranch(ctx context.Context, p Plan, base string) (string, error) {
	for _, n := range []int{5, 8, 12} {
		name := branchName(p, n)
		at, err := git(ctx, p.Local, "rev-parse", "--verify", "--quiet", "refs/heads/"+name)
		if exitOf(err) > 0 || (err == nil && at == base) {
			return name, nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("branch %s exists in %s and holds other work: rename or delete it", branchName(p, 5), p.Local)
}

// refPart makes a task id part of a ref's name.
func refPart(id protocol.TaskID) string { return protocol.ShortIDOf(id, 12) }

// Remove takes the work tree away, with what the repository remembers of it; the branch stays. A tree that is gone
// already is no error.
func Remove(ctx context.Context, t Tree) error {
	if t.Local != "" {
		// Twice --force: also a tree that was locked. What git refuses, the file system and prune do.
		_, _ = git(ctx, t.Local, "worktree", "remove", "--force", "--force", t.Work)
	}
	if err := removeAll(t.Work); err != nil {
		return fmt.Errorf("remove work tree: %w", err)
	}
	if t.Local == "" {
		return nil
	}
	if _, err := git(ctx, t.Local, "worktree", "prune"); err != nil {
		return err
	}
	if t.Keep != "" {
		_, _ = git(ctx, t.Local, "update-ref", "-d", t.Keep)
	}
	return nil
}

// removeAll also removes folders that a run made read-only, as Go's module cache does.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

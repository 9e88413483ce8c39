package repo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aster-mesh/aster/protocol"
)

// rootsMax bounds how many root commits name a repository; histories joined from more are named by the first ones.
const rootsMax = 16

// Describe says what names the repository that dir lies in: its root commit ids (sorted, joined by ","), the commit that
// HEAD names, and its folder's name. What is not committed is not part of it. It returns a *protocol.Refusal for a
// shallow clone, whose root nobody can tell, and an error that says how to mend it for a folder that is no repository
// or has no commit.
func Describe(dir string) (root, head, name string, err error) {
	ctx := context.Background()
	head, err = Head(ctx, dir)
	if err != nil {
		return "", "", "", err
	}
	if err := refuseShallow(ctx, dir); err != nil {
		return "", "", "", err
	}
	roots, err := rootsOf(ctx, dir, head)
	if err != nil {
		return "", "", "", err
	}
	common, err := git(ctx, dir, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return "", "", "", err
	}
	if filepath.Base(common) == ".git" {
		common = filepath.Dir(common)
	}
	name = strings.TrimSuffix(filepath.Base(common), ".git")
	return strings.Join(roots, ","), head, name, nil
}

// ErrNoRepository says of a folder that it is in none.
var ErrNoRepository = errors.New("not a git repository")

// Head returns the commit that HEAD names in dir. Its errors say what is wrong with dir and how to mend it.
func Head(ctx context.Context, dir string) (string, error) {
	if _, err := git(ctx, dir, "rev-parse", "--git-dir"); err != nil {
		if exitOf(err) == 128 && strings.Contains(err.Error(), "not a git repository") {
			return "", fmt.Errorf("%s is %w: run git init and commit there, or name another folder", dir, ErrNoRepository)
		}
		return "", fmt.Errorf("read repository %s: %w", dir, err)
	}
	head, err := git(ctx, dir, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if exitOf(err) > 0 {
		return "", fmt.Errorf("repository %s has no commit yet, so there is nothing to start from: git -C %s commit --allow-empty -m start", dir, dir)
	}
	return head, err
}

// sameRoot returns nil if the repository at dir shares a root commit with root (as Describe gives it), else a
// *protocol.Refusal with CodeRepoMismatch that names both. An empty root is shared by none.
func sameRoot(ctx context.Context, dir, root string) error {
	for _, r := range strings.Split(root, ",") {
		if isCommitID(r) && hasCommit(ctx, dir, r) {
			return nil
		}
	}
	here := "no commit"
	if head, err := Head(ctx, dir); err == nil {
		if roots, err := rootsOf(ctx, dir, head); err == nil {
			here = shortAll(roots)
		}
	} else {
		return err
	}
	there := shortAll(strings.Split(root, ","))
	if root == "" {
		there = "unknown"
	}
	return protocol.Refuse(protocol.CodeRepoMismatch,
		fmt.Sprintf("repo-mismatch: the task's repository has root commit %s, %s has %s", there, dir, here),
		"name the same repository on both sides: --repo there, [worker] repo here")
}

func refuseShallow(ctx context.Context, dir string) error {
	shallow, err := git(ctx, dir, "rev-parse", "--is-shallow-repository")
	if err != nil {
		return err
	}
	if shallow == "true" {
		return protocol.Refuse(protocol.CodeRepoMismatch, fmt.Sprintf("%s is a shallow clone: its history, and so its root commit, is not here", dir),
			"git -C "+dir+" fetch --unshallow")
	}
	return nil
}

func rootsOf(ctx context.Context, dir, commit string) ([]string, error) {
	out, err := git(ctx, dir, "rev-list", "--max-parents=0", commit, "--")
	if err != nil {
		return nil, fmt.Errorf("find root commit of %s: %w", dir, err)
	}
	roots := strings.Fields(out)
	slices.Sort(roots)
	return roots[:min(len(roots), rootsMax)], nil
}

func hasCommit(ctx context.Context, dir, id string) bool {
	_, err := git(ctx, dir, "cat-file", "-e", id+"^{commit}")
	return err == nil
}

// isCommitID keeps foreign text from becoming an option or a revision expression.
func isCommitID(s string) bool {
	if len(s) != 40 && len(s) != 64 {
		return false
	}
	return strings.Trim(s, "0123456789abcdef") == ""
}

// Short is how people see a commit.
func Short(id string) string { return id[:min(len(id), 7)] }

func shortAll(ids []string) string {
	out := make([]string, 0, len(ids))
	for _, id := range ids {
		out = append(out, id[:min(len(id), 12)])
	}
	return strings.Join(out, ",")
}

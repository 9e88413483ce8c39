package repo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// pathsMax is how many changed paths a report names.
const pathsMax = 20

// Save says how what a run left becomes a commit.
type Save struct {
	Author  string // agent id
	Message string
	Bundle  string // path of the result bundle to write
}

// Saved is what a run left.
type Saved struct {
	Commit string // empty: nothing changed
	Branch string // empty: nothing changed, or no repository
	Diff   *api.Diff
	Bundle string // path; empty: nothing changed, or TooLarge
	// TooLarge says that the result is committed but no bundle of it may travel.
	TooLarge *protocol.Refusal
}

// Finish commits what the run left uncommitted in t (respecting .gitignore), moves the attempt's branch to the result and
// bundles base..branch. A run that committed by itself keeps its commits. If nothing changed against the base there is
// no commit, no branch and no bundle. It may be called again after it was cut off. A Tree without a base gives an
// empty Saved.
func Finish(ctx context.Context, t Tree, s Save) (Saved, error) {
	if t.Base == "" {
		return Saved{}, nil
	}
	ctx, release, err := hold(ctx, t.Work+".lock")
	if err != nil {
		return Saved{}, err
	}
	defer release()
	// A run may have deleted .git: git would then look in the folders above, and commit there.
	top, err := git(ctx, t.Work, "rev-parse", "--show-prefix")
	if err != nil || top != "" {
		return Saved{}, errors.Join(fmt.Errorf("the run left no git work tree in %s", t.Work), err)
	}
	if err := breakLocks(ctx, t); err != nil {
		return Saved{}, err
	}
	if err := onOwnBranch(ctx, t); err != nil {
		return Saved{}, err
	}
	if err := commitRest(ctx, t, s); err != nil {
		return Saved{}, err
	}
	commit, err := git(ctx, t.Work, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil {
		return Saved{}, err
	}
	if commit == t.Base {
		// A branch that says nothing is not left in somebody's repository.
		_, _ = git(ctx, t.Work, "checkout", "--quiet", "--detach")
		_, _ = git(ctx, t.Work, "branch", "--quiet", "-D", "--", t.Branch)
		return Saved{}, nil
	}
	if _, err := git(ctx, t.Work, "update-ref", "refs/heads/"+t.Branch, commit); err != nil {
		return Saved{}, err
	}
	saved := Saved{Commit: commit, Branch: t.Branch}
	if saved.Diff, err = diffStat(ctx, t.Work, t.Base, commit); err != nil {
		return Saved{}, err
	}
	err = writeBundle(ctx, t.Work, s.Bundle, protocol.BlobBytesMax, "refs/heads/"+t.Branch, "^"+t.Base)
	if errors.As(err, &saved.TooLarge) {
		return saved, nil
	}
	saved.Bundle = s.Bundle
	return saved, err
}

// breakLocks removes what a git that was killed with its run left locked. Only this tree's own files: the run has ended
// and nobody else works here.
func breakLocks(ctx context.Context, t Tree) error {
	for _, name := range []string{"index.lock", "HEAD.lock", "refs/heads/" + t.Branch + ".lock"} {
		path, err := git(ctx, t.Work, "rev-parse", "--path-format=absolute", "--git-path", name)
		if err != nil {
			return err
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("break lock: %w", err)
		}
	}
	return nil
}

// onOwnBranch detaches a tree in which the run switched to another branch, so that our commit lands on none but ours.
func onOwnBranch(ctx context.Context, t Tree) error {
	on, err := git(ctx, t.Work, "symbolic-ref", "--quiet", "HEAD")
	if err != nil || on == "refs/heads/"+t.Branch {
		return nil // detached already, or where it belongs
	}
	_, err = git(ctx, t.Work, "checkout", "--quiet", "--detach")
	return err
}

func commitRest(ctx context.Context, t Tree, s Save) error {
	if _, err := git(ctx, t.Work, "add", "--all", "--", "."); err != nil {
		return fmt.Errorf("stage what the run left: %w", err)
	}
	_, err := git(ctx, t.Work, "diff", "--cached", "--quiet", "--no-ext-diff", "--no-textconv")
	if err == nil {
		return nil
	}
	if exitOf(err) != 1 {
		return err
	}
	mail := strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f && !strings.ContainsRune("<>@,;:\\\"()[]", r) {
			return r
		}
		return '-'
	}, s.Author) + "@aster.invalid"
	name := strings.TrimSpace(strings.NewReplacer("<", "", ">", "", "\n", " ").Replace(s.Author))
	if name == "" {
		name = "aster"
	}
	env := []string{"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + mail, "GIT_COMMITTER_NAME=" + name, "GIT_COMMITTER_EMAIL=" + mail}
	_, err = gitEnv(ctx, t.Work, env, "commit", "--quiet", "--no-verify", "--cleanup=whitespace", "-m", s.Message)
	if err != nil {
		return fmt.Errorf("commit what the run left: %w", err)
	}
	return nil
}

func diffStat(ctx context.Context, dir, base, commit string) (*api.Diff, error) {
	out, err := git(ctx, dir, "diff", "--numstat", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", base, commit, "--")
	if err != nil {
		return nil, fmt.Errorf("count changes: %w", err)
	}
	d := &api.Diff{}
	for _, row := range strings.Split(strings.TrimSuffix(out, "\x00"), "\x00") {
		added, rest, _ := strings.Cut(row, "\t")
		removed, path, ok := strings.Cut(rest, "\t")
		if !ok {
			continue
		}
		d.Files++
		a, _ := strconv.Atoi(added) // "-" of a binary file counts no lines
		r, _ := strconv.Atoi(removed)
		d.Added, d.Removed = d.Added+a, d.Removed+r
		if len(d.Paths) < pathsMax {
			d.Paths = append(d.Paths, strings.ToValidUTF8(path, "\uFFFD"))
		}
	}
	return d, nil
}

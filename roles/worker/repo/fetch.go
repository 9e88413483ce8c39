package repo

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/aster-mesh/aster/protocol"
)

// Fetch brings commit out of the bundle into the clone at dir under ref (whole name, e.g. refs/heads/aster/7kq2m). It
// touches no work tree; a second call changes nothing. It returns a *protocol.Refusal with CodeRepoMismatch that names
// both sides if the clone lacks what the bundle builds on, and an error if ref is there already and names another
// commit, or if git calls an object of the bundle malformed.
func Fetch(dir, bundlePath, commit, ref string) error {
	ctx := context.Background()
	head, err := Head(ctx, dir)
	if err != nil {
		return err
	}
	if err := refuseMissing(ctx, dir, head, bundlePath); err != nil {
		return err
	}
	return fetchBundle(ctx, dir, bundlePath, commit, ref)
}

// refuseMissing says which commits the bundle builds on that dir lacks.
func refuseMissing(ctx context.Context, dir, head, bundlePath string) error {
	h, err := readHeader(bundlePath)
	if err != nil {
		return err
	}
	var missing []string
	for _, id := range h.needs {
		if !hasCommit(ctx, dir, id) {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	roots, err := rootsOf(ctx, dir, head)
	if err != nil {
		return err
	}
	return protocol.Refuse(protocol.CodeRepoMismatch,
		fmt.Sprintf("repo-mismatch: the result builds on commit %s, which %s (root %s) does not have", shortAll(missing), dir, shortAll(roots)),
		"run this in the repository that the task was given with --repo")
}

// fetchBundle brings commit, which a ref of the bundle must name, into dir and lets ref name it.
func fetchBundle(ctx context.Context, dir, bundlePath, commit, ref string) error {
	h, err := readHeader(bundlePath)
	if err != nil {
		return err
	}
	if !isCommitID(commit) {
		return fmt.Errorf("%q is not a commit id", commit)
	}
	if _, err := git(ctx, dir, "check-ref-format", ref); err != nil || !strings.HasPrefix(ref, "refs/") {
		return fmt.Errorf("%q cannot name a branch or ref", ref)
	}
	if !h.heads[commit] {
		return fmt.Errorf("the bundle does not hold commit %s", Short(commit))
	}
	now, err := git(ctx, dir, "rev-parse", "--verify", "--quiet", ref)
	switch {
	case err == nil && now == commit:
		return nil
	case err == nil:
		return fmt.Errorf("%s is here already and names %s: git -C %s update-ref -d %s, then again", ref, Short(now), dir, ref)
	case exitOf(err) < 0:
		return err
	}
	if err := unbundle(ctx, dir, bundlePath, h.bytes); err != nil {
		return err
	}
	// As git fetch does: nothing may name a commit of which something is missing.
	if _, err := git(ctx, dir, "rev-list", "--objects", "--quiet", commit, "--not", "--all", "--"); err != nil {
		return fmt.Errorf("the bundle is not whole: %w", err)
	}
	_, err = git(ctx, dir, "update-ref", "--create-reflog", ref, commit, strings.Repeat("0", len(commit)))
	return err
}

// harmless are marks of age in old histories; what else git finds wrong with an object keeps it out.
const harmless = "zeroPaddedFilemode=ignore,missingSpaceBeforeDate=ignore,badTimezone=ignore,missingSpaceBeforeEmail=ignore,missingEmail=ignore,missingNameBeforeEmail=ignore"

// unbundle puts the bundle's pack into dir. git fetch and git bundle do not check the objects of a bundle, whatever
// fetch.fsckObjects says (seen with 2.39); index-pack does.
func unbundle(ctx context.Context, dir, bundlePath string, packAt int64) error {
	f, err := os.Open(bundlePath)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Seek(packAt, io.SeekStart); err != nil {
		return err
	}
	if _, err := gitFed(ctx, dir, nil, f, "index-pack", "--stdin", "--fix-thin", "--strict="+harmless); err != nil {
		return fmt.Errorf("read bundle %s: %w", filepath.Base(bundlePath), err)
	}
	return nil
}

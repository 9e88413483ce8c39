package repo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/aster-mesh/aster/protocol"
)

// BundleBase writes a git bundle with commit (empty: HEAD) and all its history to out, whole or not at all. It returns
// a *protocol.Refusal with CodeFrameTooLarge if the bundle would exceed protocol.BlobBytesMax, and one for a shallow
// clone. A commit that is not HEAD gets a private ref while the bundle is written.
func BundleBase(dir, commit, out string) error {
	ctx := context.Background()
	if err := refuseShallow(ctx, dir); err != nil {
		return err
	}
	head, err := Head(ctx, dir)
	if err != nil {
		return err
	}
	if commit == "" {
		commit = head
	}
	if !isCommitID(commit) || !hasCommit(ctx, dir, commit) {
		return fmt.Errorf("commit %q is not in %s", commit, dir)
	}
	ref := "HEAD"
	if commit != head {
		ref = fmt.Sprintf("refs/aster/bundle/%s-%d", commit, os.Getpid())
		if _, err := git(ctx, dir, "update-ref", ref, commit); err != nil {
			return err
		}
		defer git(ctx, dir, "update-ref", "-d", ref)
	}
	return writeBundle(ctx, dir, out, protocol.BlobBytesMax, ref)
}

// writeBundle lets git stream into a file of ours, so that a history too large is stopped at the bound and not after.
func writeBundle(ctx context.Context, dir, out string, bytesMax int64, revs ...string) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(out), ".bundle-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // after the rename there is nothing to remove
	defer tmp.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, gitWait, fmt.Errorf("git bundle took longer than %s", gitWait))
	defer cancel()
	file := &boundedFile{file: tmp, room: bytesMax, stop: cancel}
	stderr := &bounded{max: 4 << 10, cut: true}
	cmd := command(ctx, dir, nil, append([]string{"bundle", "create", "--quiet", "-"}, revs...)...)
	cmd.Stdout, cmd.Stderr = file, stderr
	err = cmd.Run()
	switch {
	case file.over:
		return protocol.Refuse(protocol.CodeFrameTooLarge,
			fmt.Sprintf("the history of %s needs a bundle above %d MiB, more than may travel", dir, bytesMax>>20),
			"push the commit to where the worker's repository fetches from, and leave the bundle out")
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("git bundle: %s: %w", lastWords(stderr.buf.String()), err)
	}
	if err := tmp.Sync(); err != nil {
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), out)
}

type boundedFile struct {
	file *os.File
	room int64
	over bool
	stop func() // ends git, which would go on packing
}

func (b *boundedFile) Write(p []byte) (int, error) {
	if int64(len(p)) > b.room {
		b.over = true
		b.stop()
		return 0, errTooMuch
	}
	b.room -= int64(len(p))
	return b.file.Write(p)
}

// Fetch brings commit out of the bundle into the clone at dir under ref (whole name, e.g. refs/heads/aster/7kq2m). It
// touches no work tree. It returns a *protocol.Refusal with CodeRepoMismatch that names both sides if the clone lacks
// what the bundle builds on, and an error if ref is there already and names something that commit does not follow.
func Fetch(dir, bundlePath, commit, ref string) error {
	ctx := context.Background()
	bundlePath, err := filepath.Abs(bundlePath)
	if err != nil {
		return err
	}
	head, err := Head(ctx, dir)
	if err != nil {
		return err
	}
	if err := refuseMissing(ctx, dir, head, bundlePath); err != nil {
		return err
	}
	return fetchBundle(ctx, dir, bundlePath, commit, ref, nil)
}

// refuseMissing says which commits the bundle builds on that dir lacks.
func refuseMissing(ctx context.Context, dir, head, bundlePath string) error {
	needs, _, err := readHeader(bundlePath)
	if err != nil {
		return err
	}
	var missing []string
	for _, id := range needs {
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

// fetchBundle fetches the ref of the bundle that names commit into ref of dir, and checks that it does.
func fetchBundle(ctx context.Context, dir, bundlePath, commit, ref string, env []string) error {
	_, heads, err := readHeader(bundlePath)
	if err != nil {
		return err
	}
	if !isCommitID(commit) {
		return fmt.Errorf("%q is not a commit id", commit)
	}
	if _, err := git(ctx, dir, "check-ref-format", ref); err != nil {
		return fmt.Errorf("%q cannot name a branch or ref", ref)
	}
	source, ok := heads[commit]
	if !ok {
		return fmt.Errorf("the bundle does not hold commit %s", Short(commit))
	}
	_, err = gitEnv(ctx, dir, env, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules",
		bundlePath, source+":"+ref)
	if err != nil {
		if now, e := git(ctx, dir, "rev-parse", "--verify", "--quiet", ref); e == nil && now != commit {
			return fmt.Errorf("%s is here already and names %s: git -C %s update-ref -d %s, then again (%w)", ref, Short(now), dir, ref, err)
		}
		return fmt.Errorf("fetch from bundle: %w", err)
	}
	got, err := git(ctx, dir, "rev-parse", "--verify", "--quiet", ref+"^{commit}")
	if err != nil || got != commit {
		return fmt.Errorf("the bundle gave %s instead of %s", Short(got), Short(commit))
	}
	return nil
}

// bundleHeaderMax bounds the text before the pack: our own bundles have one ref and one prerequisite.
const bundleHeaderMax = 1 << 20

// readHeader returns the commits a bundle builds on and its refs by commit id. The format is git's bundle-format: a
// signature line, capabilities (@), prerequisites (-id comment), refs (id name), an empty line, the pack.
func readHeader(path string) (needs []string, heads map[string]string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	return parseHeader(f)
}

func badBundle(why string) error { return fmt.Errorf("not a git bundle that can be read: %s", why) }

// goodRef keeps foreign ref names from meaning anything else on git's command line.
func goodRef(name string) bool {
	if name == "HEAD" {
		return true
	}
	return strings.HasPrefix(name, "refs/") && !strings.ContainsAny(name, " :?*[\\^~\x7f") && !strings.Contains(name, "..")
}

package repo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

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

//go:build unix

package repo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// heldKey is the context's key for the lock file that git inherits.
type heldKey struct{}

// hold makes the caller the only one that works on a tree, waiting for another. Every git that runs under the returned
// context inherits the lock and keeps it until it ends: a git whose node was killed works on, and whoever takes over
// must not meet it. Releasing never fails.
func hold(ctx context.Context, path string) (context.Context, func(), error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, err
	}
	for deadline := time.Now().Add(gitWait); ; {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return context.WithValue(ctx, heldKey{}, f), func() { f.Close() }, nil
		}
		busy := errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR)
		if busy && time.Now().Before(deadline) {
			select {
			case <-time.After(20 * time.Millisecond):
				continue
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		f.Close()
		return nil, nil, fmt.Errorf("wait for an earlier git in %s: %w", path, err)
	}
}

// inherited are the files that a git under ctx gets.
func inherited(ctx context.Context) []*os.File {
	if f, ok := ctx.Value(heldKey{}).(*os.File); ok {
		return []*os.File{f}
	}
	return nil
}

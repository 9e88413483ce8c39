package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
)

// pidName is the file in a root that says whose it is.
const pidName = "pid"

const rootPrefix = "demo-"

// makeRoot makes the folder of one demo, after it took away what others left that were killed.
func makeRoot(ctx context.Context, cfg Config) (string, error) {
	parent := cfg.Dir
	if parent == "" {
		if cache, err := os.UserCacheDir(); err == nil {
			parent = filepath.Join(cache, "aster")
		}
		if parent == "" || os.MkdirAll(parent, 0o700) != nil {
			parent = os.TempDir()
		}
	}
	if cfg.Alive != nil {
		sweep(ctx, parent, cfg.Alive)
	}
	root, err := os.MkdirTemp(parent, rootPrefix)
	if err != nil {
		return "", fmt.Errorf("make the demo's folder: %w", err)
	}
	if root, err = filepath.EvalSymlinks(root); err != nil { // as git and the worker name it
		return "", fmt.Errorf("make the demo's folder: %w", err)
	}
	err = os.WriteFile(filepath.Join(root, pidName), []byte(strconv.Itoa(os.Getpid())), 0o600)
	if err != nil {
		return "", fmt.Errorf("make the demo's folder: %w", err)
	}
	return root, nil
}

// sweep stops and removes demos whose process is gone. What cannot be removed stays: this is a courtesy.
func sweep(ctx context.Context, parent string, alive func(int) bool) {
	roots, err := filepath.Glob(filepath.Join(parent, rootPrefix+"*"))
	if err != nil {
		return
	}
	for _, root := range roots {
		raw, err := os.ReadFile(filepath.Join(root, pidName))
		if err != nil {
			continue // not ours, or just being made
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
		if err != nil || alive(pid) {
			continue
		}
		for _, f := range four {
			bringDown(ctx, filepath.Join(root, "demo", f.name))
		}
		_ = removeRoot(root)
	}
}

// bringDown stops a node that outlived its demo and waits until it took its node file away, its last act.
func bringDown(ctx context.Context, home string) {
	ctx, cancel := context.WithTimeout(ctx, stopWait/2)
	defer cancel()
	c, err := client.Open(home)
	if err != nil {
		return
	}
	defer c.Close()
	if c.Down(ctx) != nil {
		return
	}
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for ctx.Err() == nil {
		if _, err := client.Open(home); errors.Is(err, client.ErrNotRunning) {
			return
		}
		select {
		case <-ctx.Done():
		case <-look.C:
		}
	}
}

// removeRoot removes a root, and again while something that just ended still wrote there. The file that says whose it is
// goes last, so that what could not be removed now is removed by the next demo.
func removeRoot(root string) (err error) {
	for range 50 {
		if err = os.RemoveAll(filepath.Join(root, "demo")); err == nil {
			return os.RemoveAll(root)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("remove the demo's files: %w", err)
}

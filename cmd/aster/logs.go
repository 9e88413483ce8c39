package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
	"github.com/spf13/cobra"
)

func logsCommand(a *app) *cobra.Command {
	var follow bool
	var lines int
	cmd := &cobra.Command{
		Use: "logs", Short: "The node's diagnostics; works also when it is down", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkHome(a.home); err != nil {
				return err
			}
			return a.logs(cmd.Context(), lines, follow)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what comes")
	cmd.Flags().IntVarP(&lines, "lines", "n", 200, "how many of the last lines; 0: all")
	return cmd
}

func (a *app) logs(ctx context.Context, lines int, follow bool) error {
	path := filepath.Join(a.home, logName)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return failed("there are no diagnostics in %s yet. They begin with: aster up", tilde(a.home))
	}
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	defer func() { f.Close() }()
	if !follow {
		_, err := a.copyTail(f, lines)
		return err
	}
	a.following = true
	watch, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch log: %w", err)
	}
	defer watch.Close()
	if err := watch.Add(a.home); err != nil {
		return fmt.Errorf("watch log: %w", err)
	}
	if _, err := a.copyTail(f, lines); err != nil {
		return err
	}
	for {
		if err := changed(ctx, watch, logName); err != nil {
			return err
		}
		if _, err := io.Copy(a.stdout, f); err != nil {
			return fmt.Errorf("read log: %w", err)
		}
		next, err := os.Open(path)
		if err != nil {
			continue // between the renaming and the new file
		}
		if sameFile(f, next) {
			next.Close()
			continue
		}
		f.Close()
		f = next
		if _, err := io.Copy(a.stdout, f); err != nil {
			return fmt.Errorf("read log: %w", err)
		}
	}
}

func sameFile(x, y *os.File) bool {
	a, err1 := x.Stat()
	b, err2 := y.Stat()
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}

// copyTail prints the last lines and leaves f at its end. The file is bounded, so it may be read whole.
func (a *app) copyTail(f *os.File, lines int) (int, error) {
	raw, err := io.ReadAll(f)
	if err != nil {
		return 0, fmt.Errorf("read log: %w", err)
	}
	if lines > 0 {
		at := len(raw)
		if bytes.HasSuffix(raw, []byte("\n")) {
			at--
		}
		for range lines {
			if at = bytes.LastIndexByte(raw[:max(at, 0)], '\n'); at < 0 {
				break
			}
		}
		raw = raw[at+1:]
	}
	return a.stdout.Write(raw)
}

package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/aster-mesh/aster/roles/worker/repo"
)

// Defaults of Config's zero values.
const (
	DefaultSlots       = 1
	DefaultWall        = 30 * time.Minute
	DefaultOutputBytes = 64 << 20
)

// Config says how Delegates are run here.
type Config struct {
	Command        []string      // the runner's argv; the task comes on stdin. Required
	Repo           string        // a git repository here; empty: each task's bundle is cloned
	Slots          int           // runs at once; 0 = DefaultSlots. More tasks wait in order
	Wall           time.Duration // of a task without its own, accept commands included; 0 = DefaultWall
	OutputBytesMax int64         // a run that prints more is stopped; 0 = DefaultOutputBytes
	Tokens         int64         // a run that reports more is stopped; 0 = no limit
	Dir            string        // folder of the attempts, made 0700 if absent. Required
	Keeper         []string      // argv that runs keeper.Main; the attempt's folder is added. Required
	AgentName      string        // author of commits; empty: the agent that the task is for
	Log            *slog.Logger  // nil: silent

	// Open opens what is attached to tasks: when a task is accepted, with accepting set, and again when its attempt gets its
	// slot, perhaps in a later process. A *protocol.Refusal says that it is not to be had. Required for tasks with files.
	Open func(ctx context.Context, f File, accepting bool) (io.ReadCloser, error)
}

// Mistaken says what New would refuse of a command and a repository: before anything is done that cannot be undone.
func Mistaken(command []string, repository string) error {
	c := Config{Command: command, Repo: repository}
	return c.checkRunner()
}

// check fills defaults, makes paths absolute, and says what is wrong and how to mend it.
func (c *Config) check() (err error) {
	if len(c.Keeper) == 0 || c.Dir == "" {
		return errors.New("worker: Keeper and Dir are required")
	}
	if err := c.checkRunner(); err != nil {
		return err
	}
	if c.Slots <= 0 {
		c.Slots = DefaultSlots
	}
	if c.Wall <= 0 {
		c.Wall = DefaultWall
	}
	if c.OutputBytesMax <= 0 {
		c.OutputBytesMax = DefaultOutputBytes
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Log = c.Log.With("part", "worker")
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return err
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return fmt.Errorf("make folder of runs: %w", err)
	}
	// The keeper compares paths with those of the processes it started.
	c.Dir, err = filepath.EvalSymlinks(c.Dir)
	return err
}

// checkRunner makes the paths of the command and the repository absolute.
func (c *Config) checkRunner() error {
	if len(c.Command) == 0 || c.Command[0] == "" {
		return errors.New(`[worker] command is empty: name the runner, e.g. command = ["claude", "-p"]`)
	}
	// As it is found now: the run happens in another folder, and perhaps with another PATH.
	path, err := exec.LookPath(c.Command[0])
	if err != nil {
		return fmt.Errorf("[worker] command %q cannot be run: %w: install it or mend command in config.toml", c.Command[0], errors.Unwrap(err))
	}
	if path, err = filepath.Abs(path); err != nil {
		return err
	}
	c.Command = append([]string{path}, c.Command[1:]...)
	if c.Repo != "" {
		if c.Repo, err = filepath.Abs(c.Repo); err != nil {
			return err
		}
		if info, err := os.Stat(c.Repo); err != nil || !info.IsDir() {
			return fmt.Errorf("[worker] repo: %s is not a folder: mend repo in config.toml", c.Repo)
		}
		if _, err := repo.Head(context.Background(), c.Repo); err != nil {
			return fmt.Errorf("[worker] repo: %w", err)
		}
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/fsnotify/fsnotify"
	"github.com/spf13/cobra"
)

func waitCommand(a *app) *cobra.Command {
	var agent string
	var isNew bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "wait", Short: "Return when something is unread; costs nothing while it waits", Args: cobra.NoArgs,
		Long: `Prints how many messages are unread, with their ids, never their words: aster inbox has those.
Exit 5 when nothing came in time. A node that restarts meanwhile is waited for.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.wait(cmd.Context(), protocol.AgentID(agent), isNew, timeout)
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "whose inbox (default: the node's own agent's)")
	cmd.Flags().BoolVar(&isNew, "new", false, "--agent is an agent that is not here yet")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Hour, "how long, at most 24h; the node counts")
	return cmd
}

func (a *app) wait(ctx context.Context, agent protocol.AgentID, isNew bool, timeout time.Duration) error {
	if timeout <= 0 {
		return usage("--timeout %s: a wait lasts longer than nothing", timeout)
	}
	c, err := a.node()
	if err != nil {
		return err
	}
	defer func() { c.Close() }()
	// The collector would wake this process every two minutes for a heap that does not grow.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	// Nor does it need to look again and again how many processors its group may use.
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	until := time.Now().Add(timeout)
	for {
		got, err := c.Wait(ctx, agent, isNew, time.Until(until).Round(time.Millisecond))
		if err == nil {
			return a.waited(got)
		}
		if !isLost(err) || errors.Is(err, client.ErrNotRunning) {
			return err
		}
		next, err := a.returnsUntil(ctx, until)
		if err != nil {
			return err
		}
		c.Close()
		c = next
	}
}

func (a *app) waited(got api.WaitResult) error {
	if a.json {
		return a.emit(got)
	}
	again := ""
	if got.Again {
		again = ", announced before"
	}
	more := ""
	if n := got.Unread - len(got.IDs); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	a.say("%d unread for %s%s: %s%s", got.Unread, clean(string(got.Agent)), again, clean(joinWords(got.IDs)), more)
	return nil
}

// isLost says that the node ended in the middle, or is just starting: it may come back.
func isLost(err error) bool {
	return errors.Is(err, client.ErrLost) || errors.Is(err, client.ErrNotRunning) || client.RefusalCode(err) == client.CodeNotReady
}

func (a *app) returnsUntil(ctx context.Context, until time.Time) (*client.Client, error) {
	ctx, cancel := context.WithDeadlineCause(ctx, until, client.ErrTimedOut)
	defer cancel()
	return a.nodeReturns(ctx)
}

// nodeReturns waits until a node of this home answers again. The system tells when node.json changes, so that an absent
// node is not asked over and over.
func (a *app) nodeReturns(ctx context.Context) (*client.Client, error) {
	a.talk("the node is gone; waiting for it to return")
	watch, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch home: %w", err)
	}
	defer watch.Close()
	if err := watch.Add(a.home); err != nil {
		return nil, fmt.Errorf("watch home: %w", err)
	}
	// A node writes its file when it begins to serve; it may take a moment until it answers.
	const tries, pause = 50, 100 * time.Millisecond
	for left := 1; ; {
		if c, err := client.Open(a.home); err == nil {
			if _, err := c.Status(ctx); err == nil {
				a.talk("the node is back")
				return c, nil
			}
			c.Close()
		}
		if left--; left > 0 {
			select {
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case <-time.After(pause):
			}
			continue
		}
		if err := changed(ctx, watch, client.NodeFileName); err != nil {
			return nil, err
		}
		left = tries
	}
}

// changed returns when the named file did, or when the system may have lost word of it.
func changed(ctx context.Context, watch *fsnotify.Watcher, name string) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-watch.Errors:
			return nil
		case e := <-watch.Events:
			if filepath.Base(e.Name) == name {
				return nil
			}
		}
	}
}

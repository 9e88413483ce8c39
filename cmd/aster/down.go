package main

import (
	"context"
	"errors"
	"time"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/spf13/cobra"
)

// downWait is how long a node may take to end: it finishes one commit and closes its store.
const downWait = 20 * time.Second

func downCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "down", Short: "Stop the node and return when it has ended", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.node()
			if err != nil {
				return err
			}
			defer c.Close()
			ctx, cancel := context.WithTimeout(cmd.Context(), downWait)
			defer cancel()
			s, err := c.Status(ctx)
			if err != nil {
				return err
			}
			if err := c.Down(ctx); err != nil {
				return err
			}
			if err := a.gone(ctx, s.PID); err != nil {
				return &exit{exitTimedOut, "the node was told to stop and still runs after " + span(downWait) + ". See why: aster logs"}
			}
			if a.json {
				return a.emit(map[string]any{"event": "down", "pid": s.PID, "name": s.Name})
			}
			a.say("%s is down", clean(s.Name))
			return nil
		},
	}
}

// gone waits for the end of a process that is not our child, of which no system tells. Its last act is to take node.json
// away; one that was killed meanwhile leaves the file.
func (a *app) gone(ctx context.Context, pid int) error {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for alive(pid) {
		if c, err := client.Open(a.home); errors.Is(err, client.ErrNotRunning) || err == nil && c.Node().PID != pid {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
	}
	return nil
}

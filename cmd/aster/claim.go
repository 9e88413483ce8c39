package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/spf13/cobra"
)

func claimCommand(a *app) *cobra.Command {
	var req api.ClaimRequest
	var from string
	var within time.Duration
	acquire := &cobra.Command{
		Use: "acquire PATH|contract:NAME…", Short: "Claim paths or contracts for one agent alone", Args: cobra.MinimumNArgs(1),
		Long: `Claim all below the given paths (relative to the repository) or named contracts. Main grants a claim to one holder
at a time. It is renewed by itself while the process that holds it runs: the leader of this session (your shell or agent),
or --pid. An agent that loses a claim gets mail (ClaimLost) before anybody else may have it.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			scopes, err := claimScopes(args)
			if err != nil {
				return err
			}
			req.Scopes, req.Agent = scopes, protocol.AgentID(from)
			if req.PID == 0 {
				req.PID = sessionLeader()
			}
			return a.acquire(cmd.Context(), req, within)
		},
	}
	f := acquire.Flags()
	f.StringVar(&from, "from", "", "the agent that is to hold it")
	f.BoolVar(&req.New, "new", false, "--from is a new agent, though it looks like one that is here")
	f.StringVar(&req.Why, "why", "", "for everybody's board")
	f.IntVar(&req.PID, "pid", 0, "the process that holds it (default: the leader of this session)")
	f.DurationVar(&within, "wait", 0, "try again for so long while another holds it")
	list := &cobra.Command{
		Use: "list", Short: "What is claimed, and by whom", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listClaims(cmd.Context()) },
	}
	release := &cobra.Command{
		Use: "release ID|SCOPE…", Short: "Give up claims that agents of this node hold", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.releaseClaims(cmd.Context(), args) },
	}
	return group("claim", "Paths and contracts for one agent alone", acquire, list, release)
}

// claimLook is how often a claim that another holds is tried again.
const claimLook = time.Second

func (a *app) acquire(ctx context.Context, req api.ClaimRequest, within time.Duration) error {
	c, err := a.node()
	if err != nil {
		return err
	}
	defer c.Close()
	look := time.NewTicker(claimLook)
	defer look.Stop()
	until := time.Now().Add(within)
	for {
		got, err := c.Acquire(ctx, req)
		var no *protocol.Refusal
		if errors.As(err, &no) && no.Code == protocol.CodeBusy && time.Now().Before(until) {
			select {
			case <-look.C:
				continue
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		switch {
		case no != nil && no.Code == protocol.CodeBusy && within > 0:
			return &exit{exitTimedOut, "timed out: " + clean(no.Error())}
		case err != nil:
			return err
		case a.json:
			return a.emit(got)
		}
		a.say("%s", got.ID)
		a.talk("%s holds %s while process %d runs", clean(string(got.Agent)), clean(strings.Join(got.Scopes, ", ")), req.PID)
		return nil
	}
}

func (a *app) listClaims(ctx context.Context) error {
	c, err := a.node()
	if err != nil {
		return err
	}
	defer c.Close()
	all, err := c.Claims(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return emitAll(a, all)
	}
	rows := [][]string{{"SCOPES", "AGENT", "NODE", "SINCE", "WHY", "ID"}}
	for _, cl := range all {
		rows = append(rows, []string{clean(strings.Join(cl.Scopes, ", ")), clean(string(cl.Agent)), clean(cl.NodeName), clock(cl.Since), dash(clean(cl.Why)), clean(cl.ID)})
	}
	table(a.stdout, rows...)
	return nil
}

func (a *app) releaseClaims(ctx context.Context, names []string) error {
	c, err := a.node()
	if err != nil {
		return err
	}
	defer c.Close()
	all, err := c.Claims(ctx)
	if err != nil {
		return err
	}
	if names, err = claimScopes(names); err != nil {
		return err
	}
	for _, name := range names {
		id := name
		for _, cl := range all {
			for _, s := range cl.Scopes {
				if cl.Here && (s == name || s == "path:"+strings.TrimSuffix(strings.TrimPrefix(name, "./"), "/")) {
					id = cl.ID
				}
			}
		}
		if err := c.ReleaseClaim(ctx, id); err != nil {
			return err
		}
		if !a.json {
			a.say("%s is free", clean(name))
		}
	}
	return nil
}

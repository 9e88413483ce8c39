package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/worker/repo"
	"github.com/spf13/cobra"
)

type delegateOptions struct {
	to, from, repo string
	accept, attach []string
	noWake, wait   bool
	timeout        time.Duration
}

func delegateCommand(a *app) *cobra.Command {
	var o delegateOptions
	cmd := &cobra.Command{
		Use: "delegate --to AGENT TEXT|-", Short: "Hand work to an agent", Args: cobra.MinimumNArgs(1),
		Example: "  aster delegate --to mac-mini --repo . --accept 'go test ./cart' --wait make ./cart pass",
		RunE:    func(cmd *cobra.Command, args []string) error { return a.delegate(cmd.Context(), o, args) },
	}
	f := cmd.Flags()
	f.StringVar(&o.to, "to", "", "agent that works")
	f.StringVar(&o.from, "from", "", "agent that speaks (default: the node's own)")
	f.StringVar(&o.repo, "repo", "", "repository to work in: its HEAD travels along, what is not committed does not")
	f.StringArrayVar(&o.accept, "accept", nil, "command that must pass in the end; may be given several times")
	f.StringArrayVar(&o.attach, "attach", nil, "file that goes along, for aster show ID --save DIR there; once for each")
	f.BoolVar(&o.noWake, "no-wake", false, "leave the worker asleep")
	f.BoolVar(&o.wait, "wait", false, "follow receipts and reports to the end: exit 0 done, 1 any other outcome")
	f.DurationVar(&o.timeout, "timeout", 0, "with --wait: give up following after this time (exit 5); the work goes on")
	return cmd
}

// delegated is the value of a Delegate.
type delegated struct {
	Task   string    `json:"task"`
	Accept []string  `json:"accept,omitempty"`
	Repo   *repoName `json:"repo,omitempty"`
}

type repoName struct {
	Root string `json:"root"`
	Head string `json:"head"`
	Name string `json:"name"`
}

func (a *app) delegate(ctx context.Context, o delegateOptions, args []string) error {
	if o.to == "" {
		return usage("say who works: --to AGENT. Names: aster agents")
	}
	if o.timeout != 0 && !o.wait {
		return usage("--timeout goes with --wait")
	}
	if slices.ContainsFunc(o.accept, protocol.Blank) {
		return usage("--accept is empty, which checks nothing: give it a command (is a variable in it unset?), or leave it out")
	}
	task, err := a.text(args)
	if err != nil {
		return err
	}
	if task == "" {
		return usage("the task is empty")
	}
	c, err := a.node()
	if err != nil {
		return err
	}
	defer func() { c.Close() }()
	req, err := a.delegation(ctx, c, o, task)
	if err != nil {
		return err
	}
	began := time.Now()
	got, err := c.Send(ctx, req)
	if err != nil {
		return err
	}
	if !o.wait {
		return a.sent(got, idOf(protocol.Delegate, got.Short))
	}
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.timeout, &exit{exitTimedOut, fmt.Sprintf("no end after %s; the work goes on. Follow it: aster task show %s", span(o.timeout), idOf(protocol.Delegate, got.Short))})
		defer cancel()
	}
	return (&following{a: a, sent: got, began: began, told: map[protocol.Tier]bool{}, reports: map[protocol.MsgID]bool{}}).run(ctx, c)
}

// delegation is the message, its repository's bundle already at the node.
func (a *app) delegation(ctx context.Context, c *client.Client, o delegateOptions, task string) (api.SendRequest, error) {
	req := api.SendRequest{From: protocol.AgentID(o.from), To: protocol.AgentID(o.to), Intent: protocol.Delegate, NoWake: o.noWake, Trace: os.Getenv("TRACEPARENT")}
	value := delegated{Task: task, Accept: o.accept}
	if o.repo != "" {
		base, name, err := a.base(ctx, c, o.repo)
		if err != nil {
			return req, err
		}
		value.Repo, req.Blobs = name, []protocol.BlobRef{base}
	}
	files, err := a.attach(ctx, c, o.attach)
	if err != nil {
		return req, err
	}
	req.Blobs = append(req.Blobs, files...)
	raw, err := json.Marshal(value)
	req.Value = raw
	return req, err
}

// base bundles HEAD of the repository at dir and gives it to the node.
func (a *app) base(ctx context.Context, c *client.Client, dir string) (protocol.BlobRef, *repoName, error) {
	var none protocol.BlobRef
	root, head, name, err := repo.Describe(dir)
	if err != nil {
		return none, nil, refusedHere(err)
	}
	tmp, err := os.MkdirTemp("", "aster-base-")
	if err != nil {
		return none, nil, fmt.Errorf("bundle %s: %w", dir, err)
	}
	defer os.RemoveAll(tmp)
	path := filepath.Join(tmp, "base.bundle")
	if err := repo.BundleBase(dir, head, path); err != nil {
		return none, nil, refusedHere(err)
	}
	f, err := os.Open(path)
	if err != nil {
		return none, nil, fmt.Errorf("bundle %s: %w", dir, err)
	}
	defer f.Close()
	ref, err := c.PutBlob(ctx, "base.bundle", "application/x-git-bundle", f)
	if err != nil {
		return none, nil, err
	}
	ref.Use = "base"
	return ref, &repoName{root, head, name}, nil
}

// refusedHere gives what package repo says of a repository the exit code of a refusal.
func refusedHere(err error) error {
	var no *protocol.Refusal
	if errors.As(err, &no) {
		return err
	}
	return &exit{exitFailed, err.Error()}
}

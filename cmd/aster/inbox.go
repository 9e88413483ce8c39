package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/spf13/cobra"
)

func inboxCommand(a *app) *cobra.Command {
	var agent string
	var q client.InboxQuery
	var follow bool
	cmd := &cobra.Command{
		Use: "inbox", Short: "What is unread, oldest first; reading is not acknowledging", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.All && q.Dead {
				return usage("give --all or --dead, not both")
			}
			q.Agent = protocol.AgentID(agent)
			if follow {
				return a.followInbox(cmd.Context(), q)
			}
			return a.inbox(cmd.Context(), q)
		},
	}
	f := cmd.Flags()
	f.StringVar(&agent, "agent", "", "whose (default: the node's own agent's)")
	f.BoolVar(&q.All, "all", false, "also what was acknowledged")
	f.BoolVar(&q.Dead, "dead", false, "what was given up instead")
	f.BoolVarP(&follow, "follow", "f", false, "go on with what comes")
	return cmd
}

func (a *app) inbox(ctx context.Context, q client.InboxQuery) error {
	c, err := a.node()
	if err != nil {
		return err
	}
	defer c.Close()
	items, err := c.Inbox(ctx, q)
	if err != nil {
		return err
	}
	if len(items) == 0 && !a.json {
		a.talk("nothing unread")
	}
	for _, it := range items {
		if err := a.item(it); err != nil {
			return err
		}
	}
	if !a.json && !q.All && !q.Dead {
		a.sayFilled(items, q.Agent)
	}
	return nil
}

// sayFilled says when one sender's messages are most of what it may have here: soon it is refused.
func (a *app) sayFilled(items []api.InboxItem, agent protocol.AgentID) {
	of := map[protocol.AgentID]int{}
	for _, it := range items {
		of[it.From]++
	}
	for _, from := range slices.Sorted(maps.Keys(of)) {
		share := protocol.InboxShare(protocol.InboxItemsMax, len(items)-of[from])
		if len(items) < protocol.InboxWarnFrom || of[from]*100 < share*protocol.InboxWarnPercent {
			continue
		}
		with := a.typed("ack") + " --all"
		if from != "" {
			with = a.typed("ack") + " --from " + protocol.Typed(from)
		}
		if agent != "" {
			with += " --agent " + protocol.Typed(agent)
		}
		a.talk("%s of %s are unread, of at most %s: above that its messages are refused. When they are dealt with: %s",
			count(uint64(of[from])), dash(clean(string(from))), count(uint64(share)), clean(with))
	}
}

func (a *app) followInbox(ctx context.Context, q client.InboxQuery) error {
	a.following = true
	c, err := a.node()
	if err != nil {
		return err
	}
	defer func() { c.Close() }()
	for came := false; ; {
		err := c.FollowInbox(ctx, q, func(it api.InboxItem) (bool, error) {
			came = true
			q.After = max(q.After, it.Pos)
			return false, a.item(it)
		})
		if !isLost(err) || err == client.ErrNotRunning && !came {
			return err
		}
		next, err := a.nodeReturns(ctx)
		if err != nil {
			return err
		}
		c.Close()
		c, came = next, true
	}
}

func (a *app) item(it api.InboxItem) error {
	if a.json {
		return a.emit(it)
	}
	from := clean(string(it.From))
	if it.From == "" {
		from = map[protocol.Source]string{protocol.SourceBoard: "a person", protocol.SourceServer: "the node"}[it.Source]
	}
	line := fmt.Sprintf("%s  %s  %s from %s%s", clock(it.At), idOf(it.Intent, it.Short), clean(string(it.Intent)), dash(from), about(it))
	switch {
	case it.Dead != "":
		line += ", dead: " + clean(it.Dead)
	case it.Processed:
		line += ", acknowledged"
	}
	a.say("%s", line)
	if text := strings.TrimSpace(cleanBlock(it.Text)); text != "" {
		a.say("          %s", strings.ReplaceAll(text, "\n", "\n          "))
	}
	for _, b := range it.Blobs {
		use := ""
		if b.Use != "" {
			use = " (" + clean(b.Use) + ")"
		}
		a.say("          attached: %s%s, %s", dash(clean(b.Name)), use, bytesText(b.Bytes))
	}
	if len(it.Blobs) > 0 {
		a.say("          to have %s: %s %s --save DIR", map[bool]string{true: "it", false: "them"}[len(it.Blobs) == 1], a.typed("show"), idOf(it.Intent, it.Short))
	}
	return nil
}

// about says which message an item answers, and of a report how the work stands.
func about(it api.InboxItem) string {
	if it.Re == "" {
		return ""
	}
	short := protocol.ShortID(it.Re)
	if it.Intent != protocol.WorkerReport {
		return ", answers " + short
	}
	return " on " + idOf(protocol.Delegate, short) + ": " + standText(it.Value)
}

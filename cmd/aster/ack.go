package main

import (
	"context"
	"slices"
	"strings"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/spf13/cobra"
)

func ackCommand(a *app) *cobra.Command {
	var req api.AckRequest
	var agent, from string
	cmd := &cobra.Command{
		Use: "ack [ID...]", Short: "Say that messages are dealt with",
		Example: "  aster ack m-7kq2m\n  aster ack --from claude-shop\n  aster ack --all",
		RunE: func(cmd *cobra.Command, args []string) error {
			req.Agent, req.From, req.IDs = protocol.AgentID(agent), protocol.AgentID(from), args
			switch many := req.All || req.From != ""; {
			case many && len(args) > 0:
				return usage("name messages, or say --all or --from, not both")
			case req.All && req.From != "":
				return usage("give --all or --from, not both")
			case !many && len(args) == 0:
				return usage("say which: aster ack ID, --from AGENT or --all. What waits: aster inbox")
			}
			return a.ack(cmd.Context(), req)
		},
	}
	f := cmd.Flags()
	f.StringVar(&agent, "agent", "", "whose inbox (default: the node's own agent's, or of a message that is named its recipient's)")
	f.StringVar(&from, "from", "", "all that is unread from this agent")
	f.BoolVar(&req.All, "all", false, "all that is unread")
	return cmd
}

func (a *app) ack(ctx context.Context, req api.AckRequest) error {
	c, err := a.node()
	if err != nil {
		return err
	}
	defer c.Close()
	got, err := c.Ack(ctx, req)
	if err != nil {
		return err
	}
	for i, id := range got.Acked {
		before := slices.Contains(got.Before, id)
		switch {
		case a.json:
			line := map[string]any{"msgId": id, "tier": protocol.Processed}
			if before {
				line["before"] = true
			}
			err = a.emit(line)
		case len(req.IDs) == 0: // counted below
		case before:
			a.say("%s was processed already", clean(req.IDs[i]))
		default:
			a.say("%s processed", clean(req.IDs[i])) // as it was named
		}
		if err != nil {
			return err
		}
	}
	if !a.json && len(req.IDs) == 0 {
		a.sayAcked(req, got)
	}
	return nil
}

// sayAcked counts what was acknowledged at once, and names the work in it: that ends by a report alone.
func (a *app) sayAcked(req api.AckRequest, got api.AckResult) {
	of := ""
	if req.From != "" {
		of = " from " + clean(string(req.From))
	}
	left := "nothing is unread now"
	if got.Left > 0 {
		left = count(uint64(got.Left)) + " unread from others"
	}
	switch n := len(got.Acked); n {
	case 0:
		a.say("nothing%s was unread in the inbox of %s; %s", of, clean(string(got.Agent)), left)
	default:
		a.say("%s%s processed in the inbox of %s; %s", count(uint64(n)), of, clean(string(got.Agent)), left)
	}
	if n := len(got.Work); n > 0 {
		names := got.Work[:min(n, 5)]
		more := ""
		if n > len(names) {
			more = " and " + count(uint64(n-len(names))) + " more"
		}
		a.talk("of them were work: %s%s. Who gave it waits for a report: %s --re %s --status done --summary TEXT", strings.Join(names, ", "), more, a.typed("report"), names[0])
	}
}

package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/spf13/cobra"
)

func mainCommand(a *app) *cobra.Command {
	show := &cobra.Command{
		Use: "show", Short: "Say who is main, and who elects", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.showMain(cmd.Context()) },
	}
	var reason string
	var within time.Duration
	handoff := &cobra.Command{
		Use: "handoff AGENT", Short: "Ask main to hand over to an agent", Args: cobra.ExactArgs(1),
		Long: `Ask the main agent to hand over. It has ten seconds to say that it is ready; then the office moves in any case.
Claims and whatever main decided before stay as they are.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.handOver(cmd.Context(), api.HandoffRequest{Agent: protocol.AgentID(args[0]), Reason: reason}, within)
		},
	}
	handoff.Flags().StringVar(&reason, "reason", "", "why, for the main agent")
	handoff.Flags().DurationVar(&within, "timeout", 30*time.Second, "how long to wait until the other is main")
	var force bool
	take := &cobra.Command{
		Use: "take --force", Short: "Make this node main without an election", Args: cobra.NoArgs,
		Long: `Make this node main although too few nodes are here to elect it. Where a majority is linked an election needs no
command. If the former main still runs somewhere, claims that it granted may be held twice until their leases end;
what it decides from now on counts nowhere once the nodes meet again.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.takeMain(cmd.Context(), force) },
	}
	take.Flags().BoolVar(&force, "force", false, "do it, whatever may be held twice")
	cmd := group("main", "Who is main; hand over", show, handoff, take)
	cmd.RunE = show.RunE
	return cmd
}

func (a *app) showMain(ctx context.Context) error {
	c, err := a.node()
	if err != nil {
		return err
	}
	defer c.Close()
	m, err := c.Main(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return a.emit(m)
	}
	a.say("%s", mainText(m))
	if m.Fenced {
		return nil
	}
	if len(m.Voters) > 0 {
		a.say("who elects: %s", clean(strings.Join(m.Voters, ", ")))
	}
	switch {
	case m.Ended:
		a.say("It has handed over; the next main is not in office yet.")
	case m.Here && !m.Sure:
		a.say("It does not reach %s: another may be elected there, so it grants no claims.", clean(strings.Join(m.Missing, ", ")))
	case len(m.Missing) > 0:
		a.say("It does not reach %s, which are too few to elect another.", clean(strings.Join(m.Missing, ", ")))
	}
	return nil
}

// officeLook is how often a command looks whether the office has moved.
const officeLook = 100 * time.Millisecond

func (a *app) handOver(ctx context.Context, req api.HandoffRequest, within time.Duration) error {
	c, err := a.node()
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Handoff(ctx, req); err != nil {
		return err
	}
	if !a.json {
		a.talk("main was asked to hand over to %s; it has ten seconds to make ready", clean(string(req.Agent)))
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	m, err := awaitMain(ctx, c, req.Agent)
	if err != nil {
		return err
	}
	if a.json {
		return a.emit(m)
	}
	a.say("%s", mainText(m))
	return nil
}

// awaitMain returns when an agent is main, client.ErrTimedOut with ctx.
func awaitMain(ctx context.Context, c *client.Client, agent protocol.AgentID) (api.Main, error) {
	look := time.NewTicker(officeLook)
	defer look.Stop()
	for {
		m, err := c.Main(ctx)
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return m, client.ErrTimedOut
		case err != nil:
			return m, err
		case !m.Ended && protocol.FoldAgentID(m.Agent) == protocol.FoldAgentID(agent):
			return m, nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
		}
	}
}

func (a *app) takeMain(ctx context.Context, force bool) error {
	if !force {
		return usage("taking the office needs no majority and may give claims to two holders. See who is main: aster main show. To do it: aster main take --force")
	}
	c, err := a.node()
	if err != nil {
		return err
	}
	defer c.Close()
	out, err := c.TakeMain(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return a.emit(out)
	}
	a.say("%s", mainText(out.Main))
	if len(out.Twice) == 0 {
		a.say("No claim that is known here can be held twice.")
		return nil
	}
	a.say("Until their leases end, five minutes at most, these claims may be held twice:")
	for _, cl := range out.Twice {
		a.say("  %s  %s on %s", clean(strings.Join(cl.Scopes, ", ")), clean(string(cl.Agent)), clean(cl.NodeName))
	}
	return nil
}

package main

import (
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/spf13/cobra"
)

func agentMoveCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "move AGENT NODE", Short: "Give an agent another home; its unread mail goes along", Args: cobra.ExactArgs(2),
		Long: `Give an agent of this node a home on another node inside, named as aster peers does. Its unread mail goes along, once
and in order; its receipts, its tasks and what it said stay. From then on it attaches, reads and speaks there alone. Who is
attached here is told so and let go. An agent whose runner works on a task here is not moved: wait for the task or cancel it.

When its home is gone for good, or for longer than a minute, the same command on main's node moves it all the same. What the
other home had in hand is not known then: what it gave out and nobody acknowledged may be delivered again.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.node()
			if err != nil {
				return err
			}
			defer c.Close()
			moved, err := c.MoveAgent(cmd.Context(), protocol.AgentID(args[0]), args[1])
			if err != nil {
				return err
			}
			if a.json {
				return a.emit(struct {
					Event string `json:"event"`
					api.Moved
				}{"moved", moved})
			}
			a.sayMoved(&moved)
			return nil
		},
	}
}

// sayMoved says no more than is known: a new home that was not heard from may be on its way or not be up.
func (a *app) sayMoved(m *api.Moved) {
	who, node := clean(string(m.Agent)), clean(m.Node)
	if m.Forced {
		a.say("%s lives on %s now; %s was not asked, since it is gone", who, node, clean(m.FromNode))
		a.say("what %s gave out and nobody acknowledged may be delivered again", clean(m.FromNode))
	} else {
		a.say("%s lives on %s now, with %s unread", who, node, count(uint64(m.Unread)))
	}
	if m.Runner {
		a.say("its runner stays here and gets no more work: write a [worker] command for %s on %s, or give the one here another agent: aster up --replace --detach --agent NAME", who, node)
	}
	if !m.Taken {
		a.say("%s has not taken the mail over yet: it does when it is up and has all of it; until then the mail waits", node)
	}
}

package main

import (
	"fmt"
	"strconv"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/spf13/cobra"
)

func agentsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "agents", Short: "Every agent of the mesh, with its state and how it is woken", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listAgents(cmd, false) },
	}
}

func agentCommand(a *app) *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "The agents of this node", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listAgents(cmd, true) },
	}
	forget := &cobra.Command{
		Use: "forget AGENT", Short: "Take an agent off this node: its name becomes free, what it said stays", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.node()
			if err != nil {
				return err
			}
			defer c.Close()
			if err := c.ForgetAgent(cmd.Context(), protocol.AgentID(args[0])); err != nil {
				return err
			}
			if a.json {
				return a.emit(map[string]string{"event": "forgotten", "agent": args[0]})
			}
			a.say("%s is forgotten here", clean(args[0]))
			return nil
		},
	}
	rename := &cobra.Command{
		Use: "rename OLD NEW", Short: "Give an agent of this node another name; its unread mail goes along", Args: cobra.ExactArgs(2),
		Long: `Give an agent of this node another name. Its inbox goes along, what it said stays said under the old name, and answers
to that still reach it. New mail to the old name is refused with the new one; aster agent forget OLD frees the name.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.node()
			if err != nil {
				return err
			}
			defer c.Close()
			agent, err := c.RenameAgent(cmd.Context(), protocol.AgentID(args[0]), protocol.AgentID(args[1]))
			if err != nil {
				return err
			}
			if a.json {
				return a.emit(map[string]any{"event": "renamed", "agent": agent.ID, "was": args[0], "unread": agent.Unread})
			}
			a.say("%s is called %s now, with %s unread", clean(args[0]), clean(string(agent.ID)), count(uint64(agent.Unread)))
			return nil
		},
	}
	return group("agent", "Agents of this node", list, rename, agentMoveCommand(a), forget)
}

func (a *app) listAgents(cmd *cobra.Command, hereOnly bool) error {
	c, err := a.node()
	if err != nil {
		return err
	}
	defer c.Close()
	all, err := c.Agents(cmd.Context())
	if err != nil {
		return err
	}
	var shown []api.Agent
	elsewhere := false
	for _, g := range all {
		if g.Here || !hereOnly {
			shown = append(shown, g)
			elsewhere = elsewhere || !g.Here
		}
	}
	if a.json {
		return emitAll(a, shown)
	}
	if len(shown) == 0 {
		a.talk("no agents yet")
		return nil
	}
	table(a.stdout, agentRows(shown, elsewhere)...)
	return nil
}

// unreadText says how much waits; in bytes, too, when that nears the limit.
func unreadText(g api.Agent) string {
	text := strconv.Itoa(g.Unread)
	if g.UnreadBytes > protocol.InboxBytesMax/16 {
		text += fmt.Sprintf(" (%d MB)", g.UnreadBytes>>20)
	}
	switch {
	case g.Filled >= 100:
		text += ", full"
	case g.Filled > 0:
		text += fmt.Sprintf(", %d %% full", g.Filled)
	}
	return text
}

// agentRows leaves the node out while all agents are here.
func agentRows(agents []api.Agent, withNode bool) [][]string {
	head := []string{"AGENT", "ROLE", "STATE", "WAKES BY", "UNREAD"}
	if withNode {
		head = append(head, "NODE")
	}
	rows := [][]string{head}
	for _, g := range agents {
		row := []string{clean(string(g.ID)), string(g.Role), stateText(g), dash(clean(g.Wakes)), unreadText(g)}
		if withNode {
			row = append(row, clean(g.Node))
		}
		rows = append(rows, row)
	}
	return rows
}

func stateText(g api.Agent) string {
	text := string(g.State)
	if text == "" {
		text = string(protocol.StateUnknown)
	}
	if g.AsOf > 0 {
		return text + ", as of " + ago(g.AsOf) + " ago"
	}
	if g.Since > 0 {
		text += " " + ago(g.Since)
	}
	return text
}

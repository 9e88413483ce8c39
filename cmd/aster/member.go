package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/spf13/cobra"
)

func memberCommand(a *app) *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "Members with their certificates", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listMembers(cmd.Context()) },
	}
	renew := &cobra.Command{
		Use: "renew NODE", Short: "Give a member's certificate another term", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onMember(cmd.Context(), args[0], func(ctx context.Context, c *client.Client, p api.Peer) error {
				got, err := c.RenewMember(ctx, p.Peer)
				if err != nil {
					return err
				}
				if a.json {
					return a.emit(got)
				}
				a.say("%s is a member until %s", clean(p.Name), clock(got.Until))
				return nil
			})
		},
	}
	var reason string
	revoke := &cobra.Command{
		Use: "revoke NODE", Short: "End a membership: its links close within a second", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onMember(cmd.Context(), args[0], func(ctx context.Context, c *client.Client, p api.Peer) error {
				if p.Self {
					return refused("%s is this node. To leave the mesh: aster leave", clean(p.Name))
				}
				if err := c.RevokeMember(ctx, p.Peer, reason); err != nil {
					return err
				}
				if a.json {
					return a.emit(map[string]string{"event": "revoked", "peer": string(p.Peer), "name": p.Name})
				}
				a.say("%s is revoked", clean(p.Name))
				if st, err := c.Status(ctx); err == nil && st.Retention.Settled > 0 {
					a.say("what it said until %s is settled and stays as it is: the members have agreed on what those records come to", clock(st.Retention.Settled))
				}
				return nil
			})
		},
	}
	revoke.Flags().StringVar(&reason, "reason", "", "why, for everybody's board")
	return group("member", "Who belongs to the mesh", list, renew, revoke)
}

func (a *app) listMembers(ctx context.Context) error {
	c, err := a.node()
	if err != nil {
		return err
	}
	defer c.Close()
	peers, err := c.Peers(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return emitAll(a, peers)
	}
	names := map[protocol.PeerID]string{}
	for _, p := range peers {
		names[p.Peer] = clean(p.Name)
	}
	rows := [][]string{{"NODE", "ROLE", "UNTIL", "ADMITTED BY", "PEER"}}
	for _, p := range peers {
		until := "-"
		if p.Until > 0 {
			until = clock(p.Until)
		}
		if p.Revoked {
			until = "revoked"
		}
		by := names[p.Issuer]
		if by == "" {
			by = dash(string(p.Issuer))
		}
		rows = append(rows, []string{names[p.Peer], string(p.Role), until, by, string(p.Peer)})
	}
	table(a.stdout, rows...)
	return nil
}

// onMember finds the member that name means: a node's name, or a peer id or its end.
func (a *app) onMember(ctx context.Context, name string, do func(context.Context, *client.Client, api.Peer) error) error {
	c, err := a.node()
	if err != nil {
		return err
	}
	defer c.Close()
	peers, err := c.Peers(ctx)
	if err != nil {
		return err
	}
	var found []api.Peer
	var all []string
	for _, p := range peers {
		all = append(all, clean(p.Name))
		if p.Name == name || string(p.Peer) == name || len(name) >= 6 && strings.HasSuffix(string(p.Peer), name) {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 0:
		return refused("no node %q. Members: %s", clean(name), strings.Join(all, ", "))
	case 1:
		return do(ctx, c, found[0])
	}
	return refused("%d nodes are called %q. Say its peer id: aster member list", len(found), clean(name))
}

func leaveCommand(a *app) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "leave", Short: "Leave the mesh; what this node said stays with the others", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.node()
			if err != nil {
				return err
			}
			defer c.Close()
			if onTerminal(a.stdin) && !yes && !a.confirmed("leave the mesh? What this home holds is put aside, and coming back needs an invite [y/N] ") {
				return &exit{exitRefused, "nothing was done"}
			}
			if err := c.Leave(cmd.Context()); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), downWait)
			defer cancel()
			if err := a.gone(ctx, c.Node().PID); err != nil {
				return &exit{exitTimedOut, "the mesh is left, and the node still runs after " + span(downWait) + ". See why: aster logs"}
			}
			if a.json {
				return a.emit(map[string]string{"event": "left"})
			}
			a.say("left the mesh; the node has ended")
			return nil
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "ask nothing; without a terminal nothing is asked anyway")
	return cmd
}

// confirmed asks a person at the terminal; anything but y or yes is no.
func (a *app) confirmed(question string) bool {
	fmt.Fprint(a.stderr, question)
	line, _ := bufio.NewReader(a.stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true
	}
	return false
}

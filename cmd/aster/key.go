package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/spf13/cobra"
)

func keyCommand(a *app) *cobra.Command {
	return group("key", "Keys by which agents of other projects and machines join a board",
		keyIssueCommand(a), keyListCommand(a), keyRenewCommand(a), keyLabelCommand(a), keyRevokeCommand(a))
}

// life reads a --ttl: 0 has no end, less than that is a mistake.
func life(cmd *cobra.Command, ttl time.Duration, endless bool) (*int64, error) {
	if !cmd.Flags().Changed("ttl") {
		return nil, nil
	}
	ms := ttl.Milliseconds()
	if ms < 0 || ms == 0 && (ttl != 0 || !endless) {
		return nil, usage("--ttl %s: a key lives at least a millisecond", ttl)
	}
	return &ms, nil
}

func keyIssueCommand(a *app) *cobra.Command {
	var req api.KeyRequest
	var agent string
	var ttl time.Duration
	cmd := &cobra.Command{
		Use: "issue", Short: "Make a key: its string alone on stdout, once (of a local key: its file)", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch req.Kind {
			case "collab", "peer", "upstream", "local":
			default:
				return usage("--kind %s: a key is for collab, peer, upstream or local", req.Kind)
			}
			var err error
			if req.TTLMillis, err = life(cmd, ttl, true); err != nil {
				return err
			}
			req.Agent = protocol.AgentID(agent)
			c, err := a.node()
			if err != nil {
				return err
			}
			defer c.Close()
			got, err := c.IssueKey(cmd.Context(), req)
			if err != nil {
				return err
			}
			a.talk("%s", keyTalk(got))
			if a.json {
				return a.emit(got)
			}
			if got.File != "" {
				a.say("%s", got.File)
				return nil
			}
			a.say("%s", got.Secret)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&req.Kind, "kind", "collab", "what it lets in: collab, peer, upstream or local")
	f.StringVar(&req.Label, "label", "", "what the key is called here (default: its kind)")
	f.StringVar(&req.Note, "note", "", "what it is for, in your words")
	f.StringVar(&agent, "agent", "", "the only agent id that may use it (default: whoever uses it first)")
	f.DurationVar(&ttl, "ttl", protocol.KeyLife, "how long it works; 0 for ever")
	return cmd
}

// keyTalk says beside a new key what it is called and until when it works. The string is in none of it.
func keyTalk(got api.KeyIssued) string {
	words := got.Key.Ref + ", " + got.Key.Kind + ", " + keyEnd("until ", &got.Key)
	if got.File != "" {
		return words + "; the key lies in this file, which you alone can read. How to join with it: " + got.Page
	}
	hidden := strings.NewReplacer(got.Secret, "KEY")
	return words + "; shown this once\njoin at " + hidden.Replace(got.JoinURL) + ", how: " + hidden.Replace(got.Page)
}

func keyEnd(before string, k *api.Key) string {
	if k.Expires == 0 {
		return "no end"
	}
	return before + clock(k.Expires)
}

func keyListCommand(a *app) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "list", Short: "Keys with who uses them and until when", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.node()
			if err != nil {
				return err
			}
			defer c.Close()
			keys, err := c.Keys(cmd.Context(), all)
			if err != nil {
				return err
			}
			if a.json {
				return emitAll(a, keys)
			}
			if len(keys) == 0 {
				a.talk("no keys. Make one: aster key issue")
				return nil
			}
			rows := [][]string{{"KEY", "LABEL", "KIND", "STATE", "AGENT", "UNTIL", "RENEWED"}}
			for i := range keys {
				k := &keys[i]
				rows = append(rows, []string{k.Ref, clean(k.Label), k.Kind, keyState(k), dash(clean(string(k.Bound))), keyEnd("", k), strconv.Itoa(k.RenewCount)})
			}
			table(a.stdout, rows...)
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "those that are over as well")
	return cmd
}

// keyState is where a key is in its life, in people's words.
func keyState(k *api.Key) string {
	switch {
	case k.Lapsed:
		return "ended"
	case k.State == "REVOKED_PENDING":
		return "ends with its session"
	case k.State == "REVOKED" || k.State == "DELETED":
		return "revoked"
	case k.Connection == "never":
		return "unused"
	}
	return k.Connection
}

func keyRenewCommand(a *app) *cobra.Command {
	var ttl time.Duration
	cmd := &cobra.Command{
		Use: "renew KEY", Short: "Give a key another life; its string stays the same", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ms, err := life(cmd, ttl, false)
			if err != nil {
				return err
			}
			c, err := a.node()
			if err != nil {
				return err
			}
			defer c.Close()
			got, err := c.RenewKey(cmd.Context(), args[0], api.KeyRenewRequest{TTLMillis: ms})
			if err != nil {
				return err
			}
			if a.json {
				return a.emit(got)
			}
			a.say("%s %s works %s", got.Ref, clean(got.Label), keyEnd("until ", &got))
			return nil
		},
	}
	cmd.Flags().DurationVar(&ttl, "ttl", 0, "how long from now on (default: as long as the last time)")
	return cmd
}

func keyLabelCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "label KEY LABEL", Short: "Call a key something else", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.node()
			if err != nil {
				return err
			}
			defer c.Close()
			got, err := c.LabelKey(cmd.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			if a.json {
				return a.emit(got)
			}
			a.say("%s is called %s", got.Ref, clean(got.Label))
			return nil
		},
	}
}

func keyRevokeCommand(a *app) *cobra.Command {
	var gentle bool
	cmd := &cobra.Command{
		Use: "revoke KEY", Short: "End a key for good: its session closes within a second", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			mode := "immediate"
			if gentle {
				mode = "sessionEnd"
			}
			c, err := a.node()
			if err != nil {
				return err
			}
			defer c.Close()
			got, err := c.RevokeKey(cmd.Context(), args[0], mode)
			if err != nil {
				return err
			}
			if a.json {
				return a.emit(got)
			}
			if got.Key.State == "REVOKED_PENDING" {
				a.say("%s %s ends with its session, in %s at the latest", got.Key.Ref, clean(got.Key.Label), span(protocol.KeyGrace))
				return nil
			}
			a.say("%s %s is revoked", got.Key.Ref, clean(got.Key.Label))
			return nil
		},
	}
	cmd.Flags().BoolVar(&gentle, "at-session-end", false, "let its open session end by itself first")
	return cmd
}

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/aster-mesh/aster/protocol"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// app is what the commands of one call share.
type app struct {
	runNode        runNode
	stdin          io.Reader
	stdout, stderr io.Writer

	home      string // set before any command runs
	homeFrom  string // --home, ASTER_HOME or default
	json      bool
	following bool // the command goes on until it is interrupted, which is then no failure
	replacing bool // up takes the place of the node that runs
	usageHint string
	commands  map[string]bool // by name; nil before there are any
}

// newRoot lists every command; one that is not listed does not exist.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "aster",
		Short: "A mesh for the agents of several developers, without a server",
		Long: `aster runs a node beside your IDE. Nodes of one mesh keep each other's logs, so any of them may go.
Start here: aster up --detach, then aster board.`,
		SilenceErrors: true, SilenceUsage: true,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.PersistentFlags().StringVar(&a.home, "home", "", "folder of the node (ASTER_HOME; default "+tilde(defaultHome())+")")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON, one object a line")
	a.usageHint = "Help: aster -h"
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return a.findHome(cmd) }
	root.AddGroup(
		&cobra.Group{ID: "node", Title: "The node:"},
		&cobra.Group{ID: "talk", Title: "Messages and work:"},
		&cobra.Group{ID: "mesh", Title: "The mesh:"},
		&cobra.Group{ID: "self", Title: "aster itself:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("node", upCommand(a), downCommand(a), statusCommand(a), boardCommand(a), doctorCommand(a), exportCommand(a), importCommand(a), logsCommand(a))
	add("talk", sendCommand(a), delegateCommand(a), reportCommand(a), inboxCommand(a), ackCommand(a), waitCommand(a),
		showCommand(a), outboxCommand(a), tailCommand(a), searchCommand(a), taskCommand(a))
	add("mesh", peersCommand(a), agentsCommand(a), agentCommand(a), mainCommand(a), claimCommand(a), inviteCommand(a), memberCommand(a), keyCommand(a), operatorCommand(a), joinBoardCommand(a), leaveCommand(a))
	add("self", demoCommand(a), benchCommand(a), checkCommand(a), configCommand(a), versionCommand(a))
	a.commands = map[string]bool{}
	for _, c := range root.Commands() {
		a.commands[c.Name()] = true
	}
	root.AddCommand(keeperCommand())
	root.SetHelpCommandGroupID("self")
	root.SetCompletionCommandGroupID("self")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage("%s\nHelp: %s -h", err, cmd.CommandPath())
	})
	markRan(root)
	return root
}

// markRan tells mistakes of usage, which cobra finds before a command runs, from what the command itself returns.
func markRan(cmd *cobra.Command) {
	if work := cmd.RunE; work != nil {
		cmd.RunE = func(c *cobra.Command, args []string) error {
			if err := work(c, args); err != nil {
				return ran{err}
			}
			return nil
		}
	}
	if check := cmd.Args; check != nil {
		cmd.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return usage("%s\nHelp: %s -h", argsText(c, args, err), c.CommandPath())
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		markRan(sub)
	}
}

// argsText says what a command takes; cobra's own words only count.
func argsText(c *cobra.Command, args []string, err error) string {
	if own := (*exit)(nil); errors.As(err, &own) {
		return own.text
	}
	if strings.HasPrefix(err.Error(), "unknown command") && c.HasSubCommands() {
		return err.Error()
	}
	usage := strings.TrimSuffix(c.UseLine(), " [flags]")
	if len(args) == 0 {
		return "something is missing: " + usage
	}
	return fmt.Sprintf("%q does not fit: %s", clean(strings.Join(args, " ")), usage)
}

// group is a command that only holds others.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return cmd.Help()
	}}
	cmd.AddCommand(subs...)
	return cmd
}

// node returns the client of the home's node, after the home's rights were looked at.
func (a *app) node() (*client.Client, error) {
	if err := checkHome(a.home); err != nil {
		return nil, err
	}
	return client.Open(a.home)
}

// emit prints one object as one line.
func (a *app) emit(v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	_, err = a.stdout.Write(append(raw, '\n'))
	return err
}

func emitAll[T any](a *app, items []T) error {
	for i := range items {
		if err := a.emit(items[i]); err != nil {
			return err
		}
	}
	return nil
}

// say prints one line of data for a person.
func (a *app) say(format string, args ...any) { fmt.Fprintf(a.stdout, format+"\n", args...) }

// talk prints one line beside the data.
func (a *app) talk(format string, args ...any) {
	fmt.Fprintln(a.stderr, a.pasteable(fmt.Sprintf(format, args...)))
}

// onTerminal says whether a person watches w.
func onTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// textBytesMax bounds what is read from stdin as a text or a value: the node takes no longer message.
const textBytesMax = protocol.FrameBytesMax

// text joins the arguments, or reads stdin for "-".
func (a *app) text(args []string) (string, error) {
	if len(args) != 1 || args[0] != "-" {
		return joinWords(args), nil
	}
	raw, err := io.ReadAll(io.LimitReader(bufio.NewReader(a.stdin), textBytesMax+1))
	if err != nil {
		return "", fmt.Errorf("read stdin: %w", err)
	}
	if len(raw) > textBytesMax {
		return "", refused("stdin has more than %d MiB. Say where it is instead: a path, or a commit", textBytesMax>>20)
	}
	return trimEnd(string(raw)), nil
}

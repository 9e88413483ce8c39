package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/aster-mesh/aster/node"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// upOptions are the flags of up that are no settings.
type upOptions struct {
	detach, replace, leave, reclaim bool
	join                            string
}

func upCommand(a *app) *cobra.Command {
	var o upOptions
	cmd := &cobra.Command{
		Use: "up", Short: "Run a node, founding a mesh, joining one or going on", Args: cobra.NoArgs,
		Example: "  aster up --detach\n  aster up --detach --join -     (paste the invite, or pipe it in)",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.up(cmd, o) },
	}
	f := cmd.Flags()
	f.BoolVarP(&o.detach, "detach", "d", false, "return when it is ready and leave it running")
	f.BoolVar(&o.replace, "replace", false, "take the place of the node that runs here; its port stays open (on Windows it is stopped first)")
	f.StringVar(&o.join, "join", "", `invite of the mesh to join, or "-" to read it from stdin, hidden`)
	f.BoolVar(&o.leave, "leave", false, "with --join: leave the mesh that this node is the only member of")
	f.BoolVar(&o.reclaim, "reclaim", false, "go on in this home although a copy of it was started later elsewhere; end that one first")
	for _, s := range settings {
		switch {
		case s.flag == "mesh":
			f.StringArray(s.flag, nil, s.help)
		case s.flag != "":
			f.String(s.flag, "", s.help)
		}
	}
	return cmd
}

func (a *app) up(cmd *cobra.Command, o upOptions) error {
	ctx := cmd.Context()
	if o.leave && o.join == "" {
		return usage("--leave goes with --join: to leave a mesh for none, aster leave")
	}
	if err := checkHome(a.home); err != nil {
		return err
	}
	cfg, err := settle(a.home, cmd.Flags())
	if err != nil {
		return err
	}
	a.replacing = o.replace
	if !o.replace {
		if pid, ok := a.running(ctx); ok {
			return a.already(pid, o.join != "")
		}
	}
	if cfg.BoardListener, err = inherited(); err != nil {
		return err
	}
	if cfg.BoardListener != nil && o.detach {
		return usage("the service manager gave a socket to this process, which --detach would leave: run aster up without --detach")
	}
	if cfg.Join, err = a.invite(o.join); err != nil {
		return err
	}
	cfg.Leave, cfg.Reclaim = o.leave, o.reclaim
	if err := os.MkdirAll(a.home, 0o700); err != nil {
		return fmt.Errorf("make home: %w", err)
	}
	_, err = os.Stat(filepath.Join(a.home, "mesh.json"))
	fresh := errors.Is(err, os.ErrNotExist)
	announce := func(r api.Ready) error { return a.announce(ctx, r, fresh) }
	switch {
	case o.detach:
		return a.detach(ctx, childArgs(cmd, o), cfg.Join, announce)
	case os.Getenv(detachedEnv) != "":
		return a.background(ctx, cfg.Config)
	}
	return a.foreground(ctx, cfg.Config, announce)
}

// running asks whether a node of this home answers.
func (a *app) running(ctx context.Context) (pid int, ok bool) {
	c, err := client.Open(a.home)
	if err != nil {
		return 0, false
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	s, err := c.Status(ctx)
	return s.PID, err == nil && sameFolder(s.Home, a.home)
}

// sameFolder is false in a copied home: its node.json leads to the node of the other.
func sameFolder(one, other string) bool {
	a, err := os.Stat(one)
	if err != nil {
		return true // it cannot be told; the lock will
	}
	b, err := os.Stat(other)
	return err != nil || os.SameFile(a, b)
}

func (a *app) already(pid int, joining bool) error {
	if joining {
		a.talk("the invite was not used: this node is up already")
	}
	if a.json {
		return a.emit(map[string]any{"event": "running", "pid": pid})
	}
	if pid == 0 { // its node.json is being written
		a.say("already running")
		return nil
	}
	a.say("already running pid %d", pid)
	return nil
}

// inviteBytesMax is far above any invite: addresses of one node, a secret, a signature.
const inviteBytesMax = 64 << 10

// invite returns what --join names. "-" reads it without echo from a terminal, or a line of a pipe.
func (a *app) invite(join string) (string, error) {
	if join != "-" {
		return join, nil
	}
	var line string
	if f, ok := a.stdin.(*os.File); ok && onTerminal(f) {
		fmt.Fprint(a.stderr, "paste the invite (hidden): ")
		raw, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(a.stderr)
		if err != nil {
			return "", fmt.Errorf("read invite: %w", err)
		}
		line = string(raw)
	} else {
		var err error
		line, err = bufio.NewReader(io.LimitReader(a.stdin, inviteBytesMax)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("read invite: %w", err)
		}
	}
	if line = strings.TrimSpace(line); line == "" {
		return "", refused("no invite came. Make one on a member's node: aster invite")
	}
	return line, nil
}

// serve runs the node and calls ready once, if it gets there. It returns when the node has ended.
func (a *app) serve(ctx context.Context, cfg node.Config, ready func(api.Ready) error) error {
	came := make(chan api.Ready, 1)
	cfg.Ready = func(r api.Ready) { came <- r }
	ended := make(chan error, 1)
	if a.replacing {
		if err := a.takePlace(ctx, &cfg); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() { ended <- a.runNode(ctx, cfg) }()
	var err error
	select {
	case r := <-came:
		if said := ready(r); said != nil {
			stop()
			return errors.Join(said, <-ended)
		}
		err = <-ended
	case err = <-ended:
		select {
		case r := <-came: // it was ready, and ended before anybody looked
			err = errors.Join(ready(r), err)
		default:
		}
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return nil // somebody ended it
	}
	return err
}

func (a *app) foreground(ctx context.Context, cfg node.Config, announce func(api.Ready) error) error {
	file := newLogFile(a.home)
	defer file.Close()
	cfg.Log = slog.New(newPacedLog(slog.NewMultiHandler(logHandler(file, slog.LevelInfo), logHandler(a.stderr, slog.LevelWarn))))
	err := a.serve(ctx, cfg, announce)
	var other *node.RunningError
	if errors.As(err, &other) { // it was starting when we asked
		return a.already(other.File.PID, cfg.Join != "")
	}
	return err
}

// announce says that the node is up: the first line of --json, or a few for a person.
func (a *app) announce(ctx context.Context, r api.Ready, fresh bool) error {
	for _, w := range r.Warnings {
		a.talk("%s", clean(w))
	}
	if a.json {
		return a.emit(r)
	}
	if j := r.Joined; j != nil {
		how := "relayed"
		if j.Direct {
			how = "direct"
		}
		if j.RTTMicros > 0 {
			how += ", " + span(time.Duration(j.RTTMicros)*time.Microsecond)
		}
		a.say("%s joined as %s through %s: %s, %s, %s of %s records", clean(r.Name), r.Role, clean(j.Through), clean(j.Transport), how,
			count(j.Records), count(j.Of))
		return nil
	}
	what, agents := string(r.Role), ""
	if c, err := client.Open(a.home); err == nil {
		defer c.Close()
		what, agents = a.standing(ctx, c, fresh)
	}
	a.say("%s is up, pid %d, %s. Stop: %s", clean(r.Name), r.PID, what, a.typed("down"))
	a.say("open the board: %s", a.typed("board"))
	if agents != "" {
		a.say("agents: %s", agents)
	}
	return nil
}

// standing is what this node is in its mesh, and who is attached.
func (a *app) standing(ctx context.Context, c *client.Client, fresh bool) (what, agents string) {
	s, err := c.Status(ctx)
	if err != nil {
		return "starting", ""
	}
	role := string(s.Role)
	if s.Main.Here {
		role = "main"
	}
	switch {
	case fresh:
		what = role + " of a new mesh"
	case s.Nodes <= 1:
		what = role + ", alone in its mesh"
	default:
		what = fmt.Sprintf("%s in a mesh of %d, %d linked", role, s.Nodes, s.Linked)
	}
	list, err := c.Agents(ctx)
	if err != nil {
		return what, ""
	}
	var here []string
	for _, g := range list {
		if g.Here {
			here = append(here, clean(string(g.ID)))
		}
	}
	if len(here) == 0 {
		return what, "none yet: they attach at " + strings.Replace(s.Board, "http", "ws", 1) + "/ws"
	}
	return what, strings.Join(here, ", ")
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/aster-mesh/aster/cmd/aster/internal/demo"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/spf13/cobra"
)

func demoCommand(a *app) *cobra.Command {
	var once bool
	cmd := &cobra.Command{
		Use: "demo", Short: "A mesh of four nodes on this machine, with work that really runs, until you interrupt it", Args: cobra.NoArgs,
		Long: `Four nodes of this program start on loopback, with homes in a temporary folder: main, local, upstream and collab.
devbox hands mac-mini a task in a small git repository; what comes back is a commit. The board shows all of it.
It needs git. Nothing of yours is touched, and everything is removed in the end.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context(), once) },
	}
	cmd.Flags().BoolVar(&once, "exit", false, "end after the last line")
	_ = cmd.Flags().MarkHidden("exit") // fails only for a flag that is not there
	cmd.AddCommand(&cobra.Command{
		Use: "work", Hidden: true, Args: cobra.NoArgs,
		Short: "Do one of the demo's tasks in this folder",
		RunE:  func(*cobra.Command, []string) error { return demo.Work(".", a.stdin, a.stdout) },
	})
	return cmd
}

// showing is one demo being shown.
type showing struct {
	a    *app
	mesh *demo.Mesh
	self string

	checks bool // the repository's check can run here; set by show
}

func (a *app) demo(ctx context.Context, once bool) error {
	if a.json {
		return usage("aster demo is for people to read; a script starts nodes itself: aster up --json")
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP) // a terminal that closes, too, leaves nothing behind
	defer stop()
	// A second Ctrl-C would end us before the four nodes; whoever presses it gets what the first one began.
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(again)
	// Whoever reads our output may leave (aster demo | head). That is an error of a write then, and not our end on the spot.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	mesh, err := demo.Start(ctx, demo.Config{Self: self, Alive: alive})
	if err != nil && ctx.Err() != nil {
		return nil // interrupted, which is how it ends
	}
	if err != nil {
		return failed("%s", err)
	}
	err = (&showing{a: a, mesh: mesh, self: self}).show(ctx)
	if err == nil && !once {
		err = a.goOn(ctx, mesh)
	}
	if ctx.Err() != nil || errors.Is(err, errUnread) {
		err = nil // interrupted, which is how it ends
	}
	if err = mesh.Stop(err); err != nil {
		return failed("%s", err)
	}
	return nil
}

// goOn waits for the end of the demo: an interruption, or that no node is left. Whoever kills one sees the others go on.
func (a *app) goOn(ctx context.Context, mesh *demo.Mesh) error {
	for left := len(mesh.Nodes) - 1; ; left-- {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-mesh.Ended:
			if left == 0 {
				return err
			}
			first, _, _ := strings.Cut(err.Error(), "\n")
			a.say("%s; %s", first, plural(left, "node goes on", "nodes go on"))
		}
	}
}

// show is the whole transcript.
func (s *showing) show(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var roles []string
	for _, n := range s.mesh.Nodes {
		roles = append(roles, n.Name+" "+string(n.Role))
	}
	if err := s.say("%d nodes on loopback: %s", len(s.mesh.Nodes), strings.Join(roles, ", ")); err != nil {
		return err
	}
	if s.checks = demo.CanCheck(ctx); !s.checks {
		s.a.talk("no go that can build here: the repository's own check (%s) is left out", demo.Check)
	}
	devbox, guest := s.mesh.Node("devbox"), s.mesh.Node("guest")
	waits := make(chan error, 1)
	go func() { waits <- answer(ctx, guest) }()
	defer func() { cancel(nil); <-waits }()

	mend, err := s.delegate(ctx, "mac-mini", demo.Task, protocol.Replicated)
	if err != nil {
		return err
	}
	write, err := s.delegate(ctx, "build-1", demo.Write, protocol.Persisted)
	if err != nil {
		return err
	}
	if err := s.ask(ctx, devbox, guest); err != nil {
		return err
	}
	for _, id := range []protocol.MsgID{mend, write} {
		t, err := demo.Follow(ctx, devbox, id)
		if err != nil {
			return s.cut(ctx, err)
		}
		if err := s.say("%-*s  %s", nameWidth(), clean(t.NodeName), endText(string(t.State), clean(t.Summary), t)); err != nil {
			return err
		}
		if t.State != api.TaskDone {
			return fmt.Errorf("%s was to end as done. Its reports: aster task show %s --home %s", taskID(t), taskID(t), devbox.Home)
		}
	}
	return s.farewell(ctx, devbox, mend)
}

// nameWidth aligns what the nodes say under "devbox -> mac-mini".
func nameWidth() int { return len("devbox -> mac-mini") }

// delegate hands a task over and says how far it got, up to a tier.
func (s *showing) delegate(ctx context.Context, to, task string, tier protocol.Tier) (protocol.MsgID, error) {
	devbox := s.mesh.Node("devbox")
	o := delegateOptions{to: to, repo: s.mesh.Shop}
	if task == demo.Task && s.checks {
		o.accept = []string{demo.Check}
	}
	req, err := s.a.delegation(ctx, devbox.Client, o, task)
	if err != nil {
		return "", s.cut(ctx, err)
	}
	return s.tell(ctx, devbox, req, task, tier)
}

// ask puts a question to a node of another project, which may be asked and not be told.
func (s *showing) ask(ctx context.Context, from, guest *demo.Node) error {
	const question = "may shop keep prices in cents?"
	raw, err := json.Marshal(map[string]string{"text": question})
	if err != nil {
		return err
	}
	_, err = s.tell(ctx, from, api.SendRequest{To: protocol.AgentID(guest.Name), Intent: protocol.Request, Value: raw}, question, protocol.Processed)
	return err
}

// tell sends and prints one line: who, what, and after which time which receipt came.
func (s *showing) tell(ctx context.Context, from *demo.Node, req api.SendRequest, text string, tier protocol.Tier) (protocol.MsgID, error) {
	began := time.Now()
	got, err := from.Client.Send(ctx, req)
	if err != nil {
		return "", s.cut(ctx, fmt.Errorf("%s to %s: %w", req.Intent, req.To, err))
	}
	logged := time.Since(began)
	if _, err := from.Client.WaitTier(ctx, string(got.MsgID), tier, 20*time.Second); err != nil {
		return "", s.cut(ctx, fmt.Errorf("%s is not %s: %w", idOf(req.Intent, got.Short), tier, err))
	}
	err = s.say("%-*s  %-8s %s %q  logged %s, %s %s", nameWidth(), from.Name+" -> "+string(req.To), req.Intent, idOf(req.Intent, got.Short), text,
		span(logged), tier, span(time.Since(began)))
	return got.MsgID, err
}

// cut prefers what ended: an interruption, or the node that a call was to.
func (s *showing) cut(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case ended := <-s.mesh.Ended:
		return ended
	default:
		return err
	}
}

// answer is what guest's agent does: it waits for mail, takes the question up and answers it.
func answer(ctx context.Context, guest *demo.Node) error {
	me := protocol.AgentID(guest.Name)
	if _, err := guest.Client.Wait(ctx, me, false, time.Minute); err != nil {
		return err
	}
	items, err := guest.Client.Inbox(ctx, client.InboxQuery{Agent: me})
	if err != nil {
		return err
	}
	for _, item := range items {
		if _, err := guest.Client.Ack(ctx, api.AckRequest{Agent: me, IDs: []string{string(item.MsgID)}}); err != nil {
			return err
		}
		raw, err := json.Marshal(map[string]string{"text": "yes, cents"})
		if err != nil {
			return err
		}
		reply := api.SendRequest{From: me, To: item.From, Intent: protocol.Response, Re: item.MsgID, Value: raw}
		if _, err := guest.Client.Send(ctx, reply); err != nil {
			return err
		}
	}
	return nil
}

// farewell says what can be done now.
func (s *showing) farewell(ctx context.Context, devbox *demo.Node, mend protocol.MsgID) error {
	link, err := devbox.Client.BoardLink(ctx)
	if err != nil {
		return s.cut(ctx, err)
	}
	var lines []string
	if named := s.nearby(); named != "" {
		lines = append(lines, "aster  is not on your PATH: type "+tilde(named)+" instead")
	}
	id := idOf(protocol.Delegate, protocol.ShortID(mend))
	return s.say("%s", strings.Join(append(lines,
		fmt.Sprintf("in     %s: aster task fetch %s --home %s", tilde(s.mesh.Shop), id, tilde(devbox.Home)),
		fmt.Sprintf("board  %s  (this link opens it once)", link),
		"Ctrl-C stops everything and removes its files"), "\n"))
}

// say prints one line. An error means that nobody reads any more.
func (s *showing) say(format string, args ...any) error {
	if _, err := fmt.Fprintf(s.a.stdout, format+"\n", args...); err != nil {
		return errUnread
	}
	return nil
}

// errUnread ends the demo as an interruption does.
var errUnread = errors.New("nobody reads the output")

// nearby puts this program under its name beside the repository, when the shell would not find it: go run builds into a
// folder that nobody wants to type. It returns that path, or "" when typing aster will do.
func (s *showing) nearby() string {
	if found, err := exec.LookPath("aster"); err == nil && sameProgram(found, s.self) {
		return ""
	}
	path := filepath.Join(s.mesh.Dir, "aster")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if os.Symlink(s.self, path) == nil || os.Link(s.self, path) == nil {
		return path
	}
	return s.self
}

func sameProgram(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

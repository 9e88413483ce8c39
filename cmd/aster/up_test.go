package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/node"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// stands is a node that is ready at once and runs until it is stopped.
func stands(got *node.Config, r api.Ready, stop context.CancelFunc) runNode {
	return func(ctx context.Context, cfg node.Config) error {
		*got = cfg
		cfg.Log.Info("started", "invite", "aster1-secret")
		cfg.Ready(r)
		stop()
		<-ctx.Done()
		return context.Cause(ctx)
	}
}

func up(t *testing.T, r api.Ready, stdin string, args ...string) (typed, node.Config) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var cfg node.Config
	got := typeCtx(ctx, stands(&cfg, r, stop), stdin, append([]string{"up"}, args...)...)
	return got, cfg
}

func TestUpPrintsOneReadyLineForPrograms(t *testing.T) {
	home := newHome(t)
	want := api.Ready{Event: "ready", Board: "http://127.0.0.1:7878", Peer: "12D3", Mesh: []string{"/ip4/127.0.0.1/tcp/1"}, PID: 5120, Name: "devbox", Role: protocol.RoleLocal}
	got, cfg := up(t, want, "", "--json", "--home", home, "--name", "devbox", "--agent", "claude-shop")
	var ready api.Ready
	if err := json.Unmarshal([]byte(got.out), &ready); err != nil || got.code != 0 || strings.Count(got.out, "\n") != 1 {
		t.Fatalf("exit %d, %q, %v", got.code, got.out, err)
	}
	if ready.PID != 5120 || ready.Event != "ready" || cfg.Name != "devbox" || cfg.Agent != "claude-shop" || cfg.Home != home || !cfg.Access.Keyless {
		t.Errorf("ready %+v, config %+v", ready, cfg)
	}
	log, err := os.ReadFile(filepath.Join(home, logName))
	if err != nil || !strings.Contains(string(log), "started") || strings.Contains(string(log), "aster1-secret") {
		t.Errorf("log %q, %v", log, err)
	}
}

func TestUpSpeaksToAPersonAsTheFirstRunPromises(t *testing.T) {
	f := newFake(t, map[string]any{
		"GET /status": api.Status{Name: "devbox", Board: "http://127.0.0.1:7878", Nodes: 1, Main: api.Main{Here: true}},
		"GET /agents": map[string]any{"agents": []api.Agent{}},
	})
	// The node is not up before it is: its file appears with it.
	nodeFile := filepath.Join(f.home, "node.json")
	raw, err := os.ReadFile(nodeFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(nodeFile); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	got := typeCtx(ctx, func(ctx context.Context, cfg node.Config) error {
		if err := os.WriteFile(nodeFile, raw, 0o600); err != nil {
			return err
		}
		cfg.Ready(api.Ready{Event: "ready", Name: "devbox", PID: 5120, Role: protocol.RoleLocal, Warnings: []string{"port 7878 is taken"}})
		// Ends by itself: what was said is what counts.
		return nil
	}, "", "up", "--home", f.home)
	typed := "aster --home " + tilde(f.home)
	want := "devbox is up, pid 5120, main of a new mesh. Stop: " + typed + " down\nopen the board: " + typed + " board\nagents: none yet: they attach at ws://127.0.0.1:7878/ws\n"
	if got.code != 0 || got.out != want || got.err != "port 7878 is taken\n" {
		t.Fatalf("exit %d\n%s%s", got.code, got.out, got.err)
	}
}

func TestAJoinSaysThroughWhomAndHowMuchCame(t *testing.T) {
	r := api.Ready{Event: "ready", Name: "mac-mini", Role: protocol.RoleLocal, Joined: &api.Joined{Through: "devbox", Transport: "tcp", Direct: true, RTTMicros: 1800, Records: 214, Of: 214}}
	got, cfg := up(t, r, "aster1-abc\n", "--join", "-", "--home", newHome(t))
	if want := "mac-mini joined as local through devbox: tcp, direct, 1.8 ms, 214 of 214 records\n"; got.out != want || got.code != 0 {
		t.Errorf("exit %d, %q, want %q", got.code, got.out, want)
	}
	if cfg.Join != "aster1-abc" {
		t.Errorf("join %q", cfg.Join)
	}
}

func TestAnEmptyInviteIsRefused(t *testing.T) {
	got := typeIn(t, nil, "\n", "up", "--join", "-", "--home", newHome(t))
	if got.code != 4 || got.err != "no invite came. Make one on a member's node: aster invite\n" {
		t.Errorf("exit %d, %q", got.code, got.err)
	}
}

func TestARefusedInviteExits4WithTheNodesWords(t *testing.T) {
	no := protocol.Refuse(protocol.CodeInviteUsed, "invite refused: used 3 min ago by mac-mini", "New one, on a member's node: aster invite")
	got := typeIn(t, func(context.Context, node.Config) error { return no }, "aster1-x\n", "up", "--join", "-", "--home", newHome(t))
	if want := "invite refused: used 3 min ago by mac-mini. New one, on a member's node: aster invite\n"; got.code != 4 || got.err != want {
		t.Errorf("exit %d, %q, want %q", got.code, got.err, want)
	}
}

func TestASecondStartSaysThatOneRuns(t *testing.T) {
	f := newFake(t, map[string]any{"GET /status": api.Status{PID: 5120}})
	started := func(context.Context, node.Config) error { return errors.New("a second node was started") }
	for args, want := range map[string]string{"up": "already running pid 5120\n", "up --detach": "already running pid 5120\n", "up --json": `{"event":"running","pid":5120}` + "\n"} {
		got := typeIn(t, started, "", append(strings.Fields(args), "--home", f.home)...)
		if got.code != 0 || got.out != want {
			t.Errorf("aster %s: exit %d, %q %q", args, got.code, got.out, got.err)
		}
	}
	// It was still starting when we asked, and holds the lock.
	locked := func(context.Context, node.Config) error { return &node.RunningError{File: api.NodeFile{PID: 77}} }
	if got := typeIn(t, locked, "", "up", "--home", newHome(t)); got.code != 0 || got.out != "already running pid 77\n" {
		t.Errorf("exit %d, %q", got.code, got.out)
	}
}

func TestANodeThatEndsWithAnErrorFailsTheCommand(t *testing.T) {
	got := typeIn(t, func(context.Context, node.Config) error { return errors.New("open store: disk is broken") }, "", "up", "--home", newHome(t))
	if got.code != 1 || got.err != "open store: disk is broken\n" {
		t.Errorf("exit %d, %q", got.code, got.err)
	}
}

func TestTheInviteIsNoArgumentOfTheChild(t *testing.T) {
	cmd := upCommand(&app{})
	if err := cmd.ParseFlags([]string{"--detach", "--join=aster1-secret", "--leave", "--name=x", "--mesh=/a", "--mesh=/b,c"}); err != nil {
		t.Fatal(err)
	}
	args := strings.Join(childArgs(cmd, upOptions{join: "aster1-secret"}), " ")
	if want := "up --leave=true --mesh=/a --mesh=/b,c --name=x --join=-"; args != want {
		t.Errorf("child gets %q, want %q", args, want)
	}
}

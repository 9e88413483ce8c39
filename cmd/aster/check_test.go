package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node"
	"github.com/aster-mesh/aster/protocol/api"
)

// alone runs a node in this process until the test ends and returns its /ws.
func alone(t *testing.T) string {
	t.Helper()
	_, at := aloneIn(t)
	return at
}

// aloneIn also returns the node's home.
func aloneIn(t *testing.T) (home, socket string) {
	t.Helper()
	home = filepath.Join(t.TempDir(), "home")
	ready := make(chan api.Ready, 1)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- node.Run(ctx, node.Config{Home: home, Name: "here", Board: "127.0.0.1:0", Version: "test",
			Access: node.AccessConfig{Keyless: true}, Ready: func(r api.Ready) { ready <- r }})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("node ended with %v", err)
		}
	})
	select {
	case r := <-ready:
		return home, "ws" + strings.TrimPrefix(r.Board, "http") + "/ws"
	case <-time.After(20 * time.Second):
		t.Fatal("node not ready within 20 s")
		return "", ""
	}
}

// TestNodeKeepsTheContract plays the quick vectors; with ASTER_LONG=1 also those that wait.
func TestNodeKeepsTheContract(t *testing.T) {
	args := []string{"check", alone(t), "--patience", "20s"}
	if os.Getenv("ASTER_LONG") != "" {
		args = append(args, "--slow")
	}
	got := typeIn(t, nil, "", args...)
	if got.code != exitOK || got.err != "" || !strings.Contains(got.out, "ok       DLV-1 ") || strings.Contains(got.out, "BROKEN") {
		t.Errorf("exit %d\n%s\n%s", got.code, got.out, got.err)
	}
}

func TestCheckSaysWhatIsLeftOutAndWhatIsWrong(t *testing.T) {
	at := alone(t)
	got := typeIn(t, nil, "", "check", at, "--filter", "LIV-1")
	if got.code != exitOK || !strings.Contains(got.out, "unproved LIV-1") || !strings.Contains(got.out, "1 slow vector left out, --slow plays them: dead-connection") {
		t.Errorf("exit %d\n%s%s", got.code, got.out, got.err)
	}
	// Somebody who is not main there is taken for main: the rule about it breaks, with the frame that came.
	got = typeIn(t, nil, "", "check", at, "--filter", "ROL-2", "--main", "somebody", "--patience", "1s")
	if got.code != exitFailed || !strings.Contains(got.out, "BROKEN   ROL-2") || !strings.Contains(got.out, `came: {"type":"CUSTOM"`) {
		t.Errorf("exit %d\n%s%s", got.code, got.out, got.err)
	}
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"check"}, exitUsage}, {[]string{"check", at, "--filter", "nothing of the kind"}, exitUsage},
		{[]string{"check", "http://127.0.0.1"}, exitFailed}, {[]string{"check", "ws://127.0.0.1:1/ws"}, exitFailed},
	} {
		if got := typeIn(t, nil, "", c.args...); got.code != c.code || got.err == "" {
			t.Errorf("aster %v: exit %d, want %d: %s", c.args, got.code, c.code, got.err)
		}
	}
}

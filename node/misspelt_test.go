package node

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

func TestASlipIsOneLetter(t *testing.T) {
	for _, c := range []struct {
		a, b string
		slip bool
	}{
		{"claude-shop", "claude-shp", true}, {"claude-shop", "cluade-shop", true}, {"claude-shop", "claude-shopp", true}, {"claude-shop", "claude-shap", true},
		{"agent-1", "agent-2", false}, {"agent", "agent-2", false}, {"agent", "agent2", false}, {"anna", "anne", false}, {"claude-shop", "claude-shop", false},
		{"codex-shop", "claude-shop", false}, {"worker", "walker", false}, {"", "abcdef", false},
		{"typo", "typoo", true}, {"anna", "annas", false}, {"bob", "bobb", false},
	} {
		if slip(c.a, c.b) != c.slip || slip(c.b, c.a) != c.slip {
			t.Errorf("%q and %q: %v", c.a, c.b, !c.slip)
		}
	}
}

// TestAMisspeltSenderIsNoNewAgent: nothing is sent, the right name is said, and so is how to mean it.
func TestAMisspeltSenderIsNoNewAgent(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.probe = func(x *Node) { n = x } })
	r.attach(t, "main-agent")
	req := api.SendRequest{From: "main-agnet", To: "main-agent", Intent: protocol.Request, Value: []byte(`{"text":"x"}`)}
	var no *protocol.Refusal
	if _, err := n.Send(t.Context(), req); !errors.As(err, &no) || no.Code != protocol.CodeUnknownAgent || !strings.Contains(no.Reason, "main-agent") || !strings.Contains(no.Hint, "--new") {
		t.Fatalf("sent under a slip of the hand: %v", err)
	}
	if known(t, n, "main-agnet") {
		t.Error("and made an agent")
	}
	req.New = true
	if _, err := n.Send(t.Context(), req); err != nil || !known(t, n, "main-agnet") {
		t.Errorf("meant so: %v", err)
	}
}

// TestAMisspeltNameNeitherWaitsNorClaims: it would wait for ever, or hold what nobody gives up. The node's own agent counts before it
// has done anything.
func TestAMisspeltNameNeitherWaitsNorClaims(t *testing.T) {
	var n *Node
	start(t, func(c *Config) { c.probe = func(x *Node) { n = x } })
	var no *protocol.Refusal
	refused := func(what string, err error) {
		t.Helper()
		if !errors.As(err, &no) || no.Code != protocol.CodeUnknownAgent || !strings.Contains(no.Reason, "main-agent") || !strings.Contains(no.Hint, "--new") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := n.Wait(t.Context(), "main-agnet", false)
	refused("waits", err)
	if _, err = n.Wait(t.Context(), "somebody", false); !errors.As(err, &no) || no.Code != protocol.CodeUnknownAgent || !strings.Contains(no.Hint, "--new") {
		t.Errorf("waits under a name that nobody has: %v", err)
	}
	if known(t, n, "somebody") {
		t.Error("and made an agent")
	}
	claim := api.ClaimRequest{Agent: "main-agnet", Scopes: []string{"src"}, PID: os.Getpid()}
	_, err = n.Acquire(t.Context(), claim)
	refused("claims", err)
	if known(t, n, "main-agnet") {
		t.Error("and made an agent")
	}
	claim.New = true
	if got, err := n.Acquire(t.Context(), claim); err != nil || got.Agent != "main-agnet" {
		t.Errorf("meant so: %+v, %v", got, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := n.Wait(ctx, "main-agent-x", true); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a new agent waits: %v", err)
	}
}

// TestARevokedNodeSaysThatNobodyTakesItsWords: and logs nothing.
func TestARevokedNodeSaysThatNobodyTakesItsWords(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.probe = func(x *Node) { n = x } })
	main := r.attach(t, "main-agent")
	by := "devbox"
	n.revokedBy.Store(&by)
	var no *protocol.Refusal
	if _, err := n.Send(t.Context(), api.SendRequest{To: "main-agent", Intent: protocol.Request, Value: []byte(`{}`)}); !errors.As(err, &no) || no.Code != protocol.CodeRevoked {
		t.Errorf("sent: %v", err)
	}
	main.send(t, map[string]any{"type": "CUSTOM", "name": "Request", "targetAgentId": "main-agent", "msgId": "m1", "value": map[string]any{}})
	if f := main.next(t, "ServerNotice"); !strings.Contains(string(f.Value), protocol.CodeRevoked) {
		t.Errorf("told %s", f.Value)
	}
}

// TestAnotherNameForAnOldHomeIsSaid: the certificate holds the name, and who asks for another hears so.
func TestAnotherNameForAnOldHomeIsSaid(t *testing.T) {
	r := start(t, func(c *Config) { c.Name = "devbox" })
	r.stop()
	var n *Node
	start(t, func(c *Config) { c.Home, c.Name = r.home, "laptop"; c.probe = func(x *Node) { n = x } })
	st, err := n.Status(t.Context())
	if said := strings.Join(st.Warnings, "\n"); err != nil || !strings.Contains(said, "devbox") || !strings.Contains(said, "laptop") {
		t.Errorf("said %q, %v", said, err)
	}
}

// TestAHomeThatMayNotBeWrittenSaysWhatToDo: whatever the system calls it.
func TestAHomeThatMayNotBeWrittenSaysWhatToDo(t *testing.T) {
	err := unwritable("/srv/home", &fs.PathError{Op: "mkdir", Path: "/srv/home", Err: syscall.EROFS})
	if !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), "aster up --home") {
		t.Errorf("said %v", err)
	}
	if err := unwritable("/srv/home", io.ErrUnexpectedEOF); strings.Contains(err.Error(), "--home") {
		t.Errorf("of something else: %v", err)
	}
}

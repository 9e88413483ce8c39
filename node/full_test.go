package node

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// fillUp writes records of the node's own until the store has no room for another one.
func (n *Node) fillUp(t *testing.T, size int) {
	t.Helper()
	body := protocol.EncodeBody(strings.Repeat("x", size))
	for {
		_, err := n.loop.ask(t.Context(), func(token hub.Token) hub.Input {
			return hub.Author{Scope: protocol.ScopeInside, Kind: "filler", Body: body, Token: token}
		})
		var no *protocol.Refusal
		if errors.As(err, &no) && no.Code == protocol.CodeDiskFull {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestNewRunnerOnAFullStoreIsRefused: its agent's binding finds no room. The start says so and ends; taking the turn back
// does not try the same again for ever.
func TestNewRunnerOnAFullStoreIsRefused(t *testing.T) {
	var n *Node
	cfg := func(c *Config) { c.Store.BytesMax = 6 << 20; c.probe = func(x *Node) { n = x } }
	r := start(t, cfg)
	n.fillUp(t, 60<<10)
	n.fillUp(t, 1)
	if st, err := n.Status(t.Context()); err != nil || !st.DiskFull {
		t.Errorf("status of a full store says full: %t, %v", st.DiskFull, err)
	}
	r.stop()
	again := Config{Home: r.home, Name: "here", Board: "127.0.0.1:0", Agent: "fresh", Worker: WorkerConfig{Command: []string{"true"}}}
	cfg(&again)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, errors.New("it neither starts nor refuses to"))
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, again) }()
	select {
	case err := <-ended:
		var no *protocol.Refusal
		if !errors.As(err, &no) || no.Code != protocol.CodeDiskFull {
			t.Errorf("it ended with %v, want %s", err, protocol.CodeDiskFull)
		}
	case <-ctx.Done():
		t.Fatal(context.Cause(ctx))
	}
}

// TestDelegateMetAtTheEndIsNotReportedAsFailed: a node that stops has not tried it. A final report now would be taken for
// the attempt's own, and what the next start makes of it for its repeat.
func TestDelegateMetAtTheEndIsNotReportedAsFailed(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.Worker.Command = []string{"true"}; c.probe = func(x *Node) { n = x } })
	r.attach(t, "asker")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 { // whether the loop hears of it was a matter of luck
		n.runner.start(ended, &protocol.Envelope{ID: newID(), From: "asker", To: n.runner.agent, Intent: protocol.Delegate, Value: []byte(`{"task":"x"}`)})
	}
	if err := n.loop.call(t.Context(), func() {}); err != nil {
		t.Fatal(err)
	}
	all, err := n.store.Messages(journal.Query{Intent: protocol.WorkerReport})
	if err != nil || len(all) > 0 {
		t.Errorf("%d reports, %v", len(all), err)
	}
}

// TestReleaseOnAFullStoreIsRefused: whoever asked hears that it did not happen, and the claim is held as before.
func TestReleaseOnAFullStoreIsRefused(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.Store.BytesMax = 6 << 20; c.probe = func(x *Node) { n = x } })
	r.attach(t, "ada")
	got, err := n.Acquire(t.Context(), api.ClaimRequest{Agent: "ada", Scopes: []string{"path:src/"}, PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	n.fillUp(t, 60<<10)
	n.fillUp(t, 1)
	var no *protocol.Refusal
	if err := n.ReleaseClaim(t.Context(), got.ID); !errors.As(err, &no) || no.Code != protocol.CodeDiskFull {
		t.Errorf("the release was answered with %v, want %s", err, protocol.CodeDiskFull)
	}
	all, err := n.Claims(t.Context())
	if err != nil || len(all) != 1 || all[0].ID != got.ID || all[0].Left <= 0 {
		t.Errorf("claims %+v, %v: want %s alone, with its lease", all, err, got.ID)
	}
}

// TestALoopOnAFullDiskPauses, longer each time and at most for a second, and pauses no more once a turn was taken, or owed nothing.
func TestALoopOnAFullDiskPauses(t *testing.T) {
	var n *Node
	start(t, func(c *Config) { c.probe = func(got *Node) { n = got } })
	paused := func() (d time.Duration) {
		t.Helper()
		if err := n.loop.call(t.Context(), func() {
			n.loop.lookAt = n.loop.now // due at once, as what found no room is
			n.loop.crowd()
			d = n.loop.pause()
		}); err != nil {
			t.Fatal(err)
		}
		return d
	}
	if first := paused(); first < crowdedLeast {
		t.Errorf("it pauses for %s at first", first)
	}
	if err := n.loop.call(t.Context(), func() {
		for range 20 {
			n.loop.crowd()
		}
		if n.loop.crowded != crowdedMost {
			t.Errorf("it pauses for %s at last", n.loop.crowded)
		}
	}); err != nil {
		t.Fatal(err)
	}
	after := func() (d time.Duration) {
		t.Helper()
		if err := n.loop.call(t.Context(), func() { d = n.loop.crowded }); err != nil {
			t.Fatal(err)
		}
		return d
	}
	if d := after(); d != 0 {
		t.Errorf("it pauses for %s after a turn that owed nothing", d)
	}
	if _, err := n.loop.ask(t.Context(), func(tok hub.Token) hub.Input {
		n.loop.crowd()
		return hub.Declare{Agent: "bob", Client: "cli", Token: tok}
	}); err != nil {
		t.Fatal(err)
	}
	if d := after(); d != 0 {
		t.Errorf("it pauses for %s after a turn that was taken", d)
	}
}

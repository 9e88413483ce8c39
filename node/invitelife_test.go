package node

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

func TestInviteLivesThirtyDaysAtMost(t *testing.T) {
	var n *Node
	start(t, func(c *Config) { c.probe = func(is *Node) { n = is } })
	ask := func(d time.Duration) error {
		_, err := n.Invite(t.Context(), api.InviteRequest{Role: protocol.RoleLocal, TTLMillis: d.Milliseconds()})
		return err
	}
	if err := ask(protocol.InviteLifeMax); err != nil {
		t.Errorf("30 days: %v", err)
	}
	var no *protocol.Refusal
	if err := ask(protocol.InviteLifeMax + time.Second); !errors.As(err, &no) || no.Code != protocol.CodeInviteBad {
		t.Errorf("longer: %v", err)
	}
}

// TestAJoinThatCannotRunUsesNoInvite: what is wrong in a newcomer's own settings is said before its invite, which works once, is used up.
func TestAJoinThatCannotRunUsesNoInvite(t *testing.T) {
	var n *Node
	start(t, func(c *Config) { c.probe = func(is *Node) { n = is } })
	inv, err := n.Invite(t.Context(), api.InviteRequest{Role: protocol.RoleLocal})
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(t.TempDir(), "home")
	cfg := Config{Home: home, Name: "late", Board: "127.0.0.1:0", Version: "test", Join: inv.Token, Worker: WorkerConfig{Command: []string{"no-such-runner"}}}
	if err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), `"no-such-runner" cannot be run`) {
		t.Fatalf("a runner that is missing: %v", err)
	}
	if rows, err := n.Invites(t.Context()); err != nil || len(rows) != 1 || rows[0].UsedBy != "" {
		t.Fatalf("invites %+v, %v, want one that nobody used", rows, err)
	}
	start(t, func(c *Config) { c.Home, c.Name, c.Join = home, "late", inv.Token }) // fails the test unless it is let in
}

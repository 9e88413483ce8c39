package node

import (
	"errors"
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

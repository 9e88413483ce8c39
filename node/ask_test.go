package node

import (
	"context"
	"errors"
	"testing"

	"github.com/aster-mesh/aster/node/hub"
)

// TestWhoGivesUpReadsNothingThatTheLoopStillWrites: it is the race detector that judges.
func TestWhoGivesUpReadsNothingThatTheLoopStillWrites(t *testing.T) {
	var n *Node
	start(t, func(c *Config) { c.probe = func(x *Node) { n = x } })
	for range 300 {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		seen := 0
		if err := n.loop.call(ctx, func() { seen = 1 }); err == nil && seen != 1 {
			t.Error("the loop has not looked")
		}
		seen = 2
		_ = seen
		ctx, cancel = context.WithCancel(t.Context())
		go cancel()
		_, _ = n.loop.askOr(ctx, func(hub.Token) (hub.Input, error) { return nil, errors.New("refused") })
	}
}

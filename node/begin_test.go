package node

import (
	"testing"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// TestWhoeverIsNamedBegins: two nodes that nobody has used yet write to each other at once, by the name of a node's own agent or of the
// node itself. What nobody is called is refused as before, and nobody begins by it.
func TestWhoeverIsNamedBegins(t *testing.T) {
	_, _, na, nb := pair(t, protocol.RoleLocal)
	send := func(n *Node, to protocol.AgentID) (api.SendResult, error) {
		return n.Send(t.Context(), api.SendRequest{FromBoard: true, To: to, Intent: protocol.Request, Value: []byte(`{"text":"hello"}`)})
	}
	if _, err := send(na, "nobody"); err == nil {
		t.Error("a message to nobody was taken")
	}
	if all, err := na.Agents(t.Context()); err != nil || len(all) != 0 {
		t.Fatalf("%d agents before anybody was named, %v", len(all), err)
	}
	for _, tt := range []struct {
		n        *Node
		to, want protocol.AgentID
	}{{na, "mac-mini", "mac-mini"}, {nb, "devbox", mainByDefault}, {nb, "Main-Agent", mainByDefault}, {nb, "mac-mini", "mac-mini"}, {na, "devbox", mainByDefault}} {
		var got api.SendResult
		var err error
		until(t, "it is sent to "+string(tt.to), func() bool { // a slow machine may need longer than beginWait
			got, err = send(tt.n, tt.to)
			return err == nil
		})
		if got.To != tt.want {
			t.Errorf("to %s: it went to %q", tt.to, got.To)
		}
		if msg, err := tt.n.WaitTier(t.Context(), string(got.MsgID), protocol.Persisted); err != nil || len(msg.Tiers) == 0 {
			t.Errorf("to %s: %v, %v", tt.to, msg.Tiers, err)
		}
	}
}

// TestOneSpeaksAsNobodyWhoAttached: a command that names nobody speaks as the node's own agent, whoever is attached.
func TestOneSpeaksAsNobodyWhoAttached(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.probe = func(x *Node) { n = x } })
	for _, who := range []string{"", "claude-shop", "codex-shop"} {
		if who != "" {
			r.attach(t, who)
		}
		if id, err := n.speaker(t.Context(), "", true); err != nil || id != mainByDefault {
			t.Errorf("with %q attached one speaks as %q, %v", who, id, err)
		}
	}
}

package node

import (
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
	"github.com/aster-mesh/aster/roles/keys"
)

// TestStrangerWhoSaysNothingIsLetGo; a board may say nothing for ever.
func TestStrangerWhoSaysNothingIsLetGo(t *testing.T) {
	r := start(t, func(c *Config) { c.silentWait = 100 * time.Millisecond })
	main, board := r.attach(t, "main-agent"), r.watch(t)
	k := main.issue(t, map[string]any{"kind": "collab"})
	held := r.joinWith(t, k.Key, "partner")
	if code, reason, before := r.come(t, "?key="+k.Key).close(t); code != 4403 || reason != protocol.CodeNotHello || len(before) != 2 {
		t.Errorf("closed with %d %q after %d frames", code, reason, len(before))
	}
	for _, c := range []*client{board, &held.client} {
		select {
		case <-c.conn.Done():
			t.Error("somebody who is known was let go")
		default:
		}
	}
}

// TestKeyStaysWithAnAgentThatIsRenamed: it opens the new name, and the old one for nobody.
func TestKeyStaysWithAnAgentThatIsRenamed(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.probe = func(p *Node) { n = p } })
	k := r.attach(t, "main-agent").issue(t, map[string]any{"kind": "collab"})
	c := r.joinWith(t, k.Key, "partner")
	c.conn.Close(1000, "")
	c.close(t)
	for {
		if _, err := n.RenameAgent(t.Context(), "partner", "partner-two"); err == nil {
			break
		} else if !strings.Contains(err.Error(), "attached") {
			t.Fatal(err)
		}
	}
	old := r.come(t, "?key="+k.Key)
	old.hello(t, "partner")
	if code, reason, _ := old.close(t); code != 4403 || reason != protocol.CodeAgentRenamed {
		t.Errorf("by its old name: closed with %d %q", code, reason)
	}
	again := r.joinWith(t, k.Key, "partner-two")
	again.send(t, map[string]any{"type": "CUSTOM", "name": "Request", "targetAgentId": "main-agent", "msgId": "q", "value": map[string]any{}})
	select {
	case <-again.conn.Done():
		t.Error("it was let go again")
	case f := <-again.frames:
		_ = f
	}
}

// TestEndOfAKeyIsToldToWhoMayRenewIt: before and after it, to main and to boards, and to no other agent. Guards: B18.
func TestEndOfAKeyIsToldToWhoMayRenewIt(t *testing.T) {
	r := start(t, nil)
	main, worker, board := r.attach(t, "main-agent"), r.attach(t, "worker"), r.watch(t)
	k := main.issue(t, map[string]any{"kind": "collab", "label": "brief", "ttl": 400})
	for name, c := range map[string]*client{"main": main, "board": board} {
		for _, lapsed := range []bool{false, true} {
			got := into[asterism.KeyExpiry](t, c.next(t, "ServerNotice"))
			if got.Kind != "key-expiry" || got.Lapsed != lapsed || got.KeyRef != k.KeyRef || got.Label != "brief" || got.Text == "" {
				t.Errorf("%s heard %+v, want lapsed %v", name, got, lapsed)
			}
		}
	}
	main.send(t, map[string]any{"type": "CUSTOM", "name": "Request", "targetAgentId": "worker", "msgId": "end", "value": map[string]any{}})
	for f := range worker.frames {
		if f.Name == "ServerNotice" {
			t.Errorf("the worker heard %s", f.Value)
		}
		if f.Name == "Request" {
			break
		}
	}
}

// TestLegacyKeyVerbsKeepTheSameRules: their own replies, the same bound on numbers, no reply to a revocation. Guards: KB23.
func TestLegacyKeyVerbsKeepTheSameRules(t *testing.T) {
	r := start(t, nil)
	main := r.attach(t, "main-agent")
	main.send(t, verb("RegisterCollabKey", "", map[string]any{"label": "legacy-c"}))
	c := into[asterism.LegacyKeyIssued](t, main.next(t, "CollabKeyIssued"))
	if c.Label != "legacy-c" || !strings.Contains(c.JoinURL, "/join/collab?key=ck-") || len(c.JoinURLs) == 0 || c.Bind != "127.0.0.1" {
		t.Errorf("CollabKeyIssued: %+v", c)
	}
	main.send(t, verb("RegisterUpstreamKey", "", map[string]any{}))
	u := into[asterism.LegacyKeyIssued](t, main.next(t, "UpstreamKeyIssued"))
	if u.Label != "upstream" || !strings.HasPrefix(u.Key, "uk-") {
		t.Errorf("UpstreamKeyIssued: %+v", u)
	}
	if got := main.errorTo(t, "RevokeCollabKey", map[string]any{"key": u.Key}); got != "KEY_NOT_FOUND" {
		t.Errorf("RevokeCollabKey of an upstream key: %s", got)
	}
	held := r.joinWith(t, c.Key, "partner")
	main.send(t, verb("RevokeCollabKey", "", map[string]any{"key": c.Key}))
	if code, reason, _ := held.close(t); code != 4003 || reason != "key revoked" {
		t.Errorf("its holder: %d %q", code, reason)
	}
	for i := 1; i < protocol.KeysActiveMax; i++ {
		main.issue(t, map[string]any{"kind": "collab"})
	}
	for name, value := range map[string]map[string]any{"KeyIssue": {"kind": "collab"}, "RegisterCollabKey": {}, "RegisterUpstreamKey": {}} {
		if got := main.errorTo(t, name, value); got != "LIMIT_EXCEEDED" {
			t.Errorf("%s above the limit: %s", name, got)
		}
	}
}

// TestKeysOutliveTheNode: after a restart a key is bound to whom it was, a revoked one stays revoked, a valid one works,
// also when the board was read from its checkpoint.
func TestKeysOutliveTheNode(t *testing.T) {
	r := start(t, nil)
	main := r.attach(t, "main-agent")
	k, gone := main.issue(t, map[string]any{"kind": "collab"}), main.issue(t, map[string]any{"kind": "peer"})
	r.joinWith(t, k.Key, "partner")
	main.send(t, verb("KeyRevoke", "x", map[string]any{"keyRef": gone.KeyRef, "mode": "immediate"}))
	main.next(t, "KeyRevoked")
	r.stop()
	r = start(t, func(c *Config) { c.Home = r.home })
	if code, _, _ := r.come(t, "?key="+gone.Key).close(t); code != 4003 {
		t.Errorf("the revoked key after a restart: %d", code)
	}
	thief := r.come(t, "?key="+k.Key)
	thief.hello(t, "thief")
	if code, reason, _ := thief.close(t); code != 4403 || reason != protocol.CodeIdentityMismatch {
		t.Errorf("the bound key after a restart: %d %q", code, reason)
	}
	r.joinWith(t, k.Key, "partner")
}

// TestGraceOfARevocationEnds: when its time is over, a session that has not ended by itself is closed with the contract's
// words. Guards: B18.
func TestGraceOfARevocationEnds(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.probe = func(p *Node) { n = p } })
	main := r.attach(t, "main-agent")
	k := main.issue(t, map[string]any{"kind": "collab"})
	c := r.joinWith(t, k.Key, "partner")
	err := n.loop.call(t.Context(), func() {
		n.loop.writeKey(protocol.KeyBody{Step: protocol.KeyRevoke, Hash: keys.HashOf(k.Key).String(), Until: time.Now().Add(300 * time.Millisecond).UnixMilli()}, 0)
	})
	if err != nil {
		t.Fatal(err)
	}
	c.next(t, "KeyRevokePending")
	if code, reason, _ := c.close(t); code != 4003 || reason != "key revoke pending grace expired" {
		t.Errorf("closed with %d %q", code, reason)
	}
	if got := into[asterism.KeyRevoked](t, main.next(t, "KeyRevoked")); got.Mode != "sessionEnd" || got.KeyRef != k.KeyRef {
		t.Errorf("KeyRevoked: %+v", got)
	}
}

// TestLoserOfTwoFirstUsesIsSentAway: another node's earlier use of the same key comes late; the session here that used it
// second ends, and says why.
func TestLoserOfTwoFirstUsesIsSentAway(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.probe = func(p *Node) { n = p } })
	k := r.attach(t, "main-agent").issue(t, map[string]any{"kind": "collab"})
	c := r.joinWith(t, k.Key, "second")
	err := n.loop.call(t.Context(), func() {
		rec := protocol.Record{Log: protocol.LogID{Peer: "elsewhere", Scope: protocol.ScopeInside}, Seq: 1, At: 1, Kind: protocol.KindKey,
			Body: protocol.EncodeBody(protocol.KeyBody{Step: protocol.KeyUse, Hash: keys.HashOf(k.Key).String(), Agent: "first"})}
		n.loop.keyStep(&rec)
		n.loop.keys().Apply(&rec)
	})
	if err != nil {
		t.Fatal(err)
	}
	if code, reason, before := c.close(t); code != 4403 || reason != protocol.CodeIdentityMismatch || before[len(before)-1].Name != "ConnectionRejected" {
		t.Errorf("closed with %d %q", code, reason)
	}
}

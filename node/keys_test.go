package node

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node/link"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// keyed is a client that comes with something in its address.
type keyed struct {
	client
	ended chan error // why the socket ended
}

// come connects with a query ("?key=…") and says nothing.
func (r *running) come(t testing.TB, query string) *keyed {
	t.Helper()
	return r.comeBy(t, query, nil)
}

func serveKeyed(t testing.TB, conn *link.Conn) *keyed {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	conn.Authenticated()
	c := &keyed{client{conn: conn, frames: make(chan asterism.Frame, 4096)}, make(chan error, 1)}
	go func() {
		err := conn.Serve(ctx, func(data []byte, _ bool) {
			if f, no := asterism.Decode(data, 0); no == nil {
				c.frames <- f
			}
		})
		close(c.frames)
		c.ended <- err
		close(c.ended)
	}()
	t.Cleanup(func() {
		cancel()
		for range c.ended { //nolint:revive // waits for the end
		}
	})
	return c
}

// joinWith comes with a key and is accepted as id.
func (r *running) joinWith(t testing.TB, secret, id string) *keyed {
	t.Helper()
	c := r.come(t, "?key="+secret)
	c.hello(t, id)
	c.next(t, "ConnectionInfo")
	return c
}

func (c *keyed) hello(t testing.TB, id string) {
	t.Helper()
	c.send(t, map[string]any{"type": "HELLO", "agentId": id, "capabilities": []string{"ack-layer"}})
}

// behind writes a frame behind one that ends the socket: it may be closed by now.
func (c *keyed) behind(t testing.TB, frame map[string]any) {
	t.Helper()
	raw, err := json.Marshal(frame)
	if err != nil {
		t.Fatal(err)
	}
	c.conn.Send(raw)
}

// close waits for the end of the socket and returns its close code, its reason and all frames before it.
func (c *keyed) close(t testing.TB) (code int, reason string, before []asterism.Frame) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case f, ok := <-c.frames:
			if ok {
				before = append(before, f)
				continue
			}
			err, _ := (<-c.ended).(*link.CloseError)
			if err == nil {
				t.Fatal("the socket ended without a close")
			}
			return err.Code, err.Reason, before
		case <-deadline:
			t.Fatal("the socket did not end within 20 s")
		}
	}
}

func verb(name, msgID string, value any) map[string]any {
	return map[string]any{"type": "CUSTOM", "name": name, "msgId": msgID, "value": value}
}

func into[T any](t testing.TB, f asterism.Frame) (v T) {
	t.Helper()
	if err := json.Unmarshal(f.Value, &v); err != nil {
		t.Fatalf("%s: %v in %s", f.Name, err, f.Value)
	}
	return v
}

// issue makes a key as main or a board and returns it with its string.
func (c *client) issue(t testing.TB, value map[string]any) asterism.KeyIssued {
	t.Helper()
	c.send(t, verb("KeyIssue", "ki", value))
	return into[asterism.KeyIssued](t, c.next(t, "KeyIssued"))
}

// TestKeyOpensAnAgentOfItsKind: each kind gives its role, by whatever name the key stands in the address or in the HELLO;
// the first use binds it, nothing is shown before the HELLO, and only main and itself are in the list.
func TestKeyOpensAnAgentOfItsKind(t *testing.T) {
	r := start(t, nil)
	main := r.attach(t, "main-agent")
	r.attach(t, "worker")
	for kind, param := range map[string]string{"collab": "key", "peer": "peerKey", "upstream": "upstreamKey"} {
		k := main.issue(t, map[string]any{"kind": kind, "label": "l-" + kind, "roleDescription": "some words"})
		if k.KeyRef == "" || len(k.Key) != 27 || k.Re != "ki" || k.Kind != kind || k.TTL != protocol.KeyLife.Milliseconds() || k.ExpiresAt == nil || k.Bound != nil {
			t.Errorf("KeyIssued: %+v", k)
		}
		if want := "/ws?" + param + "=" + k.Key; !strings.HasPrefix(k.JoinURL, "ws://localhost:") || !strings.HasSuffix(k.JoinURL, want) || k.JoinURLs[0].URL != k.JoinURL || k.Exposed {
			t.Errorf("KeyIssued for %s: join address %q, want …%s", kind, k.JoinURL, want)
		}
		c := r.come(t, "?"+param+"="+k.Key)
		if f := <-c.frames; f.Type != "SERVER_HELLO" {
			t.Fatalf("first frame: %s %s", f.Type, f.Name)
		}
		c.hello(t, kind+"-agent")
		info := into[asterism.ConnectionInfo](t, <-c.frames)
		if string(info.Role) != kind || !info.Keyed || info.MayManageKeys {
			t.Errorf("ConnectionInfo: %+v", info)
		}
		list := <-c.frames
		if list.Name != "AgentList" || strings.Contains(string(list.Value), "worker") || !strings.Contains(string(list.Value), "main-agent") || !strings.Contains(string(list.Value), kind+"-agent") {
			t.Errorf("the list of an outside client: %s %s", list.Name, list.Value)
		}
	}
	k := main.issue(t, map[string]any{"kind": "collab"})
	c := r.come(t, "")
	c.send(t, map[string]any{"type": "HELLO", "agentId": "by-hello", "key": k.Key})
	if info := into[asterism.ConnectionInfo](t, c.next(t, "ConnectionInfo")); info.Role != protocol.RoleCollab || !info.Keyed {
		t.Errorf("key in the HELLO: %+v", info)
	}
}

// TestKeyThatIsNotValidIsRefusedBeforeTheHello. Guards: B17, KB5, KG5, B32.
func TestKeyThatIsNotValidIsRefusedBeforeTheHello(t *testing.T) {
	r := start(t, nil)
	main := r.attach(t, "main-agent")
	revoked := main.issue(t, map[string]any{"kind": "collab", "label": "r"})
	main.send(t, verb("KeyRevoke", "kr", map[string]any{"keyRef": revoked.KeyRef, "mode": "immediate"}))
	main.next(t, "KeyRevoked")
	expired := main.issue(t, map[string]any{"kind": "collab", "label": "e", "ttl": 1})
	holder := main.issue(t, map[string]any{"kind": "collab", "label": "h"})
	live := r.joinWith(t, holder.Key, "partner")
	for _, c := range []struct {
		what, query, code, reason string
		close                     int
	}{
		{"unknown", "?key=ck-000000000000000000000000", protocol.CodeBadKey, protocol.CodeBadKey, 4403},
		{"of no kind", "?key=x", protocol.CodeBadKey, protocol.CodeBadKey, 4403},
		{"of another length", "?collabKey=" + holder.Key + "0", protocol.CodeBadKey, protocol.CodeBadKey, 4403},
		{"revoked", "?key=" + revoked.Key, protocol.CodeKeyRevoked, "key revoked", 4003},
		{"expired", "?key=" + expired.Key, protocol.CodeKeyExpired, "key expired", 4003},
	} {
		code, reason, before := r.come(t, c.query).close(t)
		if code != c.close || reason != c.reason || len(before) != 1 || before[0].Name != "ConnectionRejected" {
			t.Errorf("%s: closed with %d %q after %d frames, want %d %q after ConnectionRejected alone", c.what, code, reason, len(before), c.close, c.reason)
			continue
		}
		rej := into[asterism.Rejection](t, before[0])
		if rej.Code != c.code || rej.Hint == "" || rej.PriorStateDelivered || (c.what == "expired") != (rej.Label == "e" && rej.ExpiresAt > 0) {
			t.Errorf("%s: %+v", c.what, rej)
		}
	}
	// In a HELLO, on a socket of the node's own user: refused as well, not taken as keyless.
	for _, secret := range []string{"ck-000000000000000000000000", revoked.Key, expired.Key} {
		c := r.come(t, "")
		c.send(t, map[string]any{"type": "HELLO", "agentId": "partner", "collabKey": secret})
		code, _, before := c.close(t)
		if last := before[len(before)-1]; code < 4000 || last.Name != "ConnectionRejected" || !into[asterism.Rejection](t, last).PriorStateDelivered {
			t.Errorf("key in the HELLO: closed with %d after %s", code, last.Name)
		}
	}
	live.send(t, map[string]any{"type": "CUSTOM", "name": "Request", "targetAgentId": "main-agent", "msgId": "still", "value": map[string]any{}})
	if got := main.next(t, "Request"); got.MsgID != "still" {
		t.Errorf("the holder of a valid key was disturbed: got %s", got.MsgID)
	}
}

// TestKeyIsBoundToItsFirstAgent: another id is refused by a code that names what to do, and nothing that stands behind the
// refused HELLO in the same segment is passed on. An id that is somebody's cannot be taken with a new key, nor without
// one. Guards: KB4, B28, B31.
func TestKeyIsBoundToItsFirstAgent(t *testing.T) {
	r := start(t, nil)
	main := r.attach(t, "main-agent")
	worker := r.attach(t, "worker")
	k := main.issue(t, map[string]any{"kind": "collab"})
	r.joinWith(t, k.Key, "partner")
	for _, id := range []string{"trusted-partner", "worker", "main-agent"} {
		thief := r.come(t, "?key="+k.Key)
		thief.hello(t, id) // both frames are written without waiting
		thief.behind(t, map[string]any{"type": "CUSTOM", "name": "Request", "targetAgentId": "worker", "msgId": "stolen-" + id, "value": map[string]any{}})
		code, reason, before := thief.close(t)
		if code != 4403 || reason != protocol.CodeIdentityMismatch {
			t.Errorf("as %s: closed with %d %q", id, code, reason)
		}
		if len(before) != 2 || before[0].Type != "SERVER_HELLO" || before[1].Name != "ConnectionRejected" {
			t.Errorf("as %s: shown %d frames before the refusal", id, len(before))
		}
	}
	fresh := main.issue(t, map[string]any{"kind": "collab", "label": "other"})
	for _, id := range []string{"partner", "worker", "main-agent", "PARTNER"} {
		c := r.come(t, "?key="+fresh.Key)
		c.hello(t, id)
		if code, reason, _ := c.close(t); code != 4403 || reason != protocol.CodeIdentityMismatch {
			t.Errorf("a new key as %s: closed with %d %q", id, code, reason)
		}
	}
	c := r.come(t, "")
	c.hello(t, "partner")
	if code, reason, _ := c.close(t); code != 4403 || reason != protocol.CodeIdentityMismatch {
		t.Errorf("without a key as partner: closed with %d %q", code, reason)
	}
	again := main.issue(t, map[string]any{"kind": "collab", "label": "again", "boundAgent": "partner"})
	r.joinWith(t, again.Key, "partner")
	main.send(t, map[string]any{"type": "CUSTOM", "name": "Request", "targetAgentId": "worker", "msgId": "honest", "value": map[string]any{}})
	if got := worker.next(t, "Request"); got.MsgID != "honest" {
		t.Errorf("the worker got %s", got.MsgID)
	}
}

// TestRevocationEndsSessionsAtOnce, also beside frames that are on their way; with a grace it ends with the session, and
// main hears twice. Guards: B18, KB5.
func TestRevocationEndsSessionsAtOnce(t *testing.T) {
	r := start(t, nil)
	main := r.attach(t, "main-agent")
	k := main.issue(t, map[string]any{"kind": "peer"})
	c, silent := r.joinWith(t, k.Key, "partner"), r.come(t, "?key="+k.Key)
	silent.next(t, "SERVER_HELLO")
	main.send(t, verb("KeyRevoke", "a", map[string]any{"key": k.Key, "mode": "immediate"}))
	began := time.Now()
	code, reason, before := c.close(t)
	if code != 4003 || reason != "key revoked" || before[len(before)-1].Name != "ConnectionRejected" {
		t.Errorf("closed with %d %q", code, reason)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("closed after %s", took)
	}
	if code, reason, _ := silent.close(t); code != 4003 || reason != "key revoked" {
		t.Errorf("one that had said nothing: closed with %d %q", code, reason)
	}
	if got := into[asterism.KeyRevoked](t, main.next(t, "KeyRevoked")); got.Disconnected != 1 || got.Notified != 1 || got.KeyRef != k.KeyRef || got.Key != nil || got.Re != "a" {
		t.Errorf("KeyRevoked: %+v", got)
	}
	gentle := main.issue(t, map[string]any{"kind": "peer"})
	g := r.joinWith(t, gentle.Key, "gentle")
	main.send(t, verb("KeyRevoke", "b", map[string]any{"keyRef": gentle.KeyRef, "mode": "sessionEnd"}))
	if got := into[asterism.KeyRevokePending](t, g.next(t, "KeyRevokePending")); got.Mode != "sessionEnd" || got.KeyRef != gentle.KeyRef {
		t.Errorf("KeyRevokePending: %+v", got)
	}
	if got := into[asterism.KeyRevoked](t, main.next(t, "KeyRevoked")); got.Disconnected != 0 || got.Notified != 1 || got.Re != "b" {
		t.Errorf("KeyRevoked: %+v", got)
	}
	if code, reason, _ := r.come(t, "?key="+gentle.Key).close(t); code != 4003 || reason != "key revoked" {
		t.Errorf("a second session: closed with %d %q", code, reason)
	}
	g.send(t, map[string]any{"type": "CUSTOM", "name": "Request", "targetAgentId": "main-agent", "msgId": "last", "value": map[string]any{}})
	main.next(t, "Request")
	g.conn.Close(1000, "")
	if got := into[asterism.KeyRevoked](t, main.next(t, "KeyRevoked")); got.Disconnected != 1 || got.Mode != "sessionEnd" || got.Re != "" {
		t.Errorf("second KeyRevoked: %+v", got)
	}
}

// TestKeyOfOneNodeHoldsOnAnother: issued on A, used on B, relabelled and renewed on A, revoked on A, closed on B within a
// second; and one that ends by A's clock ends on B. Guards: B18.
func TestKeyOfOneNodeHoldsOnAnother(t *testing.T) {
	a, b, _, nb := pair(t, protocol.RoleLocal)
	main := a.attach(t, "main-agent")
	arrived := func(n int) {
		t.Helper()
		for {
			if got, err := nb.Keys(t.Context(), true); err != nil {
				t.Fatal(err)
			} else if len(got) == n {
				return
			}
		}
	}
	k := main.issue(t, map[string]any{"kind": "collab", "label": "one"})
	arrived(1)
	c := b.joinWith(t, k.Key, "partner")
	main.send(t, verb("KeyLabel", "l", map[string]any{"keyRef": k.KeyRef, "newLabel": "two"}))
	if got := into[asterism.KeyLabeled](t, c.next(t, "AgentNameChanged")); got.OldLabel != "one" || got.NewLabel != "two" {
		t.Errorf("AgentNameChanged: %+v", got)
	}
	main.send(t, verb("KeyRenew", "r", map[string]any{"keyRef": k.KeyRef, "ttl": 3600000}))
	if got := into[asterism.KeyRenewedShort](t, c.next(t, "KeyRenewed")); got.TTL != 3600000 || got.WasLapsed {
		t.Errorf("KeyRenewed at the holder: %+v", got)
	}
	for {
		main.send(t, verb("KeyList", "kl", map[string]any{}))
		if rows := into[asterism.KeyListResult](t, main.next(t, "KeyListResult")).Keys; len(rows) != 1 {
			t.Fatalf("KeyList: %+v", rows)
		} else if rows[0].Connection == "connected" && rows[0].State == "ACTIVE" && *rows[0].LastAgent == "partner" && rows[0].Label == "two" && rows[0].RenewCount == 1 {
			break // what B wrote has come
		}
	}
	main.send(t, verb("KeyRevoke", "x", map[string]any{"keyRef": k.KeyRef, "mode": "immediate"}))
	began := time.Now()
	if code, reason, _ := c.close(t); code != 4003 || reason != "key revoked" {
		t.Errorf("on the other node: closed with %d %q", code, reason)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("on the other node: closed after %s", took)
	}
	if got := into[asterism.KeyRevoked](t, main.next(t, "KeyRevoked")); got.Disconnected != 1 {
		t.Errorf("KeyRevoked: %+v", got)
	}
	short := main.issue(t, map[string]any{"kind": "collab", "label": "short", "ttl": 3000})
	arrived(2)
	s := b.joinWith(t, short.Key, "brief")
	if got := into[asterism.KeyExpiringSoon](t, s.next(t, "KeyExpiringSoon")); got.KeyRef != short.KeyRef {
		t.Errorf("KeyExpiringSoon: %+v", got)
	}
	if code, reason, _ := s.close(t); code != 4003 || reason != "key expired" {
		t.Errorf("at its end: closed with %d %q", code, reason)
	}
	if late := time.Since(time.UnixMilli(*short.ExpiresAt)); late > 5*time.Second {
		t.Errorf("closed %s after its end", late)
	}
	main.send(t, verb("KeyRenew", "r2", map[string]any{"keyRef": short.KeyRef, "ttl": 3600000}))
	if got := into[asterism.KeyRenewed](t, main.next(t, "KeyRenewed")); !got.WasLapsed || got.RenewCount != 1 {
		t.Errorf("KeyRenewed of one that had ended: %+v", got)
	}
	for {
		if got, err := nb.Keys(t.Context(), true); err != nil {
			t.Fatal(err)
		} else if got[1].RenewCount == 1 {
			break
		}
	}
	b.joinWith(t, short.Key, "brief")
}

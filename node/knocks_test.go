package node

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node/link"
	"github.com/aster-mesh/aster/protocol"
)

// TestRefusedClientIsAnsweredEverMoreSlowly. Guards: B5, KF8.
func TestRefusedClientIsAnsweredEverMoreSlowly(t *testing.T) {
	var k knocks
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	began, answered := now, 0
	for now.Sub(began) < time.Hour { // it comes again half a second after each refusal, for ever
		now = now.Add(k.refused("a", now)).Add(time.Second / 2)
		answered++
	}
	if answered > 450 {
		t.Errorf("%d refusals in an hour", answered)
	}
	for i := range knocksFree {
		if wait := k.refused("b", now); wait != 0 {
			t.Errorf("refusal %d of another waits %s", i, wait)
		}
	}
	if wait := k.refused("b", now); wait != time.Second {
		t.Errorf("the next one waits %s", wait)
	}
	if wait := k.refused("b", now.Add(knockSpan)); wait != 0 {
		t.Errorf("after %s it waits %s", knockSpan, wait)
	}
	for i := range 3 * knockersMax {
		k.refused(fmt.Sprint(i), now)
	}
	if len(k.of) > knockersMax {
		t.Errorf("%d are remembered", len(k.of))
	}
}

// TestKeyThatIsRefusedAgainAndAgainIsToldWhenToCome: first as every client understands, then at the door; a good key of the
// same place and the same key once it is good are let in at once. Guards: B5, KF8.
func TestKeyThatIsRefusedAgainAndAgainIsToldWhenToCome(t *testing.T) {
	r := start(t, nil)
	main := r.attach(t, "main-agent")
	good := main.issue(t, map[string]any{"kind": "collab"})
	bad := main.issue(t, map[string]any{"kind": "peer", "ttl": 1})
	for time.Now().UnixMilli() <= *bad.ExpiresAt+1 { // it has run out before it is used
	}
	for i := range knocksFree {
		c := r.come(t, "?peerKey="+bad.Key)
		if code, _, _ := c.close(t); code != 4003 {
			t.Fatalf("refusal %d: close %d", i, code)
		}
	}
	_, err := link.Dial(t.Context(), "ws"+r.Board[len("http"):]+"/ws?peerKey="+bad.Key, nil, link.Options{})
	var no *link.RefusedError
	if !errors.As(err, &no) || no.Status != http.StatusTooManyRequests {
		t.Errorf("then: %v, want 429", err)
	}
	w := httptest.NewRecorder()
	comeBack(w, 1500*time.Millisecond)
	if w.Code != 429 || w.Header().Get("Retry-After") != "2" {
		t.Errorf("%d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
	}
	r.joinWith(t, good.Key, "friend")
	main.send(t, verb("KeyRenew", "again", map[string]any{"keyRef": bad.KeyRef, "ttl": 3_600_000}))
	main.next(t, "KeyRenewed")
	r.joinWith(t, bad.Key, "late")
}

// TestHelloThatIsRefusedAgainAndAgainWaits: its connection is not heard meanwhile, and the holder of the id is not disturbed.
// Guards: B5, KF8.
func TestHelloThatIsRefusedAgainAndAgainWaits(t *testing.T) {
	r := start(t, nil)
	main := r.attach(t, "main-agent")
	key := main.issue(t, map[string]any{"kind": "collab"})
	r.joinWith(t, key.Key, "friend")
	for i := range knocksFree + 1 {
		began := time.Now()
		c := r.come(t, "?key="+key.Key)
		c.hello(t, "thief")
		c.behind(t, map[string]any{"type": "CUSTOM", "name": "Report", "targetAgentId": "main-agent", "msgId": fmt.Sprint("stolen-", i), "value": map[string]any{}})
		if code, reason, _ := c.close(t); code != 4403 || reason != protocol.CodeIdentityMismatch {
			t.Errorf("refusal %d: %d %s", i, code, reason)
		}
		if i == knocksFree && time.Since(began) < time.Second {
			t.Errorf("refusal %d came at once", i)
		}
	}
	main.send(t, map[string]any{"type": "CUSTOM", "name": "Report", "targetAgentId": "main-agent", "msgId": "fence", "value": map[string]any{}})
	if f := main.next(t, "Report"); f.MsgID != "fence" {
		t.Errorf("main got %s", f.MsgID)
	}
}

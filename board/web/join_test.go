package web

import (
	"strings"
	"testing"
)

// TestJoinPagesTellNothingButWhatTheirAddressHolds. Guards: B31.
func TestJoinPagesTellNothingButWhatTheirAddressHolds(t *testing.T) {
	_, ts := serve(t, newFake())
	for _, c := range []struct {
		path   string
		status int
		has    []string
	}{
		{"/join/collab?key=ck-good", 200, []string{"as collab", "/ws?key=ck-good", `"agentId":"partner"`, "2026-09-21"}},
		{"/join/upstream?key=uk-good", 200, []string{"as upstream", "/ws?upstreamKey=uk-good"}},
		{"/join/collab?key=uk-good", 403, nil}, // a key of another kind
		{"/join/peer?key=ck-good", 403, nil},
		{"/join/collab?key=ck-other", 403, nil},
		{"/join/collab", 403, nil},
		{"/join/main?key=ck-good", 404, nil},
		{"/join/local?label=good", 200, []string{"as local", "/ws?key=<what is in /home/local-keys/good.key>"}},
		{"/join/local?label=..%2Fx", 400, nil},
		{"/join/local", 400, nil},
		{"/join/local?label=none", 404, nil},
	} {
		res := open(t, ts, "GET", c.path, "")
		got, _, body := ask(t, ts, "GET", c.path, "")
		if got != c.status {
			t.Errorf("%s: %d, want %d", c.path, got, c.status)
		}
		for _, words := range c.has {
			if !strings.Contains(body, words) {
				t.Errorf("%s does not say %q:\n%s", c.path, words, body)
			}
		}
		if kind := res.Header.Get("Content-Type"); c.status == 200 && kind != "text/markdown; charset=utf-8" {
			t.Errorf("%s is %s", c.path, kind)
		}
		res.Body.Close()
	}
	for _, header := range []string{"X-Forwarded-For", "X-Real-Ip", "Forwarded", "X-Forwarded-Host", "X-Client-Ip"} {
		if got, _, _ := ask(t, ts, "GET", "/join/local?label=good", "", with(header, "127.0.0.1")); got != 403 {
			t.Errorf("forwarded by %s: %d, want 403", header, got)
		}
	}
}

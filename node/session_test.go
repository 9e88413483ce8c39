package node

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aster-mesh/aster/board/web"
	"github.com/aster-mesh/aster/node/link"
)

// TestSocketEndsWithItsSession: a page's socket is closed when the session that opened it is over; one that no session
// opened stays.
func TestSocketEndsWithItsSession(t *testing.T) {
	var n *Node
	start(t, func(c *Config) { c.probe = func(p *Node) { n = p } })
	for _, life := range []time.Duration{300 * time.Millisecond, 0} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if life > 0 {
				ctx, cancel := context.WithTimeout(r.Context(), life)
				defer cancel()
				r = r.WithContext(ctx)
			}
			n.ServeSocket(w, r, web.Caller{Standing: web.Operator, Origin: true, Loopback: true})
		}))
		t.Cleanup(srv.Close)
		ctx, cancel := context.WithCancel(t.Context())
		conn, err := link.Dial(ctx, "ws"+srv.URL[len("http"):], nil, link.Options{})
		if err != nil {
			t.Fatal(err)
		}
		conn.Authenticated()
		ended := make(chan struct{})
		go func() { defer close(ended); _ = conn.Serve(ctx, func([]byte, bool) {}) }()
		select {
		case <-ended:
			if life == 0 {
				t.Error("a socket without a session was closed")
			}
		case <-time.After(600*time.Millisecond + 10*life):
			if life > 0 {
				t.Error("the socket outlives its session")
			}
		}
		cancel()
		<-ended
	}
}

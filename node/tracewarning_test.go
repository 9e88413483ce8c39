package node

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// TestACollectorThatIsGoneIsWarnedOf: by scheme, host and port; what its address has behind them may be a token.
func TestACollectorThatIsGoneIsWarnedOf(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	var n *Node
	m := &meshOf{log: &safeBuffer{}}
	m.running = start(t, func(c *Config) {
		c.Trace.Endpoint, c.Log = gone.URL+"/sesame", m.log.logger()
		c.probe = func(one *Node) { n, m.n = one, one }
	})
	m.has(t, "alice")
	m.has(t, "bob")
	if _, err := m.send(t, "alice", "bob", protocol.Request, "hello"); err != nil {
		t.Fatal(err)
	}
	var warned []string
	until(t, "that is warned of", func() bool {
		st, err := n.Status(t.Context())
		warned = st.Warnings
		return err == nil && slices.ContainsFunc(warned, func(w string) bool { return strings.HasPrefix(w, "spans do not reach "+gone.URL+": ") })
	})
	if all := strings.Join(warned, "\n") + m.log.String(); strings.Contains(all, "sesame") {
		t.Errorf("the address's path is shown: %s", all)
	}
}

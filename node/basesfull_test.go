package node

import (
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/cut"
)

// TestAFullStoreLetsRecordsGo, which is what helps: it has room again, and says meanwhile why nothing leaves yet.
func TestAFullStoreLetsRecordsGo(t *testing.T) {
	var w aged
	var n *Node
	start(t, func(c *Config) {
		c.cutLook, c.Retention.Records, c.Store.BytesMax, c.probe = -1, RecordsAgeMin, 6<<20, func(m *Node) { n = m }
		c.ahead = func() time.Duration { return time.Duration(w.ahead.Load()) }
	})
	body := protocol.EncodeBody(strings.Repeat("x", 60<<10))
	for n.full() == nil {
		if _, err := n.loop.ask(t.Context(), func(token hub.Token) hub.Input {
			return hub.Author{Scope: protocol.ScopeInside, Kind: "filler", Body: body, Token: token}
		}); err != nil {
			t.Fatal(err)
		}
	}
	var b baser
	if err := n.agree(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if st, err := n.Status(t.Context()); err != nil || !strings.HasPrefix(st.Retention.Next, "nothing is old enough") {
		t.Errorf("why nothing leaves: %q, %v", st.Retention.Next, err)
	}
	w.pass(cut.BaseAge + time.Hour)
	const large = "members could fetch no more than"
	n.cfg.baseBytes = 100 // read by what agreeing calls alone
	agreeing(t, "it says that the snapshot is too large", func() bool { return strings.Contains(warned(t, n), large) }, n)
	if n.begins.Load() != nil {
		t.Fatal("records left of which no member could have the snapshot")
	}
	n.cfg.baseBytes = 0
	agreeing(t, "old records leave", haveBegun(n), n)
	if strings.Contains(warned(t, n), large) {
		t.Error("it still says so")
	}
	for more := true; more; {
		var err error
		if more, err = n.store.Sweep(1000); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "what left has given its room back", func() bool { return n.noRoom() == nil }) // it sweeps by itself, too
}

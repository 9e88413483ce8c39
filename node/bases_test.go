package node

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node/turn"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/cut"
)

// aged are nodes whose clocks the test moves on together.
type aged struct{ ahead atomic.Int64 }

func (a *aged) start(t *testing.T, name, join string, records time.Duration, n **Node) *running {
	t.Helper()
	return start(t, func(c *Config) {
		c.cutLook, c.Name, c.Join, c.Retention.Records = -1, name, join, records
		c.ahead = func() time.Duration { return time.Duration(a.ahead.Load()) }
		c.probe = func(m *Node) { *n = m }
	})
}

func (a *aged) pass(d time.Duration) { a.ahead.Add(int64(d)) }

// agreeing has nodes take part until it is so.
func agreeing(t *testing.T, what string, is func() bool, nodes ...*Node) {
	t.Helper()
	all := make([]baser, len(nodes))
	until(t, what, func() bool {
		for i, n := range nodes {
			if err := n.agree(t.Context(), &all[i]); err != nil {
				t.Fatal(err)
			}
		}
		return is()
	})
}

// held has nodes note that they hold now what they hold.
func held(t *testing.T, nodes ...*Node) {
	t.Helper()
	for _, n := range nodes {
		if _, err := turn.NoteMoment(n.store, n.time(), 0); err != nil {
			t.Fatal(err)
		}
	}
}

// settled is up to when the members have agreed, as a node shows it.
func settled(t *testing.T, n *Node) int64 {
	t.Helper()
	st, err := n.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return st.Retention.Settled
}

func haveBegun(nodes ...*Node) func() bool {
	return func() bool {
		for _, n := range nodes {
			if n.begins.Load() == nil {
				return false
			}
		}
		return true
	}
}

func invite(t *testing.T, n *Node) string {
	t.Helper()
	inv, err := n.Invite(t.Context(), api.InviteRequest{Role: protocol.RoleLocal})
	if err != nil {
		t.Fatal(err)
	}
	return inv.Token
}

// TestOldRecordsLeaveAndANewcomerBeginsAfterThem: two members agree on what their old records come to, let them go, and go on over
// a restart; who comes then begins there and shows the same board. What was before is said to be gone.
func TestOldRecordsLeaveAndANewcomerBeginsAfterThem(t *testing.T) {
	var w aged
	var na, nb, nc *Node
	a := w.start(t, "devbox", "", oneDay, &na)
	b := w.start(t, "mac-mini", invite(t, na), oneDay, &nb)
	from, to := a.attach(t, "asker"), b.attach(t, "builder")
	knows(t, "builder", na, nb)
	knows(t, "asker", na, nb)
	for i := range 5 {
		id := fmt.Sprint("m", i)
		from.send(t, map[string]any{"type": "CUSTOM", "name": "Report", "msgId": id, "targetAgentId": "builder", "value": map[string]any{"text": "word"}})
		to.next(t, "Report")
		to.send(t, verb("AckProcessed", "", map[string]any{"ackFor": id}))
		from.next(t, "AckProcessed")
	}
	alike(t, na, nb)
	agreeing(t, "young records stay", func() bool {
		st, err := na.Status(t.Context())
		if err == nil && st.Retention.Records != cut.BaseAge.Milliseconds() {
			t.Fatalf("records are said to leave after %d ms, which none does so early", st.Retention.Records)
		}
		return err == nil && st.Records > 10
	}, na, nb)
	if na.begins.Load() != nil {
		t.Fatal("young records left")
	}
	before := na.store.Records()
	moment := time.Now()
	w.pass(cut.BaseAge + time.Hour)
	agreeing(t, "both have let old records go", haveBegun(na, nb), na, nb)
	alike(t, na, nb)
	if now := na.store.Records(); now >= before {
		t.Errorf("%d records, and there were %d", now, before)
	}
	inv := invite(t, na)
	w.start(t, "late", inv, oneDay, &nc)
	until(t, "the newcomer begins at the base", haveBegun(nc))
	alike(t, na, nb, nc)
	if nc.begins.Load().Digest() != na.begins.Load().Digest() {
		t.Error("it begins elsewhere")
	}
	knows(t, "builder", nc)

	var no *protocol.Refusal
	for _, n := range []*Node{na, nc} {
		if _, err := n.Moment(t.Context(), moment.Add(-time.Minute).UnixMilli(), false); !errors.As(err, &no) || !strings.Contains(no.Reason, "no longer here") {
			t.Errorf("the past: %v", err)
		}
		if _, err := n.Proof(t.Context(), "m1"); !errors.As(err, &no) || !strings.Contains(no.Reason, "left") {
			t.Errorf("the proof: %v", err)
		}
		if _, err := n.Moment(t.Context(), n.time().UnixMilli(), true); err != nil {
			t.Errorf("now: %v", err)
		}
	}

	// Mail goes on, over restarts too.
	from.send(t, map[string]any{"type": "CUSTOM", "name": "Report", "msgId": "later", "targetAgentId": "builder", "value": map[string]any{"text": "word"}})
	to.next(t, "Report")
	to.send(t, verb("AckProcessed", "", map[string]any{"ackFor": "later"}))
	from.next(t, "AckProcessed")
	alike(t, na, nb, nc)
	if testing.Short() {
		return // the rest waits for redials
	}
	a.stop()
	start(t, func(c *Config) {
		c.Home, c.Name, c.cutLook, c.probe = a.home, "devbox", -1, func(n *Node) { na = n }
		c.ahead, c.Retention.Records = func() time.Duration { return time.Duration(w.ahead.Load()) }, oneDay
	})
	until(t, "the second start links", func() bool { return len(na.mesh.Links()) == 2 })
	alike(t, na, nb, nc)

	// The next base is higher, and the newcomer takes part. What they hold now they note a day after they noted it last.
	w.pass(oneDay)
	held(t, na, nb, nc)
	w.pass(cut.BaseAge + time.Hour)
	first := nc.begins.Load()
	agreeing(t, "all begin at the next base", func() bool {
		return na.begins.Load() != first && na.begins.Load().ID() == nb.begins.Load().ID() && na.begins.Load().ID() == nc.begins.Load().ID() && nc.begins.Load().ID() != first.ID()
	}, na, nb, nc)
	alike(t, na, nb, nc)
}

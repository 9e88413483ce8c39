package node

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// value reads a frame's value.
func value[T any](t testing.TB, f asterism.Frame) (v T) {
	t.Helper()
	if err := json.Unmarshal(f.Value, &v); err != nil {
		t.Fatalf("value of %s: %v", f.Name, err)
	}
	return v
}

type mainOf struct {
	AgentID protocol.AgentID `json:"agentId"`
	Role    protocol.Role    `json:"role"`
	Manages bool             `json:"mayManageKeys"`
	To      protocol.AgentID `json:"to"`
	Reason  string           `json:"reason"`
	Code    string           `json:"code"`
}

// The contract's hand-over: only main's agent says that it is ready, and everybody hears at once. Guards: B14, KB19.
func TestOnlyMainItselfCompletesAHandover(t *testing.T) {
	r := start(t, nil)
	main := r.attach(t, "main-agent")
	worker := r.attach(t, "worker-1")
	board := r.watch(t)

	worker.conn.Send([]byte(`{"type":"CUSTOM","name":"SetMain","msgId":"sm","value":{"agentId":"worker-1"}}`))
	if v := value[mainOf](t, worker.next(t, "KeyError")); v.Code != "PERMISSION_DENIED" {
		t.Errorf("a worker's SetMain: %+v", v)
	}
	board.conn.Send([]byte(`{"type":"CUSTOM","name":"SetMain","value":{"agentId":"worker-1","reason":"demo"}}`))
	if v := value[mainOf](t, main.next(t, "HandoffRequested")); v.To != "worker-1" || v.Reason != "demo" {
		t.Errorf("asked: %+v", v)
	}
	worker.conn.Send([]byte(`{"type":"CUSTOM","name":"HandoffReady","msgId":"hr","value":{}}`))
	worker.next(t, "ServerNotice") // refused
	main.conn.Send([]byte(`{"type":"CUSTOM","name":"HandoffReady","value":{"summary":"drained"}}`))
	if v := value[mainOf](t, board.next(t, "MainChanged")); v.AgentID != "worker-1" {
		t.Errorf("boards hear %+v", v)
	}
	if v := value[mainOf](t, worker.next(t, "ConnectionInfo")); v.Role != protocol.RoleMain || !v.Manages {
		t.Errorf("the new main hears %+v", v)
	}
	if v := value[mainOf](t, main.next(t, "ConnectionInfo")); v.Role != protocol.RoleLocal || v.Manages {
		t.Errorf("the former main hears %+v", v)
	}
}

func TestAnOfficeOutlivesARestart(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.probe = func(got *Node) { n = got } })
	before, err := n.Main(context.Background())
	if err != nil || !before.Sure || before.Term != 1 {
		t.Fatalf("main %+v, %v", before, err)
	}
	home := r.home
	r.stop()
	start(t, func(c *Config) { c.Home, c.probe = home, func(got *Node) { n = got } })
	after, err := n.Main(context.Background())
	if err != nil || after.Term != 1 || !after.Sure || len(after.Voters) != 1 {
		t.Fatalf("main %+v, %v", after, err)
	}
	if _, err := n.TakeMain(context.Background()); err == nil {
		t.Error("who is main took the office")
	}
	if err := n.Handoff(context.Background(), api.HandoffRequest{Agent: "nobody"}); err == nil {
		t.Error("handed over to nobody")
	}
}

// TestALostMainIsSaid: who loses the link to main's node says since when, and how many voters are still here.
func TestALostMainIsSaid(t *testing.T) {
	a, _, na, nb := pair(t, protocol.RoleLocal)
	main := func(n *Node, ok func(api.Main) bool) api.Main {
		t.Helper()
		for {
			st, err := n.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if ok(st.Main) {
				return st.Main
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	first, err := na.Status(t.Context())
	if err != nil || first.Main.Lost != 0 || first.Main.Reach < 1 {
		t.Fatalf("main itself says %+v, %v", first.Main, err)
	}
	linked := main(nb, func(m api.Main) bool { return m.Peer != "" && m.Lost == 0 && m.Reach > 0 })
	a.stop()
	lost := main(nb, func(m api.Main) bool { return m.Lost > 0 })
	if len(lost.Voters) == 0 || lost.Reach != len(lost.Voters)-1 || lost.Lost > time.Now().UnixMilli() || lost.Peer != linked.Peer {
		t.Errorf("after main went: %+v, before: %+v", lost, linked)
	}
}

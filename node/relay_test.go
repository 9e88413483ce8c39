package node

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node/hub"
)

// BenchmarkRelay is one message from agent to agent on one node, durable before it is sent on, acknowledged by its
// recipient; n in flight. The ratio to a bare relay is `aster bench relay`'s.
func BenchmarkRelay(b *testing.B) {
	for _, flight := range []int{1, 64} {
		b.Run(fmt.Sprintf("inflight=%d", flight), func(b *testing.B) {
			r := start(b, nil)
			from, to := r.attach(b, "main-agent"), r.attach(b, "worker")
			pad := strings.Repeat("x", 450)
			room := make(chan struct{}, flight)
			go func() {
				for range b.N {
					f := <-to.frames
					for f.Name != "Request" {
						f = <-to.frames
					}
					ack, _ := json.Marshal(map[string]any{"type": "CUSTOM", "name": "AckProcessed", "targetAgentId": "main-agent", "value": map[string]any{"ackFor": f.MsgID}})
					to.conn.Send(ack)
					<-room
				}
			}()
			b.ResetTimer()
			began := time.Now()
			for i := range b.N {
				room <- struct{}{}
				raw, _ := json.Marshal(map[string]any{"type": "CUSTOM", "id": fmt.Sprintf("f%d", i), "name": "Request", "targetAgentId": "worker",
					"msgId": fmt.Sprintf("m-%d-%d", began.UnixNano(), i), "value": map[string]any{"text": pad}})
				from.conn.Send(raw)
				drain(from)
			}
			for range flight {
				room <- struct{}{}
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "msg/s")
		})
	}
}

func drain(c *client) {
	for {
		select {
		case <-c.frames:
		default:
			return
		}
	}
}

// TestMessageIsDeliveredAndItsSenderHears goes from socket to socket on one node.
func TestMessageIsDeliveredAndItsSenderHears(t *testing.T) {
	r := start(t, nil)
	from, to := r.attach(t, "main-agent"), r.attach(t, "worker")
	from.send(t, map[string]any{"type": "CUSTOM", "id": "f1", "name": "Delegate", "targetAgentId": "worker", "msgId": "m1", "value": map[string]any{"task": "x"}})
	got := to.next(t, "Delegate")
	if got.AgentID != "main-agent" || got.MsgID != "m1" || got.Timestamp == 0 {
		t.Errorf("delivered frame: got sender %q msgId %q timestamp %d", got.AgentID, got.MsgID, got.Timestamp)
	}
	ack := from.next(t, "Ack")
	if !strings.Contains(string(ack.Value), `"kind":"delivered"`) || !strings.Contains(string(ack.Value), `"ackFor":"m1"`) {
		t.Errorf("ack: got %s", ack.Value)
	}
	to.send(t, map[string]any{"type": "CUSTOM", "name": "AckProcessed", "targetAgentId": "main-agent", "value": map[string]any{"ackFor": "m1"}})
	done := from.next(t, "AckProcessed")
	if done.AgentID != "worker" || !strings.Contains(string(done.Value), `"ackFor":"m1"`) {
		t.Errorf("processed: got from %q %s", done.AgentID, done.Value)
	}
}

// TestFullStoreRefusesByNameAndGoesOn: with a tiny store new messages are refused by name; reads, sockets and receipts go
// on, and nothing that was accepted is lost.
func TestFullStoreRefusesByNameAndGoesOn(t *testing.T) {
	r := start(t, func(c *Config) { c.Store.BytesMax = 1 << 20 })
	from, to := r.attach(t, "main-agent"), r.attach(t, "worker")
	pad := strings.Repeat("x", 20<<10)
	accepted := 0
	for i := range 400 {
		from.send(t, map[string]any{"type": "CUSTOM", "id": fmt.Sprint("f", i), "name": "Request", "targetAgentId": "worker", "msgId": fmt.Sprint("m", i), "value": map[string]any{"text": pad}})
		f := <-from.frames
		for f.Name != "Ack" && f.Name != "ServerNotice" {
			f = <-from.frames
		}
		if f.Name == "ServerNotice" {
			if !strings.Contains(string(f.Value), "disk-full") {
				t.Fatalf("message %d: got %s, want a refusal named disk-full", i, f.Value)
			}
			break
		}
		accepted++
	}
	if accepted == 0 || accepted == 400 {
		t.Fatalf("%d of 400 messages were accepted by a store of 1 MiB", accepted)
	}
	for i := range accepted {
		if got := to.next(t, "Request"); got.MsgID != fmt.Sprint("m", i) {
			t.Fatalf("delivery %d: got %s", i, got.MsgID)
		}
		to.send(t, map[string]any{"type": "CUSTOM", "name": "AckProcessed", "value": map[string]any{"ackFor": fmt.Sprint("m", i)}})
		from.next(t, "AckProcessed")
	}
}

// TestTurnThatFoundNoRoomIsTakenBack: hub and replica are made anew from the store, whoever waits is refused by name, who
// is attached stays attached, and numbers go on without a gap.
func TestTurnThatFoundNoRoomIsTakenBack(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.probe = func(p *Node) { n = p } })
	from, to := r.attach(t, "main-agent"), r.attach(t, "worker")
	say := func(id string) {
		from.send(t, map[string]any{"type": "CUSTOM", "id": id, "name": "Request", "targetAgentId": "worker", "msgId": id, "value": map[string]any{}})
	}
	say("before")
	to.next(t, "Request")
	waited := make(chan error, 1)
	go func() {
		_, err := n.Wait(t.Context(), "idler", true)
		waited <- err
	}()
	waiting := func() bool {
		k, ok := hub.Known{}, false
		if err := n.loop.call(t.Context(), func() { k, ok = n.loop.core.Agent("idler") }); err != nil {
			t.Fatal(err)
		}
		return ok && k.Wakes == "aster wait"
	}
	for !waiting() {
	}
	var err error
	if e := n.loop.call(t.Context(), func() { err = n.loop.takeBack() }); e != nil || err != nil {
		t.Fatal(e, err)
	}
	if err := <-waited; err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("who waited heard %v, want a refusal for want of room", err)
	}
	if got := to.next(t, "Request"); got.MsgID != "before" {
		t.Errorf("unread mail after it: got %s, want before", got.MsgID)
	}
	say("after")
	if got := to.next(t, "Request"); got.MsgID != "after" {
		t.Errorf("new mail after it: got %s, want after", got.MsgID)
	}
	st, err := n.Status(t.Context())
	if err != nil || len(st.Warnings) == 0 {
		t.Errorf("status after it: %v, %v; want a warning", st.Warnings, err)
	}
}

package node

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
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

package node

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node/link"
)

// TestHostileClientsAreCutOffWhileOthersGoOn: one that sends garbage without end, one that floods, and one that never reads
// while much is shown to it. Each is cut off; meanwhile every message of an honest pair arrives, and in one and the same run
// their tail is measured without and with the three. ASTER_FIGURES=1 holds it to twice as much.
func TestHostileClientsAreCutOffWhileOthersGoOn(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for slow readers")
	}
	// More than an honest one says below, and less than a flooder gets through on a slow machine.
	r := start(t, func(c *Config) { c.Limits = LimitsConfig{SenderPerSecond: 100, SenderBurst: 1000} })
	main, worker := r.attach(t, "main-agent"), r.attach(t, "worker")
	const rounds = 300
	calm := tail(t, main, worker, "calm", rounds, nil)

	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	stalled := r.deaf(t, ctx)
	words := strings.Repeat("x", 20_000) // so that what a board is shown fills more than the system keeps for it
	flood := r.hostile(t, ctx, "flooder", func(i int) string {
		return fmt.Sprintf(`{"type":"CUSTOM","name":"Status","msgId":"f%d","value":{"text":%q}}`, i, words)
	})
	garbage := r.hostile(t, ctx, "babbler", func(i int) string { return fmt.Sprintf(`{"type":"CUSTOM","name":%d]`, i) })
	hostile := tail(t, main, worker, "hostile", rounds, func() bool { return closed(stalled) && closed(flood) && closed(garbage) })
	for name, done := range map[string]<-chan struct{}{"the one that reads nothing": stalled, "the flooder": flood, "the babbler": garbage} {
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			t.Errorf("%s was not cut off", name)
		}
	}
	ratio := float64(hostile) / float64(calm)
	t.Logf("p99 of an honest pair: %s alone, %s beside garbage, a flood and a stalled reader: ratio %.2f", calm, hostile, ratio)
	if os.Getenv("ASTER_FIGURES") != "" && ratio > 2 {
		t.Errorf("the tail of others grew %.2f-fold, want at most 2", ratio)
	}
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// tail sends messages one after the other and returns the 99th of a hundred of the times until they were there. It goes on
// beyond rounds until all, if given, says so.
func tail(t *testing.T, from, to *client, name string, rounds int, all func() bool) time.Duration {
	t.Helper()
	var took []time.Duration
	for i := 0; i < rounds || all != nil && !all() && i < 10*rounds; i++ {
		id, began := fmt.Sprint(name, i), time.Now()
		from.send(t, map[string]any{"type": "CUSTOM", "name": "Request", "targetAgentId": "worker", "msgId": id, "value": map[string]any{"text": "hello"}})
		for to.next(t, "Request").MsgID != id {
		}
		took = append(took, time.Since(began))
		to.send(t, map[string]any{"type": "CUSTOM", "name": "AckProcessed", "targetAgentId": "main-agent", "value": map[string]any{"ackFor": id}})
		<-time.After(10 * time.Millisecond)
		passOver(from)
		passOver(to)
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}

func passOver(c *client) {
	for {
		select {
		case <-c.frames:
		default:
			return
		}
	}
}

// deaf opens a board that reads nothing after its first frame. The channel closes when the node has cut it off.
func (r *running) deaf(t *testing.T, ctx context.Context) <-chan struct{} {
	t.Helper()
	return r.raw(t, ctx, func(*link.Conn) { <-ctx.Done() }, func(conn *link.Conn) {
		for ctx.Err() == nil && conn.Send([]byte(`{"type":"CUSTOM","name":"Heartbeat","value":{}}`)) {
			<-time.After(50 * time.Millisecond)
		}
	})
}

// hostile says one frame after the other, as fast as it may be sent.
func (r *running) hostile(t *testing.T, ctx context.Context, as string, frame func(i int) string) <-chan struct{} {
	t.Helper()
	return r.raw(t, ctx, nil, func(conn *link.Conn) {
		conn.Send([]byte(`{"type":"HELLO","agentId":"` + as + `"}`))
		for i := 0; ctx.Err() == nil; i++ {
			if !conn.Send([]byte(frame(i))) {
				return
			}
			if i%64 == 63 {
				<-time.After(time.Millisecond) // its own queue is not what is tried here
			}
		}
	})
}

func (r *running) raw(t *testing.T, ctx context.Context, read func(*link.Conn), write func(*link.Conn)) <-chan struct{} {
	t.Helper()
	conn, err := link.Dial(ctx, "ws"+r.Board[len("http"):]+"/ws", nil, link.Options{QueueBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	conn.Authenticated()
	done := make(chan struct{})
	var both sync.WaitGroup
	both.Go(func() {
		_ = conn.Serve(ctx, func([]byte, bool) {
			if read != nil {
				read(conn)
			}
		})
	})
	both.Go(func() { defer close(done); write(conn) })
	t.Cleanup(both.Wait)
	return done
}

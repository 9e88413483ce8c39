package node

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node/link"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// running is a node in this process: real sockets, real disk, a home of its own.
type running struct {
	api.Ready
	home string
	stop func()
	done chan error
}

// start runs a node until the test ends.
func start(t testing.TB, change func(*Config)) *running {
	t.Helper()
	cfg := Config{Home: filepath.Join(t.TempDir(), "home"), Name: "here", Board: "127.0.0.1:0", Version: "test", Access: AccessConfig{Keyless: true}}
	ready := make(chan api.Ready, 1)
	cfg.Ready = func(r api.Ready) { ready <- r }
	if change != nil {
		change(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{home: cfg.Home, done: make(chan error, 1)}
	r.stop = func() {
		cancel()
		select {
		case err := <-r.done:
			r.done <- err
			if err != nil {
				t.Errorf("node ended with %v", err)
			}
		case <-time.After(60 * time.Second):
			t.Error("node did not stop within 60 s")
		}
	}
	go func() { r.done <- Run(ctx, cfg) }()
	t.Cleanup(r.stop)
	select {
	case r.Ready = <-ready:
	case err := <-r.done:
		r.done <- err
		t.Fatalf("node did not start: %v", err)
	case <-time.After(60 * time.Second):
		t.Fatal("node not ready within 60 s")
	}
	return r
}

// client is an agent on /ws.
type client struct {
	conn   *link.Conn
	frames chan asterism.Frame
}

// watch opens a board: a socket that says nothing.
func (r *running) watch(t testing.TB) *client {
	t.Helper()
	c := r.dial(t)
	c.next(t, "AgentList")
	return c
}

// attach joins as an agent and returns once it is accepted.
func (r *running) attach(t testing.TB, id string) *client {
	t.Helper()
	c := r.dial(t)
	hello, _ := json.Marshal(map[string]any{"type": "HELLO", "agentId": id, "capabilities": []string{"ack-layer"}})
	c.conn.Send(hello)
	c.next(t, "ConnectionInfo")
	return c
}

func (r *running) dial(t testing.TB) *client {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	conn, err := link.Dial(ctx, "ws"+r.Board[len("http"):]+"/ws", nil, link.Options{})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	conn.Authenticated()
	c := &client{conn: conn, frames: make(chan asterism.Frame, 4096)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = conn.Serve(ctx, func(data []byte, _ bool) {
			if f, no := asterism.Decode(data, 0); no == nil {
				c.frames <- f
			}
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
	return c
}

// next returns the next frame of a name, passing over others; without a name, of any.
func (c *client) next(t testing.TB, name string) asterism.Frame {
	t.Helper()
	deadline := time.After(60 * time.Second)
	for {
		select {
		case f := <-c.frames:
			if name == "" || f.Name == name || f.Type == name {
				return f
			}
		case <-deadline:
			t.Fatalf("no %s within 60 s", name)
		}
	}
}

func (c *client) send(t testing.TB, frame map[string]any) {
	t.Helper()
	raw, err := json.Marshal(frame)
	if err != nil {
		t.Fatal(err)
	}
	if !c.conn.Send(raw) {
		t.Fatal("connection is closed")
	}
}

// safeBuffer is a log that many write to.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func (b *safeBuffer) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

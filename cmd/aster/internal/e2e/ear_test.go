package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/aster-mesh/aster/node/link"
)

// ear is a socket that keeps every byte it was given. It acknowledges nothing by itself and does not connect again.
type ear struct {
	t    *testing.T
	name string
	conn *link.Conn
	gone chan struct{} // closed when the connection has ended

	mu     sync.Mutex
	frames [][]byte
	seen   int // frames that heard has passed over
}

// listen opens url. With an id it says HELLO and returns when the node has taken it; without one it is a board.
func listen(t *testing.T, url, id string) *ear {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	conn, err := link.Dial(ctx, url, nil, link.Options{})
	must(t, err)
	conn.Authenticated() // no limit for the little that a stranger is allowed: histories are long
	e := &ear{t: t, name: id, conn: conn, gone: make(chan struct{})}
	go func() {
		defer close(e.gone)
		_ = conn.Serve(ctx, func(data []byte, _ bool) { // it ends when the test does
			e.mu.Lock()
			e.frames = append(e.frames, bytes.Clone(data))
			e.mu.Unlock()
		})
	}()
	t.Cleanup(func() { stop(); <-e.gone })
	if id == "" {
		e.name = "board"
		e.hears("SERVER_HELLO", func(f heard) bool { return f.Type == "SERVER_HELLO" })
		return e
	}
	e.say(`{"type":"HELLO","agentId":%q,"agentName":%q,"capabilities":["ack-layer"]}`, id, id)
	e.hears("ConnectionInfo", func(f heard) bool { return f.Name == "ConnectionInfo" })
	return e
}

// heard is what of a frame these tests look at.
type heard struct {
	received
	RoomID string `json:"roomId"`
}

func (e *ear) say(format string, args ...any) { e.conn.Send(fmt.Appendf(nil, format, args...)) }

// hears waits for a frame that was not passed over yet, and passes over all up to it.
func (e *ear) hears(what string, is func(heard) bool) heard {
	e.t.Helper()
	var f heard
	eventually(e.t, patience, e.name+" hears "+what, func() (bool, string) {
		e.mu.Lock()
		defer e.mu.Unlock()
		for e.seen < len(e.frames) {
			raw := e.frames[e.seen]
			e.seen++
			f = heard{}
			if err := json.Unmarshal(raw, &f); err != nil {
				e.t.Fatalf("%s got a frame that is no JSON: %.200s", e.name, raw)
			}
			if is(f) {
				return true, ""
			}
		}
		return false, fmt.Sprintf("%d frames, last %.300s", len(e.frames), bytes.Join(e.frames[max(0, len(e.frames)-3):], []byte("\n")))
	})
	return f
}

// bytes is all that was ever received.
func (e *ear) bytes() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	return bytes.Join(e.frames, []byte("\n"))
}

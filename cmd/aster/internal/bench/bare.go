package bench

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aster-mesh/aster/node/link"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// bareHub relays the same frames as a node and stores nothing: what any hub with our sockets and our frames must do. On
// /fan it writes one frame, made once, straight to every socket, as prepared messages are written.
type bareHub struct {
	encoder sync.Mutex // an Encoder is for one goroutine
	enc     *asterism.Encoder

	mu     sync.Mutex
	agents map[protocol.AgentID]*link.Conn
	fan    []net.Conn
}

// bareAddr is the first line that a bare hub prints.
type bareAddr struct {
	URL string `json:"url"`
	Fan string `json:"fan"`
}

// ServeBare runs a bare hub until ctx ends or stdin does, and prints where it is.
func ServeBare(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("bare hub: %w", err)
	}
	ids := 0
	h := &bareHub{enc: asterism.NewEncoder(func() string { ids++; return "evt_" + strconv.Itoa(ids) }), agents: map[protocol.AgentID]*link.Conn{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/ws", func(w http.ResponseWriter, r *http.Request) { h.relay(ctx, w, r) })
	mux.HandleFunc("/fan", h.join)
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: startWait}
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // its end is the sign
		cancel()
	}()
	defer context.AfterFunc(ctx, func() { _ = srv.Close() })()
	at := ln.Addr().String()
	if err := json.NewEncoder(stdout).Encode(bareAddr{URL: "ws://" + at + "/ws", Fan: "ws://" + at + "/fan"}); err != nil {
		return errors.Join(fmt.Errorf("bare hub: %w", err), ln.Close())
	}
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("bare hub: %w", err)
	}
	return nil
}

func (h *bareHub) relay(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	conn, err := link.Upgrade(w, r, link.Options{})
	if err != nil {
		return // the client hears of it
	}
	conn.Authenticated()
	go func() {
		var who asterism.Sender
		_ = conn.Serve(ctx, func(data []byte, _ bool) {
			f, no := asterism.Decode(data, protocol.FrameBytesMax)
			if no != nil {
				return
			}
			if f.Hello() {
				who = asterism.Sender{ID: f.AgentID, Source: protocol.SourceAgent}
				h.mu.Lock()
				h.agents[f.AgentID] = conn
				h.mu.Unlock()
				conn.Send(h.made(func(e *asterism.Encoder) []byte { return e.ConnectionInfo(time.Now(), asterism.ConnectionInfo{}) }))
				return
			}
			h.pass(conn, who, &f)
		})
	}()
}

func (h *bareHub) made(f func(*asterism.Encoder) []byte) []byte {
	h.encoder.Lock()
	defer h.encoder.Unlock()
	return f(h.enc)
}

// pass relays one frame with what its sender is told.
func (h *bareHub) pass(conn *link.Conn, who asterism.Sender, f *asterism.Frame) {
	h.mu.Lock()
	to := h.agents[f.TargetAgentID]
	h.mu.Unlock()
	now := time.Now()
	if f.Intent() == protocol.AckProcessed {
		var v struct {
			AckFor protocol.MsgID `json:"ackFor"`
		}
		if json.Unmarshal(f.Value, &v) == nil && to != nil {
			to.Send(h.made(func(e *asterism.Encoder) []byte {
				return e.AckProcessed(now, f.TargetAgentID, asterism.Processed{From: who, For: v.AckFor})
			}))
		}
		return
	}
	env, no := f.Envelope(who, "")
	if no != nil {
		return
	}
	frame := asterism.AppendDelivery(make([]byte, 0, len(env.Value)+384), &env, now.UnixMilli())
	if to == nil {
		h.broadcast(frame)
		return
	}
	to.Send(frame)
	conn.Send(h.made(func(e *asterism.Encoder) []byte {
		return e.Ack(now, who.ID, asterism.Ack{For: env.ID, Kind: asterism.KindDelivered, From: env.To})
	}))
}

// join upgrades by hand: below this there is only the socket.
func (h *bareHub) join(w http.ResponseWriter, r *http.Request) {
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	reply := "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " +
		base64.StdEncoding.EncodeToString(sum[:]) + "\r\n\r\n"
	hello := textFrame([]byte(`{"type":"SERVER_HELLO"}`))
	if _, err := conn.Write(append([]byte(reply), hello...)); err != nil {
		_ = conn.Close()
		return
	}
	h.mu.Lock()
	h.fan = append(h.fan, conn)
	h.mu.Unlock()
	go func() { _, _ = io.Copy(io.Discard, conn) }()
}

func (h *bareHub) broadcast(frame []byte) {
	wire := textFrame(frame)
	h.mu.Lock()
	all := h.fan
	h.mu.Unlock()
	gone := map[net.Conn]bool{}
	for _, c := range all {
		if _, err := c.Write(wire); err != nil {
			gone[c] = true
			_ = c.Close()
		}
	}
	if len(gone) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var rest []net.Conn
	for _, c := range h.fan {
		if !gone[c] {
			rest = append(rest, c)
		}
	}
	h.fan = rest
}

// textFrame is a server's frame of less than 64 KiB: fin and text, length, payload.
func textFrame(payload []byte) []byte {
	out := []byte{0x81}
	if n := len(payload); n < 126 {
		out = append(out, byte(n))
	} else {
		out = append(out, 126, byte(n>>8), byte(n))
	}
	return append(out, payload...)
}

// bare is a bare hub in a process of its own, as the node it stands beside is.
type bare struct {
	*process
	addr bareAddr
}

func (b *Bench) startBare(ctx context.Context) (*bare, error) {
	p, line, err := b.spawn(ctx, "", "bench", "bare")
	if err != nil {
		return nil, err
	}
	h := &bare{process: p}
	if err := json.Unmarshal(line, &h.addr); err != nil {
		return nil, errors.Join(fmt.Errorf("the bare hub said %q", strings.TrimSpace(string(line))), p.end())
	}
	return h, nil
}

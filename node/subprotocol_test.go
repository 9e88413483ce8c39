package node

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/aster-mesh/aster/node/link"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// packedClient joins with the subprotocol; its frames are asserted to be binary msgpack.
func (r *running) packedClient(t *testing.T, id string) *client {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	conn, err := link.Dial(ctx, "ws"+r.Board[len("http"):]+"/ws", nil, link.Options{Subprotocols: []string{asterism.SubprotocolMsgpack}, Recode: recodings})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	if got := conn.Subprotocol(); got != asterism.SubprotocolMsgpack {
		t.Errorf("agreed on %q", got)
	}
	conn.Authenticated()
	c := &client{conn: conn, frames: make(chan asterism.Frame, 4096)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = conn.Serve(ctx, func(data []byte, binary bool) {
			raw, no := asterism.FromMsgpack(data, 0)
			if no != nil || !binary {
				t.Errorf("not msgpack (%v, binary %v): %q", no, binary, protocol.CutText(string(data), 200))
				return
			}
			if f, no := asterism.Decode(raw, 0); no == nil {
				c.frames <- f
			}
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
	hello, _ := json.Marshal(map[string]any{"type": "HELLO", "agentId": id, "capabilities": []string{"ack-layer"}})
	conn.Send(hello)
	c.next(t, "ConnectionInfo")
	return c
}

// TestClientsOfBothFormsShareARoom: what one says in msgpack the others read in JSON and the other way round, long
// values, prepared frames for boards and rosters included.
func TestClientsOfBothFormsShareARoom(t *testing.T) {
	n := start(t, nil)
	board, text := n.watch(t), n.attach(t, "text")
	packed, other := n.packedClient(t, "packed"), n.packedClient(t, "other")
	id := open(t, board, `{"topic":"Both","participants":["text","packed","other"]}`, text, packed, other)
	big := make([]byte, 40_000)
	for i := range big {
		big[i] = 'a' + byte(i%26)
	}
	for i, speaker := range []*client{text, packed} {
		msg := []string{"from-text", "from-packed"}[i]
		speaker.send(t, map[string]any{"type": "CUSTOM", "name": "Say", "roomId": id, "msgId": msg, "value": map[string]any{"text": string(big), "n": []any{1, 1.5, nil, true}}})
		var first string
		for _, hearer := range []*client{board, text, packed, other} {
			if hearer == speaker {
				continue
			}
			got := hearer.next(t, "Say")
			var v map[string]any
			if err := json.Unmarshal(got.Value, &v); err != nil || got.MsgID != msg || v["text"] != string(big) {
				t.Fatalf("%s: got %q, %d bytes", msg, got.MsgID, len(got.Value))
			}
			again, _ := json.Marshal(v)
			if first == "" {
				first = string(again)
			} else if first != string(again) {
				t.Errorf("%s differs between forms", msg)
			}
		}
		speaker.next(t, "Ack")
	}
	late := n.packedClient(t, "late") // everybody hears of it, by a frame that was made once
	for _, c := range []*client{board, text, packed, other, late} {
		for found := false; !found; {
			var list struct{ Agents []struct{ AgentID string } }
			if err := json.Unmarshal(c.next(t, "AgentList").Value, &list); err != nil {
				t.Fatal(err)
			}
			for _, a := range list.Agents {
				found = found || a.AgentID == "late"
			}
		}
	}
}

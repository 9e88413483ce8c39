package node

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// large is a Report of so many bytes.
func large(to, id string, bytes int) map[string]any {
	f := map[string]any{"type": "CUSTOM", "name": "Report", "msgId": id, "value": map[string]any{"text": strings.Repeat("x", bytes)}}
	if to != "" {
		f["targetAgentId"] = to
	}
	return f
}

// TestALargeValueIsShownWhole: boards at the sender's node and at the recipient's, and everybody in a room, get a value that
// is too large for a record as it was said.
func TestALargeValueIsShownWhole(t *testing.T) {
	a, b, na, nb := pair(t, protocol.RoleLocal)
	m, w, here, there := a.attach(t, "main-agent"), b.attach(t, "worker"), a.watch(t), b.watch(t)
	na.sees(t, "worker", false)
	nb.sees(t, "main-agent", false)
	const bytes = 300_000
	shown := func(id string) {
		t.Helper()
		for where, c := range map[string]*client{"here": here, "there": there} {
			if got := c.next(t, "Report"); got.MsgID != id || len(got.Value) < bytes || !json.Valid(got.Value) {
				t.Errorf("board %s: %s with %d bytes, want %s whole", where, got.MsgID, len(got.Value), id)
			}
		}
	}
	m.send(t, large("worker", "to-one", bytes))
	w.next(t, "Report")
	shown("to-one")
	id := open(t, here, `{"topic":"Plan","participants":["main-agent","worker"]}`, m, w)
	f := large("", "to-room", bytes)
	f["roomId"] = id
	m.send(t, f)
	if got := w.next(t, "Report"); got.MsgID != "to-room" || len(got.Value) < bytes {
		t.Errorf("in the room: %s with %d bytes", got.MsgID, len(got.Value))
	}
	shown("to-room")
}

// TestBoardsSeeInOrderWhileALargeValueIsRead: what is said behind a large value is shown behind it, and the loop goes on.
// Guards: KD3.
func TestBoardsSeeInOrderWhileALargeValueIsRead(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.probe = func(x *Node) { n = x } })
	board, m, w := r.watch(t), r.attach(t, "main-agent"), r.attach(t, "worker")
	for range readingMax {
		n.blobs.reading <- struct{}{} // the disk is slow
	}
	m.send(t, large("worker", "large", 4<<20))
	m.send(t, large("main-agent", "small", 10))
	m.next(t, "Report") // the loop went on
	late := r.watch(t)
	m.send(t, large("main-agent", "last", 10))
	m.next(t, "Report")
	for range readingMax {
		<-n.blobs.reading
	}
	for _, id := range []string{"large", "small", "last"} {
		if got := board.next(t, "Report"); got.MsgID != id || id == "large" && len(got.Value) < 4<<20 {
			t.Errorf("the board got %s with %d bytes, want %s", got.MsgID, len(got.Value), id)
		}
	}
	if got := late.next(t, "Report"); got.MsgID != "last" {
		t.Errorf("a board that came later got %s", got.MsgID)
	}
	w.next(t, "Report")
}

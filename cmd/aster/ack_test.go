package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// TestWhatIsCountedAndWarnedOf: what is acknowledged at once is counted, and who is about to be refused is named.
func TestWhatIsCountedAndWarnedOf(t *testing.T) {
	for _, c := range []struct {
		name, args, out, err, asked string
		code                        int
		routes                      map[string]any
	}{
		{name: "ack again", args: "ack t-7kq2m", routes: map[string]any{"POST /ack": api.AckResult{Acked: []protocol.MsgID{"x"}, Before: []protocol.MsgID{"x"}}}, out: "t-7kq2m was processed already\n"},
		{
			name: "ack of one sender's", args: "ack --from bob --agent anna", asked: `POST /ack {"agent":"anna","from":"bob"}`,
			routes: map[string]any{"POST /ack": api.AckResult{Acked: []protocol.MsgID{"x", "y"}, Agent: "anna", Left: 3, Work: []string{"t-7kq2m"}}},
			out:    "2 from bob processed in the inbox of anna; 3 unread from others\n",
			err:    "of them were work: t-7kq2m. Who gave it waits for a report: aster report --re t-7kq2m --status done --summary TEXT\n",
		},
		{name: "ack of nothing", args: "ack --all", routes: map[string]any{"POST /ack": api.AckResult{Agent: "anna"}}, out: "nothing was unread in the inbox of anna; nothing is unread now\n"},
		{
			name: "an inbox that one sender fills", args: "inbox", routes: map[string]any{"GET /inbox": map[string]any{"items": slices.Repeat([]api.InboxItem{{From: "bob", Short: "7kq2m"}}, 800)}},
			out: "*", err: "800 of bob are unread, of at most 1,000: above that its messages are refused. When they are dealt with: aster ack --from bob\n",
		},
		{
			name: "an outbox", args: "outbox", asked: "GET /outbox?agent=anna",
			routes: map[string]any{"GET /status": api.Status{Agent: "anna"}, "GET /outbox": map[string]any{"messages": []api.Message{}}}, err: "nothing waits\n",
		},
		{name: "status of a full disk", args: "status", code: 1, routes: map[string]any{"GET /status": api.Status{DiskShort: true}}, out: "*"},
		{
			name: "move of the runner's agent", args: "agent move a west", routes: map[string]any{"POST /agents/{id}/move": api.Moved{Agent: "a", Node: "west", Taken: true, Runner: true}},
			out: "a lives on west now, with 0 unread\nits runner stays here and gets no more work: write a [worker] command for a on west, or give the one here another agent: aster up --replace --detach --agent NAME\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t, c.routes)
			got := f.type_(t, "", strings.Fields(c.args)...)
			if got.code != c.code || c.out != "*" && got.out != c.out || got.err != c.err {
				t.Errorf("exit %d, want %d\n%s%s", got.code, c.code, got.out, got.err)
			}
			if c.asked != "" && f.last() != c.asked {
				t.Errorf("asked %s, want %s", f.last(), c.asked)
			}
		})
	}
}

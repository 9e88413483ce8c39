package web

import (
	"fmt"
	"math"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// working is the sample mesh with agents that talk and ask.
func working() *fake {
	f := newFake()
	now := time.Now()
	talk(&f.snap, now)
	f.snap.Asks = sampleAsks(now, f.snap.Tasks)
	f.measured = sampleHealth(now)
	f.invited = []api.InviteRow{
		{ID: "i2", Role: protocol.RoleLocal, Made: now.Add(-5 * time.Minute).UnixMilli(), Expires: now.Add(55 * time.Minute).UnixMilli()},
		{ID: "i1", Role: protocol.RoleUpstream, Made: now.Add(-50 * time.Hour).UnixMilli(), Expires: now.Add(-49 * time.Hour).UnixMilli(), UsedBy: "12D3KooWbuild-1", UsedName: "build-1", UsedAt: now.Add(-49 * time.Hour).UnixMilli()}}
	f.claimed = []api.Claim{
		{ID: "c1", Agent: "claude-shop", Home: "12D3KooWdevbox", NodeName: "devbox", Scopes: []string{"path:cart/", "contract:totals"}, Why: "rounding", Since: now.Add(-3 * time.Minute).UnixMilli(), Term: 1, Here: true, Left: 250_000},
		{ID: "c2", Agent: "mac-mini", Home: "12D3KooWmac-mini", NodeName: "mac-mini", Scopes: []string{"path:tax/"}, Since: now.Add(-9 * time.Minute).UnixMilli(), Term: 1}}
	f.openRooms = []api.Room{{ID: "rt-0123456789ab", Topic: "Release 2.6", NodeName: "devbox", At: now.Add(-2 * time.Hour).UnixMilli(), Participants: []protocol.AgentID{"claude-shop", "codex-shop"}, Lines: 14}}
	return f
}

// sampleAsks are what waits for people in a busy mesh.
func sampleAsks(now time.Time, tasks []api.Task) api.Asks {
	ms := func(in time.Duration) int64 { return now.Add(in).UnixMilli() }
	own, other := protocol.PeerID("12D3KooWdevbox"), protocol.PeerID("12D3KooWmac-mini")
	return api.Asks{Asks: []api.Ask{
		{ID: "s:mac-mini/q1", Kind: api.AskChoice, Text: "Round totals half up or half even?", At: ms(-6 * time.Minute), Until: ms(54 * time.Minute), Default: "half even",
			Options: []api.AskOption{{Label: "half even", Detail: "as the bank does"}, {Label: "half up", Detail: "as receipts show; changes 14 fixtures"}}, Free: true,
			Asker: "mac-mini", Node: other, NodeName: "mac-mini", Owner: own, OwnerName: "devbox", Prompt: "q1", Message: "0190a0a0-0000-7000-8000-0000000000a1", Task: tasks[2].ID, TaskShort: tasks[2].Short},
		{ID: "s:claude-shop/q2", Kind: api.AskApproval, Text: "Run `rm -rf build/ dist/` in ~/shop?", At: ms(-18 * time.Second), Until: ms(42 * time.Second),
			Options: []api.AskOption{{Label: "Allow once"}, {Label: "Deny"}}, Asker: "claude-shop", Node: own, NodeName: "devbox", Owner: own, OwnerName: "devbox", Prompt: "q2", Message: "0190a0a0-0000-7000-8000-0000000000a2"},
		{ID: "t:" + string(tasks[0].ID), Kind: api.AskBlocked, Text: tasks[0].Summary, At: ms(-12 * time.Minute), Free: true, Asker: "gemini-docs", Node: other, NodeName: "mac-mini", Owner: own, OwnerName: "devbox",
			Message: tasks[0].ID, Task: tasks[0].ID, TaskShort: tasks[0].Short},
		{ID: "m:x", Kind: api.AskReview, Text: "Review 81d0e44: totals are rounded half even now", At: ms(-40 * time.Minute), Free: true, Asker: "build-1", Node: "12D3KooWbuild-1", NodeName: "build-1", Owner: other, OwnerName: "mac-mini", Message: "0190a0a0-0000-7000-8000-0000000000a3"},
	}, Ended: []api.AskEnded{}}
}

// sampleDecision is the first decision of sampleAgenda, as a node asks for it.
func sampleDecision() api.Ask {
	return api.Ask{ID: "d:d1", Kind: api.AskDecision, Text: "Which tax table should exports use?", Free: true, Asker: "claude-shop", Node: "12D3KooWdevbox", NodeName: "devbox", Owner: "12D3KooWdevbox", OwnerName: "devbox",
		Decision: "d1", Recommend: "2026, announced", Options: []api.AskOption{{Label: "2025, in force"}, {Label: "2026, announced"}}}
}

// talk adds what a working agent says: tools, steps, words, answers.
func talk(s *api.Snapshot, now time.Time) {
	n := uint64(len(s.Messages))
	add := func(ago time.Duration, from, to, intent, text string, re protocol.MsgID, value any) {
		n++
		id := protocol.MsgID(fmt.Sprintf("0190a0a0-0000-7000-8000-%012x", 0x5000+n*7919))
		m := api.Message{Pos: n, At: now.Add(-ago).UnixMilli(), Node: "12D3KooWmac-mini", NodeName: "mac-mini", Log: "12D3KooWmac-mini/1/in", Seq: n, Text: text,
			Envelope: protocol.Envelope{ID: id, From: protocol.AgentID(from), FromRole: protocol.RoleLocal, Source: protocol.SourceAgent, To: protocol.AgentID(to), Intent: protocol.Intent(intent), Re: re, Value: raw(value)},
			Tiers:    []api.TierAt{{Tier: protocol.Logged, At: now.Add(-ago).UnixMilli(), By: "12D3KooWmac-mini"}, {Tier: protocol.Replicated}}}
		m.Short = shortOf(id, m.Envelope.Intent)
		s.Messages = append(s.Messages, m)
	}
	for i, path := range []string{"cart/total.go", "cart/total_test.go", "cart/total.go", "tax/table.go"} {
		add(18*time.Second-time.Duration(i)*2*time.Second, "mac-mini", "claude-shop", "ToolCall", "", "", map[string]string{"toolCallName": []string{"Read", "Read", "Edit", "Read"}[i], "path": path})
	}
	add(9*time.Second, "mac-mini", "claude-shop", "AgentText", "The empty cart divides by the number of lines. I return 0 there and keep the rounding as it is.", "", map[string]string{"text": "…"})
	add(5*time.Second, "mac-mini", "claude-shop", "WorkerReport", "3 of 3 tests pass", s.Messages[4].Envelope.ID, map[string]string{"summary": "3 of 3 tests pass"})
	s.Pos = n
}

func raw(v any) []byte { return value(v) }

// sampleHealth is an hour of figures.
func sampleHealth(now time.Time) api.Health {
	h := api.Health{EveryMillis: 10_000}
	for i := range 360 {
		x := float64(i) / 30
		h.Samples = append(h.Samples, api.Sample{At: now.Add(time.Duration(i-360) * 10 * time.Second).UnixMilli(), Messages: int64(30 + 25*math.Sin(x)), Records: uint64(50_000 + i), Receipts: 10,
			ReceiptMillis: int64(3 + 2*math.Cos(x/2)), ReceiptMax: 12, Jobs: i % 5, Queued: 1000 * (i % 7), Disk: 1_200_000_000 + int64(i)*100_000, Resident: 62 << 20,
			Links: map[protocol.PeerID]uint32{"12D3KooWmac-mini": uint32(1800 + 300*math.Sin(x)), "12D3KooWbuild-1": 12_400}})
	}
	return h
}

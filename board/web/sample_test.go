package web

import (
	"fmt"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// sampleSnapshot is a mesh of four nodes at work.
func sampleSnapshot(now time.Time) api.Snapshot {
	ms := func(ago time.Duration) int64 { return now.Add(-ago).UnixMilli() }
	id := func(n int) protocol.MsgID {
		return protocol.MsgID(fmt.Sprintf("0190a0a0-0000-7000-8000-%012x", n*7919))
	}
	peer := func(name string, role protocol.Role, self, linked bool, rtt int64) api.Peer {
		return api.Peer{Peer: protocol.PeerID("12D3KooW" + name), Name: name, Role: role, Inside: role.Inside(), Self: self, Linked: linked, Alive: "alive",
			Transport: "tcp", RTTMicros: rtt, LastSeen: ms(0), Until: ms(-90 * 24 * time.Hour), Version: "0.1.0"}
	}
	s := api.Snapshot{
		Status: api.Status{Name: "devbox", Peer: "12D3KooWdevbox", Version: "0.1.0", Now: ms(0), Since: ms(time.Hour), Role: protocol.RoleLocal, Board: "http://127.0.0.1:7878", Loopback: true,
			Agent: "claude-shop", Main: api.Main{Term: 1, Peer: "12D3KooWdevbox", Node: "devbox", Agent: "claude-shop", Here: true},
			Nodes: 4, Linked: 3, Records: 50212, Disk: 1_200_000_000, DiskMax: 8_000_000_000},
		Peers: []api.Peer{peer("devbox", protocol.RoleLocal, true, true, 0), peer("mac-mini", protocol.RoleLocal, false, true, 1800),
			peer("build-1", protocol.RoleUpstream, false, true, 12400), peer("guest", protocol.RoleCollab, false, true, 31000)},
	}
	since := func(ago time.Duration) int64 {
		if ago == 0 {
			return 0
		}
		return ms(ago)
	}
	agent := func(name, node string, role protocol.Role, state protocol.AgentState, ago time.Duration, wakes, doing string, unread int) {
		s.Agents = append(s.Agents, api.Agent{ID: protocol.AgentID(name), Role: role, Home: protocol.PeerID("12D3KooW" + node), Node: node, Here: node == "devbox",
			State: state, Since: since(ago), Wakes: wakes, Unread: unread, Doing: doing, Attached: []string{"ws"}})
	}
	agent("claude-shop", "devbox", protocol.RoleMain, protocol.StateWorking, 12*time.Second, "rewake", "runs go test ./cart", 0)
	agent("codex-shop", "devbox", protocol.RoleLocal, protocol.StatePullOnly, 4*time.Minute, "nothing: its next prompt", "", 2)
	agent("mac-mini", "mac-mini", protocol.RoleLocal, protocol.StateWorking, 38*time.Second, "its runner", "runs t-7kq2m", 0)
	agent("gemini-docs", "mac-mini", protocol.RoleLocal, protocol.StateNeedsHuman, 2*time.Minute, "rewake", "", 1)
	agent("build-1", "build-1", protocol.RoleUpstream, protocol.StateIdle, 31*time.Minute, "its runner", "", 0)
	agent("partner-ci", "guest", protocol.RoleCollab, protocol.StateUnknown, 0, "", "", 0)
	task := func(n int, title, to string, state api.TaskState, at, started, ended time.Duration, summary string, diff *api.Diff, commit string) {
		tk := api.Task{ID: id(n), Short: "t-" + protocol.ShortID(id(n)), Title: title, From: "claude-shop", To: protocol.AgentID(to), Node: "12D3KooWmac-mini", NodeName: "mac-mini",
			State: state, Summary: summary, At: ms(at), Diff: diff, Commit: commit, Tiers: []api.TierAt{{Tier: protocol.Logged, At: ms(at)}, {Tier: protocol.Replicated, At: ms(at)}, {Tier: protocol.Persisted, At: ms(at)}}}
		if started > 0 {
			tk.Started = ms(started)
		}
		if ended > 0 {
			tk.Ended = ms(ended)
			tk.Millis = int64((started - ended) / time.Millisecond)
		}
		s.Tasks = append(s.Tasks, tk)
	}
	task(1, "Choose the tax table for exports", "gemini-docs", api.TaskBlocked, 20*time.Minute, 19*time.Minute, 12*time.Minute, "Two tables apply after 1 January: 2025 (in force) or 2026 (announced). Which one should exports use?", nil, "")
	task(2, "Make ./tax pass on Windows", "build-1", api.TaskFailed, 50*time.Minute, 49*time.Minute, 41*time.Minute, "go test ./tax: got 7.7, want 7.70 (exit 1)", &api.Diff{Files: 1, Added: 6, Removed: 3}, "")
	task(3, "Make ./cart pass", "mac-mini", api.TaskRunning, 45*time.Second, 38*time.Second, 0, "", nil, "")
	s.Tasks[2].Tail = "ok  \tshop/cart/total\t0.21s\n--- RUN   TestEmptyCart\n"
	task(4, "Review the release notes for 2.6 and say which links are dead, with the page and line of each", "codex-shop", api.TaskDelivered, 3*time.Minute, 0, 0, "", nil, "")
	for i := range 9 {
		task(10+i, []string{"Add a test for an empty cart", "Rename Total to Sum", "Describe ./ship in docs/ship.md"}[i%3], "mac-mini", api.TaskDone,
			time.Duration(2+i)*time.Hour, time.Duration(2+i)*time.Hour, time.Duration(2+i)*time.Hour-42*time.Second, "All tests pass.", &api.Diff{Files: 2, Added: 14 + i, Removed: i}, "3f9c2ab81d0e44aa3f9c2ab81d0e44aa3f9c2ab8")
	}
	say := func(n int, from, to string, intent protocol.Intent, ago time.Duration, text string, tiers ...protocol.Tier) {
		m := api.Message{Pos: uint64(n), At: ms(ago), Node: "12D3KooWdevbox", NodeName: "devbox", Log: "12D3KooWdevbox/1/in", Seq: uint64(n), Text: text,
			Envelope: protocol.Envelope{ID: id(n), From: protocol.AgentID(from), Source: protocol.SourceAgent, To: protocol.AgentID(to), Intent: intent, Value: value(map[string]string{"text": text})}}
		if from == "" {
			m.Envelope.Source = protocol.SourceBoard
		}
		m.Short = shortOf(m.Envelope.ID, m.Envelope.Intent)
		for _, t := range tiers {
			m.Tiers = append(m.Tiers, api.TierAt{Tier: t, At: ms(ago), By: "12D3KooWdevbox"})
		}
		s.Messages = append(s.Messages, m)
	}
	l, r, p, d := protocol.Logged, protocol.Replicated, protocol.Persisted, protocol.Processed
	say(1, "claude-shop", "gemini-docs", protocol.Delegate, 20*time.Minute, "Choose the tax table for exports", l, r, p, d)
	say(2, "gemini-docs", "claude-shop", protocol.WorkerReport, 12*time.Minute, "Blocked: two tables apply after 1 January.\n2025 is in force, 2026 is announced.\nWhich one should exports use?\nI can prepare both.", l, r, p)
	say(3, "", "claude-shop", protocol.UserPrompt, 4*time.Minute, "Where are we with the cart?", l, r, p, d)
	say(4, "claude-shop", "codex-shop", protocol.Delegate, 3*time.Minute, "Review the release notes for 2.6 and say which links are dead, with the page and line of each", l, r, p)
	say(5, "claude-shop", "mac-mini", protocol.Delegate, 45*time.Second, "Make ./cart pass", l, r, p, d)
	say(6, "mac-mini", "claude-shop", protocol.WorkerReport, 38*time.Second, "started", l, r)
	say(7, "mac-mini", "claude-shop", protocol.WorkerReport, 20*time.Second, "2 of 3 tests pass, TestEmptyCart is left", l)
	s.Pos = 7
	return s
}

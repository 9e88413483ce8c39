package web

import (
	"fmt"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// seeded is one of five meshes, with what is true in it: for each question that the board answers at a glance, the words
// that answer it and the region that they stand in.
type seeded struct {
	name  string
	fake  *fake
	truth [5][]answered
}

// answered are words that a region shows.
type answered struct{ in, words string }

// The five questions, in their order.
var questions = [5]string{"does anything need me", "who is here, doing what", "what is stuck, on what", "does work move", "can I believe this"}

// seed puts a mesh together. The first node is the one whose board it is.
type seed struct {
	now time.Time
	f   *fake
	n   int
}

func newSeed(now time.Time) *seed {
	f := newFake()
	f.snap = api.Snapshot{Asks: api.Asks{Asks: []api.Ask{}, Ended: []api.AskEnded{}}}
	return &seed{now: now, f: f}
}

func (s *seed) ago(d time.Duration) int64 { return s.now.Add(-d).UnixMilli() }

func (s *seed) id() protocol.MsgID {
	s.n++
	return protocol.MsgID(fmt.Sprintf("0190a0a0-0000-7000-8000-%012x", 0x31d5b7*s.n+s.n*s.n))
}

func peerID(node string) protocol.PeerID { return protocol.PeerID("12D3KooW" + node) }

// node adds a member; rtt 0 of another one: it is not linked, and was last seen so long ago.
func (s *seed) node(name string, role protocol.Role, rtt time.Duration, seen time.Duration) {
	self := len(s.f.snap.Peers) == 0
	p := api.Peer{Peer: peerID(name), Name: name, Role: role, Inside: role.Inside(), Self: self, Linked: !self && rtt > 0, Alive: "alive", Transport: "tcp",
		RTTMicros: rtt.Microseconds(), LastSeen: s.ago(seen), Until: s.ago(-90 * 24 * time.Hour), Version: "0.1.0"}
	if !self && rtt == 0 {
		p.Alive, p.Transport = "dead", ""
	}
	s.f.snap.Peers = append(s.f.snap.Peers, p)
	st := &s.f.snap.Status
	if self {
		*st = api.Status{Name: name, Peer: p.Peer, Version: "0.1.0", Since: s.ago(30 * time.Hour), Role: role, Board: "http://127.0.0.1:7878", Loopback: true, Disk: 412 << 20, DiskMax: 8 << 30}
	}
	st.Nodes++
	if p.Linked {
		st.Linked++
	}
}

func (s *seed) main(agent, node string, term uint64) {
	st := &s.f.snap.Status
	st.Main = api.Main{Term: term, Peer: peerID(node), Node: node, Agent: protocol.AgentID(agent), Here: st.Name == node}
	st.Agent = protocol.AgentID(agent)
}

func (s *seed) agent(name, node string, state protocol.AgentState, since time.Duration, wakes, doing string, unread int) {
	p := s.f.snap.Peers[0]
	for _, q := range s.f.snap.Peers {
		if q.Name == node {
			p = q
		}
	}
	a := api.Agent{ID: protocol.AgentID(name), Role: p.Role, Home: p.Peer, Node: node, Here: p.Self, State: state, Since: s.ago(since), Wakes: wakes, Doing: doing, Unread: unread, Attached: []string{"ws"}}
	if !p.Self && !p.Linked {
		a.AsOf = p.LastSeen
	}
	s.f.snap.Agents = append(s.f.snap.Agents, a)
}

// task adds one; of what ended, took is how long it ran and at how long ago it ended.
func (s *seed) task(title, from, to, node string, state api.TaskState, at, took time.Duration, says string, diff *api.Diff) api.Task {
	id := s.id()
	t := api.Task{ID: id, Short: "t-" + protocol.ShortID(id), Title: title, From: protocol.AgentID(from), To: protocol.AgentID(to), Node: peerID(node), NodeName: node, State: state, Summary: says, Diff: diff, At: s.ago(at + took)}
	switch {
	case state.Final():
		t.Started, t.Ended, t.Millis = t.At, s.ago(at), took.Milliseconds()
		if diff != nil && state == api.TaskDone {
			t.Commit = fmt.Sprintf("%07x", 0x3f9c2ab+s.n*0x13579b) + "81d0e44aa3f9c2ab81d0e44aa3f9c2ab8"
		}
	case state == api.TaskRunning:
		t.Started, t.Tail, t.Summary = t.At, says, ""
	}
	s.f.snap.Tasks = append(s.f.snap.Tasks, t)
	return t
}

func (s *seed) say(ago time.Duration, from, to string, intent protocol.Intent, text string, tiers int) {
	self := s.f.snap.Peers[0]
	id := s.id()
	for _, task := range s.f.snap.Tasks {
		if intent == protocol.Delegate && task.Title == text {
			id = task.ID
		}
	}
	m := api.Message{Pos: uint64(len(s.f.snap.Messages) + 1), Short: shortOf(id, intent), At: s.ago(ago), Node: self.Peer, NodeName: self.Name, Log: string(self.Peer) + "/1/in", Text: text,
		Envelope: protocol.Envelope{ID: id, From: protocol.AgentID(from), FromRole: protocol.RoleLocal, Source: protocol.SourceAgent, To: protocol.AgentID(to), Intent: intent, Value: value(map[string]string{"text": text})}}
	m.Seq = m.Pos
	if from == "" {
		m.Envelope.Source = protocol.SourceBoard
	}
	for _, tier := range protocol.TierOrder[:tiers] {
		m.Tiers = append(m.Tiers, api.TierAt{Tier: tier, At: m.At, By: self.Peer})
	}
	s.f.snap.Messages = append(s.f.snap.Messages, m)
	s.f.snap.Pos = m.Pos
}

// ask adds what waits for the person of owner's node; left 0: it has no clock.
func (s *seed) ask(kind api.AskKind, text, asker, node, owner string, at, left time.Duration, def string, task *api.Task, options ...api.AskOption) {
	id := s.id()
	a := api.Ask{ID: "s:" + string(id), Kind: kind, Text: text, At: s.ago(at), Default: def, Options: options, Free: kind != api.AskApproval, Asker: protocol.AgentID(asker), Node: peerID(node), NodeName: node,
		Owner: peerID(owner), OwnerName: owner, Prompt: string(id), Message: id}
	if left > 0 {
		a.Until = s.ago(-left)
	}
	if task != nil {
		a.Task, a.TaskShort = task.ID, task.Short
	}
	s.f.snap.Asks.Asks = append(s.f.snap.Asks.Asks, a)
}

func (s *seed) mesh(name string, records uint64, truth [5][]answered) seeded {
	s.f.snap.Status.Records = records
	return seeded{name: name, fake: s.f, truth: truth}
}

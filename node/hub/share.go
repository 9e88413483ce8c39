package hub

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/aster-mesh/aster/protocol"
)

// sender is one party that fills an inbox: an agent or the people of a member, or a whole member outside, whose agents are
// as many as its program says.
type sender struct {
	peer  protocol.PeerID
	agent protocol.AgentID // folded; empty: people, or all of a member outside
}

// tally is what one sender has unread in an inbox.
type tally struct{ items, bytes int }

// senderOf is whose a record's message is, at an inbox of the node self.
func senderOf(self protocol.PeerID, log protocol.LogID, from protocol.AgentID) sender {
	if ofOutsider(log) && log.Peer != self {
		return sender{peer: log.Peer}
	}
	return sender{log.Peer, protocol.FoldAgentID(from)}
}

// ours is whose a message is that is said here.
func (c *Core) ours(env *protocol.Envelope) sender {
	return sender{c.self, protocol.FoldAgentID(env.From)}
}

// count keeps the tallies; by is 1 for a letter that comes and -1 for one that goes.
func (m *mailbox) count(l *Letter, by int) {
	s := senderOf(m.self, l.Ref.Log, l.From)
	t := m.of[s]
	t.items, t.bytes = t.items+by, t.bytes+by*l.Bytes
	if m.of[s] = t; t.items == 0 {
		delete(m.of, s)
	}
	m.bytes += by * l.Bytes
	if l.Report != "" {
		if m.reports[l.Report] += by; m.reports[l.Report] == 0 {
			delete(m.reports, l.Report)
		}
	}
}

// share is how many unread messages and bytes a sender may have here: half of what the others leave, so that nobody takes
// all of it and whoever comes next has room.
func (m *mailbox) share(s sender) (items, bytes int) {
	t := m.of[s]
	return protocol.InboxShare(protocol.InboxItemsMax, m.unread()-t.items), protocol.InboxShare(protocol.InboxBytesMax, m.bytes-t.bytes)
}

// full says whether one more message of n bytes must be refused to its sender.
func (m *mailbox) full(s sender, n int) bool {
	items, bytes := m.share(s)
	t := m.of[s]
	return t.items >= items || t.bytes+n > bytes
}

// noRoom says whether an agent's inbox must refuse a message. What answers a Delegate of the agent's own has room in any case:
// it was asked for, and its Delegates bound it.
func (c *Core) noRoom(a *agent, s sender, env, parent *protocol.Envelope) bool {
	return a.box.full(s, Size(env)) && !c.awaited(a, env, parent)
}

// reportsAbove is how many reports on one Delegate are taken above the bounds: the final one, and one more for a second attempt.
const reportsAbove = 2

// awaited says whether a message is the end of work that its recipient gave to its sender. Progress is not: more follows.
func (c *Core) awaited(a *agent, env, parent *protocol.Envelope) bool {
	if env.Intent != protocol.WorkerReport || parent == nil || parent.Intent != protocol.Delegate || a.box.reports[parent.ID] >= reportsAbove {
		return false
	}
	same := func(x, y protocol.AgentID) bool {
		return protocol.FoldAgentID(c.Now(x)) == protocol.FoldAgentID(c.Now(y))
	}
	if !same(parent.From, a.bind.Agent) || !same(parent.To, env.From) {
		return false
	}
	var v struct {
		Status string `json:"status"`
	}
	_ = json.Unmarshal(env.Value, &v) // a long one is elsewhere, and no mere progress
	return v.Status != "in_progress"
}

// ReportOn is the Delegate that a letter reports on, or empty.
func ReportOn(env *protocol.Envelope) protocol.MsgID {
	if env.Intent == protocol.WorkerReport {
		return env.Re
	}
	return ""
}

// inboxFull says who fills an inbox, and who can make room in it.
func (c *Core) inboxFull(a *agent, s sender, from protocol.AgentID) *protocol.Refusal {
	t := a.box.of[s]
	items, bytes := a.box.share(s)
	whose := protocol.Refuse(protocol.CodeInboxFull, "%s's inbox is full for you (%d of yours unread, at most %d; %d in all)", "", string(a.bind.Agent), t.items, max(items, 0), a.box.unread())
	if t.items < items { // it is the bytes
		whose.Reason = protocol.Refuse("", "%s's inbox is full for you (%d MB of yours unread, at most %d)", "", string(a.bind.Agent), t.bytes>>20, max(bytes, 0)>>20).Reason
	}
	whose.Hint = "it or its owner has to deal with some first: " + protocol.AckAll(a.bind.Agent, from)
	return whose
}

// Filling is an inbox here of which a sender has used most of its share: soon it is refused.
type Filling struct {
	Agent, From protocol.AgentID // From empty: people, or all agents of a member outside
	Peer        protocol.PeerID  // whose agent or people
	Outside     bool
	Unread      int // of that sender
	Percent     int // of its share, in messages or in bytes
	All         int // unread of all senders
}

// Filling lists the inboxes here that someone has filled to protocol.InboxWarnPercent of its share, and of each the fullest, by agent.
func (c *Core) Filling() []Filling {
	var out []Filling
	for _, a := range c.agents {
		if a.box == nil || a.arrives != nil || a.box.unread() < protocol.InboxWarnFrom && a.box.bytes < protocol.InboxBytesMax/8 {
			continue
		}
		var worst Filling
		for s, t := range a.box.of {
			items, bytes := a.box.share(s)
			f := Filling{Agent: a.bind.Agent, From: s.agent, Peer: s.peer, Unread: t.items, All: a.box.unread(),
				Percent: max(percent(t.items, items), percent(t.bytes, bytes))}
			if f.Percent > worst.Percent || f.Percent == worst.Percent && (f.From < worst.From || f.From == worst.From && f.Peer < worst.Peer) {
				worst = f
			}
		}
		if worst.Percent < protocol.InboxWarnPercent {
			continue
		}
		if k := c.find(worst.From); k != nil {
			worst.From = k.bind.Agent
		}
		worst.Outside = worst.From == "" && worst.Peer != c.self && !c.members[worst.Peer].Inside
		out = append(out, worst)
	}
	slices.SortFunc(out, func(x, y Filling) int { return strings.Compare(string(x.Agent), string(y.Agent)) })
	return out
}

func percent(n, of int) int {
	if of <= 0 {
		return 100
	}
	return n * 100 / of
}

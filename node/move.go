package node

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/node/gossip"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/node/turn"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// goneAfter is how long a node must not have been heard of before an agent is taken from it, or none is sent to it.
const goneAfter = time.Minute

// movedWait is how long MoveAgent waits for the new home to take the mail over before it says that it has not yet.
const movedWait = 5 * time.Second

// MoveAgent implements web.Members.
func (n *Node) MoveAgent(ctx context.Context, agent protocol.AgentID, node string) (out api.Moved, err error) {
	to, err := n.nodeCalled(ctx, node)
	if err != nil {
		return out, err
	}
	release, busy := n.holdRunner(agent)
	defer release()
	told, err := n.loop.askOr(ctx, func(t hub.Token) (hub.Input, error) {
		l := n.loop
		in := hub.Move{Agent: agent, To: to, ToGone: l.unheard(to), Busy: busy, Token: t}
		out.Agent = agent
		if k, ok := l.core.Agent(agent); ok {
			out.Agent, out.From, out.FromNode, in.Gone = k.Agent, k.Home, n.nameOf(k.Home), !k.Here && l.unheard(k.Home)
		}
		held, err := l.heldFor(out.Agent)
		in.Held = held
		return in, err
	})
	if err != nil {
		return out, err
	}
	out.To, out.Node, out.Unread, out.Forced = to, n.nameOf(to), told.Unread, told.Forced
	out.Runner = n.runner != nil && n.home.peer == out.From && protocol.FoldAgentID(n.runner.agent) == protocol.FoldAgentID(out.Agent)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	end := time.After(movedWait)
	for {
		err := n.loop.call(ctx, func() {
			for _, a := range n.loop.board.Agents() {
				if a.Home == to && protocol.FoldAgentID(a.ID) == protocol.FoldAgentID(out.Agent) {
					out.Taken = a.Move == nil
				}
			}
		})
		if err != nil || out.Taken {
			return out, err
		}
		select {
		case <-look.C:
		case <-end:
			return out, nil
		case <-ctx.Done():
			return out, nil // it is moved; who asked does not wait for the rest
		}
	}
}

// nodeCalled finds a member by its name, or by its whole peer id.
func (n *Node) nodeCalled(ctx context.Context, name string) (found protocol.PeerID, err error) {
	var refusal *protocol.Refusal
	err = n.loop.call(ctx, func() {
		var names []string
		var gone protocol.PeerID
		for p, m := range n.loop.known() {
			switch same := strings.EqualFold(m.Name, name) || string(p) == name; {
			case same && m.Revoked:
				gone = p
			case same && found != "":
				refusal = protocol.Refuse(protocol.CodeAmbiguousID, "several nodes are called %q", "name it by its peer id: aster peers --json", name)
			case same:
				found = p
			}
			if m.Inside && !m.Revoked {
				names = append(names, m.Name)
			}
		}
		if found == "" {
			found = gone // which the hub refuses by name
		}
		if slices.Sort(names); found == "" {
			refusal = protocol.Refuse(protocol.CodeNotMember, "no node is called %q", "Nodes inside: "+strings.Join(names, ", "), protocol.CutText(name, 80))
		}
	})
	if err == nil && refusal != nil {
		err = refusal
	}
	return found, err
}

// unheard says whether a node is neither linked nor, by gossip's word, up, and has not been for goneAfter.
func (l *loop) unheard(p protocol.PeerID) bool {
	if p == l.n.home.peer || l.peers[p] != nil {
		return false
	}
	if word, ok := l.n.alive.Load(p); ok && word == string(gossip.Alive) {
		return false
	}
	seen, ok := l.lastSeen[p]
	if !ok {
		seen = l.n.began
	}
	after := l.n.cfg.goneAfter
	if after == 0 {
		after = goneAfter
	}
	return l.now.Sub(seen) >= after
}

// heldFor is hub.Move's Held.
func (l *loop) heldFor(agent protocol.AgentID) (map[protocol.LogID]uint64, error) {
	held := map[protocol.LogID]uint64{}
	k, ok := l.core.Agent(agent)
	if !ok {
		return held, nil
	}
	if k.Here {
		for _, name := range append([]protocol.AgentID{k.Agent}, l.core.Formerly(k.Agent)...) {
			places, err := l.store.Addressed(name, 0)
			if err != nil {
				return nil, err
			}
			for _, p := range places {
				held[p.Log] = max(held[p.Log], p.Seq)
			}
		}
		return held, nil
	}
	heads, err := l.store.Heads()
	if err != nil {
		return nil, err
	}
	homes := l.core.Homes(agent)
	for _, h := range heads {
		if slices.Contains(homes, h.Log.Peer) {
			held[h.Log] = h.Seq
		}
	}
	return held, nil
}

// holdRunner keeps the runner from starting a task of an agent that is about to move, and says what it has begun already.
func (n *Node) holdRunner(agent protocol.AgentID) (release func(), busy *protocol.Refusal) {
	r := n.runner
	if r == nil || protocol.FoldAgentID(r.agent) != protocol.FoldAgentID(agent) {
		return func() {}, nil
	}
	r.gate.Lock()
	if open := r.w.Open(); len(open) > 0 {
		id := "t-" + protocol.ShortID(open[0])
		busy = protocol.Refuse(protocol.CodeBusy, "agent %q works on %s and %d more tasks here", "wait for it: aster task show "+id+", or end it: aster task cancel "+id, string(agent), id, len(open)-1)
		if len(open) == 1 {
			busy.Reason = "agent " + string(agent) + " works on " + id + " here"
		}
	}
	return r.gate.Unlock, busy
}

// settleMoves takes over the mail of agents that moved here, once all that their moves named is here; true: some.
func (l *loop) settleMoves() bool {
	any := false
	for _, a := range l.core.Arriving() {
		if !l.holds(a.Move) {
			continue
		}
		mail, err := l.mailOf(a)
		if err != nil {
			l.log.Error("mail of an agent that moved here not readable", "agent", a.Agent, "err", err)
			continue
		}
		l.log.Info("agent moved here", "agent", a.Agent, "from", a.Move.From, "mail", len(mail))
		l.core.Step(l.now, hub.Arrive{Agent: a.Agent, Mail: mail})
		any = true
		if r := l.n.runner; r != nil && r.conn != 0 && protocol.FoldAgentID(r.agent) == protocol.FoldAgentID(a.Agent) {
			l.core.Step(l.now, r.attached(0)) // it was this runner's before it moved away
		}
	}
	return any
}

// holds says whether all that a move named has come, as far as it counts.
func (l *loop) holds(m *protocol.MoveBody) bool {
	for text, seq := range m.Seen {
		log, err := protocol.ParseLogID(text)
		if err != nil {
			continue
		}
		if bound := l.roster().Bound(log); l.rep.Taken(log) < min(seq, bound) {
			return false
		}
	}
	return true
}

// mailOf gathers what a former home handed over and what none has dealt with, in the order in which it came here.
func (l *loop) mailOf(a hub.Arrival) ([]hub.Arrived, error) {
	handed, _ := hub.Refs(a.Move.Unread)
	given, _ := hub.Refs(a.Move.Given)
	how := map[hub.Ref]hub.Arrived{}
	for _, ref := range handed {
		how[ref] = hub.Arrived{Handed: true}
	}
	for _, ref := range given {
		how[ref] = hub.Arrived{Handed: true, Given: true}
	}
	var places []hub.Ref
	for _, name := range a.Names {
		found, err := l.store.Addressed(name, 0)
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			places = append(places, hub.Ref{Log: p.Log, Seq: p.Seq})
		}
	}
	for _, ref := range append(places, l.core.RoomMail(a.Agent)...) {
		if a.Move.Forced || ref.Seq > a.Move.Seen[ref.Log.String()] {
			how[ref] = hub.Arrived{}
		}
	}
	type row struct {
		pos uint64
		hub.Arrived
	}
	var rows []row
	for ref, m := range how {
		stored, ok, err := l.store.Message(ref.Log, ref.Seq)
		if err != nil {
			return nil, err
		}
		if !ok || !m.Handed && l.overFor(a, &stored) {
			continue
		}
		m.Ref, m.Env, m.At = ref, &stored.Envelope, time.UnixMilli(stored.Wall)
		m.Parent = turn.Reported(l.store, m.Env)
		if !m.Handed {
			if m.Seen, err = l.copyOf(a, &stored); err != nil {
				return nil, err
			}
		}
		rows = append(rows, row{stored.Pos, m})
	}
	slices.SortFunc(rows, func(x, y row) int { return int(int64(x.pos) - int64(y.pos)) })
	out := make([]hub.Arrived, len(rows))
	for i := range rows {
		out[i] = rows[i].Arrived
	}
	return out, nil
}

// overFor says whether a message is settled for an agent by the word of a home that it had, or too old to be delivered.
func (l *loop) overFor(a hub.Arrival, m *journal.Message) bool {
	if l.now.UnixMilli()-m.Wall >= protocol.MessageLife.Milliseconds() {
		return true
	}
	return slices.ContainsFunc(m.Tiers, func(t journal.TierPut) bool {
		return (t.Tier == protocol.Processed || t.Tier == protocol.Refused) &&
			slices.ContainsFunc(a.Names, func(id protocol.AgentID) bool { return protocol.FoldAgentID(id) == protocol.FoldAgentID(t.Agent) })
	})
}

// copyOf finds another copy of a message that a former home has dealt with, or that came here before.
func (l *loop) copyOf(a hub.Arrival, m *journal.Message) (*hub.Seen, error) {
	copies, err := l.store.Copies(m.Envelope.From, m.Envelope.ID)
	if err != nil {
		return nil, err
	}
	var seen *hub.Seen
	for i := range copies {
		c := &copies[i]
		ref := hub.Ref{Log: c.Log, Seq: c.Seq}
		if c.Pos == m.Pos || refusedBy(c) {
			continue
		}
		dealt := !a.Move.Forced && c.Seq <= a.Move.Seen[c.Log.String()] || a.Move.Forced && l.overFor(a, c)
		if dealt || c.Pos < m.Pos {
			seen = &hub.Seen{Content: c.Envelope.Content(), Ref: ref}
		}
	}
	return seen, nil
}

func refusedBy(m *journal.Message) bool {
	return slices.ContainsFunc(m.Tiers, func(t journal.TierPut) bool { return t.Tier == protocol.Refused })
}

// movedAway tells a socket where its agent lives now, and ends it as a HELLO there would end from now on.
func (l *loop) movedAway(o hub.MovedAway) {
	if r := l.n.runner; r != nil && r.conn == o.Conn {
		return // it has nothing to take any more
	}
	s := l.sockets[o.Conn]
	if s == nil {
		return
	}
	no := l.core.Elsewhere(o.Agent)
	if no == nil {
		no = protocol.Refuse(protocol.CodeIdentityMismatch, "agent %q lives on node %s", "", string(o.Agent), l.n.nameOf(o.Home))
	}
	s.gone = true
	s.conn.Send(l.enc.ServerNotice(l.now, o.Agent, asterism.Notice{
		Kind: "agent-moved", Text: no.Reason + " now", Target: l.n.nameOf(o.Home), AgentID: o.Agent, Code: no.Code, Hint: "connect there"}))
	delete(l.sockets, o.Conn)
	s.conn.Close(asterism.CloseRejected, no.Code)
}

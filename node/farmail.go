package node

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aster-mesh/aster/node/foreign"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// Reasons for which a message is not brought to another board; the sender sees them as its receipt's.
const (
	reasonNotJoined = "not-joined"   // its sender has no seat there
	reasonNoAgent   = "not-an-agent" // nobody is called so there: a board's people are written to at their board

	reasonNotCarried = "attachment-not-carried" // the board keeps no attachments, and they are too large to stand in a message
)

// farPage is how many messages are read from the store at once.
const farPage = 64

// sendTo sends what waits for one agent there, oldest first, as far as our agent said it. False: the connection ended.
func (v *visit) sendTo(ctx context.Context, here, there protocol.AgentID) bool {
	n := v.s.b.n
	for {
		rows, err := n.store.Inbox(here, journal.InboxQuery{After: v.sent[here], Limit: farPage})
		if err != nil {
			n.log.Error("mail for a board not readable", "part", "board", "agent", here, "err", err)
			return true
		}
		for i := range rows {
			env, ref := rows[i].Envelope, hub.Ref{Log: rows[i].Log, Seq: rows[i].Seq}
			switch {
			case there == foreign.Person:
				v.refuses(here, ref, reasonNoAgent)
			case protocol.FoldAgentID(env.From) == protocol.FoldAgentID(v.s.agent):
				if !v.sendOne(ctx, &env, ref, here, there) {
					return false
				}
			case env.From == "" || v.s.b.seatOf(env.From) == nil:
				v.refuses(here, ref, reasonNotJoined)
			}
			v.sent[here] = rows[i].Pos
		}
		if len(rows) < farPage {
			return true
		}
	}
}

// refuses ends a message that is not for this board. Of one that is being left all is ended together, see loop.forgetBoard.
func (v *visit) refuses(here protocol.AgentID, ref hub.Ref, why string) {
	b := v.s.b
	b.mu.Lock()
	left := b.left != nil
	b.mu.Unlock()
	if !left {
		b.n.refuseAbroad(here, ref, why)
	}
}

func (n *Node) refuseAbroad(agent protocol.AgentID, ref hub.Ref, why string) {
	l := n.loop
	_ = l.post(n.ctx, func() { l.core.Step(l.now, hub.Abroad{Agent: agent, Ref: ref, Tier: protocol.Refused, Reason: why}) })
}

func (v *visit) sendOne(ctx context.Context, env *protocol.Envelope, ref hub.Ref, here, there protocol.AgentID) bool {
	return v.bring(ctx, env, ref, here, func() []byte { return foreign.Outgoing(env, there, time.Now(), string(newID())) })
}

// bring sends a frame for a message, with what is attached to it before it. False: the connection ended.
func (v *visit) bring(ctx context.Context, env *protocol.Envelope, ref hub.Ref, here protocol.AgentID, frame func() []byte) bool {
	err := v.s.b.n.fill(env)
	if err == nil {
		err = v.carry(ctx, env)
	}
	var no *protocol.Refusal
	switch {
	case err == nil:
	case errors.As(err, &no) && no.Code != protocol.CodeRate && no.Code != protocol.CodeDiskFull && no.Code != asterism.CodeAttachmentQuota:
		v.s.b.n.refuseAbroad(here, ref, no.Code)
		return true
	case errors.Is(err, errBoardLeft):
		return false
	default:
		v.s.b.n.log.Warn("message not brought to a board yet", "part", "board", "board", v.s.b.name(), "msg", env.ID, "err", err)
		v.secondLook(protocol.RedeliverEvery)
		return true // it stays, and is looked at again
	}
	for v.conn.Waiting() > queueBytesMax {
		t := time.NewTimer(20 * time.Millisecond)
		select {
		case <-t.C:
		case <-v.conn.Done():
		case <-ctx.Done():
		}
		t.Stop()
		if ctx.Err() != nil {
			return false
		}
		select {
		case <-v.conn.Done():
			return false
		default:
		}
	}
	return v.conn.Send(frame())
}

// appears makes sure that an agent of a board is one here, in an outside role. Call it in the loop.
func (l *loop) appears(b *farBoard, id protocol.AgentID, name string) *protocol.Refusal {
	if l.core.IsAbroad(id) {
		return nil
	}
	conn := hub.ConnID(l.n.connIDs.Add(1))
	l.core.Step(l.now, hub.Attach{Conn: conn, Agent: id, Name: l.farName(id, name), Role: protocol.RoleCollab, Client: hub.ClientBoard})
	l.core.Step(l.now, hub.Detach{Conn: conn})
	if !l.core.IsAbroad(id) {
		return protocol.Refuse(protocol.CodeIdentityMismatch, "%q is the name of an agent here", "", string(id))
	}
	return nil
}

func (l *loop) farName(id protocol.AgentID, name string) string {
	return asterism.CleanName(name, id, func(other protocol.AgentID) bool { _, ok := l.core.Agent(other); return ok })
}

// farRole is what an agent of another board is here: never more than a collab, whatever it is there.
func farRole(there string) protocol.Role {
	if protocol.Role(there) == protocol.RolePeer {
		return protocol.RolePeer
	}
	return protocol.RoleCollab
}

// boardRoster shows who is present at a board as agents of this node.
func (l *loop) boardRoster(v *visit, r foreign.Roster) {
	b := v.s.b
	if v.s.present() != v {
		return // it has ended meanwhile, or has been replaced
	}
	ours := map[protocol.AgentID]bool{}
	b.eachSeat(func(s *seat) { ours[protocol.FoldAgentID(s.row().As)] = true })
	want := map[protocol.AgentID]bool{}
	for _, a := range r.Agents {
		here, ok := protocol.AgentID(""), false
		if !ours[protocol.FoldAgentID(a.ID)] && len(want) < farPresentMax {
			here, ok = b.here(a.ID)
		}
		if !ok {
			continue
		}
		want[here] = true
		if _, there := b.conns[here]; there {
			continue
		}
		conn := hub.ConnID(l.n.connIDs.Add(1))
		b.conns[here] = conn
		l.core.Step(l.now, hub.Attach{Conn: conn, Agent: here, Name: l.farName(here, a.Name), Role: farRole(a.Role), Client: hub.ClientBoard})
		if !l.core.IsAbroad(here) {
			delete(b.conns, here)
			l.warn(b.warning(), "an agent of the board "+b.name()+" would be called "+string(here)+", as an agent here is: join that board with another --name")
			continue
		}
		b.eachSeat(func(s *seat) { s.look(here) })
	}
	for here, conn := range b.conns {
		if !r.Part && !want[here] {
			delete(b.conns, here)
			l.core.Step(l.now, hub.Detach{Conn: conn})
		}
	}
}

// leftBoard lets a board's agents go when the last of our seats there has lost its connection.
func (l *loop) leftBoard(b *farBoard) {
	there := false
	b.eachSeat(func(s *seat) { there = there || s.present() != nil })
	if there {
		return
	}
	for here, conn := range b.conns {
		delete(b.conns, here)
		l.core.Step(l.now, hub.Detach{Conn: conn})
	}
	b.eachRoom(l.roomHidden)
}

// settledAbroad notes what a board says of a message of ours: of one that our agent sent to an agent of that board, or said in
// a room there.
func (l *loop) settledAbroad(s *seat, e foreign.Settled) {
	row, ok, err := l.store.Identity(protocol.IdentityOf(s.agent, e.ID))
	if err != nil || !ok {
		return // an answer of this client itself, or an invention of the board's
	}
	m, ok, err := l.store.Message(row.Log, row.Seq)
	to := cmp.Or(m.Envelope.To, protocol.AgentID(m.Envelope.Room))
	if err != nil || !ok || !l.core.IsAbroad(to) {
		return
	}
	there, ok := s.b.there(to)
	if room, is := foreign.RoomOf(there); is {
		if e.Tier != protocol.Persisted && e.Tier != protocol.Refused {
			return // of those who are in each speaks for itself alone
		}
		there = foreign.RoomSpeaks(room)
	}
	if !ok || e.By != "" && !strings.EqualFold(string(e.By), string(there)) {
		return // only the recipient speaks of it
	}
	for _, t := range m.Tiers {
		if t.Tier == e.Tier {
			return
		}
	}
	in := hub.Abroad{Agent: to, Ref: hub.Ref{Log: row.Log, Seq: row.Seq}, Tier: e.Tier, Reason: e.Reason, Reached: e.Reached}
	for _, id := range e.Offline {
		in.Offline = append(in.Offline, string(s.b.calledHere(id)))
	}
	l.core.Step(l.now, in)
}

// keyOwed holds acknowledgements that a board has yet to hear: keyOwed + board, agent and message → the sender there.
const keyOwed = "board-owed/"

func (s *seat) owedKey() string {
	return keyOwed + s.b.name() + "/" + string(protocol.FoldAgentID(s.agent)) + "/"
}

// processedAbroad passes on that our agent has handled what was sent to it from a board; while there is no connection it is
// written down for the next. Call it in the loop.
func (l *loop) processedAbroad(o hub.TierReached) {
	env := (*protocol.Envelope)(nil)
	if m := l.recent.get(o.Ref); m != nil {
		env = m.env
	} else if m, ok, err := l.store.Message(o.Ref.Log, o.Ref.Seq); err == nil && ok {
		env = &m.Envelope
	}
	if env == nil || !l.core.IsAbroad(env.From) && (env.Room == "" || !l.core.IsAbroad(protocol.AgentID(env.Room))) {
		return
	}
	b := l.n.abroad.of(cmp.Or(protocol.AgentID(env.Room), env.From))
	if b == nil {
		return
	}
	s := b.seatOf(o.Agent)
	there, ok := b.there(env.From)
	if sp := b.seatOf(env.From); sp != nil { // in a room our agents hear one another
		there, ok = sp.row().As, true
	}
	if _, room := foreign.RoomOf(there); s == nil || !ok || room {
		return
	}
	if v := s.present(); v != nil {
		v.say(foreign.Acknowledge(env.ID, there, true, time.Now(), string(newID())))
		return
	}
	l.value(s.owedKey()+string(env.ID), []byte(there))
}

// owed tells the board what it has yet to hear.
func (v *visit) owed() {
	n := v.s.b.n
	prefix := v.s.owedKey()
	values, err := n.store.ValuesWithPrefix(prefix)
	if err != nil {
		n.log.Error("acknowledgements not readable", "part", "board", "err", err)
		return
	}
	for key, there := range values {
		v.say(foreign.Acknowledge(protocol.MsgID(strings.TrimPrefix(key, prefix)), protocol.AgentID(there), true, time.Now(), string(newID())))
	}
	if len(values) == 0 {
		return
	}
	_ = n.loop.post(n.ctx, func() {
		for key := range values {
			n.loop.value(key, nil)
		}
	})
}

package node

import (
	"cmp"
	"time"

	"github.com/aster-mesh/aster/node/foreign"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
)

// comesIn notes that our agent is in a room: its board's word. Call it in the loop.
func (l *loop) comesIn(v *visit, id, topic string) (*farRoom, *protocol.Refusal) {
	b, s := v.s.b, v.s
	key := protocol.FoldAgentID(s.agent)
	b.mu.Lock()
	r := b.rooms[id]
	if r == nil {
		here, ok := b.named(foreign.RoomKey(id))
		if !ok || len(b.rooms) >= farRoomsMax {
			b.mu.Unlock()
			return nil, protocol.Refuse(protocol.CodeTooMany, "this board has brought agents into more than %d rooms", "", farRoomsMax)
		}
		r = newFarRoom(id, here, "")
		b.rooms[id] = r
	}
	fresh := r.in[key] == "" || r.over != ""
	r.in[key], r.over, r.topic = s.agent, "", cmp.Or(topic, r.topic)
	b.dirty = b.dirty || fresh
	b.mu.Unlock()
	if no := l.roomShown(b, r); no != nil {
		return nil, no
	}
	v.rooms.confirm(id)
	if fresh {
		notify(l.n.abroad.wake)
		l.tellOfRoom(b, r, s.agent, roomIn)
	}
	s.look(r.here)
	return r, nil
}

// roomShown makes sure that a room is an agent here, in an outside role, and shows it as present while one of us is there.
func (l *loop) roomShown(b *farBoard, r *farRoom) *protocol.Refusal {
	if r.conn != 0 {
		return nil
	}
	r.conn = hub.ConnID(l.n.connIDs.Add(1))
	b.mu.Lock()
	name := cmp.Or(protocol.CutText(r.topic, roomNameMax), string(r.here)) // nodes that are not at that board know no more of it
	b.mu.Unlock()
	l.core.Step(l.now, hub.Attach{Conn: r.conn, Agent: r.here, Name: name, Role: protocol.RoleCollab, Client: hub.ClientRoom})
	if !l.core.IsAbroad(r.here) {
		r.conn = 0
		l.warn(b.warning(), "a room of the board "+b.name()+" would be called "+string(r.here)+", as an agent here is: join that board with another --name")
		return protocol.Refuse(protocol.CodeIdentityMismatch, "%q is the name of an agent here", "", string(r.here))
	}
	there := false
	b.eachSeat(func(s *seat) { there = there || s.present() != nil })
	if !there {
		l.roomHidden(r)
	}
	return nil
}

func (l *loop) roomHidden(r *farRoom) {
	if r.conn != 0 {
		l.core.Step(l.now, hub.Detach{Conn: r.conn})
		r.conn = 0
	}
}

// Where an agent of ours stands in a room.
const (
	roomIn     = "in"
	roomOut    = "out"
	roomClosed = "closed"
)

// tellOfRoom lets an agent read where it stands in a room. It is kept for it like mail: it may have no socket.
func (l *loop) tellOfRoom(b *farBoard, r *farRoom, agent protocol.AgentID, state string) {
	b.mu.Lock()
	topic := r.topic
	b.mu.Unlock()
	text := "you are in the room " + string(r.here) + " of the board " + b.name() + ": what is sent to " + string(r.here) + " is said in it"
	switch state {
	case roomOut:
		text = "you are not in the room " + string(r.here) + " of the board " + b.name() + " any more"
	case roomClosed:
		text = "the room " + string(r.here) + " of the board " + b.name() + " is closed"
	}
	value := map[string]string{"text": text, "roomId": string(r.here), "state": state}
	if topic != "" {
		value["topic"] = topic
	}
	env := protocol.Envelope{ID: newID(), From: r.here, Room: protocol.RoomID(r.here), Intent: "Status", SpeakerClass: "agent", Value: protocol.EncodeBody(value)}
	l.core.Step(l.now, hub.Heard{Env: env, To: l.core.Now(agent)})
}

// roomChanged takes a hub's word on a room to whom it concerns. Call it in the loop.
func (l *loop) roomChanged(v *visit, e foreign.RoomChange) {
	b, s := v.s.b, v.s
	if v.s.present() != v || b.seatOf(s.agent) != s {
		return
	}
	if e.In {
		if _, no := l.comesIn(v, e.Room, e.Topic); no != nil {
			l.log.Warn("a room of another board is not shown", "part", "board", "board", b.name(), "err", no)
			return
		}
	}
	r := b.room(e.Room)
	if r == nil {
		return
	}
	if !b.holds(r, s.agent) {
		return // none of its business
	}
	value := foreign.Rename(e.Value, string(r.here), b.calledHere)
	l.roomEvent(hub.RoomEvent{Name: e.Name, Room: protocol.RoomID(r.here), Value: value, Conns: l.core.Conns(s.agent)})
	if e.Hold != "" {
		l.showHeld(s, e.ID)
	}
	left := b.ours(e.Agent)
	switch {
	case e.Over:
		l.roomOver(b, r)
	case e.Out:
		l.goesOut(b, r, s.agent, true)
	case e.Agent != "" && left != "":
		l.goesOut(b, r, left, true)
	}
}

// goesOut notes that an agent of ours is in a room no more. What it had still to say there is refused.
func (l *loop) goesOut(b *farBoard, r *farRoom, agent protocol.AgentID, tell bool) {
	b.mu.Lock()
	was := r.in[protocol.FoldAgentID(agent)] != ""
	last := was && len(r.in) == 1
	b.mu.Unlock()
	if !was {
		return
	}
	if tell {
		l.tellOfRoom(b, r, agent, roomOut)
	}
	b.mu.Lock()
	delete(r.in, protocol.FoldAgentID(agent))
	if b.dirty = true; last {
		r.over = b.whyOut()
	}
	left := b.left != nil
	b.mu.Unlock()
	notify(l.n.abroad.wake)
	if last && left {
		return // all of its rooms are forgotten together, and senders are told why
	}
	if last {
		l.n.later(0, func() { b.endRoom(r) })
		return
	}
	b.eachSeat(func(s *seat) { s.look(r.here) })
}

// roomOver ends a room for all of ours.
func (l *loop) roomOver(b *farBoard, r *farRoom) {
	b.mu.Lock()
	agents, already := r.agents(), r.over != ""
	b.mu.Unlock()
	if already {
		return
	}
	for _, agent := range agents {
		l.tellOfRoom(b, r, agent, roomClosed)
	}
	b.mu.Lock()
	r.over, b.dirty = reasonOver, true
	clear(r.in)
	b.mu.Unlock()
	notify(l.n.abroad.wake)
	l.n.later(0, func() { b.endRoom(r) })
}

// endRoom refuses what waits for a room that is over, then forgets it. One that somebody came into again meanwhile stays.
func (b *farBoard) endRoom(r *farRoom) {
	n := b.n
	for after := uint64(0); ; {
		rows, err := n.store.Inbox(r.here, journal.InboxQuery{After: after, Limit: farPage})
		if err != nil {
			n.log.Error("mail for a room of another board not readable", "part", "board", "room", r.here, "err", err)
			break
		}
		for i := range rows {
			b.mu.Lock()
			why := r.over
			b.mu.Unlock()
			if why == "" {
				return
			}
			n.refuseAbroad(r.here, hub.Ref{Log: rows[i].Log, Seq: rows[i].Seq}, why)
			after = rows[i].Pos
		}
		if len(rows) < farPage {
			break
		}
	}
	_ = n.loop.post(n.ctx, func() {
		b.mu.Lock()
		over := r.over != "" && b.rooms[r.id] == r
		if over {
			delete(b.rooms, r.id)
			b.names.Forget(foreign.RoomKey(r.id)) // rooms come without end
			b.dirty = true
		}
		b.mu.Unlock()
		if over {
			notify(n.abroad.wake)
			n.loop.roomHidden(r)
			n.loop.core.Step(n.loop.now, hub.Forget{Agent: r.here})
		}
	})
}

// farAsked passes an agent's wish about a room on to the room's hub. Whoever leaves hears of it from no hub: it is out at once.
func (l *loop) farAsked(o hub.FarAsked) {
	b := l.n.abroad.of(o.Room)
	if b == nil {
		return
	}
	r, s := b.roomHere(o.Room), b.seatOf(o.Agent)
	if r == nil || s == nil {
		return
	}
	v := s.present()
	if v == nil {
		return // it has ended in this very turn
	}
	if len(o.Value) == 0 {
		o.Value = []byte("{}")
	}
	value := foreign.Rename(o.Value, r.id, b.calledThere)
	v.say(foreign.RoomVerb(o.Verb, value, time.Now(), string(newID())))
	if who := valueOf[protocol.AgentID](value, "agentId"); o.Verb == "RoomLeave" && (who == "" || b.ours(who) == s.agent) {
		l.goesOut(b, r, s.agent, false)
	}
}

// leaveRooms takes our agent out of its rooms there, if its connection holds. What is said before a connection ends still goes.
func (s *seat) leaveRooms() {
	var in []*farRoom
	s.b.eachRoom(func(r *farRoom) {
		if s.b.holds(r, s.agent) {
			in = append(in, r)
		}
	})
	if len(in) == 0 {
		return
	}
	if v := s.present(); v != nil {
		for _, r := range in {
			v.say(foreign.RoomVerb("RoomLeave", map[string]string{"roomId": r.id}, time.Now(), string(newID())))
		}
	}
	l := s.b.n.loop
	_ = l.post(s.b.n.ctx, func() {
		for _, r := range in {
			l.goesOut(s.b, r, s.agent, true) // it did not ask for it itself
		}
	})
}

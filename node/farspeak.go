package node

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aster-mesh/aster/node/foreign"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
	"github.com/aster-mesh/aster/roles"
)

// speaking is what our agent says in the rooms of a board on one connection: in each one word after the other, and nothing
// while the room's hub holds it back.
type speaking struct {
	mu    sync.Mutex
	rooms map[string]*wordIn // by what they are called there
}

type wordIn struct {
	sure  bool // the hub has said on this connection that our agent is in
	hold  foreign.Hold
	until time.Time // of HoldMinute
	word  protocol.MsgID
	at    time.Time // when word was sent

	seen, booked bool // it was named on this connection; that our agent is in was booked
	gone         bool // our agent is out

	minute, again bool // a timer runs that looks at it: when HoldMinute ends, when word is given again
}

// roomMinute is how long a room's hub counts what one agent says.
const roomMinute = time.Minute

func (sp *speaking) room(id string) *wordIn {
	if sp.rooms == nil {
		sp.rooms = map[string]*wordIn{}
	}
	if sp.rooms[id] == nil && len(sp.rooms) >= 2*farRoomsMax {
		maps.DeleteFunc(sp.rooms, func(_ string, r *wordIn) bool { return r.gone && !r.minute && !r.again })
	}
	if sp.rooms[id] == nil && len(sp.rooms) >= 2*farRoomsMax {
		return &wordIn{} // no board has so many of ours in rooms: it makes them up
	}
	if sp.rooms[id] == nil {
		sp.rooms[id] = &wordIn{}
	}
	return sp.rooms[id]
}

func (sp *speaking) confirm(id string) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	r := sp.room(id)
	r.sure, r.gone = true, false
}

// takes says whether a room takes a message of ours now. One that it was given and says nothing of is given again later.
func (sp *speaking) takes(id string, msg protocol.MsgID, now time.Time) bool {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	r := sp.room(id)
	held := r.hold != "" && (r.hold != foreign.HoldMinute || now.Before(r.until))
	if !r.sure || held || r.word == msg && now.Sub(r.at) < protocol.RedeliverEvery {
		return false
	}
	r.hold, r.word, r.at = "", msg, now
	return true
}

// holds notes that a room's hub passes on nothing more of ours for now.
func (sp *speaking) holds(e *foreign.RoomChange, now time.Time) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	r := sp.room(e.Room)
	r.hold = e.Hold
	if e.Hold == foreign.HoldMinute {
		r.until = now.Add(roomMinute)
	}
	if r.word == e.ID {
		r.word = "" // it was not passed on
	}
}

// frees lets our agent speak again; after somebody else's turn only if that is what was waited for.
func (sp *speaking) frees(id string, turn bool) (did bool) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	r := sp.room(id)
	if r.hold == "" || turn && r.hold != foreign.HoldTurn {
		return false
	}
	r.hold = ""
	return true
}

// later notes that a hub could not take a message.
func (sp *speaking) later(msg protocol.MsgID) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	for _, r := range sp.rooms {
		if r.word == msg {
			r.word = ""
		}
	}
}

// roomBytes is what an agent's coming into a room and going out of it may cost here: a board that lets it come and go without
// end comes to the end of its quota.
const roomBytes = 4 << 10

// roomUnits is what it counts while others use this node, see debts.
const roomUnits = 5 * debtNews

// books counts that our agent comes into a room, before anything is kept of it; false: the board's quota is used up.
func (v *visit) books(id string) bool {
	r := v.s.b.room(id)
	was := r != nil && v.s.b.holds(r, v.s.agent)
	sp := &v.rooms
	sp.mu.Lock()
	w := sp.room(id)
	w.booked = w.booked || was && !w.seen // from an earlier connection
	w.seen = true
	done := w.booked
	sp.mu.Unlock()
	if !done {
		if v.s.b.spend(roomBytes) != nil {
			return false
		}
		v.s.b.n.debts.pause(v.ctx, source{from: protocol.PeerID(boardQuota(v.s.b.name()))}, roomUnits)
	}
	sp.mu.Lock()
	w.booked = true
	sp.mu.Unlock()
	return true
}

// unbook notes that our agent is out.
func (sp *speaking) unbook(id string) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	r := sp.room(id)
	r.booked, r.gone = false, true
}

// askForRooms asks the hub of each room that our agent was in whether it still is: the answer is for who is in alone.
func (v *visit) askForRooms() {
	v.s.b.eachRoom(v.askForRoom)
}

// askForRoom asks about one, and once more when no answer came: a hub that is too busy refuses the question.
func (v *visit) askForRoom(r *farRoom) {
	if !v.s.b.holds(r, v.s.agent) || v.rooms.isSure(r.id) {
		return
	}
	v.say(foreign.RoomVerb("RequestRoomArtifacts", map[string]string{"roomId": r.id}, time.Now(), string(newID())))
	v.s.b.n.later(protocol.RedeliverEvery, func() {
		if v.s.present() == v {
			v.askForRoom(r)
		}
	})
}

func (sp *speaking) isSure(id string) bool {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	return sp.room(id).sure
}

// roomChange takes a hub's word on a room. It runs in the read loop.
func (v *visit) roomChange(e foreign.RoomChange) {
	s := v.s
	now := time.Now()
	if e.In && !v.books(e.Room) || e.Agent != "" && s.b.ours(e.Agent) != "" && s.b.spend(roomBytes) != nil {
		return
	}
	if e.Out || e.Over {
		v.rooms.unbook(e.Room)
	}
	freed := e.Free && v.rooms.frees(e.Room, false)
	if e.Hold != "" {
		v.rooms.holds(&e, now)
	}
	if e.Hold == foreign.HoldMinute {
		v.lookLater(e.Room, true, roomMinute)
	}
	if freed {
		v.lookAtRoom(e.Room)
	}
	l := s.b.n.loop
	v.post(func() { l.roomChanged(v, e) })
}

func (v *visit) lookAtRoom(id string) {
	if r := v.s.b.room(id); r != nil {
		v.s.look(r.here)
	}
}

// spoken has the next word said in a room, once its hub has dealt with the one before.
func (a *abroad) spoken(room protocol.AgentID) {
	if strings.LastIndexByte(string(room), '@') < 0 {
		return
	}
	if b := a.of(room); b != nil && b.roomHere(room) != nil {
		a.mail(room)
	}
}

// speak sends the oldest of what our agent has to say in a room, if it may be said now. False: the connection ended.
func (v *visit) speak(ctx context.Context, here protocol.AgentID, id string) bool {
	b, n := v.s.b, v.s.b.n
	r := b.room(id)
	if r == nil {
		return true
	}
	first := true
	for after := uint64(0); ; {
		rows, err := n.store.Inbox(here, journal.InboxQuery{After: after, Limit: farPage})
		if err != nil {
			n.log.Error("mail for a board not readable", "part", "board", "room", here, "err", err)
			return true
		}
		for i := range rows {
			env, ref := rows[i].Envelope, hub.Ref{Log: rows[i].Log, Seq: rows[i].Seq}
			after = rows[i].Pos
			mine := protocol.FoldAgentID(env.From) == protocol.FoldAgentID(v.s.agent)
			is, why := b.isIn(r, env.From)
			switch {
			case env.From == "" || !mine && b.seatOf(env.From) == nil:
				v.refuses(here, ref, reasonNotJoined)
			case mine && !is:
				v.refuses(here, ref, why)
			case mine && first:
				first = false
				if v.rooms.takes(id, env.ID, time.Now()) && !v.speakOne(ctx, &env, ref, r) {
					return false
				}
			}
		}
		if len(rows) < farPage {
			return true
		}
	}
}

func (v *visit) speakOne(ctx context.Context, env *protocol.Envelope, ref hub.Ref, r *farRoom) bool {
	s := v.s
	v.lookLater(r.id, false, protocol.RedeliverEvery)
	return v.bring(ctx, env, ref, r.here, func() []byte {
		var named []string
		for _, a := range env.Addressee {
			if there := s.b.calledThere(a); !foreign.Guest(there) {
				named = append(named, string(there))
			}
		}
		return foreign.InRoom(env, r.id, named, time.Now(), string(newID()))
	})
}

// takeInRoom brings what was said in a room of the board to our agent, as the board gave it. It is acknowledged once it is
// durable here.
func (v *visit) takeInRoom(m *foreign.Message, files []protocol.BlobRef) {
	s, n := v.s, v.s.b.n
	id, own := m.Frame.RoomID, s.b.ours(m.From)
	if !foreign.RoomID(id) || own == "" && foreign.Guest(m.From) || !v.concerns(&m.Frame) {
		v.acknowledge(m) // nobody's here
		return
	}
	if v.rooms.frees(id, true) {
		v.lookAtRoom(id)
	}
	env, no := v.heard(m, files, own)
	booked := 0
	switch {
	case no == nil && n.full() != nil:
		return
	case no == nil && !v.books(id):
		no = protocol.Refuse(protocol.CodeTooMany, "this board has used what it may take at this node", "")
	case no == nil && own == "":
		var ok bool
		if booked, no, ok = v.charged(&env); !ok {
			return
		}
	}
	if no != nil {
		v.refuse(m, no)
		return
	}
	v.post(func() { n.loop.heardIn(v, m, env, own, booked) })
}

// concerns says whether a room's message is for our agent: an order to somebody else in the room is not.
func (v *visit) concerns(f *asterism.Frame) bool {
	if roles.May(protocol.RoleCollab, f.Intent(), protocol.RoleLocal) == nil {
		return true
	}
	return slices.ContainsFunc(f.Addressee, func(a string) bool {
		return protocol.FoldAgentID(protocol.AgentID(a)) == protocol.FoldAgentID(v.s.row().As)
	})
}

// heard is a room's message with the names that all have here. Of one that our own agent said the id counts alone.
func (v *visit) heard(m *foreign.Message, files []protocol.BlobRef, own protocol.AgentID) (env protocol.Envelope, no *protocol.Refusal) {
	b, f := v.s.b, m.Frame
	from := own
	if own == "" {
		ok := false
		if from, ok = b.here(m.From); !ok {
			return env, protocol.Refuse(protocol.CodeTooMany, "this board has shown more than %d agents", "", farNamesMax)
		}
	}
	for i, a := range f.Addressee {
		if i == 0 {
			f.Addressee = slices.Clone(f.Addressee)
		}
		f.Addressee[i] = string(b.calledHere(protocol.AgentID(a)))
	}
	env, no = f.Envelope(asterism.Sender{ID: from, Source: protocol.SourceAgent}, newID())
	env.Blobs, env.SpeakerClass = files, "agent"
	if m.From == foreign.Person {
		env.SpeakerClass = "human-operator"
	}
	return env, no
}

// heardIn gives our agent what was said in a room, for which so many bytes were booked. Call it in the loop.
func (l *loop) heardIn(v *visit, m *foreign.Message, env protocol.Envelope, own protocol.AgentID, booked int) {
	b, s := v.s.b, v.s
	if b.seatOf(s.agent) != s {
		return // it has left that board, and its rooms
	}
	r, no := l.comesIn(v, m.Frame.RoomID, "")
	if no == nil && own == "" {
		no = l.appears(b, env.From, m.Name)
	}
	if no != nil {
		v.refuse(m, no)
		return
	}
	env.Room = protocol.RoomID(r.here)
	in := hub.Heard{Env: env, To: l.core.Now(s.agent), Own: own != ""}
	in.Env.To = ""
	if row, ok, err := l.store.Identity(env.Identity()); err == nil && ok {
		in.Seen = &hub.Seen{Content: row.Content, Ref: hub.Ref{Log: row.Log, Seq: row.Seq}}
		if said, ok, err := l.store.Message(row.Log, row.Seq); err == nil && ok {
			if in.Had = slices.ContainsFunc(said.Tiers, func(t journal.TierPut) bool {
				return (t.Tier == protocol.Persisted || t.Tier == protocol.Handed) && l.core.Now(t.Agent) == in.To
			}); in.Own {
				in.Env = said.Envelope
			}
		}
	}
	if in.Own && cmp.Or(protocol.AgentID(in.Env.Room), in.Env.To) != r.here {
		v.acknowledge(m) // our agent never said that there
		return
	}
	b.mu.Lock()
	in.Also = r.agents()
	b.mu.Unlock()
	in.Token = l.expect(func(t hub.Told) {
		b.settleUp(booked, &t)
		switch {
		case t.Refusal == nil || in.Own && t.Refusal.Code == protocol.CodeUnknownID:
			v.acknowledge(m)
		case !givenAgain(t.Refusal):
			v.refuse(m, t.Refusal)
		}
	})
	l.core.Step(l.now, in)
}

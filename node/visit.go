package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aster-mesh/aster/node/foreign"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/link"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// visit is one connection of a seat.
type visit struct {
	s    *seat
	conn *link.Conn
	ctx  context.Context // of the seat

	// Owned by the read loop.
	session  *foreign.Session
	accepted time.Time // zero: not yet
	rejected *foreign.Rejected

	// Owned by send.
	sent map[protocol.AgentID]uint64 // up to which position each inbox was looked at, by folded id

	waits atomic.Bool // a second look at all inboxes is due
	keeps atomic.Bool // the hub keeps attachments

	rooms speaking // what our agent says in rooms there

	work sync.WaitGroup // what runs beside the read loop; waited for when the connection has ended

	// Guarded by mu.
	mu     sync.Mutex
	asked  map[string]chan<- foreign.Answer // questions about attachments, by their id
	behind []waiting                        // messages whose turn has not come, while taking
	taking bool
}

// post has a job of the read loop's done by the loop, in the board's share of it.
func (v *visit) post(job func()) { _ = v.s.b.lane.post(v.s.b.n.ctx, v.s.b.n.loop, job) }

// say sends a frame; a connection that is ending takes none, and what mattered is sent again on the next.
func (v *visit) say(frame []byte) { v.conn.Send(frame) }

// message takes one frame of the board. It runs in the read loop.
func (v *visit) message(data []byte, _ bool) {
	f, no := decodeForeign(data)
	if no != nil {
		v.s.b.n.log.Debug("frame of a board not read", "part", "board", "board", v.s.b.name(), "err", no)
		return
	}
	l := v.s.b.n.loop
	for _, e := range v.session.Frame(&f) {
		switch e := e.(type) {
		case foreign.Accepted:
			if v.accepted.IsZero() {
				v.accepted = time.Now()
			}
			v.keeps.Store(v.session.Keeps())
			v.s.joined(v, e.As, e.Role)
			v.owed()
			v.askForRooms()
			v.secondLook(0) // what was sent before and not settled is sent again, under the same id
		case foreign.Rejected:
			v.rejected = &e
		case foreign.Roster:
			v.post(func() { l.boardRoster(v, e) })
		case foreign.Greet:
			v.greet(e.To)
		case foreign.Message:
			v.receive(v.ctx, e)
		case foreign.Answer:
			v.answered(e)
		case foreign.Passed:
			v.say(foreign.Acknowledge(e.Ack, e.From, false, time.Now(), string(newID())))
		case foreign.Settled:
			v.post(func() { l.settledAbroad(v.s, e) })
		case foreign.RoomChange:
			v.roomChange(e)
		case foreign.Later:
			v.rooms.later(e.ID)
			v.secondLook(protocol.RedeliverEvery)
		}
	}
}

func (v *visit) greet(main protocol.AgentID) {
	v.s.mu.Lock()
	v.s.greeted = main
	v.s.mu.Unlock()
	v.say(foreign.Greeting(v.session.As(), string(v.s.agent), main, time.Now(), string(newID())))
}

// take brings a message of the board into our agent's inbox. It is acknowledged once it is durable there; a repeat is
// acknowledged again. What may not enter is answered, so that nobody waits for it; what finds no room is left with the
// board, which gives it again.
func (v *visit) take(m *foreign.Message, files []protocol.BlobRef) {
	s, n := v.s, v.s.b.n
	if m.Frame.RoomID != "" {
		v.takeInRoom(m, files)
		return
	}
	from, ok := s.b.here(m.From)
	if foreign.Guest(m.From) {
		v.refuse(m, protocol.Refuse(protocol.CodeNotAllowed, "%q is a guest of another board", "speak from your own board", protocol.CutText(string(m.From), 100)))
		return
	}
	if !ok {
		v.refuse(m, protocol.Refuse(protocol.CodeTooMany, "this board has shown more than %d agents", "", farNamesMax))
		return
	}
	env, no := m.Frame.Envelope(asterism.Sender{ID: from, Source: protocol.SourceAgent}, newID())
	env.Blobs = files
	if no == nil && n.full() != nil {
		return
	}
	booked := 0
	if no == nil {
		var ok bool
		if booked, no, ok = v.charged(&env); !ok {
			return
		}
	}
	if no != nil {
		v.refuse(m, no)
		return
	}
	l := n.loop
	v.post(func() {
		env.To = l.core.Now(s.agent)
		if no := l.appears(s.b, from, m.Name); no != nil {
			v.refuse(m, no)
			return
		}
		token := l.expect(func(t hub.Told) {
			s.b.settleUp(booked, &t)
			switch {
			case t.Refusal == nil:
				v.acknowledge(m)
			case !givenAgain(t.Refusal):
				v.refuse(m, t.Refusal)
			}
		})
		l.core.Step(l.now, l.said(hub.Say{As: from, Env: env, Token: token, BindAs: hub.ClientBoard}))
	})
}

// charged books what a message takes here, unless it is a repeat, and puts a large value beside its record. Not ok: that could not
// be kept, and the board gives it again. A large value is on the disk before the message is judged, so it is booked once for all, whatever
// becomes of the message; of an id that is known here nothing is kept, be its value another.
func (v *visit) charged(env *protocol.Envelope) (booked int, no *protocol.Refusal, ok bool) {
	n, b := v.s.b.n, v.s.b
	large := len(env.Value) > protocol.ValueBytesInline
	sha := ""
	if large {
		sum := sha256.Sum256(env.Value)
		sha = hex.EncodeToString(sum[:])
	}
	size := hub.Size(env)
	switch _, known, err := n.store.Identity(env.Identity()); {
	case err == nil && known && large:
		env.Value, env.ValueBlob = nil, &protocol.BlobRef{SHA256: sha, Bytes: int64(len(env.Value))}
		return 0, nil, true
	case err == nil && known:
		return 0, nil, true
	case large:
		no = b.buy(sha, size)
	default:
		if no = b.spend(size); no == nil {
			booked = size
		}
	}
	if no != nil {
		return 0, no, true
	}
	if err := n.spill(n.ctx, env); err != nil && !errors.As(err, &no) {
		n.log.Error("large value not kept", "part", "board", "err", err)
		if b.giveBack(booked); large {
			b.unbuy(sha, size)
		}
		return 0, nil, false
	}
	return booked, no, true
}

// buy books a large value, unless it was before. What is said to several agents of ours comes on a connection of each at once, so
// one buys after the other.
func (b *farBoard) buy(sha string, bytes int) *protocol.Refusal {
	b.buying.Lock()
	defer b.buying.Unlock()
	if b.bought[sha] {
		return nil
	}
	if no := b.spend(bytes); no != nil {
		return no
	}
	if b.bought == nil {
		b.bought = map[string]bool{}
	}
	b.bought[sha] = true // what all of them take bounds how many there are
	return nil
}

func (b *farBoard) unbuy(sha string, bytes int) {
	b.buying.Lock()
	defer b.buying.Unlock()
	if b.bought[sha] {
		delete(b.bought, sha)
		b.giveBack(bytes)
	}
}

// settleUp gives back what was booked for a message that was here before, or that is left with its board for now. What is refused
// for good stays booked. Call it in the loop.
func (b *farBoard) settleUp(booked int, t *hub.Told) {
	if booked > 0 && (t.Repeat || t.Refusal != nil && givenAgain(t.Refusal)) {
		b.n.later(0, func() { b.giveBack(booked) }) // booking waits for the loop
	}
}

// givenAgain says whether a message is left with its board for such a reason.
func givenAgain(no *protocol.Refusal) bool {
	return no.Code == protocol.CodeInboxFull || no.Code == protocol.CodeDiskFull || no.Code == protocol.CodeRate
}

func (v *visit) acknowledge(m *foreign.Message) {
	for _, id := range m.Acks {
		v.say(foreign.Acknowledge(id, m.From, false, time.Now(), string(newID())))
	}
}

// refuse says that a message was not taken, then acknowledges it: on one connection the answer comes first.
func (v *visit) refuse(m *foreign.Message, no *protocol.Refusal) {
	of := protocol.MsgID("")
	if len(m.Acks) > 0 {
		of = m.Acks[0]
	}
	v.say(foreign.Refuse(of, m.From, no, time.Now(), string(newID())))
	v.acknowledge(m)
}

// secondLook has all inboxes looked at from their beginning.
func (v *visit) secondLook(after time.Duration) {
	if !v.waits.CompareAndSwap(false, true) {
		return
	}
	if after == 0 {
		notify(v.s.wake)
		return
	}
	v.s.b.n.later(after, func() { notify(v.s.wake) })
}

// queueBytesMax is how much may wait for a slow board before more is read from the store.
const queueBytesMax = 1 << 20

// send sends what waits for the board's agents until the connection ends.
func (v *visit) send(ctx context.Context) {
	for {
		select {
		case <-v.conn.Done():
			return
		case <-ctx.Done():
			return
		case <-v.s.wake:
		}
		if v.s.present() != v {
			continue
		}
		present := map[protocol.AgentID]bool{}
		b := v.s.b
		if err := b.n.loop.call(ctx, func() {
			for id := range b.conns {
				present[protocol.FoldAgentID(id)] = true
			}
		}); err != nil {
			return
		}
		look := v.s.looks()
		if v.waits.CompareAndSwap(true, false) {
			clear(v.sent)
			for id := range present {
				look[id] = true
			}
			b.eachRoom(func(r *farRoom) { look[protocol.FoldAgentID(r.here)] = true })
		}
		for id := range look {
			there, ok := b.there(id)
			if room, is := foreign.RoomOf(there); is {
				if !v.speak(ctx, id, room) {
					return
				}
				continue
			}
			if ok && (present[id] || there == foreign.Person) && !v.sendTo(ctx, id, there) {
				return
			}
		}
	}
}

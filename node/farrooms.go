package node

import (
	"cmp"
	"slices"
	"strings"

	"github.com/aster-mesh/aster/node/foreign"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// farRoom is a room of a board that is not ours, with agents of ours in it. Its hub decides who is in, and says so.
type farRoom struct {
	// Fixed at creation.
	id   string           // as called there
	here protocol.AgentID // as called here: ID@BOARD

	// Owned by the loop.
	conn hub.ConnID // 0: not shown as present

	// Guarded by the board's mu.
	topic string
	in    map[protocol.AgentID]protocol.AgentID // ours, by folded id
	over  string                                // why what waits for it is refused now; empty: it is not
}

// joinedRoom is a room as boards.json keeps it.
type joinedRoom struct {
	Topic string             `json:"topic,omitempty"`
	In    []protocol.AgentID `json:"in"`
}

// farRoomsMax bounds in how many rooms of one board agents of ours are.
const farRoomsMax = 200

// roomNameMax is how many bytes of a room's topic its name has.
const roomNameMax = 200

// Reasons for which a message is not said in a room of another board, beside that board's own.
const (
	reasonNotIn = hub.CodeNotParticipant
	reasonOver  = "room-closed"
	reasonLeft  = hub.CodeBoardLeft
)

func roomsOf(kept map[string]joinedRoom, names *foreign.Names) map[string]*farRoom {
	out := map[string]*farRoom{}
	for id, k := range kept {
		here, ok := names.Known(foreign.RoomKey(id))
		if !ok || len(k.In) == 0 {
			continue
		}
		out[id] = newFarRoom(id, here, k.Topic)
		for _, agent := range k.In {
			out[id].in[protocol.FoldAgentID(agent)] = agent
		}
	}
	return out
}

func newFarRoom(id string, here protocol.AgentID, topic string) *farRoom {
	return &farRoom{id: id, here: here, topic: topic, in: map[protocol.AgentID]protocol.AgentID{}}
}

func keptRooms(rooms map[string]*farRoom) map[string]joinedRoom {
	out := map[string]joinedRoom{}
	for id, r := range rooms {
		if agents := r.agents(); len(agents) > 0 && r.over == "" {
			out[id] = joinedRoom{Topic: r.topic, In: agents}
		}
	}
	return out
}

// agents are ours that are in. b.mu is held.
func (r *farRoom) agents() (out []protocol.AgentID) {
	for _, id := range r.in {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// roomRows are the rooms as the API shows them. b.mu is held.
func (b *farBoard) roomRows() (out []api.FarRoom) {
	for _, r := range b.rooms {
		if len(r.in) > 0 {
			out = append(out, api.FarRoom{ID: r.here, Topic: r.topic, In: r.agents()})
		}
	}
	slices.SortFunc(out, func(x, y api.FarRoom) int { return cmp.Compare(x.ID, y.ID) })
	return out
}

// topicOf is what a room of another board is about, of one that this node is at; else "".
func (a *abroad) topicOf(here protocol.AgentID) string {
	b := a.of(here)
	if b == nil {
		return ""
	}
	r := b.roomHere(here)
	if r == nil {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return protocol.CutText(r.topic, roomNameMax)
}

// room is a room by what it is called there; nil: none of ours is or was in it.
func (b *farBoard) room(id string) *farRoom {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rooms[id]
}

// roomHere is a room by what it is called here.
func (b *farBoard) roomHere(here protocol.AgentID) *farRoom {
	there, _ := b.there(here)
	id, ok := foreign.RoomOf(there)
	if !ok {
		return nil
	}
	return b.room(id)
}

func (b *farBoard) eachRoom(f func(*farRoom)) {
	b.mu.Lock()
	all := make([]*farRoom, 0, len(b.rooms))
	for _, r := range b.rooms {
		all = append(all, r)
	}
	b.mu.Unlock()
	for _, r := range all {
		f(r)
	}
}

// isIn says whether an agent of ours is in a room, or else why what it says there is refused.
func (b *farBoard) isIn(r *farRoom, agent protocol.AgentID) (is bool, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.over != "" {
		return false, r.over
	}
	return r.in[protocol.FoldAgentID(agent)] != "", b.whyOut()
}

// whyOut is why what an agent says in a room is refused that is not in. b.mu is held.
func (b *farBoard) whyOut() string {
	if b.left != nil {
		return reasonLeft
	}
	return reasonNotIn
}

// holds is isIn without the reason.
func (b *farBoard) holds(r *farRoom, agent protocol.AgentID) bool {
	is, _ := b.isIn(r, agent)
	return is
}

// ours is the agent of ours that is called so there; empty: none is.
func (b *farBoard) ours(there protocol.AgentID) (agent protocol.AgentID) {
	b.eachSeat(func(s *seat) {
		if protocol.FoldAgentID(s.row().As) == protocol.FoldAgentID(there) {
			agent = s.agent
		}
	})
	return agent
}

// calledHere is what whoever is called so there is called here: one of ours by its own name.
func (b *farBoard) calledHere(there protocol.AgentID) protocol.AgentID {
	if own := b.ours(there); own != "" {
		return own
	}
	if there == "" || foreign.Guest(there) || strings.EqualFold(string(there), string(protocol.SourceBoard)) {
		return there
	}
	if here, ok := b.here(there); ok {
		return here
	}
	return there
}

// calledThere is what whoever is called so here is called there.
func (b *farBoard) calledThere(here protocol.AgentID) protocol.AgentID {
	if s := b.seatOf(here); s != nil {
		return s.row().As
	}
	if there, ok := b.there(here); ok && there != foreign.Person {
		if _, room := foreign.RoomOf(there); !room {
			return there
		}
	}
	return here
}

// farOf is what the hub must know of a message for a room of another board; nil: it is for none. Call it in the loop.
func (l *loop) farOf(in *hub.Say) *hub.Far {
	id := cmp.Or(protocol.AgentID(in.Env.Room), in.Env.To)
	if hub.RoomVerb(in.Env.Intent) {
		id = cmp.Or(protocol.AgentID(valueOf[string](in.Env.Value, "roomId")), id)
	}
	b := l.n.abroad.of(id)
	if b == nil {
		return nil
	}
	r := b.roomHere(id)
	if r == nil {
		return nil
	}
	far := &hub.Far{Room: r.here}
	far.In = b.holds(r, in.As)
	if s := b.seatOf(in.As); s != nil {
		far.There = s.present() != nil
	}
	return far
}

package node

import (
	"slices"
	"strings"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// roomEvent tells sockets what happened in a room. What is for boards everywhere goes to other nodes as a live frame: of
// all else they have the record.
func (l *loop) roomEvent(o hub.RoomEvent) {
	frame := l.enc.Custom(l.now, asterism.Custom{Name: o.Name, To: o.To, Room: o.Room, Value: o.Value})
	for _, id := range o.Conns {
		if s := l.sockets[id]; s != nil {
			s.conn.Send(frame)
		}
	}
	if o.Boards {
		l.toBoards(frame, 0)
	}
	if o.Everywhere && o.To != "" {
		l.liveOut(hub.LiveOut{From: o.To, Frame: frame})
	}
}

func (l *loop) roomAcked(o hub.RoomAcked) {
	for _, id := range l.core.Conns(o.Sender) {
		if s := l.sockets[id]; s != nil {
			s.conn.Send(l.enc.Ack(l.now, o.Sender, asterism.Ack{
				For: o.ID, Kind: asterism.KindDelivered, From: protocol.AgentID("room:" + o.Room), Room: true, Reached: o.Reached, Offline: o.Offline}))
		}
	}
}

// roomRepeat acknowledges a room's message that is said again, as the room did when it passed it on. A room of another board has
// it once that board says so.
func (l *loop) roomRepeat(s *socket, id protocol.MsgID, m *journal.Message) {
	room := protocol.AgentID(m.Envelope.Room)
	if room == "" || l.core.IsAbroad(room) && !slices.ContainsFunc(m.Tiers, func(t journal.TierPut) bool { return t.Tier == protocol.Persisted && t.Agent == room }) {
		return
	}
	s.conn.Send(l.enc.Ack(l.now, m.Envelope.From, asterism.Ack{
		For: id, Kind: asterism.KindDelivered, From: "room:" + room, Room: true, Reached: len(m.Envelope.Rcpt)}))
}

// maySeeChannel: a room's channel is for who is in it, and for boards.
func (s *socket) maySeeChannel(key string, sender asterism.Sender) *protocol.Refusal {
	id, ok := strings.CutPrefix(key, protocol.RoomChannel)
	if !ok || sender.ID == "" {
		return nil
	}
	in := false
	if err := s.n.loop.call(s.n.ctx, func() { in = s.n.loop.core.InRoom(protocol.RoomID(id), sender.ID) }); err != nil || !in {
		return protocol.Refuse(protocol.CodeNotAllowed, "only who is in a room reads its channel", "")
	}
	return nil
}

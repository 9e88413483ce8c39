package node

import (
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

// roomChannel begins the names of rooms' channels.
const roomChannel = "room:"

// roomPages bounds how far back a room's channel is looked for among all messages.
const roomPages = 20

// channelMessages reads a channel's messages, newest first: an agent's, or a room's.
func (n *Node) channelMessages(key string) ([]journal.Message, error) {
	id, ok := strings.CutPrefix(key, roomChannel)
	if !ok {
		return n.store.Messages(journal.Query{From: protocol.AgentID(key), Limit: 1000, Newest: true})
	}
	var out []journal.Message
	q := journal.Query{Limit: 1000, Newest: true}
	for range roomPages {
		page, err := n.store.Messages(q)
		if err != nil || len(page) == 0 {
			return out, err
		}
		for i := range page {
			if string(page[i].Envelope.Room) == id {
				out = append(out, page[i])
			}
		}
		if q.Before = page[len(page)-1].Pos; len(out) >= 1000 {
			break
		}
	}
	return out, nil
}

// maySeeChannel: a room's channel is for who is in it, and for boards.
func (s *socket) maySeeChannel(key string, sender asterism.Sender) *protocol.Refusal {
	id, ok := strings.CutPrefix(key, roomChannel)
	if !ok || sender.ID == "" {
		return nil
	}
	in := false
	if err := s.n.loop.call(s.n.ctx, func() { in = s.n.loop.board.RoomHas(protocol.RoomID(id), sender.ID) }); err != nil || !in {
		return protocol.Refuse(protocol.CodeNotAllowed, "only who is in a room reads its channel", "")
	}
	return nil
}

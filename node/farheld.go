package node

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/node/foreign"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// waitsAbroad says what a message to a room of another board waits for; nil: for nothing that is known here.
func (n *Node) waitsAbroad(m *journal.Message) *api.Waits {
	id := cmp.Or(protocol.AgentID(m.Envelope.Room), m.Envelope.To)
	if m.Envelope.From == "" || strings.LastIndexByte(string(id), '@') < 0 || n.abroad == nil {
		return nil
	}
	if slices.ContainsFunc(m.Tiers, func(t journal.TierPut) bool { return t.Tier == protocol.Persisted || t.Tier == protocol.Refused }) {
		return nil
	}
	b := n.abroad.of(id)
	if b == nil {
		return nil
	}
	r, s := b.roomHere(id), b.seatOf(m.Envelope.From)
	if r == nil || s == nil || !b.holds(r, s.agent) {
		return nil
	}
	out := &api.Waits{Board: b.name(), Room: r.here, For: api.WaitsBoard}
	if v := s.present(); v != nil {
		if out.For = v.rooms.waits(r.id, time.Now()); out.For == "" {
			return nil
		}
	}
	return out
}

// waits says for what a room's hub holds our agent's words back; empty: it does not.
func (sp *speaking) waits(id string, now time.Time) api.WaitsFor {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	switch r := sp.room(id); {
	case r.hold == foreign.HoldTurn:
		return api.WaitsTurn
	case r.hold == foreign.HoldYield:
		return api.WaitsPerson
	case r.hold == foreign.HoldMinute && now.Before(r.until):
		return api.WaitsMinute
	}
	return ""
}

// showHeld lets pages see at once that a room holds a message of ours back.
func (l *loop) showHeld(s *seat, id protocol.MsgID) {
	if id == "" || !l.n.pages.watched() {
		return
	}
	row, ok, err := l.store.Identity(protocol.IdentityOf(s.agent, id))
	if err != nil || !ok {
		return
	}
	m, ok, err := l.store.Message(row.Log, row.Seq)
	if err != nil || !ok {
		return
	}
	if w := l.n.waitsAbroad(&m); w != nil {
		l.n.pages.publish(api.Event{Type: "tiers", MsgID: m.Envelope.ID, From: m.Envelope.From, Tiers: l.n.tiersOf(&m), Waits: w})
	}
}

package hub

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/room"
)

// A message above a room's budgets waits at its sender's node, on disk, until a person speaks in the room; after
// parkedLife, or when the room closes, its sender hears that it was never said (fault KC14).
const (
	parkedLife = 30 * time.Minute
	parkedMax  = 20 // of a room, at one node
	// ParkedPrefix begins the names of the values under which parked messages are kept.
	ParkedPrefix = "parked/"
)

// Parked is one waiting message, as it is kept.
type Parked struct {
	Env  *protocol.Envelope `json:"env"`
	At   int64              `json:"at"` // this node's clock, ms
	Rule room.Rule          `json:"rule"`
}

func parkedKey(env *protocol.Envelope) string {
	return ParkedPrefix + string(env.Room) + "/" + env.Identity().String()
}

// park keeps a message for later, or refuses it when too many wait.
func (c *Core) park(now time.Time, env *protocol.Envelope, in Say, r *room.Room, rule room.Rule) {
	waiting := c.parked[r.ID]
	again := slices.ContainsFunc(waiting, func(p *Parked) bool { return p.Env.Identity() == env.Identity() })
	refusal := protocol.Refuse(protocol.CodeRate, "%s: the message waits until a person speaks in the room", "", ruleWords(rule))
	switch {
	case again:
	case len(waiting) >= parkedMax:
		c.guard(env, r.ID, rule, guardDropped, env.ID)
		c.tell(Told{Token: in.Token, ID: env.ID, Refusal: protocol.Refuse(protocol.CodeTooMany, "%s, and %d messages wait already: it was not sent", "", ruleWords(rule), len(waiting))})
		return
	default:
		p := &Parked{Env: env, At: now.UnixMilli(), Rule: rule}
		c.parked[r.ID] = append(waiting, p)
		c.keep(map[string][]byte{parkedKey(env): protocol.EncodeBody(p)})
		c.due(now.Add(parkedLife))
	}
	if rule != room.AutoHop {
		c.guard(env, r.ID, rule, guardParked, env.ID)
	} else if c.inside() && !r.StallTold() {
		c.roomRecord(now, protocol.RoomBody{Room: r.ID, Op: protocol.RoomStall, Agent: env.From, Reason: string(rule), MsgID: env.ID})
	} else { // all know of the chain's end; its sender still hears of this message
		value := map[string]any{"roomId": r.ID, "reason": rule, "parkedMsgId": env.ID, "from": env.From, "hint": "a person's word in the room starts a new chain"}
		c.out(RoomEvent{Name: "RoomStall", Room: r.ID, Value: protocol.EncodeBody(value), Conns: c.Conns(env.From)})
	}
	c.tell(Told{Token: in.Token, ID: env.ID, Refusal: refusal})
}

// release says what waits, oldest first, as far as the budgets allow after a person's word.
func (c *Core) release(now time.Time, r *room.Room) {
	var rest []*Parked
	for _, p := range c.parked[r.ID] {
		switch rule := r.Breaks(now, p.Env.From); {
		case rule == room.NotParticipant:
			c.unparked(now, p, "you are no longer in the room")
		case rule != "" || slices.ContainsFunc(rest, func(o *Parked) bool { return o.Env.From == p.Env.From }): // one sender's order stays
			rest = append(rest, p)
		default:
			c.keep(map[string][]byte{parkedKey(p.Env): nil})
			c.roomLog(now, p.Env, r, 0)
		}
	}
	c.setParked(r.ID, rest)
}

// unpark takes a message that its sender said again out of what waits: it is said once.
func (c *Core) unpark(env *protocol.Envelope) {
	waiting := c.parked[env.Room]
	i := slices.IndexFunc(waiting, func(p *Parked) bool { return p.Env.Identity() == env.Identity() })
	if i < 0 {
		return
	}
	c.keep(map[string][]byte{parkedKey(waiting[i].Env): nil})
	c.setParked(env.Room, slices.Delete(waiting, i, i+1))
}

func (c *Core) setParked(id protocol.RoomID, rest []*Parked) {
	if len(rest) == 0 {
		delete(c.parked, id)
		return
	}
	c.parked[id] = rest
}

// parkedOver gives up all that waits in a room.
func (c *Core) parkedOver(now time.Time, id protocol.RoomID, why string) {
	for _, p := range c.parked[id] {
		c.unparked(now, p, why)
	}
	delete(c.parked, id)
}

// unparked tells a sender, by a message that is kept for it, that its own was never said.
func (c *Core) unparked(now time.Time, p *Parked, why string) {
	c.keep(map[string][]byte{parkedKey(p.Env): nil})
	c.announce(now, c.scopeTo(p.Env.From), protocol.Envelope{
		ID: protocol.MsgID("parked-" + p.Env.Identity().String()), To: p.Env.From, Intent: protocol.ServerNotice, Re: p.Env.ID,
		Value: protocol.EncodeBody(map[string]any{
			"kind": "parked-dropped", "msgId": p.Env.ID, "roomId": p.Env.Room, "code": p.Rule,
			"text": "a message that waited in room " + string(p.Env.Room) + " was not said: " + why,
		}),
	})
}

// tickParked gives up what has waited for parkedLife.
func (c *Core) tickParked(now time.Time) {
	c.giveUpParked(now, "no person spoke there for 30 min", func(p *Parked) bool {
		at := time.UnixMilli(p.At).Add(parkedLife)
		if now.Before(at) {
			c.due(at)
			return false
		}
		return true
	})
}

// giveUpParked gives up, in every room, what is over.
func (c *Core) giveUpParked(now time.Time, why string, over func(*Parked) bool) {
	for _, id := range slices.Sorted(maps.Keys(c.parked)) {
		var rest []*Parked
		for _, p := range c.parked[id] {
			if over(p) {
				c.unparked(now, p, why)
			} else {
				rest = append(rest, p)
			}
		}
		c.setParked(id, rest)
	}
}

// bootParked reads what waited when the process ended.
func (c *Core) bootParked(values map[string][]byte) {
	var all []*Parked
	for key, raw := range values {
		p := &Parked{}
		if strings.HasPrefix(key, ParkedPrefix) && json.Unmarshal(raw, p) == nil && p.Env != nil {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *Parked) int {
		if a.At != b.At {
			return int(a.At - b.At)
		}
		return strings.Compare(string(a.Env.ID), string(b.Env.ID))
	})
	for _, p := range all {
		c.parked[p.Env.Room] = append(c.parked[p.Env.Room], p)
		c.due(time.UnixMilli(p.At).Add(parkedLife))
	}
}

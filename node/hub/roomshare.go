package hub

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles"
	"github.com/aster-mesh/aster/roles/room"
)

// A member outside holds no log of the inside. What an inside node writes of a room that an agent of such a member is in, it
// writes once more in that member's scope: from the step that brought the agent in, to the one that took it out. So nobody
// outside is ever sent a word that was said before or after, and there is nothing to filter later.

// seats are a member outside and its agents in a room, as the room's records say.
type seats struct {
	peer   protocol.PeerID
	agents []protocol.AgentID
}

// outsiders are the members outside whose agents were let into a room and live there still, in one order.
func (c *Core) outsiders(r *room.Room) (out []seats) {
	by := map[protocol.PeerID][]protocol.AgentID{}
	for _, p := range r.Participants() {
		if of, _ := r.Seat(p); of != "" && c.outside(of) && c.livesAt(p, of) {
			by[of] = append(by[of], p)
		}
	}
	for _, peer := range slices.Sorted(maps.Keys(by)) {
		out = append(out, seats{peer, by[peer]})
	}
	return out
}

// outside says whether a node is known as a member outside that is still one.
func (c *Core) outside(p protocol.PeerID) bool {
	m, ok := c.members[p]
	return ok && !m.Inside && !m.Gone && m.Role != ""
}

// share writes a step of a room for the members outside who have agents in it; before are those who had.
func (c *Core) share(now time.Time, r *room.Room, before []seats, body protocol.RoomBody) {
	after := c.outsiders(r)
	for _, s := range after {
		if slices.ContainsFunc(before, func(b seats) bool { return b.peer == s.peer }) {
			c.shareWith(now, s.peer, body)
			continue
		}
		first := r.Created.Body
		c.shareWith(now, s.peer, protocol.RoomBody{
			Room: r.ID, Op: protocol.RoomShared, By: first.By, Topic: first.Topic, Mode: first.Mode, Moderated: first.Moderated,
			Moderator: first.Moderator, Budgets: first.Budgets, Participants: r.Participants(),
		})
	}
	for _, b := range before {
		if !slices.ContainsFunc(after, func(s seats) bool { return s.peer == b.peer }) {
			c.shareWith(now, b.peer, body)
		}
	}
}

func (c *Core) shareWith(now time.Time, p protocol.PeerID, body protocol.RoomBody) {
	body.Outside = nil
	c.author.add(&c.ready, now, protocol.ScopeOutside(p), protocol.KindRoom, protocol.EncodeBody(body), nil)
}

// shareWords writes a room's message for the members outside who have agents in it.
func (c *Core) shareWords(now time.Time, env *protocol.Envelope, r *room.Room, ref Ref) {
	for _, s := range c.outsiders(r) {
		to := slices.DeleteFunc(s.agents, func(a protocol.AgentID) bool { return protocol.FoldAgentID(a) == protocol.FoldAgentID(env.From) })
		if len(to) == 0 {
			continue
		}
		scope := protocol.ScopeOutside(s.peer)
		if from := c.home(env.From); from != nil {
			c.author.name(&c.ready, now, scope, from)
		}
		again := *env
		again.Copy, again.Rcpt = true, to
		c.copied(c.author.add(&c.ready, now, scope, protocol.KindMessage, protocol.EncodeBody(again), nil), ref)
	}
}

// copiesMax bounds how many copies are remembered, for what their recipients say of them.
const copiesMax = 4096

func (c *Core) copied(again, ref Ref) {
	if len(c.copies) >= copiesMax {
		clear(c.copies)
	}
	c.copies[again] = ref
}

// original is the message that the sender of a copy knows.
func (c *Core) original(ref Ref) (Ref, bool) {
	of, ok := c.copies[ref]
	return of, ok
}

// sharedArrived takes what another inside node wrote of a room for a member outside: at that member it is the room.
func (c *Core) sharedArrived(now time.Time, rec *protocol.Record, body protocol.RoomBody) {
	if out, ok := rec.Log.Scope.Outsider(); ok && out != rec.Log.Peer && out == c.self && !c.inside() { // no member outside makes rooms
		c.roomApplied(now, room.At(rec.At, rec.Log, rec.Seq), rec.Wall, body)
	}
}

// heardInRoom decides what a room's message of a log means here; false: nothing. What comes from a member outside is for all
// who are in, whoever it says that it is for.
func (c *Core) heardInRoom(now time.Time, env *protocol.Envelope, ref Ref) (*protocol.Envelope, bool) {
	if ref.Log.Scope == protocol.ScopeInside {
		return env, true
	}
	out, _ := ref.Log.Scope.Outsider()
	r := c.rooms[env.Room]
	of, by := r.Seat(env.From)
	switch {
	case !c.inside(): // whoever wrote it knew of the seat, though the word that gave it may be on its way
		return env, out == c.self && ref.Log.Peer != c.self
	case out != ref.Log.Peer || of != out || !c.livesAt(env.From, out):
		return nil, false // it was not let in, though somebody may have meant another of its name
	case env.Intent == "RoomLeave":
		if by == c.self { // one node does it: the one that let it in
			c.roomRecord(now, protocol.RoomBody{Room: env.Room, Op: protocol.RoomLeft, By: env.From, Agent: env.From})
		}
		return nil, false
	case RoomVerb(env.Intent), env.Intent == protocol.Delegate:
		return nil, false
	}
	all := *env
	all.Rcpt = nil
	for _, p := range r.Participants() {
		if a := c.find(p); a != nil && protocol.FoldAgentID(p) != protocol.FoldAgentID(env.From) && roles.May(c.nodeRole(out), env.Intent, c.role(a)) == nil {
			all.Rcpt = append(all.Rcpt, p)
		}
	}
	return &all, true
}

// askedOutside carries out a verb of rooms at a member outside: it asks the inside to let its agent go, and shows what was
// agreed while that was in.
func (c *Core) askedOutside(now time.Time, env *protocol.Envelope, in Say, from *agent, v *roomValue) {
	r := c.rooms[v.RoomID]
	who := v.AgentID
	if who == "" {
		who = env.From
	}
	switch {
	case env.From == "" || from == nil || env.Intent != "RoomLeave" && env.Intent != "RequestRoomArtifacts":
		c.refuse(in, env, protocol.Refuse(protocol.CodeNotAllowed, "rooms are kept by nodes of the inside", "ask main, or somebody who is in"))
	case !r.In(env.From):
		c.guard(env, v.RoomID, room.NoSuchRoom, guardIgnored, "")
		c.tell(Told{Token: in.Token, ID: env.ID, Refusal: protocol.Refuse(protocol.CodeUnknownID, "there is no room %q", "", string(v.RoomID))})
	case env.Intent == "RequestRoomArtifacts":
		value := map[string]any{"roomId": r.ID, "artifacts": artifacts(r), "version": r.Version}
		c.out(RoomEvent{Name: "RoomArtifacts", Room: r.ID, Value: protocol.EncodeBody(value), Conns: c.asker(env, in), To: env.From})
		c.tell(Told{Token: in.Token, ID: env.ID})
	case protocol.FoldAgentID(who) != protocol.FoldAgentID(env.From):
		c.refuse(in, env, protocol.Refuse(protocol.CodeNotAllowed, "an agent from outside leaves for itself alone", ""))
	default:
		env.Room, env.To, env.Value = r.ID, "", protocol.EncodeBody(map[string]any{"roomId": r.ID})
		scope := protocol.ScopeOutside(c.self)
		c.author.name(&c.ready, now, scope, from)
		ref := c.author.add(&c.ready, now, scope, protocol.KindMessage, protocol.EncodeBody(env), env)
		c.tell(Told{Token: in.Token, Ref: ref, ID: env.ID})
	}
}

// oneOutside refuses that agents come in where a room would have agents of two members outside: neither hears the other
// (roles.MayReach), so they would not be in one room.
func (c *Core) oneOutside(r *room.Room, coming ...protocol.AgentID) *protocol.Refusal {
	of := map[protocol.PeerID]string{}
	for _, s := range c.outsiders(r) {
		of[s.peer] = c.nodeName(s.peer)
	}
	for _, id := range coming {
		if a := c.find(id); a != nil && c.outside(a.bind.Home) {
			of[a.bind.Home] = c.nodeName(a.bind.Home)
		}
	}
	if len(of) < 2 {
		return nil
	}
	names := slices.Sorted(maps.Values(of))
	return protocol.Refuse(protocol.CodeNotAllowed, "members outside do not hear one another, and a room has agents of one of them at most: %s",
		"make a room for each", strings.Join(names, ", "))
}

// comeFrom are the members outside where agents who come in by a step live.
func (c *Core) comeFrom(coming ...protocol.AgentID) map[protocol.AgentID]protocol.PeerID {
	out := map[protocol.AgentID]protocol.PeerID{}
	for _, id := range coming {
		if a := c.find(id); a != nil && c.outside(a.bind.Home) {
			out[protocol.FoldAgentID(id)] = a.bind.Home
		}
	}
	return out
}

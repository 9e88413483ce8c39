package hub

import (
	"slices"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles"
	"github.com/aster-mesh/aster/roles/room"
)

// applied takes a record of another node. Whether its message was let in was decided where it entered; whether it is
// taken is decided here if its recipient lives here (DESIGN 4 Decided once).
func (c *Core) applied(now time.Time, in Applied) {
	rec := in.Record
	c.author.clock.Merge(rec.At)
	if len(c.early) > 0 {
		defer c.spokenOf(now, Ref{rec.Log, rec.Seq})
	}
	switch rec.Kind {
	case protocol.KindBind:
		if body, err := protocol.DecodeBody[protocol.BindBody](rec); err == nil && body.Home == rec.Log.Peer && protocol.CheckAgentID(body.Agent) == nil &&
			(body.Called == "" || protocol.CheckAgentID(body.Called) == nil) {
			guest := ofOutsider(rec.Log)
			if guest {
				c.fromOutside(rec.Log.Peer)
				if body.Moves > 0 || body.First() != body.Home {
					return // to a member outside nobody moves
				}
			}
			c.heard(now, body, rec.At, guest)
			c.rosterDirty = true
		}
	case protocol.KindMove:
		if body, err := protocol.DecodeBody[protocol.MoveBody](rec); err == nil {
			c.moved(now, rec, body)
		}
	case protocol.KindMessage:
		switch {
		case in.Env != nil:
			c.message(now, in)
		case in.Disbelieved != nil:
			c.disbelieved(Ref{rec.Log, rec.Seq}, in.Disbelieved)
		}
	case protocol.KindReceipts:
		if body, err := protocol.DecodeBody[protocol.ReceiptsBody](rec); err == nil {
			c.receiptsOf(now, rec, body, in.Held)
		}
	case protocol.KindRoom:
		if body, err := protocol.DecodeBody[protocol.RoomBody](rec); err == nil {
			if rec.Log.Scope != protocol.ScopeInside {
				c.sharedArrived(now, rec, body)
				return
			}
			c.roomApplied(now, room.At(rec.At, rec.Log, rec.Seq), rec.Wall, body)
		}
	}
}

func (c *Core) message(now time.Time, in Applied) {
	env, ref := in.Env, Ref{in.Record.Log, in.Record.Seq}
	if env.Room != "" {
		c.roomArrived(now, in)
		return
	}
	if selection(env.Intent) && !c.selectionSeen(ref, env, time.UnixMilli(in.Record.Wall)) {
		return // nobody but an asker's home asks for it or ends its questions
	}
	c.out(Copy{Ref: ref, Env: env})
	c.out(TierReached{Ref: ref, Tier: protocol.Logged})
	if env.To == "" {
		return
	}
	a := c.takes(env.To)
	if a == nil {
		return
	}
	if in.Settled || in.Later || c.settledNow(ref, env, a) {
		return // by a former home, of an agent that moved here, or by this one before its disk was replaced by an older copy
	}
	c.take(now, a, ref, env, in.Parent, in.Seen)
}

// take decides whether a message of another node is taken into the inbox of an agent here, and says so.
func (c *Core) take(now time.Time, a *agent, ref Ref, env, parent *protocol.Envelope, seen *Seen) {
	if !c.speaksFor(env, ref.Log.Peer) {
		if ofOutsider(ref.Log) { // it has more agents than count here
			c.receipts.add(protocol.Refused, a.bind.Agent, protocol.CodeTooMany, c.receiptScope(ref), ref)
		}
		return // a node speaks only for the agents bound to it
	}
	if r := c.outsiderMay(env, ref.Log, a); r != nil {
		c.receipts.add(protocol.Refused, a.bind.Agent, r.Code, c.receiptScope(ref), ref)
		return
	}
	if old, ok := c.repeat(env, seen); ok && old.Ref != ref {
		// The client sent again through another node: one copy in the inbox, the same receipt for both.
		if old.Content == env.Content() {
			c.receipts.add(protocol.Persisted, a.bind.Agent, "", c.receiptScope(ref), ref)
		} else {
			c.receipts.add(protocol.Refused, a.bind.Agent, protocol.CodeMsgIDReused, c.receiptScope(ref), ref)
		}
		return
	}
	if selection(env.Intent) {
		if r := c.selectionArrived(env); r != nil {
			c.receipts.add(protocol.Refused, a.bind.Agent, r.Code, c.receiptScope(ref), ref)
			return
		}
	}
	if c.noRoom(a, senderOf(c.self, ref.Log, env.From), env, parent) {
		c.receipts.add(protocol.Refused, a.bind.Agent, protocol.CodeInboxFull, c.receiptScope(ref), ref)
		return
	}
	c.fresh[env.Identity()] = Seen{env.Content(), ref} // in the inbox by now: a copy by another route is no second one
	c.deliverHere(now, a, ref, env, c.receiptScope(ref), c.talks(now, env))
	if selection(env.Intent) {
		c.selectionSaid(now, env, ref)
	}
}

// outsiderMay decides again what an outside member's own node let in: nobody inside has looked at it yet. Its scope says
// that it is one before its member's record is here.
func (c *Core) outsiderMay(env *protocol.Envelope, log protocol.LogID, target *agent) *protocol.Refusal {
	role := c.nodeRole(log.Peer)
	if ofOutsider(log) && c.members[log.Peer].Role == "" {
		role = protocol.RolePeer
	}
	if role.Inside() {
		return nil
	}
	return roles.May(role, env.Intent, c.role(target))
}

// ofOutsider says whether a log's author writes in the scope of itself, as members outside alone do.
func ofOutsider(log protocol.LogID) bool {
	out, ok := log.Scope.Outsider()
	return ok && out == log.Peer
}

// speaksFor says whether a log of author may hold words of an agent: of one that lives there, or did under this name. A
// person's and the node's own count from any member.
func (c *Core) speaksFor(env *protocol.Envelope, author protocol.PeerID) bool {
	if env.From == "" || c.livesAt(env.From, author) {
		return true
	}
	id := identity{protocol.FoldAgentID(env.From), author}
	_, ended := c.ended[id]
	return ended || c.bound[id] != nil
}

// receiptsOf notes what another home says of messages, each once a turn. Only the recipient's home may. A range costs its
// author nothing, so with held it goes no further than there are messages, and what it says of others waits.
func (c *Core) receiptsOf(now time.Time, rec *protocol.Record, body protocol.ReceiptsBody, held func(protocol.LogID) uint64) {
	switch body.Tier {
	case protocol.Persisted, protocol.Processed, protocol.Refused:
	default:
		return
	}
	if !c.livesAt(body.Agent, rec.Log.Peer) {
		return
	}
	refs, ok := refsOf(rec.Log.Scope, body)
	if !ok {
		return
	}
	ahead := false
	for _, ref := range refs {
		if held != nil && ref.Seq > held(ref.Log) {
			ahead = true
			continue
		}
		c.receiptOf(now, TierPut{Ref: ref, Tier: body.Tier, Agent: body.Agent, At: rec.At, Wall: rec.Wall, By: rec.Log.Peer, Reason: body.Reason})
	}
	if ahead {
		c.await(rec, body, held)
	}
}

func (c *Core) receiptOf(now time.Time, put TierPut) {
	said := saidOf{put.Ref, put.Tier, protocol.FoldAgentID(put.Agent)}
	if c.said[said] {
		return
	}
	c.said[said] = true
	c.settledFar(put)
	c.ready.Tiers = append(c.ready.Tiers, put)
	c.doneElsewhere(now, put, put.By == c.self)
	c.out(TierReached{Ref: put.Ref, Tier: put.Tier, Agent: put.Agent, Reason: put.Reason})
	if of, ok := c.original(put.Ref); ok {
		c.out(TierReached{Ref: of, Tier: put.Tier, Agent: put.Agent, Reason: put.Reason})
	}
}

// doneElsewhere takes a message out of the inbox of an agent here when it turns out to be settled: by a former home of one
// that moved here, or by this node itself, whose disk was replaced by an older copy and is given back what it lost.
func (c *Core) doneElsewhere(now time.Time, put TierPut, own bool) {
	a, ref := c.takes(put.Agent), put.Ref
	if a == nil || a.bind.Moves == 0 && !own || put.Tier == protocol.Persisted {
		return
	}
	if l := a.box.byRef[ref]; l != nil {
		a.box.take(l)
		if protocol.FoldAgentID(put.Agent) != protocol.FoldAgentID(a.bind.Agent) {
			put.Agent = a.bind.Agent // the inbox is this name's now
			c.ready.Tiers = append(c.ready.Tiers, put)
		}
		c.ready.Out = slices.DeleteFunc(c.ready.Out, func(o Out) bool {
			d, ok := o.(Deliver)
			return ok && d.Ref == ref
		})
		for _, id := range a.conns {
			if conn := c.conns[id]; conn.inflight[ref] > 0 {
				conn.bytes -= conn.inflight[ref]
				delete(conn.inflight, ref)
				c.pump(now, a, conn)
			}
		}
		c.presenceDirty = true
	}
}

// settledNow says whether a message is known as processed or refused by what this turn was told.
func (c *Core) settledNow(ref Ref, env *protocol.Envelope, a *agent) bool {
	for _, tier := range []protocol.Tier{protocol.Processed, protocol.Refused} {
		for _, name := range []protocol.AgentID{env.To, a.own, a.bind.Agent} {
			if c.said[saidOf{ref, tier, protocol.FoldAgentID(name)}] {
				return true
			}
		}
	}
	return false
}

// saidOf is one word of a home on one message.
type saidOf struct {
	ref   Ref
	tier  protocol.Tier
	agent protocol.AgentID // folded
}

package hub

import (
	"slices"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// A connection has at most this much unconfirmed mail, so that a long inbox cannot fill its queue (DESIGN 6: new mail
// stands behind the flush).
const (
	windowLetters = 128
	windowBytes   = 1 << 20
)

// deliverHere puts a message into the inbox of an agent at home here, in the same commit as the message itself. It wakes
// nobody before calm.
func (c *Core) deliverHere(now time.Time, a *agent, ref Ref, env *protocol.Envelope, scope protocol.Scope, calm time.Time) {
	own := *env
	own.To = a.bind.Agent // it may have had another name
	l := a.box.put(Letter{Ref: ref, ID: env.ID, From: env.From, Report: ReportOn(env), At: now, Bytes: Size(env), Wakes: protocol.Wakes(&own, a.bind.Agent)})
	l.calm = calm
	c.ready.Inbox = append(c.ready.Inbox, InboxPut{a.bind.Agent, ref})
	if !farClient(a.client) { // that board says when its agent has it
		c.receipts.add(protocol.Persisted, a.bind.Agent, "", scope, ref)
	}
	delete(c.pending, ref) // it may have been on its way to another home
	c.presenceDirty = true
	for _, id := range a.conns {
		if conn := c.conns[id]; socket(conn.client) {
			c.push(now, a, conn, l, env)
		}
	}
	c.out(Mail{Agent: a.bind.Agent})
	if l.Wakes {
		c.wakeWaiters(now, a)
	}
}

// socket says whether deliveries are pushed through such an attachment; the others read the inbox themselves.
func socket(client string) bool { return client == "ws" || client == "mcp-ws" }

// push gives a letter to a socket now or queues it behind what is on its way.
func (c *Core) push(now time.Time, a *agent, conn *conn, l *letter, env *protocol.Envelope) {
	if len(conn.queue) > 0 || len(conn.inflight) >= windowLetters || conn.bytes > windowBytes {
		conn.queue = append(conn.queue, l.Ref)
		return
	}
	c.give(now, conn, l, env)
}

func (c *Core) give(now time.Time, conn *conn, l *letter, env *protocol.Envelope) {
	l.tries++
	l.lastTry = now
	conn.inflight[l.Ref] = l.Bytes
	conn.bytes += l.Bytes
	c.due(now.Add(protocol.RedeliverEvery))
	c.out(Deliver{Conn: conn.id, Ref: l.Ref, Env: env, To: conn.agent, Try: l.tries})
}

// pump sends what waits behind the window.
func (c *Core) pump(now time.Time, a *agent, conn *conn) {
	for len(conn.queue) > 0 && len(conn.inflight) < windowLetters && conn.bytes <= windowBytes {
		l := a.box.byRef[conn.queue[0]]
		conn.queue = conn.queue[1:]
		if l != nil {
			c.give(now, conn, l, nil)
		}
	}
	if len(conn.queue) == 0 {
		conn.queue = nil
	}
}

// flush begins a new connection with all unread mail, oldest first (faults B7, KC6, KC7). A client that never
// acknowledges is not given a message again (DESIGN 6), nor is any client what an adapter keeps.
func (c *Core) flush(now time.Time, a *agent, conn *conn) {
	for _, l := range a.box.items {
		if l.done || l.Kept || (l.Given && !a.acks && !conn.ackLayer) {
			continue
		}
		l.tries, l.lastTry = 0, time.Time{}
		conn.queue = append(conn.queue, l.Ref)
	}
	c.pump(now, a, conn)
}

// taken notes that the socket's peer has read deliveries: the sender's hint, and room for more.
func (c *Core) taken(now time.Time, in Taken) {
	conn := c.conns[in.Conn]
	if conn == nil {
		return
	}
	a := c.find(conn.agent)
	for _, ref := range in.Refs {
		n, ok := conn.inflight[ref]
		if !ok {
			continue
		}
		delete(conn.inflight, ref)
		conn.bytes -= n
		l := a.box.byRef[ref]
		if l == nil {
			continue
		}
		if l.tries == 1 && !l.Given {
			c.delivered(ref, a.bind.Agent)
		}
		if !l.Given && (a.acks || conn.ackLayer) {
			l.Given = true // who acknowledges is tried again; nothing need survive
		} else if !l.Given {
			l.Given = true
			c.ready.Tiers = append(c.ready.Tiers, TierPut{Ref: ref, Tier: Given, Agent: a.bind.Agent, At: c.author.clock.Last(), Wall: now.UnixMilli(), By: c.self})
		}
	}
	c.pump(now, a, conn)
}

// Given marks, in the journal of the recipient's home alone, that a message was given to a client once.
const Given protocol.Tier = "given"

// Kept marks, there too, that an adapter has the message on its disk.
const Kept protocol.Tier = "kept"

// delivered hints to the sender that an adapter took the message; to another node it is a live frame, no record.
func (c *Core) delivered(ref Ref, by protocol.AgentID) {
	if ref.Log.Peer == c.self {
		c.out(TierReached{Ref: ref, Delivered: true, Agent: by})
		return
	}
	c.out(HintDelivered{Home: ref.Log.Peer, Ref: ref, Agent: by})
}

// adapterHas relays an adapter's AckProcessed{tier:"delivered-persist"} to the sender.
func (c *Core) adapterHas(ref Ref, by protocol.AgentID) {
	if ref.Log.Peer == c.self {
		c.out(TierReached{Ref: ref, Kept: true, Agent: by})
		return
	}
	c.out(HintDelivered{Home: ref.Log.Peer, Ref: ref, Agent: by, Kept: true})
}

func (c *Core) deliveredElsewhere(in DeliveredElsewhere) {
	if in.Ref.Log.Peer != c.self {
		return
	}
	delete(c.pending, in.Ref)
	c.out(TierReached{Ref: in.Ref, Delivered: !in.Kept, Kept: in.Kept, Agent: in.Agent})
}

func (c *Core) replicated(in Replicated) {
	if in.Log.Peer != c.self || in.Log.Start != c.author.start || in.Seq <= c.marks[in.Log] {
		return
	}
	from := c.marks[in.Log] + 1
	c.marks[in.Log] = in.Seq
	for s := from; s <= in.Seq; s++ {
		c.out(TierReached{Ref: Ref{in.Log, s}, Tier: protocol.Replicated})
	}
}

// acked takes an agent's AckProcessed: an adapter's (it has the frame on its disk) or the agent's own word.
func (c *Core) acked(now time.Time, in Acked) {
	a := c.takes(in.Agent)
	if a == nil {
		c.tell(Told{Token: in.Token, ID: in.Of, Refusal: c.notHere(in.Agent)})
		return
	}
	a.acks = true
	l := a.box.letter(in.Of, in.From, c.aliases)
	if l == nil {
		c.tell(Told{Token: in.Token, ID: in.Of, Refusal: protocol.Refuse(protocol.CodeUnknownID, "nothing unread has the id %s", "aster inbox shows what waits", string(in.Of))})
		return
	}
	for _, id := range a.conns {
		conn := c.conns[id]
		if n, ok := conn.inflight[l.Ref]; ok {
			delete(conn.inflight, l.Ref)
			conn.bytes -= n
			if !l.Given {
				c.delivered(l.Ref, a.bind.Agent)
			}
			c.pump(now, a, conn)
		}
	}
	if !in.Processed {
		l.Given = true
		l.tries = protocol.RedeliverTries // no more tries on this connection, and on no other
		if !l.Kept {
			l.Kept = true
			c.ready.Tiers = append(c.ready.Tiers, TierPut{Ref: l.Ref, Tier: Kept, Agent: a.bind.Agent, At: c.author.clock.Last(), Wall: now.UnixMilli(), By: c.self})
		}
		c.adapterHas(l.Ref, a.bind.Agent)
		c.tell(Told{Token: in.Token, ID: in.Of, Ref: l.Ref})
		return
	}
	a.box.take(l)
	if l.lastTry.Equal(now) { // a newer connection was about to be given it in this very turn
		c.ready.Out = slices.DeleteFunc(c.ready.Out, func(o Out) bool {
			d, ok := o.(Deliver)
			return ok && d.Ref == l.Ref && d.To == a.bind.Agent
		})
	}
	c.receipts.add(protocol.Processed, a.bind.Agent, "", c.receiptScope(l.Ref), l.Ref)
	c.presenceDirty = true
	c.tell(Told{Token: in.Token, ID: in.Of, Ref: l.Ref})
}

// receiptScope: the receipt is for whoever the message is for; an outside node has one scope for all.
func (c *Core) receiptScope(ref Ref) protocol.Scope {
	if !c.inside() {
		return protocol.ScopeOutside(c.self)
	}
	return ref.Log.Scope
}

// tickBox tries again what was given and not acknowledged, re-announces, and lets old mail expire.
func (c *Core) tickBox(now time.Time, a *agent) {
	for _, l := range slices.Clone(a.box.items) {
		if l.done {
			continue
		}
		if now.Sub(l.At) >= protocol.MessageLife {
			a.box.take(l)
			c.receipts.add(protocol.Refused, a.bind.Agent, protocol.CodeExpired, c.receiptScope(l.Ref), l.Ref)
			continue
		}
		if l.lastTry.IsZero() || l.tries >= protocol.RedeliverTries {
			continue
		}
		again := l.lastTry.Add(protocol.RedeliverEvery)
		if now.Before(again) {
			c.due(again)
			continue
		}
		for _, id := range a.conns {
			if conn := c.conns[id]; socket(conn.client) && (a.acks || conn.ackLayer) {
				if n, ok := conn.inflight[l.Ref]; ok {
					delete(conn.inflight, l.Ref)
					conn.bytes -= n
				}
				c.give(now, conn, l, nil)
			}
		}
	}
	c.tickWaits(now, a)
	if len(a.box.items) > 0 {
		c.due(now.Add(time.Hour)) // expiry is checked hourly while mail waits
	}
}

// Conns are the sockets of an agent here.
func (c *Core) Conns(id protocol.AgentID) []ConnID {
	if a := c.takes(id); a != nil {
		return a.conns
	}
	return nil
}

// WantsTiers says whether a connection asked for every tier.
func (c *Core) WantsTiers(id ConnID) bool { return c.conns[id] != nil && c.conns[id].tiers }

// Boards are the connections that watch everything.
func (c *Core) Boards() []ConnID {
	out := make([]ConnID, 0, len(c.boards))
	for id := range c.boards {
		out = append(out, id)
	}
	return out
}

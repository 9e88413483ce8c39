package sim

import (
	"fmt"
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
)

// client is an agent's process beside a node: it connects, is given mail, handles each message once, and acknowledges.
type client struct {
	w        *World
	i        int
	id       protocol.AgentID
	at       *node
	conn     hub.ConnID // 0: none
	attached bool
	away     time.Duration // not connected before
	late     bool          // acknowledges when it is told to hurry
	over     bool          // its name is another's: it has given up

	given   map[protocol.Digest]hub.Ref // by identity: the record that it was given
	last    map[writer]hub.Ref          // the newest that it was given of each
	handled map[protocol.Digest]int
	unacked []unacked
	work    []protocol.Envelope // Delegates that it has
}

type unacked struct {
	id   protocol.MsgID
	from protocol.AgentID // as it was shown
	said protocol.Digest
}

func agentName(i int) protocol.AgentID { return protocol.AgentID(fmt.Sprintf("agent-%c", 'a'+i%26)) }

func newClient(w *World, i int) *client {
	c := &client{w: w, i: i, id: agentName(i), at: w.nodes[i%len(w.nodes)], late: w.chance(w.Plan.Lazy),
		given: map[protocol.Digest]hub.Ref{}, last: map[writer]hub.Ref{}, handled: map[protocol.Digest]int{}}
	if i >= 26 {
		c.id += protocol.AgentID(fmt.Sprint(i))
	}
	return c
}

func (c *client) attach(id hub.ConnID, t hub.Token) hub.Attach {
	return hub.Attach{Conn: id, Agent: c.id, Name: string(c.id), Role: protocol.RoleLocal, Client: "ws", AckLayer: true, Token: t}
}

// askWait is how long who asks for a claim waits for the answer.
const askWait = 10 * time.Second

// leanTurn is how often a client of a long run says what it has dealt with.
const leanTurn = 200 * time.Millisecond

const reconnectEvery = 900 * time.Millisecond

// live connects whenever the client is not connected and may be.
func (c *client) live() {
	if c.over {
		return
	}
	if c.conn == 0 && (c.w.now >= c.away || c.w.calm) {
		c.connect()
	}
	c.w.after(c.w.between(reconnectEvery/2, reconnectEvery*2), c.live)
}

func (c *client) connect() {
	p := c.at.p
	if p == nil || c.at.suspended() || c.over {
		return
	}
	p.lastID++
	id := p.lastID
	c.conn = id
	p.post(func() {
		if c.conn != id {
			return
		}
		p.conns[id] = c
		p.core.Step(p.now, c.attach(id, p.expect(func(t hub.Told) { c.answered(p, id, t) })))
	})
}

func (c *client) answered(p *proc, id hub.ConnID, t hub.Told) {
	if c.conn != id || c.at.p != p {
		return
	}
	if t.Refusal == nil {
		c.attached = true
		return
	}
	delete(p.conns, id)
	c.conn = 0
	switch t.Refusal.Code {
	case protocol.CodeIdentityMismatch:
		if k, ok := p.core.Agent(second(c.id)); ok && k.Here {
			c.id = second(c.id) // of two of one name it was the later
			return
		}
		if len(c.given) == 0 {
			c.over = true
		}
	case protocol.CodeAgentRenamed:
		c.id = p.core.Now(c.id)
	}
}

func second(id protocol.AgentID) protocol.AgentID { return id + "-2" }

// lost says that the connection is gone.
func (c *client) lost() { c.conn, c.attached = 0, false }

// leave ends the connection, as the client wants it.
func (c *client) leave() {
	p, id := c.at.p, c.conn
	c.lost()
	if p == nil || id == 0 {
		return
	}
	p.post(func() {
		delete(p.conns, id)
		p.core.Step(p.now, hub.Detach{Conn: id})
	})
}

// carried takes a delivery along the socket.
func (c *client) carried(p *proc, conn hub.ConnID, ref hub.Ref, env protocol.Envelope, id protocol.Digest) {
	c.w.after(c.w.between(time.Millisecond, 5*time.Millisecond), func() {
		if p.gone || c.conn != conn || c.at.p != p {
			return
		}
		p.post(func() { p.core.Step(p.now, hub.Taken{Conn: conn, Refs: []hub.Ref{ref}}) })
		c.receive(env, id)
	})
}

// receive takes a message as it is shown; id is that under which it was said.
func (c *client) receive(env protocol.Envelope, id protocol.Digest) {
	if c.w.lean {
		c.w.Stats.Handled++
		c.w.after(leanTurn-c.w.now%leanTurn, func() { c.ack(unacked{env.ID, env.From, id}) })
		return
	}
	c.handled[id]++
	if c.handled[id] == 1 {
		c.w.Stats.Handled++
		if env.Intent == protocol.Delegate {
			c.work = append(c.work, env)
		}
		if env.Intent == "HandoffRequested" {
			c.handsOver()
		}
	}
	c.unacked = append(c.unacked, unacked{env.ID, env.From, id})
	wait := c.w.between(time.Millisecond, 200*time.Millisecond)
	if c.late && !c.w.calm {
		wait += c.w.between(0, 30*time.Second)
	}
	c.w.after(wait, func() { c.ack(unacked{env.ID, env.From, id}) })
}

// ack vouches for a message, if there is a connection to say so by.
func (c *client) ack(u unacked) {
	p, conn := c.at.p, c.conn
	if p == nil || !c.attached {
		return // the message comes again
	}
	if !c.w.lean {
		c.w.ledger.acks[u.said] = true
	}
	c.w.note('A', c.i, c.at.i, uint64(len(u.id)))
	p.post(func() {
		if p.conns[conn] == c {
			p.core.Step(p.now, hub.Acked{Agent: c.id, Of: u.id, From: u.from, Processed: true})
		}
	})
}

// say sends a message through a node; the answer is what the ledger goes by.
func (w *World) say(n *node, c *client, env protocol.Envelope) {
	p := n.p
	if p == nil || n.suspended() {
		return
	}
	in := hub.Say{Env: env}
	if c != nil {
		in.Conn, in.As = c.conn, c.id
	}
	p.post(func() {
		if p.n.disk.Full {
			return // the shell asks before it lets a message in
		}
		if c != nil && (p.conns[in.Conn] != c || !c.attached) {
			return
		}
		in.Token = p.expect(func(t hub.Told) { w.ledger.answered(n, in.As, env, t) })
		p.core.Step(p.now, p.said(in))
	})
}

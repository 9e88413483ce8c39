package sim

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
)

// uttered is a message as it was said first, so that it can be said again.
type uttered struct {
	c   *client // nil: a person
	n   *node
	env protocol.Envelope
}

func (w *World) newID() protocol.MsgID {
	l := &w.ledger
	l.ids++
	return protocol.MsgID(fmt.Sprintf("%08x-0000-7000-8000-%012x", w.Plan.Seed&0xffffffff, l.ids))
}

// do carries out one action of the plan.
func (w *World) do(a Action) {
	w.note('!', a.A, a.B, uint64(a.N))
	n, m := w.nodes[a.A%len(w.nodes)], w.nodes[a.B%len(w.nodes)]
	c, d := w.clients[a.A%len(w.clients)], w.clients[a.B%len(w.clients)]
	w.logf("do %s", a)
	if w.fails(a, n, m) || w.Plan.Office && w.contend(a, n, c, d) {
		return
	}
	switch a.Do {
	case Say:
		intent := []protocol.Intent{protocol.Delegate, "Request", "Inform", protocol.Cancel}[a.N%4]
		w.utter(c, c.at, protocol.Envelope{To: d.id, Intent: intent, Value: fmt.Appendf(nil, `{"text":"%d"}`, a.N)})
	case Person:
		w.utter(nil, n, protocol.Envelope{To: d.id, Intent: protocol.Delegate, Value: fmt.Appendf(nil, `{"text":"%d"}`, a.N)})
	case Again:
		w.again(a, n)
	case Report:
		if len(c.work) > 0 {
			of := c.work[a.N%len(c.work)]
			status := []string{`"in_progress"`, `"done","outcome":"done"`, `"blocked"`, `"blocked","outcome":"failed"`}[a.B%4]
			w.utter(c, c.at, protocol.Envelope{To: of.From, Intent: protocol.WorkerReport, Re: of.ID, Value: fmt.Appendf(nil, `{"status":%s,"summary":"%d"}`, status, a.N)})
		}
	case Away:
		c.leave()
		c.away = w.now + a.For
	case Back:
		c.leave()
		c.connect()
	case Rename:
		w.rename(c, a)
	case Twin:
		t := newClient(w, len(w.clients))
		t.id, t.at = d.id, n
		w.clients = append(w.clients, t)
		t.live()
	case RoomOpen, RoomSay, RoomEnd:
		w.room(a, n, c, d)
	case Join:
		w.joinNext(n)
	case Revoke:
		w.revokes(n, m)
	}
}

func (w *World) utter(c *client, n *node, env protocol.Envelope) {
	env.ID = w.newID()
	w.ledger.said = append(w.ledger.said, uttered{c, n, env})
	w.logf("   %s from %v to %q: %s", env.ID[24:], n.i, env.To, env.Intent)
	w.say(n, c, env)
}

// again says something a second time: an agent by its own connection, a person through any node.
func (w *World) again(a Action, n *node) {
	if len(w.ledger.said) == 0 {
		return
	}
	u := w.ledger.said[a.N%len(w.ledger.said)]
	if u.c != nil {
		n = u.c.at
	}
	w.say(n, u.c, u.env)
}

func (w *World) rename(c *client, a Action) {
	p := c.at.p
	if p == nil || c.i == 0 {
		return
	}
	to := protocol.AgentID(fmt.Sprintf("%s-was-%d", agentName(c.i), a.N%7))
	c.leave()
	c.away = w.now + 2*time.Second
	old := c.id
	p.post(func() {
		p.core.Step(p.now, hub.Rename{Agent: old, To: to, Token: p.expect(func(t hub.Told) {
			if t.Refusal == nil {
				c.id = to
				w.ledger.moved[protocol.FoldAgentID(old)] = true
				w.ledger.moved[protocol.FoldAgentID(to)] = true
			}
		})})
	})
}

func (w *World) room(a Action, n *node, c, d *client) {
	l := &w.ledger
	switch {
	case a.Do == RoomOpen:
		w.utter(c, c.at, protocol.Envelope{Intent: "RoomCreate", Value: protocol.EncodeBody(map[string]any{"topic": "t", "participants": []protocol.AgentID{d.id}})})
		env := l.said[len(l.said)-1].env
		env.From = c.id
		l.rooms = append(l.rooms, protocol.RoomID("rt-"+env.Identity().String()[:12]))
	case len(l.rooms) == 0:
	case a.Do == RoomSay:
		w.utter(c, c.at, protocol.Envelope{Room: l.rooms[a.N%len(l.rooms)], Intent: "Inform", Value: fmt.Appendf(nil, `{"text":"%d"}`, a.N)})
	default:
		w.utter(nil, n, protocol.Envelope{Room: l.rooms[a.N%len(l.rooms)], Intent: "RoomClose"})
	}
}

// joinNext brings the next newcomer in.
func (w *World) joinNext(by *node) {
	for _, n := range w.nodes {
		if !n.inMesh {
			w.joins(n, by)
			return
		}
	}
}

// revokes ends the membership of a node, unless too few would be left.
func (w *World) revokes(by, n *node) {
	if by.p == nil || by == n || by.out || n.out || !by.role.Inside() || n.i == 0 || w.insiders() < 4 && n.role.Inside() {
		return
	}
	p := by.p
	p.post(func() {
		if _, ok := p.roster().Member(n.peer); !ok || !p.roster().Issuer(by.peer) || n.out {
			return
		}
		n.doomed = true
		p.n.w.logf("node %d revokes node %d", by.i, n.i)
		p.core.Step(p.now, hub.Author{Scope: protocol.ScopeInside, Kind: protocol.KindRevoke, Token: p.expect(func(t hub.Told) { n.out = n.out || t.Refusal == nil }),
			Body: protocol.EncodeBody(protocol.RevokeBody{Peer: n.peer, Cuts: p.cutsOf(n.peer), Reason: "revoked"})})
	})
}

func (w *World) insiders() (count int) {
	for _, n := range w.nodes {
		if n.inMesh && !n.out && n.role.Inside() {
			count++
		}
	}
	return count
}

// fails carries out an action that is a fault; false: it is none.
func (w *World) fails(a Action, n, m *node) bool {
	until := w.now + a.For
	switch a.Do {
	case Crash:
		if n.p == nil {
			return true
		}
		if n.crash = crashPoint(a.N % int(crashPoints)); n.crash == nowhere {
			n.kill("at once")
			n.startIn(a.For / 2)
			return true
		}
		w.after(2*time.Second, func() { n.crash = nowhere })
		n.startAfterCrash(a.For / 2)
	case Stop:
		n.stop()
		n.startIn(a.For)
	case Suspend:
		n.sleeps(until)
	case Jump:
		n.jumps(w.Plan.Skew * time.Duration(a.N%201-100) / 100)
	case Cut:
		w.network.cut[n.i][m.i] = until
	case Split:
		w.network.split = until
		for i := range w.nodes {
			w.network.groups[i] = a.N >> (i % 16) & 1
		}
	case Slow:
		w.network.slow[n.i] = until
	case Drop:
		if l, _ := w.linkOf(n.i, m.i); l != nil && n != m {
			w.disconnect(l)
		}
	case Full:
		n.full = until
		w.Stats.Fulls++
	case Fail:
		n.disk.Fails = true
	case Drag:
		n.slow = until
	case Short:
		n.short, n.missed = until, true
	case Restore:
		n.restoreOld(a)
	default:
		return false
	}
	return true
}

// startAfterCrash starts the process again once it has died at its point, or of anything else.
func (n *node) startAfterCrash(d time.Duration) {
	n.w.after(2*time.Second, func() {
		if n.p == nil && n.inMesh && n.planned == 0 {
			n.startIn(d)
		}
	})
}

// stop ends the process in order: what it has written is synced.
func (n *node) stop() {
	if n.p == nil || n.p.busy {
		return
	}
	n.p.checkpoint()
	n.w.logf("node %d stops", n.i)
	n.end()
}

// restoreOld puts an older copy in the place of the disk.
func (n *node) restoreOld(a Action) {
	if len(n.copies) == 0 || !n.inMesh {
		return
	}
	if n.p != nil {
		n.kill("to be restored")
	}
	old := n.copies[(a.N+bits.Len(uint(a.B)))%len(n.copies)]
	n.w.logf("node %d is restored from a copy of %v", n.i, old.at)
	n.w.Stats.Restores++
	n.past = append(n.past, n.disk)
	n.disk, n.home = old.disk.Copy(), old.home
	n.w.ledger.restored(n)
	n.w.contest.end(n)
	n.startIn(a.For / 4)
}

package sim

import (
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/member"
)

const (
	prelude    = 6 * time.Second  // the first members meet
	settleStep = 20 * time.Second // a comparison and more
	settleMax  = 15               // steps
	copyEvery  = 7 * time.Second
	muteSteps  = int(protocol.VoterAbsence/settleStep) + 5
)

// Run lets the plan happen, heals everything, and judges. The Violation, if any, is w's too.
func (w *World) Run() *Violation {
	w.found()
	w.calm = true
	w.runUntil(prelude)
	w.calm = false
	for _, a := range w.Plan.Actions {
		w.after(prelude+a.At-w.now, func() { w.do(a) })
	}
	w.keepCopies()
	w.runUntil(prelude + w.Plan.Length)
	w.settle()
	if w.Plan.Aged {
		w.age()
	}
	return w.Violation
}

// found makes the mesh and brings the first members in.
func (w *World) found() {
	n := w.nodes[0]
	chain, r := member.Found(w.mesh.key, member.Admit{Peer: n.peer, Name: n.name, Role: protocol.RoleLocal}, n.wall())
	if r != nil {
		w.fail("a mesh is founded", "%v", r)
		return
	}
	n.home = home{chain: member.EncodeChain(chain), founder: true}
	n.inMesh = true
	n.boot()
	for _, m := range w.nodes[1 : len(w.nodes)-w.Plan.Late] {
		w.after(w.between(300*time.Millisecond, 1500*time.Millisecond), func() { w.joins(m, n) })
	}
	for _, c := range w.clients {
		w.after(w.between(0, 2*time.Second), c.live)
	}
	w.after(redialEvery, w.redial)
}

func (w *World) keepCopies() {
	if w.calm {
		return
	}
	for _, n := range w.nodes {
		n.keep()
	}
	w.after(copyEvery, w.keepCopies)
}

// settle heals everything and waits until the nodes agree; then it judges what is there.
func (w *World) settle() {
	if w.Violation != nil {
		return
	}
	w.logf("everything is healed")
	w.calm, w.mended = true, true
	w.network.heal()
	for _, n := range w.nodes {
		n.asleep, n.slow, n.short, n.full, n.crash = 0, 0, 0, 0, nowhere
		n.disk.Fails, n.disk.Full, n.disk.Short = false, false, false
		if n.inMesh && n.p == nil {
			n.planned = 0
			n.startIn(w.between(0, time.Second))
		} else if n.p != nil {
			n.p.dirty = true
			n.p.arrange(0)
		}
	}
	for _, c := range w.clients {
		c.away = 0
		for _, u := range c.unacked {
			w.after(w.between(0, 2*time.Second), func() { c.ack(u) })
		}
	}
	var b *broken
	for step := 0; step < settleMax || w.mute() && step < settleMax+muteSteps; step++ {
		w.runUntil(w.now + settleStep)
		if w.Violation != nil {
			return
		}
		w.strays()
		if b = w.converged(); b == nil {
			break
		}
	}
	if b == nil {
		b = w.sound()
	}
	if b != nil {
		w.fail(b.rule, "%s", b.what)
	}
}

// strays finds the nodes that are no members after all: they were let in by one that was revoked, or whose disk was
// replaced by a copy that does not know of it, or whoever revoked them died before it could say so.
func (w *World) strays() {
	founder := w.nodes[0].p
	for again := founder != nil; again; {
		again = false
		for _, n := range w.nodes[1:] {
			if n.out || !n.inMesh {
				continue
			}
			if m, ok := founder.roster().Member(n.peer); !ok && (n.by.out || len(n.by.past) > 0) || m.Revoked && n.doomed {
				n.out, again = true, true
			}
		}
	}
}

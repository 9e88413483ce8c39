package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/node/turn"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
)

// shell is the process as the office knows it: what officeShell is in package node.
type shell struct{ p *proc }

func (s shell) Now() time.Time          { return s.p.now }
func (s shell) Moment() protocol.Moment { return s.p.n.moment() }
func (s shell) Dice() uint64            { return s.p.n.w.odds.Uint64() }
func (s shell) NewID() protocol.MsgID   { return s.p.n.w.newID() }

func (s shell) Cores() (*hub.Core, *board.State, *replica.Replica) {
	return s.p.core, s.p.board, s.p.rep
}

func (s shell) Members() turn.Members { return turn.MembersOf(s.p.known()) }

func (s shell) Inside(peer protocol.PeerID) bool { return s.p.standing(peer) == insider }
func (s shell) Linked(peer protocol.PeerID) bool { return s.p.peers[peer] != nil }
func (s shell) Name(peer protocol.PeerID) string { return string(peer) }
func (s shell) Runs(session string) bool         { return s.p.n.w.contest.sessions[session] }
func (s shell) Value(key string, v []byte)       { s.p.value(key, v) }

func (s shell) Own() protocol.AgentID {
	for _, c := range s.p.n.w.clients {
		if c.at == s.p.n && !c.over {
			return c.id
		}
	}
	return ""
}

func (s shell) Stored(key string) ([]byte, error) {
	if key == turn.KeyClaimsKnown && s.p.n.w.hasty {
		t := s.p.office.Status().Term
		return []byte(t.String() + string(t.Peer)), nil
	}
	raw, _, err := s.p.n.disk.Value(key)
	return raw, err
}

func (s shell) Send(peer protocol.PeerID, f meshwire.Frame) {
	s.p.sendTo(peer, f)
}

func (s shell) Durable(f func(error)) { s.p.later = append(s.p.later, f) }
func (s shell) Voted()                { s.p.n.home.voted = true }

// moment is what both clocks of the machine say. Up begins anew with a boot and, on half of the machines, sleeps with it.
func (n *node) moment() protocol.Moment {
	w := n.w
	wall := n.wall()
	if n.p != nil {
		wall = n.p.today()
	}
	up := w.now - n.booted - n.slept
	return protocol.Moment{Wall: wall.UnixMilli(), Up: time.Hour + up + time.Duration(float64(up)*n.drift), Boot: fmt.Sprint("boot ", n.boots)}
}

// sleeps suspends the machine.
func (n *node) sleeps(until time.Duration) {
	if until <= n.asleep {
		return
	}
	if n.deaf {
		n.slept += until - max(n.asleep, n.w.now)
	}
	n.asleep = until
}

// reboots ends all processes of the machine, those that hold claims too. Call it while the node is not running.
func (n *node) reboots() {
	n.boots++
	n.booted, n.slept = n.w.now, 0
	n.w.contest.end(n)
}

// restoreOffice is loop.restoreOffice.
func (p *proc) restoreOffice() {
	if !p.n.w.Plan.Office {
		return
	}
	if p.office == nil {
		_, kept, _ := p.n.disk.Value(turn.KeyElection)
		p.office = turn.NewOffice(p.n.peer, p.n.home.voted && !kept, shell{p})
	}
	if err := p.office.Restore(p.inside); err != nil {
		p.n.w.fail("votes and claims are read", "node %d: %v", p.n.i, err)
	}
}

// settleOffice is loop.settleOffice.
func (p *proc) settleOffice() {
	if p.office == nil || !p.office.Open() {
		return
	}
	if s := p.office.Settle(); s.Took != nil {
		p.n.w.contest.took(p, s.Took)
	}
}

// officeDue is when the office has something to do; zero: never.
func (p *proc) officeDue() time.Time {
	if p.office == nil {
		return time.Time{}
	}
	return p.office.Due()
}

// settleLater tells those who waited whether the turn is durable.
func (p *proc) settleLater(err error) {
	later := p.later
	p.later = nil
	for _, f := range later {
		f(err)
	}
}

// mainNode is the node that acts as main by its own word; nil: none, or several do.
func (w *World) mainNode() *node {
	var found *node
	for _, n := range w.nodes {
		if n.p == nil || n.p.office == nil || !n.p.office.Status().Main {
			continue
		}
		if found != nil {
			return nil
		}
		found = n
	}
	return found
}

// insideLinked are the inside members that a process is linked to.
func (p *proc) insideLinked() []protocol.PeerID {
	return slices.DeleteFunc(p.linked(), func(peer protocol.PeerID) bool { return p.standing(peer) != insider })
}

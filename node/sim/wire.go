package sim

import (
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
)

// network is what holds between the machines.
type network struct {
	w      *World
	cut    [][]time.Duration // from, to: nothing goes before
	slow   []time.Duration   // a node's links are slow before
	groups []int             // of a split
	split  time.Duration     // holds before
	links  int
}

func (x *network) init(w *World) {
	x.w = w
	n := w.Plan.Nodes
	x.cut, x.slow, x.groups = make([][]time.Duration, n), make([]time.Duration, n), make([]int, n)
	for i := range x.cut {
		x.cut[i] = make([]time.Duration, n)
	}
}

// passes says whether a frame gets from one machine to another now.
func (x *network) passes(from, to int) bool {
	return !(x.w.now < x.split && x.groups[from] != x.groups[to]) && x.w.now >= x.cut[from][to]
}

func (x *network) heal() {
	x.split = 0
	clear(x.slow)
	for i := range x.cut {
		clear(x.cut[i])
	}
}

// link is one connection of two nodes. It keeps order, but for what the plan says.
type link struct {
	no     int
	ends   [2]int
	gone   bool
	last   [2]time.Duration // arrival of the newest frame, by direction
	queued [2]int
	silent [2]time.Duration // since when nothing came through, by direction; zero: it does
}

const (
	redialEvery = 1500 * time.Millisecond
	killedAfter = 30 * time.Millisecond // until the other end of a killed process's link is told
)

// redial looks which nodes should be linked and are not.
func (w *World) redial() {
	for a := range w.nodes {
		for b := a + 1; b < len(w.nodes); b++ {
			if l := w.links[[2]int{a, b}]; l == nil {
				w.connect(a, b)
			} else {
				w.listen(l)
			}
		}
	}
	w.after(redialEvery, w.redial)
}

// listen ends a link that was silent in a direction for PingDead.
func (w *World) listen(l *link) {
	for d := range 2 {
		from, to := l.ends[d], l.ends[1-d]
		switch {
		case w.network.passes(from, to) && !w.nodes[from].suspended():
			l.silent[d] = 0
		case l.silent[d] == 0:
			l.silent[d] = w.now
		case w.now-l.silent[d] > protocol.PingDead:
			w.disconnect(l)
			return
		}
	}
}

// connect links two nodes that know one another. A node that the other does not know yet shows its certificate.
func (w *World) connect(a, b int) {
	x, y := w.nodes[a], w.nodes[b]
	if x.p == nil || y.p == nil || x.suspended() || y.suspended() || !w.network.passes(a, b) || !w.network.passes(b, a) {
		return
	}
	if w.chance(0.3) && !w.calm {
		return // it was not looked at yet
	}
	if !x.p.dials[y.peer] && !y.p.dials[x.peer] {
		return
	}
	if !x.p.standing(y.peer).member() {
		x.p.post(func() { x.p.seed(y.peer, y.home.chain) })
		return
	}
	if !y.p.standing(x.peer).member() {
		y.p.post(func() { y.p.seed(x.peer, x.home.chain) })
		return
	}
	w.network.links++
	l := &link{no: w.network.links, ends: [2]int{a, b}}
	w.links[[2]int{a, b}] = l
	w.logf("link %d-%d is up", a, b)
	w.note('L', a, b, uint64(l.no))
	x.p.post(func() { x.p.linkUp(y) })
	y.p.post(func() { y.p.linkUp(x) })
}

// disconnect ends a link: what is on its way is lost, and the ends hear of it.
func (w *World) disconnect(l *link) {
	if l.gone {
		return
	}
	l.gone = true
	a, b := l.ends[0], l.ends[1]
	delete(w.links, l.ends)
	w.logf("link %d-%d is down", a, b)
	w.note('D', a, b, uint64(l.no))
	for _, end := range [2][2]int{{a, b}, {b, a}} {
		at, other := w.nodes[end[0]], w.nodes[end[1]]
		if p := at.p; p != nil {
			p.post(func() { p.linkDown(other) })
		}
	}
}

// linkOf is the link of two nodes and the direction from the first to the second.
func (w *World) linkOf(from, to int) (*link, int) {
	if from < to {
		return w.links[[2]int{from, to}], 0
	}
	return w.links[[2]int{to, from}], 1
}

// send puts a frame on its way. False: there is no link, or its queue is full.
func (w *World) send(from, to *node, f meshwire.Frame, bytes int) bool {
	l, d := w.linkOf(from.i, to.i)
	if l == nil || l.queued[d]+bytes > protocol.LinkQueueBytesMax {
		return false
	}
	w.outsiderSees(from, to, f)
	w.Stats.Frames++
	if !w.calm && w.chance(w.Plan.Loss) {
		return true
	}
	copies := 1
	if !w.calm && w.chance(w.Plan.Twice) {
		copies = 2
	}
	for range copies {
		w.carry(l, d, from, to, f, bytes)
	}
	return true
}

func (w *World) carry(l *link, d int, from, to *node, f meshwire.Frame, bytes int) {
	delay := w.between(w.Plan.Delay/2, w.Plan.Delay*2)
	if slow := w.network.slow; w.now < slow[from.i] || w.now < slow[to.i] {
		delay += 400*time.Millisecond + time.Duration(bytes)*20*time.Microsecond
	}
	at := w.now + delay
	if w.calm || !w.chance(w.Plan.Reorder) {
		at = max(at, l.last[d])
		l.last[d] = at
	}
	l.queued[d] += bytes
	w.after(at-w.now, func() { w.arrive(l, d, from, to, f, bytes) })
}

// arrive gives a frame to the node at the end of its link. What a cut holds up comes when it ends, if the link lives.
func (w *World) arrive(l *link, d int, from, to *node, f meshwire.Frame, bytes int) {
	if l.gone || to.p == nil {
		return
	}
	if !w.network.passes(from.i, to.i) {
		w.after(w.between(200*time.Millisecond, time.Second), func() { w.arrive(l, d, from, to, f, bytes) })
		return
	}
	l.queued[d] -= bytes
	w.note('F', from.i, to.i, uint64(f.Type())<<32|uint64(bytes))
	if w.Plan.Codec {
		if f = w.recoded(f); f == nil {
			return
		}
	}
	p := to.p
	p.frame(from, f)
}

// recoded sends a frame through the real encoding.
func (w *World) recoded(f meshwire.Frame) meshwire.Frame {
	raw, err := meshwire.Encode(f)
	if err != nil {
		w.fail("frames encode", "type %d: %v", f.Type(), err)
		return nil
	}
	out, err := meshwire.Decode(raw[4], raw[5:])
	if err != nil {
		w.fail("frames decode", "type %d: %v", f.Type(), err)
		return nil
	}
	return out
}

package replica

import (
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// world is a mesh of replicas in one loop: links that keep order, take time and lose what they carry when they are cut;
// stores that are slices. It is as dumb as can be, so that it can be believed.
type world struct {
	t     testing.TB
	rng   *rand.Rand
	now   time.Time
	nodes []*node
	byID  map[protocol.PeerID]*node
	wires map[[2]int]*wire // from, to
	loss  float64          // of Records frames on a living link
	twice float64          // of Records frames that come twice
	sent  int              // records sent, repeats included
	taken int
	trace []string
	older bool // some store was replaced by an older copy
	scale int  // what a byte counts for, so that small records fill large windows
}

type node struct {
	w       *world
	at      int
	id      protocol.PeerID
	inside  bool
	starts  uint64
	rep     *Replica
	logs    map[protocol.LogID][]protocol.Record
	asked   map[string]bool // peer and log that this node was asked for
	forks   []Fork
	gaps    int
	repeats int
	wake    time.Time // of the last Next
}

type wire struct {
	queue []packet
}

type packet struct {
	at      time.Time
	vector  *Vector
	records []protocol.Record
	have    []Mark
	need    *Need
}

func peerFor(name string) protocol.PeerID {
	seed := sha256.Sum256([]byte(name))
	return protocol.PeerIDOf(ed25519.NewKeyFromSeed(seed[:]).Public().(ed25519.PublicKey))
}

var peerNames = func() (out []protocol.PeerID) {
	for i := range 12 {
		out = append(out, peerFor(fmt.Sprint("node", i)))
	}
	return out
}()

func newWorld(t testing.TB, seed int64, inside, outside int) *world {
	w := &world{t: t, rng: rand.New(rand.NewSource(seed)), now: time.UnixMilli(1_700_000_000_000),
		byID: map[protocol.PeerID]*node{}, wires: map[[2]int]*wire{}, scale: 1}
	for i := range inside + outside {
		n := &node{w: w, at: i, id: peerNames[i], inside: i < inside, logs: map[protocol.LogID][]protocol.Record{}, asked: map[string]bool{}}
		w.nodes = append(w.nodes, n)
		w.byID[n.id] = n
	}
	for _, n := range w.nodes {
		n.boot()
	}
	return w
}

// see is the rule of scopes: inside members see all, an outsider its own and the rooms, all of which it is in.
func (w *world) see(viewer protocol.PeerID, s protocol.Scope) bool {
	if w.byID[viewer].inside {
		return true
	}
	if p, ok := s.Outsider(); ok {
		return p == viewer
	}
	_, _, room := s.Room()
	return room
}

func (w *world) maySee(n *node, l protocol.LogID) bool { return n.id == l.Peer || w.see(n.id, l.Scope) }

func (n *node) boot() {
	n.starts++
	var heads []Head
	for id, rs := range n.logs {
		heads = append(heads, Head{id, uint64(len(rs)), rs[len(rs)-1].Hash()})
	}
	slices.SortFunc(heads, func(a, b Head) int { return cmp.Compare(a.Log.String(), b.Log.String()) })
	n.rep = New(n.id, heads, n.w.see)
}

func (n *node) log(s protocol.Scope) protocol.LogID {
	return protocol.LogID{Peer: n.id, Start: protocol.Start{At: protocol.HLC(n.starts), Rand: uint64(n.at)}, Scope: s}
}

// write commits count records of size bytes to a log of this node.
func (n *node) write(s protocol.Scope, count, size int) {
	id := n.log(s)
	rs := n.logs[id]
	for i := range count {
		r := protocol.Record{Log: id, Seq: uint64(len(rs)) + 1, At: protocol.HLC(len(rs) + 1), Kind: "msg", Body: make([]byte, size)}
		if len(rs) > 0 {
			r.Prev = rs[len(rs)-1].Hash()
		}
		if i == count-1 {
			r.Sig = []byte{1}
		}
		rs = append(rs, r)
	}
	n.logs[id] = rs
	n.rep.Committed(n.w.now, Commit{Log: id, Seq: uint64(len(rs)), Hash: rs[len(rs)-1].Hash(), Bytes: count * (size + 100) * n.w.scale})
	n.flush()
}

func (w *world) logf(format string, args ...any) {
	w.trace = append(w.trace, w.now.Format("05.000 ")+fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	for _, line := range w.trace[max(0, len(w.trace)-60):] {
		w.t.Log(line)
	}
	w.t.Fatalf(format, args...)
}

func (w *world) linked(a, b int) bool { return w.wires[[2]int{a, b}] != nil }

func (w *world) up(a, b int) {
	if a == b || w.linked(a, b) {
		return
	}
	w.logf("link %d-%d up", a, b)
	w.wires[[2]int{a, b}], w.wires[[2]int{b, a}] = &wire{}, &wire{}
	w.nodes[a].rep.LinkUp(w.now, w.nodes[b].id, w.nodes[b].inside)
	w.nodes[b].rep.LinkUp(w.now, w.nodes[a].id, w.nodes[a].inside)
	w.nodes[a].flush()
	if w.linked(a, b) {
		w.nodes[b].flush()
	}
}

func (w *world) down(a, b int) {
	if !w.linked(a, b) {
		return
	}
	w.logf("link %d-%d down", a, b)
	delete(w.wires, [2]int{a, b})
	delete(w.wires, [2]int{b, a})
	w.nodes[a].rep.LinkDown(w.nodes[b].id)
	w.nodes[b].rep.LinkDown(w.nodes[a].id)
}

// put sends a packet after a delay; order on a wire holds.
func (n *node) put(to protocol.PeerID, p packet) {
	w := n.w
	q := w.wires[[2]int{n.at, w.byID[to].at}]
	if q == nil {
		w.fail("node %d sends to %d without a link", n.at, w.byID[to].at)
	}
	p.at = w.now.Add(time.Duration(1+w.rng.Intn(20)) * time.Millisecond)
	if k := len(q.queue); k > 0 && q.queue[k-1].at.After(p.at) {
		p.at = q.queue[k-1].at
	}
	q.queue = append(q.queue, p)
}

// flush does what Ready says until there is nothing, and holds Ready to its word.
func (n *node) flush() {
	for range 10_000 {
		rd := n.rep.Ready(n.w.now)
		if rd.Empty() {
			if n.wake = n.rep.Next(); !n.wake.IsZero() && !n.wake.After(n.w.now) {
				n.w.fail("node %d: Ready is empty, but Next is %v ago", n.at, n.w.now.Sub(n.wake))
			}
			return
		}
		n.forks = append(n.forks, rd.Forks...)
		for _, v := range rd.Vectors {
			n.checkVector(v)
			n.put(v.Peer, packet{vector: &v.Vector})
		}
		for _, x := range rd.Need {
			n.put(x.Peer, packet{need: &x.Need})
		}
		for _, h := range rd.Have {
			for _, m := range h.Marks {
				if uint64(len(n.logs[m.Log])) < m.Seq {
					n.w.fail("node %d confirms what it does not hold", n.at)
				}
			}
			n.put(h.Peer, packet{have: h.Marks})
		}
		for _, s := range rd.Send {
			n.serve(s)
		}
	}
	n.w.fail("node %d: Ready never ends", n.at)
}

func (n *node) checkVector(v VectorTo) {
	for _, m := range v.Vector.Marks {
		if !n.w.maySee(n.w.byID[v.Peer], m.Log) {
			n.w.fail("node %d names log %s to %d, who may not see it", n.at, m.Log, n.w.byID[v.Peer].at)
		}
	}
}

// serve reads a range from the store: whole commits, at least one, within its bytes.
func (n *node) serve(s Range) {
	to := n.w.byID[s.Peer]
	rs := n.logs[s.Log]
	if !n.w.maySee(to, s.Log) {
		n.w.fail("node %d sends %s to %d, who may not see it", n.at, s.Log, to.at)
	}
	if !n.inside && s.Log.Peer != n.id && !n.asked[string(s.Peer)+s.Log.String()] {
		n.w.fail("outside node %d passes %s on unasked", n.at, s.Log)
	}
	if s.From == 0 || s.From > s.To || s.To > uint64(len(rs)) {
		n.w.fail("node %d: range %d to %d of %d records", n.at, s.From, s.To, len(rs))
	}
	bytes, end := 0, uint64(0)
	for seq := s.From; seq <= uint64(len(rs)); seq++ {
		r := &rs[seq-1]
		bytes += (len(r.Body) + 100) * n.w.scale
		if len(r.Sig) > 0 {
			if end > 0 && !s.Live && bytes > s.Bytes {
				break
			}
			if end = seq; end >= s.To {
				break
			}
		}
	}
	if end > s.To && !s.Proof {
		n.w.fail("node %d: range to %d does not end at a commit", n.at, s.To)
	}
	part := rs[s.From-1 : end]
	n.w.sent += len(part)
	n.w.logf("%d -> %d: %s/%d %d..%d live=%v", n.at, to.at, s.Log.Peer.Short(), s.Log.Start.At, s.From, end, s.Live)
	if n.w.rng.Float64() >= n.w.loss {
		n.put(s.Peer, packet{records: part})
		if n.w.rng.Float64() < n.w.twice {
			n.put(s.Peer, packet{records: part})
		}
	}
	if !s.Proof {
		n.rep.Sent(s.Peer, s.Log, end, bytes)
	}
}

// take handles one packet; what is taken is committed by the caller.
func (n *node) take(from protocol.PeerID, p packet) *Commit {
	switch {
	case p.vector != nil:
		n.rep.Compared(n.w.now, from, *p.vector)
	case p.have != nil:
		n.rep.Confirmed(n.w.now, from, p.have)
	case p.need != nil:
		n.asked[string(from)+p.need.Log.String()] = true
		n.rep.Wanted(n.w.now, from, *p.need)
	default:
		o := n.rep.Offered(n.w.now, from, p.records)
		n.w.logf("   %d: %s/%d %d.. %v", n.at, p.records[0].Log.Peer.Short(), p.records[0].Log.Start.At, p.records[0].Seq, o.Verdict)
		switch o.Verdict {
		case Gap:
			n.gaps++
		case Repeat:
			n.repeats++
		case Take:
			return n.append(from, o)
		}
	}
	return nil
}

// append stores what was taken, and finds out if it was not the very next.
func (n *node) append(from protocol.PeerID, o Offer) *Commit {
	bytes := 0
	id := o.Take[0].Log
	for _, r := range o.Take {
		if r.Log != id || r.Seq != uint64(len(n.logs[id]))+1 {
			n.w.fail("node %d takes seq %d of %s after %d", n.at, r.Seq, id, len(n.logs[id]))
		}
		bytes += (len(r.Body) + 100) * n.w.scale
		n.logs[id] = append(n.logs[id], r)
	}
	n.checkOrder(id, o.Take[0].Seq)
	if !n.w.maySee(n, id) {
		n.w.fail("node %d took %s, which it may not see", n.at, id)
	}
	n.w.taken += len(o.Take)
	return &Commit{Log: id, Seq: o.Take[len(o.Take)-1].Seq, Hash: o.Hash, Bytes: bytes, From: from}
}

// step moves to the next instant at which anything happens, not beyond until; false: there is none.
func (w *world) step(until time.Time) bool {
	next := until
	for _, q := range w.wires {
		if len(q.queue) > 0 && q.queue[0].at.Before(next) {
			next = q.queue[0].at
		}
	}
	for _, n := range w.nodes {
		if !n.wake.IsZero() && n.wake.Before(next) {
			next = n.wake
		}
	}
	if next.After(w.now) {
		w.now = next
	}
	busy := false
	for _, n := range w.nodes {
		var commits []*Commit
		due := !n.wake.IsZero() && !n.wake.After(w.now)
		for a := range w.nodes {
			q := w.wires[[2]int{a, n.at}]
			for q != nil && len(q.queue) > 0 && !q.queue[0].at.After(w.now) {
				p := q.queue[0]
				q.queue = q.queue[1:]
				due = true
				if c := n.take(w.nodes[a].id, p); c != nil {
					commits = append(commits, c)
				}
			}
		}
		for _, c := range commits {
			n.rep.Committed(w.now, *c)
		}
		if due {
			busy = true
			n.flush()
		}
	}
	return busy || w.now.Before(until)
}

func (w *world) run(d time.Duration) {
	for until := w.now.Add(d); w.step(until); {
	}
}

package election

import (
	"container/heap"
	"flag"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

var seedFlag = flag.Int64("seed", -1, "replay one seed of the simulations, with its trace")

// world is a mesh of cores in one goroutine: network, disks and clocks by seed.
type world struct {
	t      *testing.T
	rng    *rand.Rand
	now    time.Duration
	events events
	order  int
	nodes  []*node
	cut    map[[2]int]bool // one-way
	loss   float64
	slow   time.Duration // most that a message takes
	forced bool
	ended  *node                      // by a record that not all have seen yet
	lost   bool                       // a node has lost its store
	won    map[uint64]protocol.PeerID // elected, by number
	trace  []string
	talk   bool
}

type node struct {
	id     int
	peer   protocol.PeerID
	core   *Core
	kept   []byte
	terms  map[protocol.Term]protocol.TermBody // records
	voters []protocol.VotersBody
	rev    uint64 // same records, same number
	down   bool
	asleep bool
	missed []func() // arrived while it slept

	rate    float64       // of its clocks
	wallOff time.Duration // of its wall clock
	slept   time.Duration // what Up does not count
	deaf    bool          // Up stands still in sleep
	boot    int
	wake    int  // number of the timer that counts
	lost    bool // what it kept; it is told so at the next start
	gone    map[int]bool
}

func (nd *node) note(b protocol.TermBody) {
	number := func(b protocol.TermBody) uint64 {
		switch {
		case b.Number == 0:
			return 0
		case b.Ended:
			return b.Number*1e6 + uint64(b.Peer[1])*1e3 + 1<<40
		}
		return b.Number*1e6 + uint64(b.Peer[1])*1e3
	}
	nd.rev += number(b) - number(nd.terms[b.Term()])
	nd.terms[b.Term()] = b
}

func (nd *node) noteVoters(v protocol.VotersBody) {
	nd.voters = append(nd.voters, v)
	nd.rev += (v.Number*1e6+v.Term.Number*1e3+uint64(v.Term.Peer[1]))*1e6 + 7
}

func (w *world) peer(i int) protocol.PeerID { return protocol.PeerID(fmt.Sprintf("P%d", i)) }

func newWorld(t *testing.T, seed int64, n int) *world {
	w := &world{t: t, rng: rand.New(rand.NewSource(seed)), cut: map[[2]int]bool{}, won: map[uint64]protocol.PeerID{},
		slow: 60 * time.Millisecond, talk: *seedFlag >= 0}
	deaf := w.rng.Intn(2) == 0
	for i := range n {
		nd := &node{id: i, peer: w.peer(i), rate: 0.97 + 0.06*w.rng.Float64(), deaf: deaf, terms: map[protocol.Term]protocol.TermBody{}, gone: map[int]bool{}}
		nd.wallOff = time.Duration(w.rng.Int63n(int64(20*time.Minute))) - 10*time.Minute
		w.nodes = append(w.nodes, nd)
	}
	first := protocol.TermBody{Number: 1, Peer: w.peer(0)}
	w.nodes[0].note(first)
	for _, nd := range w.nodes {
		w.boot(nd)
	}
	w.at(w.now, w.sync)
	return w
}

func (w *world) logf(format string, args ...any) {
	line := fmt.Sprintf("%8.3f ", w.now.Seconds()) + fmt.Sprintf(format, args...)
	if w.talk {
		w.t.Log(line)
		return
	}
	if w.trace = append(w.trace, line); len(w.trace) > 60 {
		w.trace = w.trace[1:]
	}
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(w.trace, "\n"))
}

// moment is what a node's clocks say.
func (w *world) moment(nd *node) protocol.Moment {
	up := time.Duration(float64(w.now-nd.slept) * nd.rate)
	return protocol.Moment{Wall: (time.Duration(float64(w.now)*nd.rate) + nd.wallOff + 1e6*time.Second).Milliseconds(), Up: up + time.Hour, Boot: "b"}
}

func (w *world) boot(nd *node) {
	nd.boot++
	nd.down, nd.asleep, nd.missed = false, false, nil
	var term protocol.TermBody
	for _, b := range nd.terms {
		if b.Term().Compare(term.Term()) > 0 {
			term = b
		}
	}
	core, err := New(Boot{Self: nd.peer, Kept: nd.kept, Lost: nd.lost, Now: w.moment(nd), Dice: w.rng.Uint64()})
	nd.lost = false
	if err != nil {
		w.fail("boot: %v", err)
	}
	nd.core = core
	w.membership(nd)
	for _, v := range nd.voters {
		core.Step(w.moment(nd), w.rng.Uint64(), VotersSeen{v})
	}
	if term.Number > 0 {
		core.Step(w.moment(nd), w.rng.Uint64(), TermSeen{term})
	}
	w.flush(nd)
}

func (w *world) membership(nd *node) {
	var m Members
	for i := range w.nodes {
		if nd.gone[i] {
			m.Gone = append(m.Gone, w.peer(i))
		} else {
			m.Inside = append(m.Inside, w.peer(i))
		}
	}
	nd.core.Step(w.moment(nd), w.rng.Uint64(), m)
}

// flush does what Ready says: disk first. Now and then the node dies in between.
func (w *world) flush(nd *node) {
	for {
		rd := nd.core.Ready(w.moment(nd))
		if rd.Empty() {
			break
		}
		if rd.Keep != nil {
			nd.kept = rd.Keep
		}
		if e := rd.Elected; e != nil {
			w.logf("%s takes office: %v after %v, forced %v", nd.peer, e.Term, e.Prev, e.Forced)
			if !e.Forced {
				if old, ok := w.won[e.Term.Number]; ok {
					w.fail("two elected under %d: %s and %s", e.Term.Number, old, nd.peer)
				}
				w.won[e.Term.Number] = nd.peer
			}
			nd.note(protocol.TermBody{Number: e.Term.Number, Peer: e.Term.Peer, Prev: e.Prev, Forced: e.Forced})
		}
		if r := rd.Resigned; r != nil && r.To != nd.peer {
			w.logf("%s resigns for %s", nd.peer, r.To)
			b := nd.terms[r.Term]
			b.Number, b.Peer, b.Ended, b.To = r.Term.Number, r.Term.Peer, true, r.To
			nd.note(b)
		}
		if rd.Voters != nil {
			w.logf("%s decides voters %v %v", nd.peer, rd.Voters.Stamp, rd.Voters.Voters)
			nd.noteVoters(*rd.Voters)
		}
		if rd.Changed {
			st := nd.core.Status(w.moment(nd))
			w.logf("%s: term %v main %v sure %v missing %v", nd.peer, st.Term, st.Main, st.Sure, st.Missing)
		}
		for _, s := range rd.Send {
			w.send(nd, s)
		}
	}
	w.check()
	nd.wake++
	wake, boot := nd.wake, nd.boot
	d := time.Duration(float64(nd.core.Wait(w.moment(nd)))/nd.rate) + time.Millisecond
	if d > time.Hour {
		return
	}
	w.at(w.now+d, func() {
		if nd.wake == wake && nd.boot == boot && !nd.down && !nd.asleep {
			w.step(nd, Tick{})
		}
	})
}

func (w *world) step(nd *node, in Input) {
	nd.core.Step(w.moment(nd), w.rng.Uint64(), in)
	w.flush(nd)
}

func (w *world) send(from *node, s Send) {
	to := w.nodes[s.To[1]-'0']
	if w.cut[[2]int{from.id, to.id}] || w.rng.Float64() < w.loss {
		return
	}
	boot := to.boot
	w.at(w.now+time.Millisecond+time.Duration(w.rng.Int63n(int64(w.slow))), func() {
		if to.down || to.boot != boot {
			return
		}
		arrive := func() { w.step(to, Received{from.peer, s.Message}) }
		if to.asleep {
			to.missed = append(to.missed, arrive)
			return
		}
		arrive()
	})
}

// check holds at every instant: without force at most one node may act as main.
func (w *world) check() {
	if w.forced {
		return
	}
	var sure *node
	for _, nd := range w.nodes {
		if nd == w.ended || nd.core == nil || nd.down || nd.asleep || !nd.core.sure(w.moment(nd)) {
			continue
		}
		if sure != nil {
			w.fail("two that may act as main: %s in %v and %s in %v", sure.peer, sure.core.term, nd.peer, nd.core.term)
		}
		sure = nd
	}
}

// sync spreads records between nodes that reach one another, as the journal does.
func (w *world) sync() {
	for _, a := range w.nodes {
		for _, b := range w.nodes {
			if a == b || a.down || b.down || a.asleep || b.asleep || w.cut[[2]int{a.id, b.id}] || w.cut[[2]int{b.id, a.id}] {
				continue
			}
			if w.ended != nil && a.gone[w.ended.id] && !b.gone[w.ended.id] {
				b.gone[w.ended.id] = true
				w.membership(b)
				w.flush(b)
			}
			if a.rev == b.rev {
				continue
			}
			changed := false
			for _, t := range slices.SortedFunc(maps.Keys(a.terms), protocol.Term.Compare) {
				body := a.terms[t]
				if have, ok := b.terms[t]; !ok || body.Ended && !have.Ended {
					b.note(body)
					changed = true
					b.core.Step(w.moment(b), w.rng.Uint64(), TermSeen{body})
				}
			}
			for _, v := range a.voters {
				if slices.ContainsFunc(b.voters, func(o protocol.VotersBody) bool { return o.Stamp == v.Stamp }) {
					continue
				}
				b.noteVoters(v)
				changed = true
				b.core.Step(w.moment(b), w.rng.Uint64(), VotersSeen{v})
			}
			if changed {
				w.flush(b)
			}
		}
	}
	w.at(w.now+100*time.Millisecond, w.sync)
}

func (w *world) crash(nd *node) {
	w.logf("%s dies", nd.peer)
	nd.down = true
	nd.boot++
}

func (w *world) sleep(nd *node, d time.Duration) {
	w.logf("%s sleeps for %v", nd.peer, d)
	nd.asleep = true
	boot := nd.boot
	w.at(w.now+d, func() {
		if nd.boot != boot || nd.down {
			return
		}
		w.logf("%s wakes", nd.peer)
		if nd.deaf {
			nd.slept += d
		}
		nd.asleep = false
		missed := nd.missed
		nd.missed = nil
		if w.rng.Intn(2) == 0 {
			for _, f := range missed {
				f()
			}
		}
		w.step(nd, Tick{})
	})
}

func (w *world) at(t time.Duration, f func()) {
	w.order++
	heap.Push(&w.events, event{t, w.order, f})
}

func (w *world) run(d time.Duration) { w.until(d, func() bool { return false }) }

// until runs for d, or until done; it says which.
func (w *world) until(d time.Duration, done func() bool) bool {
	end := w.now + d
	for len(w.events) > 0 && w.events[0].at <= end {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.f()
		if done() {
			return true
		}
	}
	w.now = end
	return done()
}

// split cuts every link between the two sides.
func (w *world) split(side func(int) bool) {
	clear(w.cut)
	for a := range w.nodes {
		for b := range w.nodes {
			if side(a) != side(b) {
				w.cut[[2]int{a, b}] = true
			}
		}
	}
	w.logf("split: %v", w.cut)
}

// main is the node that may act, if all nodes that are up agree on its term.
func (w *world) main() *node {
	var main *node
	for _, nd := range w.nodes {
		if nd != w.ended && !nd.down && !nd.asleep && nd.core.sure(w.moment(nd)) {
			main = nd
		}
	}
	if main == nil {
		return nil
	}
	for _, nd := range w.nodes {
		if nd != w.ended && !nd.down && !nd.asleep && nd.core.term != main.core.term {
			return nil
		}
	}
	return main
}

type event struct {
	at    time.Duration
	order int
	f     func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}

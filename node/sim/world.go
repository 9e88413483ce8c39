package sim

import (
	"container/heap"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// epoch is when every run begins; days do not matter to anything.
var epoch = time.UnixMilli(1_800_000_000_000)

// World is one run: nodes, links, clients and what happens to them, all decided by one seed.
type World struct {
	Plan  Plan
	rng   *rand.Rand // of what is not in the plan: delays, what is lost, what survives
	odds  *rand.Rand // of elections and claims, so that a run without them is as it was
	now   time.Duration
	queue events
	count uint64 // events so far, which orders those of one instant
	sum   hash.Hash64

	nodes   []*node
	byPeer  map[protocol.PeerID]*node
	clients []*client
	links   map[[2]int]*link
	network network
	mesh    meshKeys
	calm    bool          // nothing fails any more
	mended  bool          // all clocks are right
	lean    bool          // a long run: the judge keeps no book, and disks forget
	liar    *liar         // of an aged run; nil: nobody is
	aged    time.Duration // that went by while nothing ran
	hasty   bool          // the control: a new main believes that it knows all claims
	ledger  ledger
	contest contest
	proven  map[provenRange]bool

	Trace     []string // if asked for
	tracing   bool
	Violation *Violation
	Stats     Stats
}

// Stats says what a run did, so that one that does nothing is noticed.
type Stats struct {
	Events, Frames, Commits, Crashes, Restores, Logged, Handled, Repeats, Refused int
	Cuts, Joins, Clashes, Fulls, Takebacks                                        int
	Bases, Leaves, Begins, Lies                                                   int
	Terms, HandOvers, Takes, Granted, Ungranted, Released, Wipes, Missed          int
}

// Violation is the first broken promise of a run.
type Violation struct {
	Rule, What string
	At         time.Duration
}

func (v *Violation) Error() string { return fmt.Sprintf("%s after %v: %s", v.Rule, v.At, v.What) }

// fail notes a broken promise; the run ends with the event under way.
func (w *World) fail(rule, format string, args ...any) {
	if w.Violation == nil {
		w.Violation = &Violation{rule, fmt.Sprintf(format, args...), w.now}
		w.logf("BROKEN %s: %s", rule, w.Violation.What)
	}
}

func (w *World) logf(format string, args ...any) {
	if w.tracing {
		w.Trace = append(w.Trace, fmt.Sprintf("%9.3f ", w.now.Seconds())+fmt.Sprintf(format, args...))
	}
}

// note makes something that happened part of the run's digest.
func (w *World) note(kind byte, a, b int, n uint64) {
	var raw [25]byte
	raw[0] = kind
	binary.BigEndian.PutUint64(raw[1:], uint64(w.now))
	binary.BigEndian.PutUint32(raw[9:], uint32(a))
	binary.BigEndian.PutUint32(raw[13:], uint32(b))
	binary.BigEndian.PutUint64(raw[17:], n)
	w.sum.Write(raw[:])
}

// event is something that happens at an instant; of two at one instant the one that was arranged first comes first.
type event struct {
	at time.Duration
	no uint64
	do func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].no < q[j].no
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	old := *q
	e := old[len(old)-1]
	old[len(old)-1] = event{}
	*q = old[:len(old)-1]
	return e
}

// after arranges for something in a while.
func (w *World) after(d time.Duration, do func()) {
	w.count++
	heap.Push(&w.queue, event{w.now + max(d, 0), w.count, do})
}

// between is a duration from low on and below high.
func (w *World) between(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(w.rng.Int64N(int64(high-low)))
}

// spell and oddsAre are between and chance by the dice of elections and claims.
func (w *World) spell(low, high time.Duration) time.Duration {
	return low + time.Duration(w.odds.Int64N(int64(high-low)))
}

func (w *World) oddsAre(p float64) bool { return w.odds.Float64() < p }

func (w *World) chance(p float64) bool { return p > 0 && w.rng.Float64() < p }

// eventsMax ends a run that never comes to rest.
const eventsMax = 2_000_000

// runUntil lets everything happen up to an instant.
func (w *World) runUntil(end time.Duration) {
	for len(w.queue) > 0 && w.queue[0].at <= end && w.Violation == nil {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		if w.Stats.Events++; w.Stats.Events > eventsMax && !w.lean {
			w.fail("the mesh comes to rest", "%d events", w.Stats.Events)
			return
		}
		e.do()
	}
	if w.Violation == nil {
		w.now = max(w.now, end)
	}
}

// New makes the world of a plan.
func New(plan Plan) *World {
	w := &World{
		Plan: plan, rng: rand.New(rand.NewPCG(plan.Seed, 0x5EED)), odds: rand.New(rand.NewPCG(plan.Seed, 0x0DD5)), sum: fnv.New64a(), byPeer: map[protocol.PeerID]*node{},
		links: map[[2]int]*link{}, proven: map[provenRange]bool{},
	}
	w.network.init(w)
	w.ledger.init(w)
	w.contest.init(w)
	w.mesh = keysOf(plan.Seed)
	for i := range plan.Nodes {
		w.addNode(i)
	}
	for i := range plan.Clients {
		w.clients = append(w.clients, newClient(w, i))
	}
	return w
}

// Trace makes the run keep what happens, in words.
func (w *World) KeepTrace() { w.tracing = true }

// read makes the world's dice a source of bytes, for keys and secrets.
func (w *World) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(w.rng.Uint32())
	}
	return len(p), nil
}

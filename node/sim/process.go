package sim

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/node/turn"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
	"github.com/aster-mesh/aster/roles/member"
)

// proc is a running node: the twin of package node's loop, line for line where it joins the cores, without sockets,
// files and goroutines. One turn takes what waits, steps each, commits with one sync, then lets out.
type proc struct {
	n       *node
	started time.Duration
	wall    time.Time // at the start; within a process only the monotonic clock counts, as in Go's own times
	now     time.Time
	jumped  time.Duration // of the calendar since the start
	gone    bool

	core     *hub.Core
	rep      *replica.Replica
	board    *board.State
	start    protocol.Start
	chain    map[protocol.LogID]protocol.Hash
	regained []protocol.AgentID
	foreign  []journal.Entry
	belief   turn.Belief
	fresh    map[protocol.LogID][]protocol.Record
	from     map[protocol.LogID]protocol.PeerID
	tokens   map[hub.Token]func(hub.Told)
	lastTok  hub.Token
	conns    map[hub.ConnID]*client
	lastID   hub.ConnID
	peers    map[protocol.PeerID]*peerState
	values   map[string][]byte
	office   *turn.Office              // nil: the plan has no elections
	later    []func(error)             // told once this turn is durable, or why it is not
	older    bool                      // the disk was once replaced by an older copy
	told     map[protocol.LogID]uint64 // replicated up to, as the hub was told

	standings map[protocol.PeerID]standing
	dials     map[protocol.PeerID]bool
	inside    bool
	dirty     bool // members changed
	ownBack   bool // records of this node's own came back in this turn
	refolded  bool // the hub may know names that lie beyond a cut, until the next start
	presences uint64
	pos       uint64
	savedAt   uint64
	saved     time.Time

	made      *board.Snapshot // what it answered to madeOf
	madeOf    hub.Ref
	tried     hub.Ref                           // the proposal that it tried to answer last
	bases     map[protocol.PeerID]meshwire.Base // that peers told of
	beginning *board.Snapshot

	jobs  []func()
	turns bool // a turn is arranged
	busy  bool // a commit is under way
	wakes uint64
	taken int // how often this turn was taken back
}

type peerState struct {
	heard  turn.Heard
	vector turn.Comparison
}

// clock is this machine's time now.
func (p *proc) clock() time.Time {
	d := p.n.w.now - p.started
	return p.wall.Add(d + time.Duration(float64(d)*p.n.drift))
}

// today is what the machine's calendar shows: certificates and invites are judged by it. Unlike clock it jumps while the
// process runs. At the end somebody has set all clocks, and waited until all certificates have begun.
func (p *proc) today() time.Time {
	w := p.n.w
	if w.mended {
		return epoch.Add(w.now + w.aged + 4*w.Plan.Skew)
	}
	return p.clock().Add(p.jumped)
}

// jumps sets the machine's clock.
func (n *node) jumps(skew time.Duration) {
	if n.p != nil {
		n.p.jumped += skew - n.skew
		n.p.dirty = true
		n.p.arrange(0)
	}
	n.skew = skew
}

// post gives the loop a job.
func (p *proc) post(job func()) {
	if p.gone {
		return
	}
	p.jobs = append(p.jobs, job)
	p.arrange(p.n.w.between(0, 2*time.Millisecond))
}

// arrange has a turn after a while, unless one is on its way.
func (p *proc) arrange(d time.Duration) {
	if p.turns || p.busy || p.gone {
		return
	}
	p.turns = true
	if p.n.suspended() {
		d = max(d, p.n.asleep-p.n.w.now)
	}
	p.n.w.after(d, func() {
		p.turns = false
		if p.gone {
			return
		}
		if p.n.suspended() {
			p.arrange(0)
			return
		}
		p.n.guarded(p.turn)
	})
}

// turn is one round of loop.run.
func (p *proc) turn() {
	p.now = p.clock()
	p.n.disk.Full, p.n.disk.Short = p.n.w.now < p.n.full, p.n.w.now < p.n.short
	for n := 0; len(p.jobs) > 0 && n < protocol.CommitRecordsMax/2 && len(p.foreign) < protocol.CommitRecordsMax; n++ {
		job := p.jobs[0]
		p.jobs = p.jobs[1:]
		job()
	}
	if at := p.core.Next(); !at.IsZero() && !p.now.Before(at) {
		p.core.Step(p.now, hub.Tick{})
	}
	if p.office != nil {
		p.office.Tick()
	}
	p.n.reaches(atStep)
	p.busy, p.taken = true, 0
	p.finish()
}

// rest ends a turn: what waits has the next one.
func (p *proc) rest() {
	p.busy = false
	if p.beginning != nil {
		p.begin()
	}
	if due := p.checkpointDue(); !due.IsZero() && !p.now.Before(due) {
		p.checkpoint()
	}
	if len(p.jobs) > 0 {
		p.arrange(0)
		return
	}
	next := time.Time{}
	for _, at := range []time.Time{p.core.Next(), p.rep.Next(), p.checkpointDue(), p.officeDue()} {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if next.IsZero() {
		return
	}
	p.wakes++
	no := p.wakes
	p.n.w.after(max(next.Sub(p.clock()), time.Millisecond), func() {
		if no == p.wakes {
			p.arrange(0)
		}
	})
}

// finish is loop.finish up to its commit.
func (p *proc) finish() {
	p.settleOffice()
	rd := p.core.Ready(p.now)
	entries := append(p.foreign, turn.Chain(p.chain, rd.Drafts)...)
	p.foreign = nil
	for k, v := range rd.Values {
		p.value(k, v)
	}
	if !turn.Owes(entries, &rd, p.values) {
		p.finished(rd)
		return
	}
	b := turn.Batch(entries, &rd, p.values)
	p.values = nil
	first, err := p.n.disk.Write(b)
	if errors.Is(err, journal.ErrFull) {
		p.takeBack()
		if p.taken++; p.taken == turn.TakenBackMax {
			p.taken = 0
			p.rest()
			return
		}
		p.finish()
		return
	}
	if err != nil {
		p.n.w.fail("logs are contiguous", "node %d: %v", p.n.i, err)
		return
	}
	p.n.reaches(atWrite)
	p.n.w.after(p.syncTime(), func() {
		if p.gone {
			return
		}
		p.n.guarded(func() { p.synced(entries, rd, first) })
	})
}

// synced is what follows a commit's writes.
func (p *proc) synced(entries []journal.Entry, rd hub.Ready, first uint64) {
	w := p.n.w
	if err := p.n.disk.Sync(); err != nil {
		p.n.kill("of its disk")
		p.n.startIn(w.between(100*time.Millisecond, 5*time.Second))
		return
	}
	w.Stats.Commits++
	w.note('C', p.n.i, len(entries), first)
	p.n.reaches(atSync)
	p.committed(entries, first)
	p.finished(rd)
}

func (p *proc) syncTime() time.Duration {
	w := p.n.w
	d := w.between(0, w.Plan.SyncTime)
	if w.now < p.n.slow {
		d += w.between(50*time.Millisecond, 900*time.Millisecond)
	}
	return d
}

// committed is loop.commit after the store's.
func (p *proc) committed(entries []journal.Entry, first uint64) {
	for i := range entries {
		e := &entries[i]
		p.pos = first + uint64(i)
		p.fresh[e.Record.Log] = append(p.fresh[e.Record.Log], e.Record)
		p.fold(&e.Record, e.Envelope)
	}
	for _, c := range turn.Commits(entries, p.from) {
		p.rep.Committed(p.now, c)
	}
	clear(p.from)
	p.belief.Forget()
}

// finished is the rest of loop.finish: consequences go out, and what they bring about has its own commit.
func (p *proc) finished(rd hub.Ready) {
	p.settleLater(nil)
	for _, o := range rd.Out {
		p.out(o)
		p.n.reaches(atOut)
	}
	p.replicate()
	p.n.w.contest.looks(p)
	if missed := p.settleMissed(); !missed && !p.dirty {
		p.rest()
		return
	}
	if p.dirty {
		p.dirty = false
		p.membersChanged()
	}
	p.finish()
}

// settleMissed is loop.settleMissed.
func (p *proc) settleMissed() (some bool) {
	if p.ownBack && p.office != nil {
		p.office.Regained()
		some = true
	}
	p.ownBack = false
	for _, agent := range p.regained {
		in, err := turn.Missed(p.now, p.n.disk, p.core, agent)
		if err != nil {
			p.n.w.fail("mail is readable", "node %d: %v", p.n.i, err)
		}
		if len(in.Mail) > 0 {
			p.n.w.Stats.Missed += len(in.Mail)
			p.core.Step(p.now, in)
			some = true
		}
	}
	p.regained = nil
	return some
}

func (p *proc) roster() *member.Roster { return p.board.Roster() }

func (p *proc) fold(r *protocol.Record, env *protocol.Envelope) {
	if err := p.board.Apply(r, env); err != nil {
		p.n.w.fail("the board folds", "node %d: %v", p.n.i, err)
	}
	switch r.Kind {
	case protocol.KindMember, protocol.KindRevoke, protocol.KindInviteUsed, protocol.KindTerm, protocol.KindVoters:
		p.dirty = true
	}
}

func (p *proc) value(key string, v []byte) {
	if p.values == nil {
		p.values = map[string][]byte{}
	}
	p.values[key] = v
}

// expect names whoever waits for an answer.
func (p *proc) expect(f func(hub.Told)) hub.Token {
	p.lastTok++
	p.tokens[p.lastTok] = f
	return p.lastTok
}

// linked are the peers with a link, in order.
func (p *proc) linked() []protocol.PeerID { return sortedPeers(p.peers) }

func sortedPeers[V any](m map[protocol.PeerID]V) []protocol.PeerID {
	out := make([]protocol.PeerID, 0, len(m))
	for peer := range m {
		out = append(out, peer)
	}
	slices.SortFunc(out, func(a, b protocol.PeerID) int { return strings.Compare(string(a), string(b)) })
	return out
}

const (
	checkpointEvery = 30 * time.Second
	boardCheckpoint = "board"
)

func (p *proc) checkpointDue() time.Time {
	if p.pos == p.savedAt {
		return time.Time{}
	}
	return p.saved.Add(checkpointEvery)
}

func (p *proc) checkpoint() {
	p.saved, p.savedAt = p.now, p.pos
	_ = p.n.disk.SaveCheckpoint(boardCheckpoint, p.pos, p.board.Encode()) // a failure costs the next start some folding
}

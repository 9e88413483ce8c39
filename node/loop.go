package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/node/turn"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
	"github.com/aster-mesh/aster/protocol/meshwire"
	"github.com/aster-mesh/aster/roles/member"
)

// jobsMax is how many inputs may wait for the loop; above it senders wait, which is their back-pressure.
const jobsMax = 4096

// loop owns the node's changing state. Everything below is touched by its goroutine alone; others post jobs.
//
// One turn: take what waits, Step each, make all of it durable with one sync, then let the consequences out. Nothing
// leaves before the sync that covers it (promise 1).
type loop struct {
	// Fixed at creation.
	n    *Node
	log  *slog.Logger
	jobs chan func() // capacity jobsMax: full means that senders wait; never closed
	// ended is closed when no more jobs are taken.
	ended chan struct{}

	// Owned by run.
	now   time.Time
	core  *hub.Core
	rep   *replica.Replica
	store *journal.Journal
	board *board.State
	chain map[protocol.LogID]protocol.Hash // head of each log of this start

	ownBack       bool                                 // records of this node's own came back in this turn
	regained      []protocol.AgentID                   // agents of this node that it knows again: mail for them may be here
	foreign       []journal.Entry                      // of this turn: records of other nodes, in order
	belief        turn.Belief                          // of this turn: bindings that the board has not folded yet
	fresh         map[protocol.LogID][]protocol.Record // what this turn made durable, for pushing without a read
	from          map[protocol.LogID]protocol.PeerID   // who sent them, so that they are not sent back
	tokens        map[hub.Token]func(hub.Told)
	lastTok       hub.Token
	recent        recentMessages
	ours          ownMessages
	sockets       map[hub.ConnID]*socket
	corked        []*socket       // of this turn
	unfolded      []journal.Entry // of this turn, durable
	enc           *asterism.Encoder
	ownOf         map[protocol.AgentID]begunBy // what nodes said of their own agents, by what was asked, folded
	letting       bool                         // consequences go out: the roster stays as it is
	list          []byte                       // the AgentList of that time
	peers         map[protocol.PeerID]*peerState
	lastSeen      map[protocol.PeerID]time.Time
	addrs         map[protocol.PeerID]meshwire.Addrs   // newest signed list of each member, this node's own too
	ownSigned     bool                                 // this start has signed its own
	starts        map[protocol.PeerID]meshwire.Started // newest start of each member that a word of its own came of
	live          map[protocol.PeerID]*liveQueue
	presenceCount uint64
	heardNames    names // of nodes that only others told of
	tierWait      map[hub.Ref][]tierWaiter
	declarations  *declarations // as the board has them now; nil: to be made anew

	values map[string][]byte // to commit this turn, beside what the hub wants
	after  []func(error)     // told once this turn is durable, or why it is not

	holdings map[protocol.PeerID]*holding // of the other inside members; nil: not read yet

	endedState
	keyState
	officeState
	mending
	tracing      tracing
	toldBases    map[protocol.PeerID]meshwire.Base // of linked peers that do not hold what this node lacks
	stalls       map[protocol.PeerID]time.Time     // until when a member that gave no snapshot is not asked again
	beginning    *beginning                        // where to begin after this turn
	membersDirty bool
	owed         bool      // something was stepped after this turn's commit
	lookAt       time.Time // when certificates are looked at again
	saved        time.Time // last board checkpoint
	savedAt      uint64
	saving       atomic.Bool    // one checkpoint at a time
	savers       sync.WaitGroup // run waits for it
	pos          uint64         // last position
	crowded      time.Duration  // how long to wait on a full disk; 0: it took the last turn
}

// post gives the loop a job. It waits while the loop is behind, and gives up with ctx: once it has, it takes no later job of
// that ctx either, so that of what one socket says nothing is left out in the middle.
func (l *loop) post(ctx context.Context, job func()) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case l.jobs <- job:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.n.done:
		return errStopping
	}
}

// call runs f in the loop and waits until what it saw is durable, so that no answer tells of what a crash would undo; f
// sees a consistent state and must not block. When call gives up f has run or never will: what f writes is the caller's again.
func (l *loop) call(ctx context.Context, f func()) error {
	var taken atomic.Bool // by the loop, to run f, or by a caller that gave up
	looked, durable := make(chan struct{}), make(chan struct{})
	if err := l.post(ctx, func() {
		if !taken.CompareAndSwap(false, true) {
			return
		}
		f()
		close(looked)
		l.after = append(l.after, func(error) { close(durable) })
	}); err != nil {
		return err
	}
	var why error
	select {
	case <-durable:
		return nil
	case <-ctx.Done():
		why = context.Cause(ctx)
	case <-l.n.done:
		why = errStopping
	}
	if !taken.CompareAndSwap(false, true) {
		<-looked
	}
	return why
}

// askOr is ask for an input that is made in the loop and may turn out to be refused there.
func (l *loop) askOr(ctx context.Context, input func(hub.Token) (hub.Input, error)) (hub.Told, error) {
	var failed error
	told, err := l.ask(ctx, func(t hub.Token) hub.Input {
		in, err := input(t)
		if err == nil {
			return in
		}
		failed = err
		return hub.Unwait{Token: t} // nothing happens; the token is answered below
	})
	if err == nil {
		err = failed // only then is the loop through with it
	}
	return told, err
}

// ask steps an input that answers a token and waits for the answer, which comes after the commit.
func (l *loop) ask(ctx context.Context, input func(hub.Token) hub.Input) (hub.Told, error) {
	answer := make(chan hub.Told, 1)
	var token hub.Token
	err := l.post(ctx, func() {
		token = l.expect(func(t hub.Told) { answer <- t })
		in := input(token)
		l.core.Step(l.now, in)
		if _, nothing := in.(hub.Unwait); nothing {
			delete(l.tokens, token)
			answer <- hub.Told{}
		}
	})
	if err != nil {
		return hub.Told{}, err
	}
	select {
	case t := <-answer:
		if t.Refusal != nil {
			return t, t.Refusal
		}
		return t, nil
	case <-ctx.Done():
		// The loop's own job reads token after the post above, so order holds.
		_ = l.post(context.WithoutCancel(ctx), func() {
			delete(l.tokens, token)
			l.core.Step(l.now, hub.Unwait{Token: token})
		})
		return hub.Told{}, context.Cause(ctx)
	case <-l.n.done:
		return hub.Told{}, errStopping
	}
}

func (l *loop) expect(f func(hub.Told)) hub.Token {
	l.lastTok++
	l.tokens[l.lastTok] = f
	return l.lastTok
}

// run is the loop. It returns when ctx ends, after a last commit, or with the store's error.
func (l *loop) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	defer l.savers.Wait()
	// The first turn is the loop's own: who is a member stands before any job asks for it.
	l.now = l.n.time()
	if err := l.finish(); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			l.now = l.n.time()
			l.drain()
			if err := l.finish(); err != nil {
				return err
			}
			l.lastCheckpoint()
			return nil
		case job := <-l.jobs:
			l.now = l.n.time()
			job()
			l.drain()
		case <-timer.C:
			l.now = l.n.time()
		}
		if at := l.core.Next(); !at.IsZero() && !l.now.Before(at) {
			l.core.Step(l.now, hub.Tick{})
		}
		l.office.Tick()
		l.lookAtCertificates()
		l.lookForDamage()
		if err := l.finish(); err != nil {
			return err
		}
		if err := l.begin(); err != nil {
			return err
		}
		if due := l.checkpointDue(); l.pos-l.savedAt >= checkpointRecords || !due.IsZero() && !l.now.Before(due) {
			l.checkpoint()
		}
		timer.Reset(l.pause())
	}
}

// time is what the loop takes for the time.
func (n *Node) time() time.Time {
	if n.cfg.ahead != nil {
		return time.Now().Add(n.cfg.ahead())
	}
	return time.Now()
}

// drain takes what waits already, so that one sync serves many.
func (l *loop) drain() {
	for range protocol.CommitRecordsMax / 2 {
		select {
		case job := <-l.jobs:
			job()
		default:
			return
		}
		if len(l.foreign) >= protocol.CommitRecordsMax {
			return
		}
	}
}

// pause is how long the loop may sleep when nobody posts anything.
func (l *loop) pause() time.Duration {
	next := l.now.Add(time.Hour)
	for _, at := range []time.Time{l.core.Next(), l.rep.Next(), l.checkpointDue(), l.lookAt, l.mendAt, l.liveDue(), l.keysAt, l.office.Due()} {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	return max(next.Sub(l.n.time()), l.crowded)
}

// crowd has the loop wait longer before it tries again of itself what a full disk did not take.
func (l *loop) crowd() { l.crowded = min(max(2*l.crowded, crowdedLeast), crowdedMost) }

// How long the loop waits of itself when a full disk takes nothing: what is due stays due, and would be tried without end.
const (
	crowdedLeast = 50 * time.Millisecond
	crowdedMost  = time.Second
)

// finish makes a turn durable and lets its consequences out.
func (l *loop) finish() error {
	for taken := 0; ; {
		l.settleOffice()
		rd := l.ready()
		entries := append(l.foreign, turn.Chain(l.chain, rd.Drafts)...)
		l.foreign = nil
		for k, v := range rd.Values {
			l.value(k, v)
		}
		if turn.Owes(entries, &rd, l.values) {
			err := l.commit(entries, &rd)
			if errors.Is(err, journal.ErrFull) {
				if err := l.takeBack(); err != nil {
					return err
				}
				if taken++; taken == turn.TakenBackMax {
					l.crowd()
					return nil // what is owed again at once waits for the next turn: reads and links go on meanwhile
				}
				continue
			}
			if err != nil {
				return err
			}
		}
		if taken == 0 {
			l.crowded = 0 // also where nothing is owed any more
		}
		for _, f := range l.after {
			f(nil)
		}
		l.after = nil
		l.letting = true
		for _, o := range rd.Out {
			l.out(o)
		}
		l.letting, l.list = false, nil
		l.uncork()
		if l.replicate() && 0 < len(l.unfolded) && len(l.unfolded) <= uncorkedAtOnce {
			runtime.Gosched() // else the links' writers wait for what follows
		}
		l.foldDue()
		if !l.settle() && !l.membersDirty {
			return nil
		}
		if l.membersDirty {
			l.membersDirty = false
			l.membersChanged()
		}
	}
}

// commit is the one place where anything becomes durable.
func (l *loop) commit(entries []journal.Entry, rd *hub.Ready) error {
	b := turn.Batch(entries, rd, l.values)
	l.values = nil
	first, err := l.store.Commit(b)
	if err != nil {
		return fmt.Errorf("commit %d records: %w", len(entries), err)
	}
	for i := range entries {
		e := &entries[i]
		l.pos = first + uint64(i)
		l.fresh[e.Record.Log] = append(l.fresh[e.Record.Log], e.Record)
		l.noteOurs(&e.Record)
		if e.Envelope != nil {
			l.recent.put(hub.Ref{Log: e.Record.Log, Seq: e.Record.Seq}, l.pos, &e.Record, e.Envelope)
		}
	}
	l.spans(entries)
	if l.unfolded = entries; !l.foldsLater(entries) {
		l.foldDue()
	}
	for _, c := range turn.Commits(entries, l.from) {
		l.rep.Committed(l.now, c)
	}
	clear(l.from)
	l.belief.Forget()
	return nil
}

// roster is who belongs to the mesh, as the board's fold knows it.
func (l *loop) roster() *member.Roster { return l.board.Roster() }

// Values in the store, by prefix.
const keyInvite = "invite/"

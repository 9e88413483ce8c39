package node

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/retain"
)

const (
	// retainLook is how often members' holdings are noted and the room is looked at; retainEvery how often content is looked
	// through when there is room enough.
	retainLook  = time.Minute
	retainEvery = time.Hour
	// retainSome is about how many messages one question to the loop is about.
	retainSome = 64
	// Room is short from the first on, of 100, until it is below the second.
	pressedFrom, pressedTo = 90, 80
)

// retention is what the node knows of content that is over. Any goroutine may use it.
type retention struct {
	mu    sync.Mutex
	shown api.Retention
}

// retaining lets content go that is over, a little at a time, for as long as the node runs.
func (n *Node) retaining(ctx context.Context) error {
	t := time.NewTicker(retainLook)
	defer t.Stop()
	var last time.Time
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil
		}
		if err := n.loop.call(ctx, n.loop.noteHoldings); err != nil {
			return nil // the node stops
		}
		now := time.Now()
		rules := retain.Rules{Age: n.cfg.Retention.Age, Pressed: n.short(pressedFrom)}
		if !rules.Pressed && (rules.Age <= 0 || now.Sub(last) < retainEvery) {
			continue
		}
		last = now
		if err := n.retain(ctx, now, rules, func() bool { return n.short(pressedTo) }); err != nil && ctx.Err() == nil {
			n.log.Warn("content that is over was not let go", "err", err)
		}
	}
}

// short says whether the store uses so much of its bound, of 100, or the disk itself has little left.
func (n *Node) short(of int64) bool {
	used, _ := n.store.Size()
	if used/max(n.store.Bound()/100, 1) >= of {
		return true
	}
	left, known := n.disk.left(n.home.dir)
	return known && left < fullReserve
}

// retain looks through content, oldest first, and lets go what nothing holds; with pressed rules what others keep as long as
// room is short.
func (n *Node) retain(ctx context.Context, now time.Time, rules retain.Rules, short func() bool) error {
	if len(n.store.Recovery().SetAside) > 0 || n.fenced.Load() != nil {
		return nil // records that name content may still come back from other nodes; a fenced node changes nothing
	}
	young := rules.Age
	if rules.Pressed && (young <= 0 || young > retain.PressedAge) {
		young = retain.PressedAge
	}
	before := now.Add(-young)
	old, err := n.store.Contents(before)
	if err != nil {
		return err
	}
	p := &retainPass{n: n, now: now, rules: rules, short: short, before: before, held: map[retain.Held]*api.Held{}}
	for _, c := range old {
		if err := p.look(ctx, c); err != nil {
			return err
		}
	}
	if err = p.judge(ctx); err == nil {
		err = p.failed
	}
	n.retention.note(now, p)
	if p.left > 0 {
		n.log.Info("content that is over left the disk", "contents", p.left, "bytes", p.bytes, "pressed", rules.Pressed)
	}
	return err
}

// retainPass is one look through what is old enough.
type retainPass struct {
	n      *Node
	now    time.Time
	rules  retain.Rules
	short  func() bool
	before time.Time

	asked []retainAsk // to be judged together
	size  int         // messages in asked

	held  map[retain.Held]*api.Held
	left  int
	bytes int64

	failed error // the first
}

type retainAsk struct {
	journal.Content
	named []journal.Naming
	facts []retain.Naming
}

func (p *retainPass) look(ctx context.Context, c journal.Content) error {
	named, damaged, err := p.n.store.Namings(ctx, c.SHA256)
	switch {
	case err != nil:
		return err
	case damaged:
		p.hold(retain.Held{Why: retain.Uncertain}, c.Bytes)
		return nil
	case len(named) == 0:
		return nil // nobody's yet, or an orphan: see sweep
	}
	p.asked = append(p.asked, retainAsk{Content: c, named: named})
	if p.size += len(named); p.size < retainSome {
		return nil
	}
	return p.judge(ctx)
}

// judge asks the loop what it knows of the messages at hand and lets go what nothing holds.
func (p *retainPass) judge(ctx context.Context) error {
	asked := p.asked
	p.asked, p.size = nil, 0
	if len(asked) == 0 {
		return nil
	}
	limit := cmp.Or(p.rules.Age, protocol.MessageLife)
	if err := p.n.loop.call(ctx, func() {
		f := p.n.loop.retainFacts(limit)
		for i := range asked {
			for k := range asked[i].named {
				asked[i].facts = append(asked[i].facts, f.of(&asked[i].named[k]))
			}
		}
	}); err != nil {
		return err
	}
	for i := range asked {
		a := &asked[i]
		rules := p.rules
		rules.Pressed = rules.Pressed && p.short()
		if h := rules.Holds(p.now, a.Since, a.facts); h.Why != "" {
			p.hold(h, a.Bytes)
			continue
		}
		gone, err := p.n.store.LetGo(a.SHA256, p.before)
		switch {
		case errors.Is(err, journal.ErrClosed):
			return err
		case err != nil && p.failed == nil:
			p.failed = err // of one alone: the others go
		case gone:
			p.left, p.bytes = p.left+1, p.bytes+a.Bytes
		}
	}
	return nil
}

func (p *retainPass) hold(h retain.Held, bytes int64) {
	row := p.held[h]
	if row == nil {
		row = &api.Held{Why: string(h.Why), Member: h.Member}
		p.held[h] = row
	}
	row.Contents, row.Bytes = row.Contents+1, row.Bytes+bytes
}

// retainFacts is what the loop knows at one moment.
type retainFacts struct {
	l         *loop
	limit     time.Duration
	questions map[hub.Ref]bool
	declared  map[hub.Ref]bool
}

func (l *loop) retainFacts(limit time.Duration) *retainFacts {
	l.noteHoldings()
	f := &retainFacts{l: l, limit: limit, questions: map[hub.Ref]bool{}, declared: map[hub.Ref]bool{}}
	for _, q := range l.core.Questions() {
		f.questions[q.Ref] = true
	}
	for _, d := range l.allDeclared().all {
		f.declared[hub.Ref{Log: d.Log, Seq: d.Seq}] = true
	}
	return f
}

func (f *retainFacts) of(m *journal.Naming) retain.Naming {
	l, env, ref := f.l, &m.Envelope, hub.Ref{Log: m.Log, Seq: m.Seq}
	_, asks := askNames[env.Intent]
	out := retain.Naming{
		Said: m.At.Time(), To: env.To, Rcpt: env.Rcpt, Settled: map[protocol.AgentID]bool{}, Unread: m.Unread, Open: l.board.TaskOpen(m.Log, env),
		Asks: asks || env.Intent == "SelectionPrompt" || env.Intent == protocol.WorkerReport, Waiting: f.questions[ref], Shown: f.declared[ref],
		Lacking: l.lacking(m.Pos, f.limit),
	}
	for _, t := range m.Tiers {
		if t.Tier == protocol.Processed || t.Tier == protocol.Refused {
			out.Settled[protocol.FoldAgentID(cmp.Or(t.Agent, env.To))] = true
		}
	}
	if author := l.holdings[m.Log.Peer]; author != nil && !l.livesHere(env.To) && !slices.ContainsFunc(env.Rcpt, l.livesHere) {
		out.Elsewhere = author.now && author.Pos >= m.Pos
		if k, ok := l.core.Agent(env.To); ok && env.To != "" && !out.Elsewhere {
			home := l.holdings[k.Home]
			out.Elsewhere = home != nil && home.now && home.Pos >= m.Pos
		}
	}
	return out
}

func (l *loop) livesHere(id protocol.AgentID) bool { return id != "" && l.core.TakenHere(id) }

// note keeps what a pass found, for people.
func (r *retention) note(now time.Time, p *retainPass) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.shown
	s.At, s.Left, s.LeftBytes = now.UnixMilli(), s.Left+p.left, s.LeftBytes+p.bytes
	s.Held = nil
	for _, h := range p.held {
		s.Held = append(s.Held, *h)
	}
	slices.SortFunc(s.Held, func(a, b api.Held) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Why, b.Why), cmp.Compare(a.Member, b.Member))
	})
}

func (n *Node) retentionNow() api.Retention {
	n.retention.mu.Lock()
	defer n.retention.mu.Unlock()
	s := n.retention.shown
	s.Age, s.Held = n.cfg.Retention.Age.Milliseconds(), slices.Clone(s.Held)
	return s
}

package node

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/aster-mesh/aster/board/web"
	"github.com/aster-mesh/aster/node/webpush"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

const (
	// pushLook is how often the node looks what waits, while somebody wants to be told.
	pushLook = 5 * time.Second
	// pushLife is how long a note may wait for a browser that is off: later it says nothing true.
	pushLife = time.Hour
	// noMainFor is how long there is no main before a person is told.
	noMainFor = 30 * time.Second
	// pushAgain is how long after a failed delivery the next is tried; it doubles up to pushAgainMax.
	pushAgain    = 30 * time.Second
	pushAgainMax = 10 * time.Minute
)

// pushService delivers: a webpush.Sender, or in tests what stands for one.
type pushService interface {
	Check(ctx context.Context, endpoint string) *protocol.Refusal
	Send(ctx context.Context, k *webpush.Key, to *webpush.Subscription, n webpush.Note, now time.Time) webpush.Answer
}

// pushing is what the node keeps for web push.
type pushing struct {
	service pushService
	every   time.Duration
	settle  time.Duration // 0: webpush's

	mu  sync.Mutex
	key *webpush.Key // nil: not made or read yet

	// Held for one look by turn.
	turn     sync.Mutex
	persons  map[string]*webpush.Damper
	owed     map[string]owedPush // endpoint → what is tried again
	mainGone time.Time           // since when there is no main; zero: there is one
}

type owedPush struct {
	at    time.Time
	pause time.Duration
}

func newPushing(cfg *Config) *pushing {
	p := &pushing{service: cfg.pushes, every: cmp.Or(cfg.pushEvery, pushLook), settle: cfg.pushSettle, persons: map[string]*webpush.Damper{}, owed: map[string]owedPush{}}
	if p.service == nil {
		p.service = webpush.NewSender()
	}
	return p
}

// pushKey reads the key, or makes it.
func (n *Node) pushKey() (*webpush.Key, error) {
	n.push.mu.Lock()
	defer n.push.mu.Unlock()
	if n.push.key != nil {
		return n.push.key, nil
	}
	path := n.home.path("push.key")
	raw, err := os.ReadFile(path)
	if err == nil {
		k, err := webpush.ParseKey(raw)
		if err != nil {
			return nil, fmt.Errorf("%w: delete %s, then browsers subscribe again", err, path)
		}
		n.push.key = k
		return k, nil
	}
	if !os.IsNotExist(err) {
		return nil, fmt.Errorf("read the key for web push: %w", err)
	}
	k, err := webpush.NewKey()
	if err != nil {
		return nil, err
	}
	if raw, err = k.Bytes(); err == nil {
		err = writeBytes(path, raw)
	}
	if err != nil {
		return nil, fmt.Errorf("keep the key for web push: %w", err)
	}
	n.push.key = k
	return k, nil
}

// PushKey implements web.Pushes.
func (n *Node) PushKey(context.Context) (string, error) {
	k, err := n.pushKey()
	if err != nil {
		return "", err
	}
	return k.Public(), nil
}

// CheckPush implements web.Pushes.
func (n *Node) CheckPush(ctx context.Context, sub api.PushSubscription) error {
	if _, _, err := webpush.ReadKeys(sub.Keys.P256dh, sub.Keys.Auth); err != nil {
		return protocol.Refuse(protocol.CodeBadFrame, "this is no subscription to web push: "+err.Error(), "")
	}
	if no := n.push.service.Check(ctx, sub.Endpoint); no != nil {
		return no
	}
	return nil
}

// PushNote implements web.Pushes.
func (n *Node) PushNote(ctx context.Context) (api.PushNote, error) {
	w, err := n.waits(ctx, time.Now())
	return w.note, err
}

// pushWaits is what waits for the person of this board.
type pushWaits struct {
	note api.PushNote
	due  []webpush.Due // of it, what is worth to interrupt for
	main bool          // there is one that is reached, or this start cannot know
}

// waits counts as the page does (board/web/static/needs.js), and takes for worth an interruption what the page does
// (notify.js): a risk, a blocked task, the last half of a clock.
func (n *Node) waits(ctx context.Context, at time.Time) (w pushWaits, err error) {
	asks, err := n.Asks(ctx)
	if err != nil {
		return w, err
	}
	agents, err := n.Agents(ctx)
	if err != nil {
		return w, err
	}
	main, err := n.Main(ctx)
	if err != nil {
		return w, err
	}
	now, self := at.UnixMilli(), n.home.peer
	w.main = main.Fenced || main.Peer != "" && main.Lost == 0
	asking := map[protocol.AgentID]bool{}
	for _, a := range asks.Asks {
		asking[a.Asker] = asking[a.Asker] || a.Kind != api.AskDecision // main may need a person for something else
		if a.Owner != self && (a.AlsoAt == 0 || now < a.AlsoAt || main.Peer != self) {
			continue
		}
		w.note.Waiting++
		clock := a.Until > 0 && a.Kind != api.AskKey
		if a.Kind == api.AskApproval || a.Kind == api.AskBlocked || clock && now >= a.At+(a.Until-a.At)/2 {
			w.due = append(w.due, webpush.Due{ID: a.ID, Kind: string(a.Kind), Clock: clock})
		}
	}
	for _, a := range agents {
		if a.State == protocol.StateNeedsHuman && a.Home == self && !asking[a.ID] {
			w.note.Waiting++
		}
	}
	return w, nil
}

// tellPushes looks what waits, while somebody wants to be told, and tells whoever is not looking.
func (n *Node) tellPushes(ctx context.Context) error {
	looks := time.NewTicker(n.push.every)
	defer looks.Stop()
	for {
		if targets := n.web.PushTargets(); len(targets) > 0 {
			if err := n.lookAndTell(ctx, targets, time.Now()); err != nil && ctx.Err() == nil {
				n.log.Error("nobody is told by web push", "err", err)
			}
		} else {
			n.push.forget()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-looks.C:
		}
	}
}

// forget is for when nobody wants to be told: whoever does next begins anew.
func (p *pushing) forget() {
	p.turn.Lock()
	defer p.turn.Unlock()
	clear(p.persons)
	clear(p.owed)
	p.mainGone = time.Time{}
}

func (n *Node) lookAndTell(ctx context.Context, targets []web.PushTarget, now time.Time) error {
	p := n.push
	p.turn.Lock()
	defer p.turn.Unlock()
	w, err := n.waits(ctx, now)
	if err != nil {
		return err
	}
	if w.main {
		p.mainGone = time.Time{}
	} else if p.mainGone.IsZero() {
		p.mainGone = now
	} else if now.Sub(p.mainGone) > noMainFor {
		w.note.NoMain = 1
		w.due = append(w.due, webpush.Due{ID: "main", Kind: "main"})
	}
	tells := map[string]bool{}
	for _, t := range targets {
		if _, asked := tells[t.Person]; asked {
			continue
		}
		d := p.persons[t.Person]
		if d == nil {
			d = &webpush.Damper{Settle: p.settle}
			p.persons[t.Person] = d
		}
		tells[t.Person] = d.Look(now, w.due, t.Looking, t.Seen)
	}
	for person := range p.persons {
		if _, here := tells[person]; !here {
			delete(p.persons, person)
		}
	}
	return n.deliverPushes(ctx, n.toTell(targets, tells, len(w.due) > 0, now), w, now)
}

// toTell are those of targets that get a note now: their person is told, or an earlier note did not arrive.
func (n *Node) toTell(targets []web.PushTarget, tells map[string]bool, any bool, now time.Time) (out []web.PushTarget) {
	here := map[string]bool{}
	for _, t := range targets {
		here[t.Endpoint] = true
		owed, late := n.push.owed[t.Endpoint]
		switch {
		case now.UnixMilli() < t.QuietUntil:
		case late && (!any || t.Looking): // it is over, or seen
			delete(n.push.owed, t.Endpoint)
		case late && !now.Before(owed.at), !late && tells[t.Person]:
			out = append(out, t)
		}
	}
	for endpoint := range n.push.owed {
		if !here[endpoint] {
			delete(n.push.owed, endpoint)
		}
	}
	return out
}

func (n *Node) deliverPushes(ctx context.Context, to []web.PushTarget, w pushWaits, now time.Time) error {
	if len(to) == 0 {
		return nil
	}
	key, err := n.pushKey()
	if err != nil {
		return err
	}
	text, err := json.Marshal(w.note)
	if err != nil {
		return fmt.Errorf("encode a note: %w", err)
	}
	urgent := slices.ContainsFunc(w.due, func(d webpush.Due) bool { return d.Clock || d.Kind == string(api.AskApproval) })
	answers := make([]webpush.Answer, len(to))
	var sent sync.WaitGroup
	for i, t := range to { // 64 at most (board/web); each ends by itself within a bound
		sent.Go(func() {
			p256dh, auth, err := webpush.ReadKeys(t.Keys.P256dh, t.Keys.Auth)
			if err != nil {
				answers[i] = webpush.Answer{Gone: true, Why: err.Error()}
				return
			}
			answers[i] = n.push.service.Send(ctx, key, &webpush.Subscription{Endpoint: t.Endpoint, Key: p256dh, Auth: auth},
				webpush.Note{Text: text, Life: min(pushLife, t.Until.Sub(now)), Urgent: urgent}, now)
		})
	}
	sent.Wait()
	for i, a := range answers {
		n.pushAnswered(to[i].Endpoint, a, now)
	}
	return nil
}

func (n *Node) pushAnswered(endpoint string, a webpush.Answer, now time.Time) {
	owed := n.push.owed[endpoint]
	delete(n.push.owed, endpoint)
	switch {
	case a.OK:
	case a.Gone:
		n.log.Info("a browser is told no more by web push", "why", a.Why)
		n.web.DropPush(endpoint)
	default:
		owed.pause = min(max(2*owed.pause, pushAgain), pushAgainMax)
		owed.at = now.Add(max(owed.pause, a.Wait))
		n.push.owed[endpoint] = owed
		n.log.Warn("a note by web push did not go out", "why", a.Why, "again_in", time.Until(owed.at).Round(time.Second).String())
	}
}

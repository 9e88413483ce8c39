package web

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// Pushes is what web push needs of the node: who is told, and when, the node decides.
type Pushes interface {
	// PushKey is the public key that browsers subscribe with, in base64url; it is made when it is first asked for.
	PushKey(ctx context.Context) (string, error)
	// CheckPush refuses a subscription that nothing may be sent to.
	CheckPush(ctx context.Context, sub api.PushSubscription) error
	// PushNote is what a push would say now.
	PushNote(ctx context.Context) (api.PushNote, error)
}

const (
	// pushesMax bounds subscriptions: each is a request to somebody's service whenever something waits.
	pushesMax = 64
	// pushesEach bounds those of one person: one a device.
	pushesEach = 8
	// seenLife is how long a page counts as in sight after it said so; pages say it every 30 s.
	seenLife = 75 * time.Second
	// pagesMax bounds the pages that are remembered as in sight.
	pagesMax = 256
	// quietMax is how long somebody may have quiet at a time.
	quietMax = time.Hour
)

// pageName is what a page may call itself.
var pageName = regexp.MustCompile(`^[0-9A-Za-z]{8,40}$`)

// subscription is one browser's, and the session's that brought it: it is over with that.
type subscription struct {
	api.PushSubscription
	Tag     string `json:"tag"`
	Account string `json:"account,omitempty"`
	Round   uint32 `json:"round"`
	Epoch   uint32 `json:"epoch"`
	Until   int64  `json:"until"` // ms
}

func (p *subscription) admission() (in admission, ok bool) {
	tag, err := hex.DecodeString(p.Tag)
	if err != nil || len(tag) != len(in.tag) {
		return in, false
	}
	copy(in.tag[:], tag)
	in.until, in.round, in.epoch, in.account = time.UnixMilli(p.Until), p.Round, p.Epoch, p.Account
	return in, true
}

// pushes are the subscriptions that hold, and whose pages are in sight. Safe for concurrent use.
type pushes struct {
	keep  Keeper // nil: nothing outlives the process
	holds func(in admission, now time.Time) bool

	mu    sync.Mutex
	subs  []subscription // oldest first
	pages map[openPage]time.Time
	seen  map[string]time.Time // account → when a page was last in sight
}

// openPage is one page of a person.
type openPage struct{ account, name string }

// read takes over what was kept. What cannot be read is lost: pages subscribe again when they are opened.
func (p *pushes) read() error {
	p.pages, p.seen = map[openPage]time.Time{}, map[string]time.Time{}
	if p.keep == nil {
		return nil
	}
	raw, err := p.keep.Load()
	if err != nil || len(raw) == 0 {
		return err
	}
	if err := json.Unmarshal(raw, &p.subs); err != nil {
		p.subs = nil
		return fmt.Errorf("read push subscriptions: %w", err)
	}
	return nil
}

// change makes next the subscriptions, once it is kept. The caller holds mu.
func (p *pushes) change(next []subscription) error {
	if p.keep != nil {
		raw, err := json.Marshal(next)
		if err == nil {
			err = p.keep.Save(append(raw, '\n'))
		}
		if err != nil {
			return fmt.Errorf("keep push subscriptions: %w", err)
		}
	}
	p.subs = next
	return nil
}

// drop takes away those that over names, from memory even if that cannot be kept.
func (p *pushes) drop(over func(*subscription) bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := slices.DeleteFunc(slices.Clone(p.subs), func(s subscription) bool { return over(&s) })
	if len(next) == len(p.subs) {
		return nil
	}
	err := p.change(next)
	p.subs = next
	return err
}

// prune takes away those whose session is over.
func (p *pushes) prune(now time.Time) error {
	return p.drop(func(s *subscription) bool {
		in, ok := s.admission()
		return !ok || !p.holds(in, now)
	})
}

// add takes a subscription for a session. It takes the place of the session's former one, and of another session's from
// the same browser.
func (p *pushes) add(sub api.PushSubscription, in admission) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	tag := hex.EncodeToString(in.tag[:])
	next := slices.DeleteFunc(slices.Clone(p.subs), func(s subscription) bool { return s.Endpoint == sub.Endpoint || s.Tag == tag })
	each := 0
	for i := range next {
		if next[i].Account == in.account {
			each++
		}
	}
	if each >= pushesEach || len(next) >= pushesMax {
		return protocol.Refuse("LIMIT_EXCEEDED", "this board tells %d browsers of a person at most, and %d in all", "Switch it off in another, or sign out there", pushesEach, pushesMax)
	}
	return p.change(append(next, subscription{sub, tag, in.account, in.round, in.epoch, in.until.UnixMilli()}))
}

// look notes whether a page is in sight.
func (p *pushes) look(account, name string, visible bool, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, at := range p.pages {
		if now.Sub(at) >= seenLife {
			delete(p.pages, k)
		}
	}
	key := openPage{account, name}
	if !visible {
		delete(p.pages, key)
		return
	}
	if _, known := p.pages[key]; !known && len(p.pages) >= pagesMax {
		return
	}
	if _, known := p.seen[account]; !known && len(p.seen) >= pagesMax {
		clear(p.seen)
	}
	p.pages[key], p.seen[account] = now, now
}

// PushTarget is a browser that is to be told, and its person.
type PushTarget struct {
	api.PushSubscription
	Person  string    // an account; empty: the node's owner
	Until   time.Time // the session's end
	Looking bool      // one of the person's pages is in sight
	Seen    time.Time // when one last was; zero: not since this start
}

// PushTargets are those that hold now.
func (s *Server) PushTargets() (out []PushTarget) {
	now := s.now()
	s.prunePushes()
	p := &s.pushes
	p.mu.Lock()
	defer p.mu.Unlock()
	looking := map[string]bool{}
	for k, at := range p.pages {
		looking[k.account] = looking[k.account] || now.Sub(at) < seenLife
	}
	for _, sub := range p.subs {
		out = append(out, PushTarget{sub.PushSubscription, sub.Account, time.UnixMilli(sub.Until), looking[sub.Account], p.seen[sub.Account]})
	}
	return out
}

// DropPush takes a subscription away that its service says is over.
func (s *Server) DropPush(endpoint string) {
	if err := s.pushes.drop(func(x *subscription) bool { return x.Endpoint == endpoint }); err != nil {
		s.log.Error("a push subscription that is over is still on disk", "err", err)
	}
}

func (s *Server) prunePushes() {
	if err := s.pushes.prune(s.now()); err != nil {
		s.log.Error("push subscriptions of ended sessions are still on disk", "err", err)
	}
}

// pushRows are the part of the table that is about web push (wire 1.1).
func (s *Server) pushRows() []route {
	return []route{
		{method: "GET", path: "/api/push/vapid-public-key", who: session, handle: s.pushKey, once: true},
		{method: "GET", path: "/api/push/latest", who: session, handle: s.pushLatest},
		{method: "POST", path: "/api/push/subscribe", who: session, handle: s.pushSubscribe},
		{method: "POST", path: "/api/push/unsubscribe", who: session, handle: s.pushUnsubscribe},
		{method: "POST", path: "/api/push/seen", who: session, handle: s.pushSeen},
	}
}

func (s *Server) pushKey(w http.ResponseWriter, r *http.Request, _ Standing) {
	key, err := s.backend.PushKey(r.Context())
	s.answer(w, r, map[string]string{"publicKey": key}, err)
}

func (s *Server) pushLatest(w http.ResponseWriter, r *http.Request, _ Standing) {
	note, err := s.backend.PushNote(r.Context())
	s.answer(w, r, note, err)
}

// fromSession reads a request's body, and whose session it is.
func (s *Server) fromSession(w http.ResponseWriter, r *http.Request, into any) (admission, error) {
	err := readJSON(w, r, into)
	in, _, ok := s.sessions.read(r, s.now())
	if err == nil && !ok {
		err = noCredential()
	}
	return in, err
}

func (s *Server) pushSubscribe(w http.ResponseWriter, r *http.Request, _ Standing) {
	var sub api.PushSubscription
	in, err := s.fromSession(w, r, &sub)
	if err == nil {
		err = s.backend.CheckPush(r.Context(), sub)
	}
	if err == nil {
		sub.QuietUntil = max(0, min(sub.QuietUntil, s.now().Add(quietMax).UnixMilli()))
		s.prunePushes()
		err = s.pushes.add(sub, in)
	}
	if err == nil && !s.pushes.holds(in, s.now()) { // it was ended meanwhile
		s.prunePushes()
		err = noCredential()
	}
	s.done(w, r, http.StatusOK, err)
}

// pushUnsubscribe takes one's own browser away; an endpoint that nobody has is no error.
func (s *Server) pushUnsubscribe(w http.ResponseWriter, r *http.Request, _ Standing) {
	var sub api.PushSubscription
	in, err := s.fromSession(w, r, &sub)
	if err == nil {
		tag := hex.EncodeToString(in.tag[:])
		err = s.pushes.drop(func(x *subscription) bool {
			return x.Tag == tag || x.Account == in.account && x.Endpoint == sub.Endpoint
		})
	}
	s.done(w, r, http.StatusOK, err)
}

func (s *Server) pushSeen(w http.ResponseWriter, r *http.Request, _ Standing) {
	var seen api.PushSeen
	in, err := s.fromSession(w, r, &seen)
	if err == nil && !pageName.MatchString(seen.Page) {
		err = protocol.Refuse(protocol.CodeBadFrame, "a page has a name of 8 to 40 letters and digits", "")
	}
	if err == nil {
		s.pushes.look(in.account, seen.Page, seen.Visible, s.now())
	}
	s.done(w, r, http.StatusOK, err)
}

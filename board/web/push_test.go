package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

func (f *fake) PushKey(context.Context) (string, error) {
	f.note("push key")
	f.mu.Lock()
	defer f.mu.Unlock()
	return "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4", f.pushErr
}

func (f *fake) CheckPush(_ context.Context, sub api.PushSubscription) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pushErr != nil {
		return f.pushErr
	}
	if !strings.HasPrefix(sub.Endpoint, "https://push.example.org/") {
		return protocol.Refuse(protocol.CodeNotAllowed, "this address is not one of a public push service", "")
	}
	return nil
}

func (f *fake) PushNote(context.Context) (api.PushNote, error) { return api.PushNote{Waiting: 2}, nil }

// kept is a Keeper in memory.
type keptBytes struct {
	mu  sync.Mutex
	raw []byte
	err error
}

func (k *keptBytes) Load() ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.raw), nil
}

func (k *keptBytes) Save(raw []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil {
		return k.err
	}
	k.raw = slices.Clone(raw)
	return nil
}

func pushBody(name string) string {
	return fmt.Sprintf(`{"endpoint":"https://push.example.org/%s","expirationTime":null,"keys":{"p256dh":"BA","auth":"AA"}}`, name)
}

// handled serves s until t ends.
func handled(t *testing.T, s *Server) *httptest.Server {
	ts := httptest.NewServer(s.Handler())
	t.Cleanup(ts.Close)
	return ts
}

func logsIn(t *testing.T, ts *httptest.Server, id, words string) func(*http.Request) {
	t.Helper()
	got, in := logIn(t, ts, id, words)
	if got != http.StatusOK {
		t.Fatalf("login of %s: %d", id, got)
	}
	return in
}

// told are the endpoints that would be told, by their last part.
func told(s *Server) string {
	var out []string
	for _, x := range s.PushTargets() {
		out = append(out, x.Person+"/"+strings.TrimPrefix(x.Endpoint, "https://push.example.org/"))
	}
	return strings.Join(out, " ")
}

// TestASubscriptionEndsWithItsSession: by signing out, by everybody's, by time, by the account's new password and its end;
// and what a restart finds on disk does not outlive it either. Guards: KB14, KB16
func TestASubscriptionEndsWithItsSession(t *testing.T) {
	f, disk, accounts := newFake(), &keptBytes{}, &keptBytes{}
	var ahead time.Duration
	s := newServer(t, Config{Backend: f, Token: testToken, Pushes: disk, Keeper: accounts, Now: func() time.Time { return time.Now().Add(ahead) }})
	ts := handled(t, s)
	put := func(name, password string) {
		t.Helper()
		if got, code, _ := ask(t, ts, "POST", "/api/operators", fmt.Sprintf(`{"id":%q,"password":%q}`, name, password), bearer); got != 200 {
			t.Fatalf("%d %s", got, code)
		}
	}
	subscribe := func(name string, in func(*http.Request)) {
		t.Helper()
		if got, code, text := ask(t, ts, "POST", "/api/push/subscribe", pushBody(name), in); got != 200 {
			t.Fatalf("%d %s %s", got, code, text)
		}
	}
	want := func(after, names string) {
		t.Helper()
		if got := told(s); got != names {
			t.Errorf("after %s: %q are told, want %q", after, got, names)
		}
		var onDisk []subscription
		if err := json.Unmarshal(disk.raw, &onDisk); err != nil || len(onDisk) != len(strings.Fields(names)) {
			t.Errorf("after %s: on disk is %s (%v)", after, disk.raw, err)
		}
		again := newServer(t, Config{Backend: f, Pushes: &keptBytes{raw: disk.raw}, Keeper: &keptBytes{raw: accounts.raw}})
		if n := len(again.PushTargets()); n != len(strings.Fields(names)) {
			t.Errorf("after %s and a restart: %d are told", after, n)
		}
	}
	one, two := signIn(t, s, ts), signIn(t, s, ts)
	subscribe("a", one)
	subscribe("b", two)
	subscribe("a2", one) // the browser got another address
	want("two sign-ins", "/b /a2")
	ask(t, ts, "POST", "/api/logout", "", one)
	want("a sign-out", "/b")
	put("ann", "correct horse battery")
	ann := logsIn(t, ts, "ann", "correct horse battery")
	subscribe("c", ann)
	want("a login", "/b ann/c")
	put("ann", "another horse battery")
	want("a new password", "/b")
	ann = logsIn(t, ts, "ann", "another horse battery")
	subscribe("d", ann)
	ask(t, ts, "DELETE", "/api/operators/ann", "", bearer)
	want("the account's end", "/b")
	ask(t, ts, "POST", api.Prefix+"/sign-out-all", "", bearer)
	want("everybody's sign-out", "")
	subscribe("e", signIn(t, s, ts))
	ahead = SessionLife + time.Second
	want("half a day", "")
}

// TestWhoMaySubscribe: a signed-in page, of its own browser, within bounds, and nobody for another person.
func TestWhoMaySubscribe(t *testing.T) {
	f, disk := newFake(), &keptBytes{}
	s := newServer(t, Config{Backend: f, Token: testToken, Pushes: disk})
	ts := handled(t, s)
	in := signIn(t, s, ts)
	try := func(what string, status int, path, body string, who func(*http.Request)) {
		t.Helper()
		if got, code, text := ask(t, ts, "POST", path, body, who); got != status {
			t.Errorf("%s: %d %s %s", what, got, code, text)
		}
	}
	try("nobody", 401, "/api/push/subscribe", pushBody("x"), func(*http.Request) {})
	try("a command", 401, "/api/push/subscribe", pushBody("x"), bearer)
	try("another site", 403, "/api/push/subscribe", pushBody("x"), func(r *http.Request) { in(r); r.Header.Set("Origin", "http://evil.example") })
	try("a private address", 403, "/api/push/subscribe", `{"endpoint":"https://127.0.0.1:18999/x","keys":{}}`, in)
	try("no object", 400, "/api/push/subscribe", `[]`, in)
	try("too much", 413, "/api/push/subscribe", `{"endpoint":"`+strings.Repeat("x", 1<<20)+`"}`, in)
	disk.err = errors.New("disk is full")
	try("nothing is kept", 500, "/api/push/subscribe", pushBody("x"), in)
	disk.err = nil
	if told(s) != "" {
		t.Fatalf("told: %s", told(s))
	}
	far := time.Now().Add(100 * time.Hour).UnixMilli()
	try("with quiet", 200, "/api/push/subscribe", strings.Replace(pushBody("x"), "{", fmt.Sprintf(`{"quietUntil":%d,`, far), 1), in)
	if got := s.PushTargets()[0].QuietUntil; got > time.Now().Add(quietMax+time.Minute).UnixMilli() || got < time.Now().UnixMilli() {
		t.Errorf("quiet until %d", got)
	}
	for i := range pushesEach - 1 {
		try("another device", 200, "/api/push/subscribe", pushBody(fmt.Sprint(i)), signIn(t, s, ts))
	}
	try("one more than a person has", 409, "/api/push/subscribe", pushBody("more"), signIn(t, s, ts))
	try("one's own once more", 200, "/api/push/subscribe", pushBody("x"), in)
	s.DropPush("https://push.example.org/3")
	try("in the place of one that is gone", 200, "/api/push/subscribe", pushBody("more"), signIn(t, s, ts))

	try("an account", 200, "/api/operators", `{"id":"ann","password":"correct horse battery"}`, bearer)
	ann := logsIn(t, ts, "ann", "correct horse battery")
	try("another person", 200, "/api/push/subscribe", pushBody("ann"), ann)
	before := len(s.PushTargets())
	try("another's endpoint", 200, "/api/push/unsubscribe", pushBody("x"), ann) // her own goes, as its browser has none now
	if got := told(s); !strings.Contains(got, "/x") || strings.Contains(got, "ann") || len(s.PushTargets()) != before-1 {
		t.Errorf("told: %s", got)
	}
	try("one's own", 200, "/api/push/unsubscribe", pushBody("x"), in)
	if got := told(s); strings.Contains(got, "/x") {
		t.Errorf("told: %s", got)
	}
	try("again", 200, "/api/push/unsubscribe", pushBody("x"), in)
	for i := range operatorsMax - 1 {
		name := fmt.Sprint("p", i)
		try("an account", 200, "/api/operators", fmt.Sprintf(`{"id":%q,"password":"correct horse battery"}`, name), bearer)
		for j := range 3 {
			ask(t, ts, "POST", "/api/push/subscribe", pushBody(fmt.Sprint(name, j)), logsIn(t, ts, name, "correct horse battery"))
		}
	}
	if n := len(s.PushTargets()); n != pushesMax {
		t.Errorf("%d are told", n)
	}
}

// TestAPageInSightIsItsPersons: each page counts for its own person, for a while, and a bounded number of them.
func TestAPageInSightIsItsPersons(t *testing.T) {
	var ahead time.Duration
	s := newServer(t, Config{Backend: newFake(), Token: testToken, Now: func() time.Time { return time.Now().Add(ahead) }})
	ts := handled(t, s)
	owner := signIn(t, s, ts)
	ask(t, ts, "POST", "/api/push/subscribe", pushBody("x"), owner)
	ask(t, ts, "POST", "/api/operators", `{"id":"ann","password":"correct horse battery"}`, bearer)
	ann := logsIn(t, ts, "ann", "correct horse battery")
	ask(t, ts, "POST", "/api/push/subscribe", pushBody("y"), ann)
	seen := func(page string, visible bool, who func(*http.Request)) int {
		got, _, _ := ask(t, ts, "POST", "/api/push/seen", fmt.Sprintf(`{"page":%q,"visible":%v}`, page, visible), who)
		return got
	}
	looking := func() (out string) {
		for _, x := range s.PushTargets() {
			out += fmt.Sprint(x.Looking, x.Seen.IsZero(), " ")
		}
		return out
	}
	want := func(after, text string) {
		t.Helper()
		if got := looking(); got != text {
			t.Errorf("%s: %s, want %s", after, got, text)
		}
	}
	want("nobody looked", "false true false true ")
	for _, bad := range []string{"", "short", strings.Repeat("x", 41), "with space", "<script>"} {
		if got := seen(bad, true, owner); got != 400 {
			t.Errorf("%q: %d", bad, got)
		}
	}
	seen("page0001", true, owner)
	seen("page0002", true, owner)
	want("two pages", "true false false true ")
	seen("page0001", false, owner)
	want("one of them", "true false false true ")
	seen("page0002", false, owner)
	want("none of them", "false false false true ")
	seen("page0003", true, ann)
	want("ann looks", "false false true false ")
	ahead += seenLife
	want("ann is silent", "false false false false ")
	for i := range 2 * pagesMax {
		seen(fmt.Sprint("page", 10000+i), true, owner)
	}
	if n := len(s.pushes.pages); n > pagesMax {
		t.Errorf("%d pages are remembered", n)
	}
}

// What was kept and is no more readable costs the subscriptions, and no start.
func FuzzKeptPushes(f *testing.F) {
	f.Add([]byte(`[{"endpoint":"https://push.example.org/x","keys":{"p256dh":"","auth":""},"tag":"00","round":0,"epoch":0,"until":9}]`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p := &pushes{keep: &keptBytes{raw: raw}, holds: func(in admission, now time.Time) bool { return now.Before(in.until) }}
		_ = p.read()
		if err := p.prune(time.UnixMilli(1)); err != nil {
			t.Fatal(err)
		}
		for i := range p.subs {
			if _, ok := p.subs[i].admission(); !ok {
				t.Errorf("%+v is told for no session", p.subs[i])
			}
		}
	})
}

package node

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node/webpush"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// fakePushes stands for push services: it takes what it is given, and answers as it is told.
type fakePushes struct {
	mu     sync.Mutex
	got    []string // who was told, and what
	answer webpush.Answer
}

func (f *fakePushes) Check(_ context.Context, endpoint string) *protocol.Refusal {
	if !strings.HasPrefix(endpoint, "https://push.example.org/") {
		return protocol.Refuse(protocol.CodeNotAllowed, "this address is not one of a public push service", "")
	}
	return nil
}

func (f *fakePushes) Send(_ context.Context, k *webpush.Key, to *webpush.Subscription, n webpush.Note, _ time.Time) webpush.Answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.got = append(f.got, fmt.Sprintf("%s %s urgent=%v", strings.TrimPrefix(to.Endpoint, "https://push.example.org/"), n.Text, n.Urgent))
	return f.answer
}

func (f *fakePushes) told() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.got...)
}

// page is a browser with a session of the board.
type boardPage struct {
	t      *testing.T
	base   string
	client *http.Client
	cookie []*http.Cookie
}

func (r *running) opensBoard(t *testing.T, n *Node) *boardPage {
	t.Helper()
	p := &boardPage{t: t, base: r.Board, client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	res, err := p.client.Get(n.web.LinkURL(p.base))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	p.cookie = res.Cookies()
	return p
}

func (p *boardPage) asks(method, path, body string) (int, map[string]any) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.base+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Origin", p.base)
	req.Header.Set("Content-Type", "application/json")
	for _, c := range p.cookie {
		req.AddCookie(c)
	}
	res, err := p.client.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	var out map[string]any
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		p.t.Fatal(err)
	}
	return res.StatusCode, out
}

func (p *boardPage) subscribes(name string) int {
	p.t.Helper()
	// Any point of the curve will do: that of the node's own key is one.
	_, key := p.asks("GET", "/api/push/vapid-public-key", "")
	got, _ := p.asks("POST", "/api/push/subscribe", fmt.Sprintf(`{"endpoint":"https://push.example.org/%s","keys":{"p256dh":%q,"auth":%q}}`,
		name, key["publicKey"], base64.RawURLEncoding.EncodeToString(make([]byte, 16))))
	return got
}

// pushHome is a node whose looks are the test's, with a page that subscribed as "one".
func pushHome(t *testing.T) (r *running, n *Node, f *fakePushes, p *boardPage) {
	t.Helper()
	f = &fakePushes{answer: webpush.Answer{OK: true}}
	r = start(t, func(c *Config) {
		c.probe = func(node *Node) { n = node }
		c.pushes, c.pushEvery = f, time.Hour
	})
	p = r.opensBoard(t, n)
	if got := p.subscribes("one"); got != 200 {
		t.Fatalf("subscribing: %d", got)
	}
	return r, n, f, p
}

// looks has the node look each second for a while; in sight: a page of the person is.
func looks(t *testing.T, n *Node, at *time.Time, seconds int, inSight bool) {
	t.Helper()
	for range seconds {
		*at = at.Add(time.Second)
		targets := n.web.PushTargets()
		for i := range targets {
			if targets[i].Looking = inSight; inSight {
				targets[i].Seen = *at
			}
		}
		if err := n.lookAndTell(t.Context(), targets, *at); err != nil {
			t.Fatal(err)
		}
	}
}

// block lets an agent report a task of the person as blocked, and waits until the node asks the person.
func block(t *testing.T, n *Node, worker *client, name string, want int) {
	t.Helper()
	task, err := n.Send(t.Context(), api.SendRequest{FromBoard: true, To: "worker", Intent: protocol.Delegate, Value: json.RawMessage(`{"task":"secret words"}`)})
	if err != nil {
		t.Fatal(err)
	}
	worker.send(t, map[string]any{"type": "CUSTOM", "name": "WorkerReport", "msgId": name, "value": map[string]string{"status": "blocked", "summary": "secret words", "re_msgId": string(task.MsgID)}})
	asksUntil(t, n, "blocked tasks", func(got api.Asks) bool { return len(got.Asks) == want })
}

// TestAPersonWhoIsNotLookingIsToldOnce: a burst is one note of counts; what a page shows is no note at all; the service's
// word that a subscription is over ends it, on disk too; a failed delivery is tried again, and the key is the owner's alone.
func TestAPersonWhoIsNotLookingIsToldOnce(t *testing.T) {
	r, n, f, p := pushHome(t)
	worker := r.attach(t, "worker")
	want := func(after string, told ...string) {
		t.Helper()
		if got := f.told(); fmt.Sprint(got) != fmt.Sprint(told) {
			t.Fatalf("after %s: told %q, want %q", after, got, told)
		}
	}
	at := time.Now()
	block(t, n, worker, "r-1", 1)
	looks(t, n, &at, 20, true)
	looks(t, n, &at, 60, false)
	want("a page showed it")
	block(t, n, worker, "r-2", 2)
	block(t, n, worker, "r-3", 3)
	looks(t, n, &at, 100, false)
	want("two more", `one {"waiting":3,"noMain":0} urgent=false`)
	if got, note := p.asks("GET", "/api/push/latest", ""); got != 200 || fmt.Sprint(note) != "map[noMain:0 waiting:3]" {
		t.Errorf("latest: %d %v", got, note)
	}
	f.mu.Lock()
	f.answer = webpush.Answer{Wait: time.Minute, Why: "the push service answered 503"}
	f.mu.Unlock()
	block(t, n, worker, "r-4", 4)
	looks(t, n, &at, 30, false)
	once := append(f.told()[:1:1], `one {"waiting":4,"noMain":0} urgent=false`)
	want("a service that is down", once...)
	f.mu.Lock()
	f.answer = webpush.Answer{Gone: true, Why: "over"}
	f.mu.Unlock()
	looks(t, n, &at, 200, false)
	want("trying again", append(once, once[1])...)
	if left := n.web.PushTargets(); len(left) > 0 {
		t.Errorf("%d are still told", len(left))
	}
	for name, holds := range map[string]string{"push.json": "[]\n", "push.key": ""} {
		raw, err := os.ReadFile(r.home + "/" + name)
		if err != nil || holds != "" && string(raw) != holds {
			t.Errorf("%s holds %q (%v)", name, raw, err)
		}
		if info, err := os.Stat(r.home + "/" + name); err != nil || info.Mode().Perm() != 0o600 && os.Getenv("OS") != "Windows_NT" {
			t.Errorf("%s: %v (%v)", name, info.Mode(), err)
		}
	}
	before, err := n.pushKey()
	if err != nil {
		t.Fatal(err)
	}
	n.push.mu.Lock()
	n.push.key = nil // as after a restart
	n.push.mu.Unlock()
	if again, err := n.pushKey(); err != nil || again.Public() != before.Public() {
		t.Errorf("another key after a restart (%v)", err)
	}
}

// TestQuietAndOtherAddresses: who wants quiet has it until its end, a subscription that nothing may be sent to is refused.
func TestQuietAndOtherAddresses(t *testing.T) {
	r, n, f, p := pushHome(t)
	for _, bad := range []string{`{}`, `{"endpoint":"https://push.example.org/x","keys":{"p256dh":"AA","auth":"AA"}}`} {
		if got, _ := p.asks("POST", "/api/push/subscribe", bad); got != 400 {
			t.Errorf("%s: %d", bad, got)
		}
	}
	_, key := p.asks("GET", "/api/push/vapid-public-key", "")
	keys := fmt.Sprintf(`"keys":{"p256dh":%q,"auth":%q}`, key["publicKey"], base64.RawURLEncoding.EncodeToString(make([]byte, 16)))
	if got, _ := p.asks("POST", "/api/push/subscribe", `{"endpoint":"https://127.0.0.1:18999/x",`+keys+`}`); got != 403 {
		t.Errorf("a private address: %d", got)
	}
	at := time.Now()
	if got, _ := p.asks("POST", "/api/push/subscribe", fmt.Sprintf(`{"endpoint":"https://push.example.org/two","quietUntil":%d,%s}`, at.Add(30*time.Minute).UnixMilli(), keys)); got != 200 {
		t.Fatalf("quiet: %d", got)
	}
	worker := r.attach(t, "worker")
	block(t, n, worker, "r-1", 1)
	looks(t, n, &at, 20, false)
	if got := f.told(); len(got) > 0 {
		t.Errorf("told in spite of quiet: %q", got)
	}
	at = at.Add(31 * time.Minute)
	block(t, n, worker, "r-2", 2)
	looks(t, n, &at, 20, false)
	if got := f.told(); len(got) != 1 || got[0] != `two {"waiting":2,"noMain":0} urgent=false` {
		t.Errorf("told %q", got)
	}
}

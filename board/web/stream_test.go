package web

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// sse reads server-sent events: name, id, data.
type sse struct{ name, id, data string }

func events(t *testing.T, body io.Reader) func() sse {
	t.Helper()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	return func() sse {
		t.Helper()
		var e sse
		for lines.Scan() {
			line := lines.Text()
			switch {
			case line == "" && e.name != "":
				return e
			case line == "":
				e = sse{}
			case strings.HasPrefix(line, "event: "):
				e.name = line[7:]
			case strings.HasPrefix(line, "id: "):
				e.id = line[4:]
			case strings.HasPrefix(line, "data: "):
				e.data = line[6:]
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return e
	}
}

// nextNot skips the beats.
func nextNot(next func() sse, name string) sse {
	for {
		if e := next(); e.name != name {
			return e
		}
	}
}

func message(pos uint64, text string) *api.Message {
	id := protocol.MsgID(fmt.Sprintf("0190a0a0-0000-7000-8000-%012x", pos))
	return &api.Message{Pos: pos, Short: "m-" + protocol.ShortID(id), Text: text, Envelope: protocol.Envelope{ID: id, From: "a", To: "b", Intent: protocol.Report}}
}

func TestEventsContinueWhereTheReaderLeft(t *testing.T) {
	f := newFake()
	_, ts := serve(t, f)
	for _, c := range []struct {
		query, last string
		first       string
	}{{"?since=5", "", "6"}, {"?since=0", "6", "7"}, {"?since=7", "", "8"}, {"", "", "8"}} {
		res := open(t, ts, "GET", api.Prefix+"/events"+c.query, "", bearer, func(r *http.Request) {
			if c.last != "" {
				r.Header.Set("Last-Event-ID", c.last)
			}
		})
		if kind := res.Header.Get("Content-Type"); kind != "text/event-stream" {
			t.Fatalf("Content-Type %s", kind)
		}
		next := events(t, res.Body)
		if e := next(); e.name != "status" || e.id != "" || !strings.Contains(e.data, `"name":"devbox"`) {
			t.Errorf("the first event is %+v", e)
		}
		if c.first == "8" {
			f.mu.Lock()
			f.snap.Messages, f.snap.Pos = f.snap.Messages[:7], 7
			f.mu.Unlock()
			f.emit(api.Event{Type: "message", Pos: 8, Message: message(8, "line\nbreak\r\nand  more")})
		}
		e := nextNot(next, "status")
		var got api.Event
		if err := json.Unmarshal([]byte(e.data), &got); err != nil || e.name != "message" || e.id != c.first || fmt.Sprint(got.Message.Pos) != c.first {
			t.Errorf("%+v: got %+v (%v)", c, e, err)
		}
		if e := next(); c.first == "8" && e.name != "status" {
			t.Errorf("no beat: %+v", e)
		}
		res.Body.Close()
	}
	waitFor(t, func() bool { return f.readerCount() == 0 })
}

func waitFor(t *testing.T, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not come")
		}
	}
}

func TestSilentNodeSendsNoBeat(t *testing.T) {
	f := newFake()
	f.silent = true
	_, ts := serve(t, f)
	res := open(t, ts, "GET", api.Prefix+"/events?since=7", "", bearer)
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for range 8 {
		lines.Scan()
		if strings.HasPrefix(lines.Text(), "event:") {
			t.Fatalf("a node that does not answer beats: %s", lines.Text())
		}
	}
	if got, _, _ := ask(t, ts, "GET", "/readyz", ""); got != 503 {
		t.Errorf("/readyz: %d", got)
	}
	if got, _, _ := ask(t, ts, "GET", "/healthz", ""); got != 503 {
		t.Errorf("/healthz: %d", got)
	}
}

// TestDiskFullIsHealthyAndNotReady: who starts a process anew is not asked for help that a new start cannot give.
func TestDiskFullIsHealthyAndNotReady(t *testing.T) {
	f := newFake()
	_, ts := serve(t, f)
	for _, full := range []bool{false, true} {
		f.mu.Lock()
		f.snap.Status.DiskFull = full
		f.mu.Unlock()
		ready := 200
		if full {
			ready = 503
		}
		if got, _, _ := ask(t, ts, "GET", "/readyz", ""); got != ready {
			t.Errorf("full %v: /readyz: %d", full, got)
		}
		if got, _, _ := ask(t, ts, "GET", "/healthz", ""); got != 200 {
			t.Errorf("full %v: /healthz: %d", full, got)
		}
	}
}

// A reader that stops reading is dropped by the node, its request ends, and others get everything.
func TestSlowSubscriberCostsOnlyItself(t *testing.T) {
	f := newFake()
	f.queue = 8
	s, ts := serve(t, f, func(s *Server) { s.writeWithin = 100 * time.Millisecond; s.beatEvery = time.Hour })
	ended := make(chan struct{}, 8)
	inner := s.handler
	ts.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(w, r)
		ended <- struct{}{}
	})
	stuck, err := net.Dial("tcp", ts.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer stuck.Close()
	_ = stuck.(*net.TCPConn).SetReadBuffer(4 << 10)
	fmt.Fprintf(stuck, "GET %s/events?since=7 HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n\r\n", api.Prefix, testToken)
	waitFor(t, func() bool { return f.readerCount() == 1 })
	big := strings.Repeat("x", 64<<10)
	for pos := uint64(8); ; pos++ {
		if pos > 5000 {
			t.Fatal("a reader that reads nothing is still fed")
		}
		f.emit(api.Event{Type: "live", Pos: pos, Message: message(pos, big)})
		if f.readerCount() == 0 {
			break
		}
		time.Sleep(time.Microsecond)
	}
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("the request of the slow reader goes on")
	}
	res := open(t, ts, "GET", api.Prefix+"/events?since=6", "", bearer)
	defer res.Body.Close()
	if e := nextNot(events(t, res.Body), "status"); e.id != "7" {
		t.Errorf("another reader got %+v", e)
	}
}

func TestTailGivesThePastThenWhatComesWithItsTiers(t *testing.T) {
	f := newFake()
	_, ts := serve(t, f)
	res := open(t, ts, "GET", api.Prefix+"/tail?after=5&agent=mac-mini", "", bearer)
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	next := func() api.Event {
		t.Helper()
		if !lines.Scan() {
			t.Fatal("the stream ended")
		}
		var e api.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		return e
	}
	for _, want := range []uint64{6, 7} {
		if e := next(); e.Type != "message" || e.Pos != want {
			t.Errorf("got %+v, want message %d", e, want)
		}
	}
	foreign := message(8, "not for this tail")
	ours := message(9, "for this tail")
	ours.Envelope.From = "mac-mini"
	f.emit(api.Event{Type: "message", Pos: 7, Message: &f.snap.Messages[6]}) // told already
	f.emit(api.Event{Type: "message", Pos: 8, Message: foreign})
	f.emit(api.Event{Type: "tiers", MsgID: foreign.Envelope.ID, From: "a"})
	f.emit(api.Event{Type: "message", Pos: 9, Message: ours})
	f.emit(api.Event{Type: "tiers", MsgID: ours.Envelope.ID, From: "mac-mini", Tiers: []api.TierAt{{Tier: protocol.Persisted}}})
	if e := next(); e.Type != "message" || e.Pos != 9 {
		t.Errorf("got %+v, want message 9", e)
	}
	if e := next(); e.Type != "tiers" || e.MsgID != ours.Envelope.ID || len(e.Tiers) != 1 {
		t.Errorf("got %+v, want its tiers", e)
	}
	got, _, body := ask(t, ts, "GET", api.Prefix+"/tail?follow=0&limit=2", "", bearer)
	if n := strings.Count(body, "\n"); got != 200 || n != 2 {
		t.Errorf("tail without following: %d, %d lines", got, n)
	}
}

func TestInboxIsFollowedAndEachItemToldOnce(t *testing.T) {
	f := newFake()
	f.inboxes = []api.InboxItem{{Pos: 3, MsgID: "m3"}, {Pos: 4, MsgID: "m4"}}
	_, ts := serve(t, f)
	res := open(t, ts, "GET", api.Prefix+"/inbox?agent=b&follow=1&after=3", "", bearer)
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	next := func() string {
		t.Helper()
		if !lines.Scan() {
			t.Fatal("the stream ended")
		}
		var item api.InboxItem
		if err := json.Unmarshal(lines.Bytes(), &item); err != nil {
			t.Fatal(err)
		}
		return string(item.MsgID)
	}
	if got := next(); got != "m4" {
		t.Errorf("first %s", got)
	}
	for pos := uint64(5); pos < 8; pos++ {
		f.mu.Lock()
		f.inboxes = append(f.inboxes, api.InboxItem{Pos: pos, MsgID: protocol.MsgID(fmt.Sprint("m", pos))})
		f.mu.Unlock()
		f.emit(api.Event{Type: "message", Pos: pos, Message: message(pos, "")})
		if got, want := next(), fmt.Sprint("m", pos); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	got, _, body := ask(t, ts, "GET", api.Prefix+"/inbox?agent=b", "", bearer)
	var all struct{ Items []api.InboxItem }
	if err := json.Unmarshal([]byte(body), &all); err != nil || got != 200 || len(all.Items) != 5 {
		t.Errorf("inbox: %d %s", got, body)
	}
}

func TestWaitSaysNothingUntilItHasSomething(t *testing.T) {
	f := newFake()
	_, ts := serve(t, f)
	if got, code, _ := ask(t, ts, "GET", api.Prefix+"/wait?agent=b&timeout=20ms", "", bearer); got != 408 || code != codeTimedOut {
		t.Errorf("nothing came: %d %s", got, code)
	}
	close(f.waitFor)
	got, _, body := ask(t, ts, "GET", api.Prefix+"/wait?agent=b", "", bearer)
	var res api.WaitResult
	if err := json.Unmarshal([]byte(body), &res); err != nil || got != 200 || res.Unread != 1 || res.IDs[0] != "t-7kq2m" {
		t.Errorf("%d %s", got, body)
	}
}

func TestStreamsEndWithTheirSession(t *testing.T) {
	f := newFake()
	now := time.Now()
	s, ts := serve(t, f, func(s *Server) { s.now = func() time.Time { return now } })
	in := signIn(t, s, ts)
	now = now.Add(SessionLife - 50*time.Millisecond)
	res := open(t, ts, "GET", api.Prefix+"/events", "", in)
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil { // ends by itself
		t.Logf("ended with %v", err)
	}
	waitFor(t, func() bool { return f.readerCount() == 0 })
}

func TestSessionSpeaksAsThePersonOnly(t *testing.T) {
	f := newFake()
	s, ts := serve(t, f)
	in := signIn(t, s, ts)
	body := `{"from":"main-agent","to":"codex-shop","intent":"Delegate","value":{"task":"x"}}`
	if got, _, text := ask(t, ts, "POST", api.Prefix+"/send", body, in); got != 200 {
		t.Fatalf("%d %s", got, text)
	}
	if got, _, text := ask(t, ts, "POST", api.Prefix+"/send", body, bearer); got != 200 {
		t.Fatalf("%d %s", got, text)
	}
	if len(f.sent) != 2 || f.sent[0].From != "" || !f.sent[0].FromBoard || f.sent[1].From != "main-agent" || f.sent[1].FromBoard {
		t.Errorf("sent %+v", f.sent)
	}
}

func TestBlobsAreNeverSomethingToRun(t *testing.T) {
	f := newFake()
	_, ts := serve(t, f)
	html := "<script>alert(1)</script>"
	got, _, body := ask(t, ts, "PUT", api.Prefix+"/blobs?name=x.html&mime=text/html", html, bearer, with("Content-Type", "text/html"))
	var ref protocol.BlobRef
	if err := json.Unmarshal([]byte(body), &ref); err != nil || got != 200 || ref.Bytes != int64(len(html)) || ref.Name != "x.html" {
		t.Fatalf("%d %s", got, body)
	}
	res := open(t, ts, "GET", api.Prefix+"/blobs/"+ref.SHA256, "", bearer)
	raw, _ := io.ReadAll(res.Body)
	res.Body.Close()
	if string(raw) != html || res.Header.Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(res.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("%q %v", raw, res.Header)
	}
	if got, _, body := ask(t, ts, "GET", api.Prefix+"/blobs/"+ref.SHA256, "", bearer, with("Range", "bytes=1-6")); got != 206 || body != "script" {
		t.Errorf("a range: %d %q", got, body)
	}
	if got, code, _ := ask(t, ts, "PUT", api.Prefix+"/blobs/"+strings.Repeat("0", 64), html, bearer); got != 400 || code != protocol.CodeBadFrame {
		t.Errorf("another hash: %d %s", got, code)
	}
	for _, sum := range []string{"..", "x", strings.Repeat("A", 64)} {
		if got, _, _ := ask(t, ts, "GET", api.Prefix+"/blobs/"+sum, "", bearer); got != 404 {
			t.Errorf("blob %s: %d", sum, got)
		}
	}
}

func TestOldContractStillAnswers(t *testing.T) {
	f := newFake()
	s, ts := serve(t, f)
	in := signIn(t, s, ts)
	if _, _, body := ask(t, ts, "GET", "/api/state", "", bearer); body != stateMissing {
		t.Errorf("no state: %s", body)
	}
	if _, _, body := ask(t, ts, "GET", "/api/whoami", "", in); !strings.Contains(body, `"loginRequired":false`) {
		t.Errorf("whoami: %s", body)
	}
	f.stateDoc = []byte("{\n\"projects\": []\n}")
	res := open(t, ts, "GET", "/api/events", "", in)
	defer res.Body.Close()
	next := events(t, res.Body)
	if e := next(); e.name != "state" || e.data != `{ "projects": [] }` {
		t.Errorf("first %+v", e)
	}
	f.mu.Lock()
	f.stateDoc = []byte("{}")
	f.mu.Unlock()
	if e := next(); e.data != "{}" {
		t.Errorf("changed %+v", e)
	}
	got, _, body := ask(t, ts, "POST", "/api/feedback", `{"kind":"decision","text":"yes","targetAgentId":"claude-shop"}`, in)
	if got != 200 || strings.TrimSpace(body) != `{"ok":true}` {
		t.Errorf("feedback: %d %s", got, body)
	}
	if len(f.sent) != 1 || f.sent[0].Intent != "OperatorFeedback" || f.sent[0].To != "claude-shop" || !f.sent[0].FromBoard || !strings.Contains(string(f.sent[0].Value), `"receivedAt"`) {
		t.Errorf("the node was given %+v", f.sent)
	}
	if got, _, body := ask(t, ts, "POST", "/api/feedback", `[1]`, in); got != 400 || !strings.Contains(body, "bad json") {
		t.Errorf("bad feedback: %d %s", got, body)
	}
}

func TestOwnerCommandsReachTheNode(t *testing.T) {
	f := newFake()
	_, ts := serve(t, f)
	for _, c := range []struct{ method, path, body, want string }{
		{"POST", "/ack", `{"ids":["t-7kq2m"]}`, `"acked":["whole-id"]`},
		{"POST", "/invites", `{"role":"local"}`, `"token":"aster1-x"`},
		{"POST", "/members/12D3/renew", ``, `"peer":"12D3"`},
		{"GET", "/keys?all=1", ``, `"ref":"kr-1"`},
		{"POST", "/keys", `{"kind":"collab"}`, `"secret":"ck-x"`},
		{"POST", "/keys/kr-1/renew", `{"ttlMillis":5}`, `"ref":"kr-1"`},
		{"POST", "/keys/kr-1/label", `{"label":"other"}`, `"label":"other"`},
		{"POST", "/keys/kr-1/revoke", `{"mode":"immediate"}`, `"ref":"kr-1"`},
		{"POST", "/members/12D3/revoke", `{"reason":"lost"}`, `"ok":true`},
		{"POST", "/agents/a%20b/forget", ``, `"ok":true`},
		{"POST", "/agents/a%20b/rename", `{"to":"c"}`, `"id":"c"`},
		{"POST", "/agents/a%20b/move", `{"node":"n"}`, `"node":"n"`},
		{"POST", "/tasks/t-7kq2m/cancel", ``, `unknown-id`},
		{"POST", "/leave", ``, `"ok":true`},
		{"POST", "/down", ``, `"ok":true`},
		{"GET", "/search?q=tax&before=9&limit=5", ``, `"messages":[]`},
		{"GET", "/outbox", ``, `"messages":[]`},
		{"GET", "/messages?limit=1", ``, `"pos":7`},
		{"GET", "/peers", ``, `"peers":[{`},
		{"GET", "/agents", ``, `"agents":[{`},
		{"GET", "/tasks", ``, `"tasks":[{`},
	} {
		if _, _, body := ask(t, ts, c.method, api.Prefix+c.path, c.body, bearer); !strings.Contains(body, c.want) {
			t.Errorf("%s %s: %s", c.method, c.path, body)
		}
	}
	want := "[ack [t-7kq2m] keys true issue collab  renew key kr-1 true label key kr-1 other revoke key kr-1 immediate revoke 12D3 lost forget a b rename a b c move a b n cancel t-7kq2m leave down search tax 9 5]"
	if got := fmt.Sprint(f.calls); got != want {
		t.Errorf("calls %s, want %s", got, want)
	}
	if got, code, _ := ask(t, ts, "POST", api.Prefix+"/ack", `{}`, bearer); got != 400 || code != protocol.CodeBadFrame {
		t.Errorf("ack of nothing: %d %s", got, code)
	}
	_, _, body := ask(t, ts, "POST", api.Prefix+"/board-link", "", bearer)
	var link struct{ URL string }
	if err := json.Unmarshal([]byte(body), &link); err != nil || !strings.HasPrefix(link.URL, ts.URL+"/open/") {
		t.Fatalf("board-link: %s", body)
	}
	if got, _, _ := ask(t, ts, "GET", strings.TrimPrefix(link.URL, ts.URL), ""); got != 303 {
		t.Errorf("the link answered %d", got)
	}
}

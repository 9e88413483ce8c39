package web

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// client keeps cookies of nobody and follows no redirect.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// ask makes a request and returns status, refusal code and body.
func ask(t *testing.T, ts *httptest.Server, method, path string, body string, change ...func(*http.Request)) (int, string, string) {
	t.Helper()
	res := open(t, ts, method, path, body, change...)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var e api.Error
	_ = json.Unmarshal(raw, &e)
	return res.StatusCode, e.Error.Code, string(raw)
}

func open(t *testing.T, ts *httptest.Server, method, path string, body string, change ...func(*http.Request)) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, ts.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, c := range change {
		c(req)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func with(name, v string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, v) }
}

func host(v string) func(*http.Request) { return func(r *http.Request) { r.Host = v } }

var bearer = with("Authorization", "Bearer "+testToken)

// signIn uses a link up and returns what a browser then sends from our own page.
func signIn(t *testing.T, s *Server, ts *httptest.Server) func(*http.Request) {
	t.Helper()
	res := open(t, ts, "GET", strings.TrimPrefix(s.LinkURL(ts.URL), ts.URL), "")
	res.Body.Close()
	cookies := res.Cookies()
	if res.StatusCode != http.StatusSeeOther || len(cookies) != 1 {
		t.Fatalf("the link answered %d with %d cookies", res.StatusCode, len(cookies))
	}
	c := cookies[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.MaxAge != 12*3600 {
		t.Errorf("the session cookie is %v", c)
	}
	return func(r *http.Request) {
		r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
		r.Header.Set("Origin", ts.URL)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
}

// wayTo is a concrete address for a row of the table.
var wayTo = strings.NewReplacer("{id}", "x", "{peer}", "p", "{sha256}", strings.Repeat("a", 64), "{ticket}", "t", "{file}", "board.js", "{$}", "")

func asSocket(r *http.Request) {
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "websocket")
	r.Header.Set("Sec-WebSocket-Version", "13")
	r.Header.Set("Sec-WebSocket-Key", "MDEyMzQ1Njc4OWFiY2RlZg==")
}

func TestEveryRouteIsGuarded(t *testing.T) {
	f := newFake()
	s, ts := serve(t, f)
	in := signIn(t, s, ts)
	port := ts.URL[strings.LastIndex(ts.URL, ":"):]
	rows := append(s.table(), s.openFiles()...)
	if len(rows) < 40 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	for _, rt := range rows {
		path := wayTo.Replace(rt.path)
		upgrade := func(*http.Request) {}
		if rt.path == "/ws" {
			upgrade = asSocket
		}
		check := func(what string, want int, code string, change ...func(*http.Request)) {
			t.Helper()
			body := ""
			if rt.method == "POST" {
				body = "{}"
			}
			change = append([]func(*http.Request){upgrade}, change...)
			got, gotCode, text := ask(t, ts, rt.method, path, body, change...)
			if got != want || gotCode != code {
				t.Errorf("%s %s, %s: %d %s, want %d %s\n%.200s", rt.method, rt.path, what, got, gotCode, want, code, text)
			}
		}
		refused := func(what string, want int, code string, change ...func(*http.Request)) {
			t.Helper()
			for name, credential := range map[string]func(*http.Request){"session": in, "token": bearer} { // even with a credential
				check(what+" with "+name, want, code, append([]func(*http.Request){credential}, change...)...)
			}
		}
		for _, h := range []string{"evil.example" + port, "127.0.0.1.evil.example", "10.1.2.3" + port, "[fe80::1]" + port, "localhost.evil.example"} {
			refused("Host "+h, 403, codeWrongHost, host(h), with("Origin", "http://"+h))
		}
		for _, o := range []string{"null", "http://evil.example" + port, "http://127.0.0.1", "http://localhost" + port, "file://", "http://127.0.0.1" + port + "/x", "javascript:1"} {
			refused("Origin "+o, 403, codeWrongOrigin, with("Origin", o))
		}
		refused("from another site", 403, codeCrossSite, with("Sec-Fetch-Site", "cross-site"), with("Sec-Fetch-Mode", "no-cors"))
		refused("from another port", 403, codeCrossSite, with("Sec-Fetch-Site", "same-site"), with("Sec-Fetch-Mode", "no-cors"))
		if !rt.landing {
			refused("navigated to from another site", 403, codeCrossSite, with("Sec-Fetch-Site", "cross-site"), with("Sec-Fetch-Mode", "navigate"), with("Sec-Fetch-Dest", "document"))
		}
		refused("token in the address", 400, codeTokenInURL, func(r *http.Request) { r.URL.RawQuery = "token=" + testToken })
		noCode := codeNoCredential
		if rt.locked {
			noCode = "" // the locked page is HTML
		}
		check("wrong token", 401, noCode, with("Authorization", "Bearer wrong"))
		check("token as a password", 401, noCode, with("Authorization", "Basic "+testToken))
		check("wrong token beside a session", 401, noCode, in, with("Authorization", "Bearer wrong"))
		if rt.who != anyone {
			check("no credential", 401, noCode)
			check("forged session", 401, noCode, with("Cookie", s.sessions.cookie+"="+strings.Repeat("A", 75)), with("Origin", ts.URL))
			if rt.who&session == 0 {
				check("a session where the token is needed", 401, noCode, in)
			}
			if rt.who&token == 0 {
				check("the token where a session is needed", 401, noCode, bearer)
			}
		}
		if rt.method != "GET" && rt.who&session != 0 {
			check("a session without Origin", 403, codeCrossSite, in, func(r *http.Request) {
				r.Header.Del("Origin")
				r.Header.Del("Sec-Fetch-Site")
			})
		}
		if rt.method == "POST" {
			credential := in
			if rt.who&session == 0 {
				credential = bearer
			}
			check("a form", 415, protocol.CodeWrongType, credential, with("Content-Type", "application/x-www-form-urlencoded"))
			check("plain text", 415, protocol.CodeWrongType, credential, with("Content-Type", "text/plain"))
		}
		other := map[string]string{"GET": "DELETE", "POST": "GET", "PUT": "PATCH"}[rt.method]
		if got, code, _ := ask(t, ts, other, path, "", bearer); rt.path != api.Prefix+"/blobs/{sha256}" && (got != 405 || code != codeWrongMethod) {
			t.Errorf("%s %s: %d %s, want 405", other, rt.path, got, code)
		}
	}
	if f.calls != nil || f.sent != nil || f.callers != nil {
		t.Errorf("refused requests reached the node: %v %v %v", f.calls, f.sent, f.callers)
	}
	for _, path := range []string{"/nothing", "/api/v1/nothing", "/static/../server.go", "/static/index.html", "/.env", "/ws/x"} {
		if got, code, _ := ask(t, ts, "GET", path, "", in); got != 404 {
			t.Errorf("%s: %d %s, want 404", path, got, code)
		}
		if got, code, _ := ask(t, ts, "GET", path, "", in, host("evil.example")); got != 403 || code != codeWrongHost {
			t.Errorf("%s with a wrong Host: %d %s", path, got, code)
		}
	}
}

func TestBoardIsKnownByItsOwnNamesOnly(t *testing.T) {
	_, ts := serve(t, newFake())
	port := ts.URL[strings.LastIndex(ts.URL, ":"):]
	for _, h := range []string{"127.0.0.1" + port, "localhost" + port, "LOCALHOST", "[::1]" + port, "127.8.9.1:1", "board.example", "board.example:443"} {
		if got, code, _ := ask(t, ts, "GET", api.Prefix+"/status", "", bearer, host(h), with("Origin", "http://"+h)); got != 200 {
			t.Errorf("Host %s: %d %s", h, got, code)
		}
	}
}

func TestLinkOpensOnceAndInTime(t *testing.T) {
	now := time.Date(2026, 11, 29, 14, 0, 0, 0, time.UTC)
	s, ts := serve(t, newFake(), func(s *Server) { s.now = func() time.Time { return now } })
	use := func(link string) int {
		got, _, _ := ask(t, ts, "GET", strings.TrimPrefix(link, ts.URL), "")
		return got
	}
	link := s.LinkURL(ts.URL + "/")
	if got, _, _ := ask(t, ts, "HEAD", strings.TrimPrefix(link, ts.URL), ""); got != 405 {
		t.Errorf("HEAD answered %d: a preview must not use the link up", got)
	}
	if got := use(link); got != 303 {
		t.Errorf("first use: %d", got)
	}
	if got := use(link); got != 410 {
		t.Errorf("replayed: %d, want 410", got)
	}
	late := s.LinkURL(ts.URL)
	now = now.Add(LinkLife)
	if got := use(late); got != 410 {
		t.Errorf("after %s: %d, want 410", LinkLife, got)
	}
	if got := use(ts.URL + "/open/guess"); got != 410 {
		t.Errorf("a guess: %d, want 410", got)
	}
	in := signIn(t, s, ts)
	if got, _, _ := ask(t, ts, "GET", "/", "", in); got != 200 {
		t.Errorf("with a session: %d", got)
	}
	now = now.Add(SessionLife)
	if got, _, body := ask(t, ts, "GET", "/", "", in); got != 401 || !strings.Contains(body, "This board opens with a link from your terminal.") {
		t.Errorf("after %s: %d", SessionLife, got)
	}
	links := make([]string, linksMax+1)
	for i := range links {
		links[i] = s.LinkURL(ts.URL)
	}
	if use(links[0]) != 410 || use(links[1]) != 303 || len(s.links.open) > linksMax {
		t.Errorf("%d links wait, at most %d", len(s.links.open), linksMax)
	}
}

func TestSessionsOfOneKeySurviveARestartAndOthersDoNot(t *testing.T) {
	key := []byte(strings.Repeat("k", 32))
	now := time.Now()
	one, two := New(Config{Backend: newFake(), SessionKey: key}), New(Config{Backend: newFake(), SessionKey: key})
	other := New(Config{Backend: newFake()})
	r := httptest.NewRequest("GET", "/", nil)
	c := one.sessions.issue(now, false)
	r.AddCookie(c)
	if _, ok := two.sessions.check(r, now); !ok {
		t.Error("a restart ended the session")
	}
	if other.sessions.cookie == one.sessions.cookie {
		t.Error("two nodes on one machine share a cookie name")
	}
	c.Name = other.sessions.cookie
	r.AddCookie(c)
	if _, ok := other.sessions.check(r, now); ok {
		t.Error("another node believes the session")
	}
}

func TestSocketIsToldWhoCalls(t *testing.T) {
	f := newFake()
	s, ts := serve(t, f)
	in := signIn(t, s, ts)
	for _, c := range []struct {
		name   string
		query  string
		change []func(*http.Request)
		want   Caller
		status int
	}{
		{"a program", "", nil, Caller{Nobody, false, true}, 101},
		{"a program with a key", "?key=ck-1", nil, Caller{Nobody, false, true}, 101},
		{"the page", "", []func(*http.Request){in}, Caller{Operator, true, true}, 101},
		{"a command", "", []func(*http.Request){bearer}, Caller{Token, false, true}, 101},
		{"forwarded", "", []func(*http.Request){with("X-Forwarded-For", "10.0.0.1")}, Caller{Nobody, false, false}, 101},
		{"a page without session", "", []func(*http.Request){with("Origin", ts.URL)}, Caller{}, 401},
		{"a page with a key", "?key=ck-1", []func(*http.Request){with("Origin", ts.URL)}, Caller{Nobody, true, true}, 101},
	} {
		f.callers = nil
		conn, err := net.Dial("tcp", ts.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		req, _ := http.NewRequest("GET", ts.URL+"/ws"+c.query, nil)
		asSocket(req)
		for _, ch := range c.change {
			ch(req)
		}
		if err := req.Write(conn); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), req)
		conn.Close()
		if err != nil || res.StatusCode != c.status {
			t.Errorf("%s: %v %v", c.name, res, err)
			continue
		}
		f.mu.Lock()
		got := f.callers
		f.mu.Unlock()
		if c.status == 101 && (len(got) != 1 || got[0] != c.want) {
			t.Errorf("%s: the node was told %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestEveryAnswerCarriesTheHeaders(t *testing.T) {
	s, ts := serve(t, newFake())
	in := signIn(t, s, ts)
	for _, path := range []string{"/", "/static/board.css", "/static/board.js", "/healthz", "/open/used", api.Prefix + "/status", "/nothing", "/t/x"} {
		for _, who := range []func(*http.Request){in, func(*http.Request) {}} {
			res := open(t, ts, "GET", path, "", who)
			res.Body.Close()
			h := res.Header
			if h.Get("Content-Security-Policy") != contentPolicy || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" {
				t.Errorf("%s: %v", path, h)
			}
			asset := strings.HasPrefix(path, "/static/") || path == "/" || path == "/t/x"
			if want := res.StatusCode == 200 && asset; want != (h.Get("ETag") != "") || !want && h.Get("Cache-Control") != "no-store" {
				t.Errorf("%s (%d): ETag %q, Cache-Control %q", path, res.StatusCode, h.Get("ETag"), h.Get("Cache-Control"))
			}
			if tag := h.Get("ETag"); tag != "" {
				if got, _, _ := ask(t, ts, "GET", path, "", who, with("If-None-Match", tag)); got != 304 {
					t.Errorf("%s asked again: %d", path, got)
				}
			}
		}
	}
}

// What the page loads, all together: files of its own origin, at most 200 KiB.
func TestPageIsSmallAndWhole(t *testing.T) {
	s := New(Config{Backend: newFake()})
	named := regexp.MustCompile(`(?:from |import |href=|src=|src: |src:)"(?:\./|/static/)([\w.-]+)"`)
	seen, todo, sum := map[string]bool{}, []string{"index.html"}, 0
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		a, ok := s.assets[name]
		if !ok {
			t.Fatalf("the page asks for %s, which is not there", name)
		}
		sum += len(a.body)
		if strings.Contains(string(a.body), "innerHTML") || strings.Contains(string(a.body), "https://") && name != "icon.svg" && !strings.Contains(name, "js") {
			t.Errorf("%s gives markup or names another origin", name)
		}
		for _, m := range named.FindAllStringSubmatch(string(a.body), -1) {
			todo = append(todo, m[1])
		}
	}
	if sum > 200<<10 {
		t.Errorf("the page is %d bytes", sum)
	}
	for name := range s.assets {
		if !seen[name] && name != "locked.html" && name != "used.html" && name != "locked.js" {
			t.Errorf("nothing asks for %s", name)
		}
	}
	t.Logf("%d files, %d bytes", len(seen), sum)
}

func TestBodiesAreBounded(t *testing.T) {
	f := newFake()
	s, ts := serve(t, f)
	in := signIn(t, s, ts)
	send := api.Prefix + "/send"
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	for _, c := range []struct {
		name, body, code string
		status           int
	}{
		{"too large", `{"to":"` + strings.Repeat("a", bodyBytesMax) + `"}`, protocol.CodeFrameTooLarge, 413},
		{"too deep", `{"to":"a","intent":"UserPrompt","value":` + deep + `}`, protocol.CodeTooDeep, 400},
		{"not UTF-8", "{\"to\":\"a\xff\"}", protocol.CodeNotUTF8, 400},
		{"cut off", `{"to":"a"`, protocol.CodeBadFrame, 400},
		{"two values", `{"to":"a"}{}`, protocol.CodeBadFrame, 400},
		{"wrong type", `{"to":7}`, protocol.CodeBadFrame, 400},
	} {
		if got, code, _ := ask(t, ts, "POST", send, c.body, in); got != c.status || code != c.code {
			t.Errorf("%s: %d %s, want %d %s", c.name, got, code, c.status, c.code)
		}
	}
	if len(f.sent) != 0 {
		t.Errorf("the node was given %v", f.sent)
	}
	brackets := fmt.Sprintf(`{"to":"claude-shop","intent":"UserPrompt","value":{"text":%q}}`, deep+`\"`+deep)
	if got, code, _ := ask(t, ts, "POST", send, brackets, in); got != 200 {
		t.Errorf("brackets in a string: %d %s", got, code)
	}
}

func TestErrorsTellRefusalsOnly(t *testing.T) {
	f := newFake()
	_, ts := serve(t, f)
	if got, code, body := ask(t, ts, "GET", api.Prefix+"/messages/broken", "", bearer); got != 500 || code != "internal" || strings.Contains(body, "secret") {
		t.Errorf("%d %s", got, body)
	}
	if got, code, _ := ask(t, ts, "GET", api.Prefix+"/messages/zzzzz", "", bearer); got != 404 || code != protocol.CodeUnknownID {
		t.Errorf("unknown id: %d %s", got, code)
	}
	for code, want := range map[string]int{protocol.CodeUnknownAgent: 404, protocol.CodeNotAllowed: 403, protocol.CodeMsgIDReused: 409, protocol.CodeInboxFull: 409, protocol.CodeDiskFull: 507,
		protocol.CodeFrameTooLarge: 413, protocol.CodeAmbiguousID: 409, protocol.CodeRevoked: 403, protocol.CodeInviteUsed: 403, "a-code-to-come": 403} {
		f.sendErr = fmt.Errorf("send: %w", protocol.Refuse(code, "no", "hint"))
		got, gotCode, body := ask(t, ts, "POST", api.Prefix+"/send", `{"to":"a"}`, bearer)
		if got != want || gotCode != code || !strings.Contains(body, `"hint":"hint"`) {
			t.Errorf("%s: %d %s, want %d", code, got, body, want)
		}
	}
	if got, code, _ := ask(t, ts, "GET", api.Prefix+"/messages/"+url.PathEscape(string(f.snap.Messages[6].Envelope.ID))+"?wait=processed&timeout=10ms", "", bearer); got != 408 || code != codeTimedOut {
		t.Errorf("a tier that does not come: %d %s", got, code)
	}
	for _, q := range []string{"/messages?before=x", "/messages?limit=-1", "/messages/a?wait=soon", "/wait?timeout=later", "/search", "/events?since=a"} {
		if got, code, _ := ask(t, ts, "GET", api.Prefix+q, "", bearer); got != 400 || code != protocol.CodeBadFrame {
			t.Errorf("%s: %d %s", q, got, code)
		}
	}
}

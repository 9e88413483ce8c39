package web

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
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
var wayTo = strings.NewReplacer("{id}", "x", "{peer}", "p", "{ref}", "r", "{kind}", "collab", "{sha256}", strings.Repeat("a", 64), "{ticket}", "t", "{file}", "board.js", "{$}", "")

func asSocket(r *http.Request) {
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "websocket")
	r.Header.Set("Sec-WebSocket-Version", "13")
	r.Header.Set("Sec-WebSocket-Key", "MDEyMzQ1Njc4OWFiY2RlZg==")
}

// tried asks one row of the table in ways that must be refused.
type tried struct {
	t  *testing.T
	s  *Server
	ts *httptest.Server
	in func(*http.Request)
	rt route
}

func (x *tried) want(what string, status int, code string, change ...func(*http.Request)) {
	x.t.Helper()
	body := ""
	if x.rt.method == "POST" {
		body = "{}"
	}
	if x.rt.path == "/ws" {
		change = append([]func(*http.Request){asSocket}, change...)
	}
	got, gotCode, text := ask(x.t, x.ts, x.rt.method, wayTo.Replace(x.rt.path), body, change...)
	if got != status || gotCode != code {
		x.t.Errorf("%s %s, %s: %d %s, want %d %s\n%.200s", x.rt.method, x.rt.path, what, got, gotCode, status, code, text)
	}
}

// refused holds whatever credential comes with it.
func (x *tried) refused(what string, status int, code string, change ...func(*http.Request)) {
	x.t.Helper()
	for name, credential := range map[string]func(*http.Request){"session": x.in, "token": bearer} {
		x.want(what+" with "+name, status, code, append([]func(*http.Request){credential}, change...)...)
	}
}

func (x *tried) wrongPlaces() {
	port := x.ts.URL[strings.LastIndex(x.ts.URL, ":"):]
	for _, h := range []string{"evil.example" + port, "127.0.0.1.evil.example", "10.1.2.3" + port, "[fe80::1]" + port, "localhost.evil.example"} {
		x.refused("Host "+h, 403, codeWrongHost, host(h), with("Origin", "http://"+h))
	}
	for _, o := range []string{"null", "http://evil.example" + port, "http://127.0.0.1", "http://localhost" + port, "file://", "http://127.0.0.1" + port + "/x", "javascript:1"} {
		x.refused("Origin "+o, 403, codeWrongOrigin, with("Origin", o))
	}
	x.refused("from another site", 403, codeCrossSite, with("Sec-Fetch-Site", "cross-site"), with("Sec-Fetch-Mode", "no-cors"))
	x.refused("from another port", 403, codeCrossSite, with("Sec-Fetch-Site", "same-site"), with("Sec-Fetch-Mode", "no-cors"))
	if !x.rt.landing {
		x.refused("navigated to from another site", 403, codeCrossSite, with("Sec-Fetch-Site", "cross-site"), with("Sec-Fetch-Mode", "navigate"), with("Sec-Fetch-Dest", "document"))
	}
	if x.rt.tokens {
		return
	}
	x.refused("token in the address", 400, codeTokenInURL, func(r *http.Request) { r.URL.RawQuery = "token=" + testToken })
}

func (x *tried) wrongCredentials() {
	code := codeNoCredential
	if x.rt.locked {
		code = "" // the locked page is HTML
	}
	x.want("wrong token", 401, code, with("Authorization", "Bearer wrong"))
	x.want("token as a password", 401, code, with("Authorization", "Basic "+testToken))
	x.want("wrong token beside a session", 401, code, x.in, with("Authorization", "Bearer wrong"))
	if x.rt.who == anyone {
		return
	}
	x.want("no credential", 401, code)
	x.want("forged session", 401, code, with("Cookie", x.s.sessions.cookie+"="+strings.Repeat("A", 75)), with("Origin", x.ts.URL))
	if x.rt.who&session == 0 {
		x.want("a session where the token is needed", 401, code, x.in)
	}
	if x.rt.who&token == 0 {
		x.want("the token where a session is needed", 401, code, bearer)
	}
}

func (x *tried) wrongChanges() {
	if x.rt.method != "GET" && x.rt.who&session != 0 {
		x.want("a session without Origin", 403, codeCrossSite, x.in, func(r *http.Request) {
			r.Header.Del("Origin")
			r.Header.Del("Sec-Fetch-Site")
		})
	}
	if x.rt.method == "POST" {
		credential := x.in
		if x.rt.who&session == 0 {
			credential = bearer
		}
		x.want("a form", 415, protocol.CodeWrongType, credential, with("Content-Type", "application/x-www-form-urlencoded"))
		x.want("plain text", 415, protocol.CodeWrongType, credential, with("Content-Type", "text/plain"))
	}
	other := map[string]string{"GET": "DELETE", "POST": "PATCH", "PUT": "PATCH"}[x.rt.method]
	if got, code, _ := ask(x.t, x.ts, other, wayTo.Replace(x.rt.path), "", bearer); got != 405 || code != codeWrongMethod {
		x.t.Errorf("%s %s: %d %s, want 405", other, x.rt.path, got, code)
	}
}

func TestEveryRouteIsGuarded(t *testing.T) {
	f := newFake()
	s, ts := serve(t, f)
	in := signIn(t, s, ts)
	rows := s.rows()
	if len(rows) < 40 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	for _, rt := range rows {
		x := &tried{t, s, ts, in, rt}
		x.wrongPlaces()
		x.wrongCredentials()
		x.wrongChanges()
	}
	if f.calls != nil || f.sent != nil || f.callers != nil {
		t.Errorf("refused requests reached the node: %v %v %v", f.calls, f.sent, f.callers)
	}
	for _, path := range []string{"/nothing", "/api/v1/nothing", "/static/../server.go", "/static/index.html", "/.env", "/ws/x", "//", "/api/v1/../v1/status"} {
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
	one, two := newServer(t, Config{Backend: newFake(), SessionKey: key}), newServer(t, Config{Backend: newFake(), SessionKey: key})
	other := newServer(t, Config{Backend: newFake()})
	r := httptest.NewRequest("GET", "/", nil)
	c := one.sessions.issue(admission{}, now, false)
	r.AddCookie(c)
	if _, _, ok := two.sessions.read(r, now); !ok {
		t.Error("a restart ended the session")
	}
	if other.sessions.cookie == one.sessions.cookie {
		t.Error("two nodes on one machine share a cookie name")
	}
	c.Name = other.sessions.cookie
	r.AddCookie(c)
	if _, _, ok := other.sessions.read(r, now); ok {
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
		{"a program", "", nil, Caller{Standing: Nobody, Loopback: true}, 101},
		{"a program with a key", "?key=ck-1", nil, Caller{Standing: Nobody, Loopback: true}, 101},
		{"the page", "", []func(*http.Request){in}, Caller{Standing: Operator, Origin: true, Loopback: true}, 101},
		{"a command", "", []func(*http.Request){bearer}, Caller{Standing: Token, Loopback: true}, 101},
		{"forwarded", "", []func(*http.Request){with("X-Forwarded-For", "10.0.0.1")}, Caller{Standing: Nobody}, 101},
		{"a page without session", "", []func(*http.Request){with("Origin", ts.URL)}, Caller{}, 401},
		{"a page with a key", "?key=ck-1", []func(*http.Request){with("Origin", ts.URL)}, Caller{Standing: Nobody, Origin: true, Loopback: true}, 101},
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
		for i := range got {
			if ends := got[i].While != nil; ends != (c.query == "" && c.name != "a command") {
				t.Errorf("%s: it says that something may end the right to be here: %t", c.name, ends)
			}
			got[i].While = nil
		}
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

package web

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// guardCodes are what a request can be refused with before its handler.
var guardCodes = []string{codeNoCredential, codeWrongHost, codeWrongOrigin, codeCrossSite, codeTokenInURL, codeNoRoute, codeWrongMethod, protocol.CodeWrongType}

// right is a request of a row as it must pass: with the credential that it asks for, from the place that it may come from.
func (x *tried) right(credential func(*http.Request)) (int, string) {
	body := ""
	if x.rt.method == "POST" {
		body = "{}"
	}
	change := []func(*http.Request){credential}
	if x.rt.path == "/ws" {
		change = append(change, asSocket)
	}
	got, code, _ := ask(x.t, x.ts, x.rt.method, x.path(), body, change...)
	return got, code
}

// path is a concrete address for the row that its handler answers at once.
func (x *tried) path() string {
	path := wayTo.Replace(x.rt.path)
	if x.rt.path == api.Prefix+"/wait" || x.rt.path == api.Prefix+"/search" {
		path += "?q=x&timeout=1ms"
	}
	return path
}

// replays are cookies that held once. Each is made with the server's own key.
func replays(t *testing.T, s *Server, ts *httptest.Server) map[string]func(*http.Request) {
	t.Helper()
	cookie := func(in admission, at time.Time) func(*http.Request) {
		c := s.sessions.issue(in, at, false)
		return func(r *http.Request) {
			r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
			r.Header.Set("Origin", ts.URL)
			r.Header.Set("Sec-Fetch-Site", "same-origin")
		}
	}
	out := map[string]func(*http.Request){
		"a session that ran out":             cookie(admission{}, s.now().Add(-SessionLife)),
		"a session of an earlier round":      cookie(admission{round: s.operators.round() + 1}, s.now()),
		"a session of an account that is no": cookie(admission{round: s.operators.round(), account: "gone"}, s.now()),
		"another node's session": func(r *http.Request) {
			c := newServer(t, Config{Backend: newFake()}).sessions.issue(admission{}, s.now(), false)
			r.AddCookie(&http.Cookie{Name: s.sessions.cookie, Value: c.Value})
			r.Header.Set("Origin", ts.URL)
		},
	}
	left := signIn(t, s, ts)
	if got, code, _ := ask(t, ts, "POST", "/api/logout", "", left); got != 200 {
		t.Fatalf("signing out: %d %s", got, code)
	}
	out["a session that was signed out"] = left
	return out
}

// TestEveryRouteRefusesWhatHeldOnce enumerates the router's own rows, so a new route cannot be forgotten.
func TestEveryRouteRefusesWhatHeldOnce(t *testing.T) {
	f := newFake()
	s, ts := serve(t, f)
	old := replays(t, s, ts)
	for _, rt := range s.rows() {
		x := &tried{t: t, s: s, ts: ts, rt: rt}
		for name, in := range old {
			switch {
			case rt.fresh: // nobody is anybody there, and what follows is a sign-in of its own
				if got, code := x.right(in); got == 500 || rt.who != anyone {
					t.Errorf("%s %s with %s: %d %s", rt.method, rt.path, name, got, code)
				}
			case rt.locked:
				x.want(name, 401, "", in)
			default:
				x.want(name, 401, codeNoCredential, in)
			}
		}
	}
	if f.sent != nil || f.callers != nil {
		t.Errorf("refused requests reached the node: %v %v", f.sent, f.callers)
	}
}

// TestEveryRouteServesARightRequest is the other side of the tables above: their rows are not refused for another reason.
func TestEveryRouteServesARightRequest(t *testing.T) {
	for _, rt := range idle(t).rows() {
		f := newFake()
		close(f.waitFor)
		s, ts := serve(t, f)
		x := &tried{t: t, s: s, ts: ts, rt: rt}
		in := func(*http.Request) {}
		switch {
		case rt.who&token != 0:
			in = bearer
		case rt.who&session != 0 || rt.path == "/ws":
			in = signIn(t, s, ts)
		}
		if strings.Contains(rt.path, "/events") || strings.HasSuffix(rt.path, "/tail") {
			res := open(t, ts, rt.method, x.path(), "", in)
			res.Body.Close() // it would go on for ever
			if res.StatusCode != 200 {
				t.Errorf("%s %s: %d", rt.method, rt.path, res.StatusCode)
			}
			continue
		}
		if got, code := x.right(in); slices.Contains(guardCodes, code) && rt.path != "/join/{kind}" && rt.path != "/api/login" || got >= 500 {
			t.Errorf("%s %s with what it asks for: %d %s", rt.method, rt.path, got, code)
		}
	}
}

// idle is a server that answers nobody.
func idle(t *testing.T) *Server { return newServer(t, Config{Backend: newFake()}) }

// said sends bytes as they are on a connection of their own and returns what is answered, up to its end.
func said(t *testing.T, ts *httptest.Server, text string) (status int, body string) {
	t.Helper()
	conn, err := net.Dial("tcp", ts.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, ""
	}
	defer res.Body.Close()
	raw, _ := io.ReadAll(io.LimitReader(res.Body, 1<<16))
	return res.StatusCode, string(raw)
}

// Guards: KB9.
func TestEveryRouteRefusesRequestsThatAreBuiltToMislead(t *testing.T) {
	f := newFake()
	s, ts := serve(t, f)
	at := strings.TrimPrefix(ts.URL, "http://")
	upgrade := "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n"
	auth := "Authorization: Bearer " + testToken + "\r\n"
	for _, rt := range s.rows() {
		path, socket := wayTo.Replace(rt.path), ""
		if rt.path == "/ws" {
			socket = upgrade
		}
		line := func(target, version string) string {
			return fmt.Sprintf("%s %s HTTP/%s\r\n", rt.method, target, version)
		}
		for _, c := range []struct {
			name, text string
			status     []int
		}{
			{"HTTP/1.0 without Host", line(path, "1.0") + auth + socket + "\r\n", []int{403}},
			{"HTTP/1.1 without Host", line(path, "1.1") + auth + socket + "Connection: close\r\n\r\n", []int{400}},
			{"an empty Host", line(path, "1.1") + "Host: \r\n" + auth + socket + "\r\n", []int{403, 400}},
			{"two Hosts", line(path, "1.1") + "Host: " + at + "\r\nHost: evil.example\r\n" + auth + socket + "\r\n", []int{400}},
			{"another name in an absolute address", line("http://evil.example"+path, "1.1") + "Host: " + at + "\r\n" + auth + socket + "\r\n", []int{403}},
			{"another scheme in an absolute address", line("https://evil.example"+path, "1.1") + "Host: " + at + "\r\n" + auth + socket + "\r\n", []int{403}},
			{"a name that was turned to us", line(path, "1.1") + "Host: rebound.example:80\r\nOrigin: http://rebound.example:80\r\n" + auth + socket + "\r\n", []int{403}},
			{"both lengths", line(path, "1.1") + "Host: " + at + "\r\n" + auth + "Content-Length: 4\r\nTransfer-Encoding: chunked, identity\r\n" + socket + "\r\n0\r\n\r\n", []int{400, 501}},
			{"two lengths", line(path, "1.1") + "Host: " + at + "\r\n" + auth + "Content-Length: 4\r\nContent-Length: 5\r\n" + socket + "\r\nabcde", []int{400}},
			{"two tokens", line(path, "1.1") + "Host: " + at + "\r\n" + auth + "Authorization: Bearer other\r\n" + socket + "\r\n", []int{401}},
			{"two Origins", line(path, "1.1") + "Host: " + at + "\r\n" + auth + "Origin: http://" + at + "\r\nOrigin: http://evil.example\r\n" + socket + "\r\n", []int{403}},
		} {
			if got, body := said(t, ts, c.text); !slices.Contains(c.status, got) {
				t.Errorf("%s %s, %s: %d, want %v\n%.200s", rt.method, rt.path, c.name, got, c.status, body)
			}
		}
		if rt.path == "/ws" || strings.Contains(rt.path, "events") || strings.HasSuffix(rt.path, "/tail") || strings.HasSuffix(rt.path, "/wait") {
			continue
		}
		for _, kind := range []string{"websocket", "h2c", "WebSocket, h2c"} { // an upgrade is for /ws alone
			text := line(path, "1.1") + "Host: " + at + "\r\nConnection: Upgrade, close\r\nUpgrade: " + kind + "\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
			if got, _ := said(t, ts, text); got == http.StatusSwitchingProtocols || got == 0 {
				t.Errorf("%s %s upgraded to %s: %d", rt.method, rt.path, kind, got)
			}
		}
	}
	if f.calls != nil || f.sent != nil || f.callers != nil {
		t.Errorf("refused requests reached the node: %v %v %v", f.calls, f.sent, f.callers)
	}
}

// A proxy in between makes nobody somebody, and somebody nobody else: what the headers say is no credential.
func TestForwardedHeadersGiveNothing(t *testing.T) {
	f := newFake()
	s, ts := serve(t, f)
	for _, header := range []string{"X-Forwarded-For", "X-Real-Ip", "Forwarded", "X-Forwarded-Host", "X-Client-Ip"} {
		for _, value := range []string{"127.0.0.1", "for=127.0.0.1;host=127.0.0.1", ts.URL} {
			for _, rt := range s.rows() {
				x := &tried{t: t, s: s, ts: ts, rt: rt}
				if rt.who != anyone && !rt.locked {
					x.want(header, 401, codeNoCredential, with(header, value))
				}
			}
			f.callers = nil
			if got, _, _ := ask(t, ts, "GET", "/join/local?label=x", "", with(header, value)); got != 403 {
				t.Errorf("%s: %s: the page for this machine is shown: %d", header, value, got)
			}
			res := open(t, ts, "GET", "/ws", "", asSocket, with(header, value))
			res.Body.Close()
			if len(f.callers) != 1 || f.callers[0].Loopback {
				t.Errorf("%s: %s: the node was told %+v", header, value, f.callers)
			}
		}
	}
}

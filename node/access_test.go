package node

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aster-mesh/aster/board/web"
	"github.com/aster-mesh/aster/node/link"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/protocol/asterism"
	"github.com/aster-mesh/aster/roles/access"
)

// elsewhere is a listener whose connections come from an address of the test's choice.
type elsewhere struct {
	net.Listener
	from atomic.Pointer[net.TCPAddr]
}

func (l *elsewhere) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if at := l.from.Load(); err == nil && at != nil {
		return fromThere{c, at}, nil
	}
	return c, err
}

type fromThere struct {
	net.Conn
	at *net.TCPAddr
}

func (c fromThere) RemoteAddr() net.Addr { return c.at }

// startBehind runs a node that believes its clients to come from wherever the returned listener says.
func startBehind(t *testing.T, accessFile string) (*running, *elsewhere, string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &elsewhere{Listener: ln}
	var token string
	r := start(t, func(c *Config) {
		c.BoardListener = l
		c.probe = func(n *Node) { token = n.token }
		if accessFile != "" {
			if err := os.MkdirAll(c.Home, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(c.Home, "access.json"), []byte(accessFile), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	})
	return r, l, token
}

func (l *elsewhere) at(addr string) {
	if addr == "" {
		l.from.Store(nil)
		return
	}
	l.from.Store(&net.TCPAddr{IP: net.ParseIP(addr), Port: 40000})
}

// call makes a request on a connection of its own, from where the listener says.
func (r *running) call(t *testing.T, token, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.Board+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	res, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var e api.Error
	_ = json.Unmarshal(raw, &e)
	if e.Error.Code != "" {
		return res.StatusCode, e.Error.Code
	}
	return res.StatusCode, string(raw)
}

// knock opens a socket and returns it, or the status of the refusal.
func (r *running) knock(t *testing.T, query string) (*keyed, int) {
	t.Helper()
	conn, err := link.Dial(t.Context(), "ws"+r.Board[len("http"):]+"/ws"+query, nil, link.Options{})
	var no *link.RefusedError
	switch {
	case errors.As(err, &no):
		return nil, no.Status
	case err != nil:
		t.Fatal(err)
	}
	return serveKeyed(t, conn), http.StatusSwitchingProtocols
}

func (c *keyed) comesAs(t *testing.T, id string, capabilities ...string) {
	t.Helper()
	c.send(t, map[string]any{"type": "HELLO", "agentId": id, "capabilities": append([]string{"ack-layer"}, capabilities...)})
}

func (c *keyed) rejected(t *testing.T) string {
	t.Helper()
	return into[asterism.Rejection](t, c.next(t, "ConnectionRejected")).Code
}

// TestWhereSomebodyComesFromDecidesByWhichDoor: the page and its API, agents and plugins have a list each; this machine is
// in none and always let in; a list that is not there means private addresses.
func TestWhereSomebodyComesFromDecidesByWhichDoor(t *testing.T) {
	r, l, token := startBehind(t, `{"ui":{"allowlist":["10.0.0.0/8"]},"agent":{"allowlist":["192.168.7.0/24"]},"mcp":{"allowlist":["fd00::/8"]}}`)
	key := r.attach(t, "main-agent").issue(t, map[string]any{"kind": "collab"}).Key
	for _, from := range []struct {
		addr           string
		ui, agent, mcp bool
	}{{"10.1.2.3", true, false, false}, {"192.168.7.9", false, true, false}, {"fd00::7", false, false, true}, {"192.168.8.1", false, false, false}, {"203.0.113.5", false, false, false}} {
		l.at(from.addr)
		want, status := 200, 0
		if !from.ui {
			want = 403
		}
		if got, code := r.call(t, token, "GET", "/api/v1/status", ""); got != want || got == 403 && code != "ip-not-allowlisted" {
			t.Errorf("%s: status answers %d %s", from.addr, got, code)
		}
		if got, code := r.call(t, "", "GET", "/nowhere", ""); !from.ui && code != "ip-not-allowlisted" {
			t.Errorf("%s: an address that is not there answers %d %s", from.addr, got, code)
		}
		anyDoor := from.ui || from.agent || from.mcp
		for door, open := range map[string]bool{"": from.agent, "mcp-proxy": from.mcp} {
			var c *keyed
			if c, status = r.knock(t, "?key="+key); (status == 101) != anyDoor {
				t.Errorf("%s: an upgrade is answered %d", from.addr, status)
			}
			if c == nil {
				continue
			}
			c.comesAs(t, "guest", door)
			if open {
				c.next(t, "ConnectionInfo")
			} else if code := c.rejected(t); code != "ip-not-allowlisted" {
				t.Errorf("%s as %q: %s", from.addr, door, code)
			}
			c.conn.Close(1000, "")
		}
		if _, status = r.knock(t, "?token="+token); anyDoor && (status == 101) != from.ui {
			t.Errorf("%s: a person's socket is answered %d", from.addr, status)
		}
	}
	l.at("")
	if got, _ := r.call(t, token, "GET", "/api/v1/status", ""); got != 200 {
		t.Errorf("this machine: %d", got)
	}
	r.attach(t, "worker")
}

// TestListsThatChangeHoldForWhatIsOpen: a socket and a stream of an address that is let in no more end, others go on.
func TestListsThatChangeHoldForWhatIsOpen(t *testing.T) {
	r, l, token := startBehind(t, "")
	main := r.attach(t, "main-agent")
	key, other := main.issue(t, map[string]any{"kind": "collab"}).Key, main.issue(t, map[string]any{"kind": "peer", "label": "q"}).Key
	l.at("10.1.2.3")
	barred, _ := r.knock(t, "?key="+key)
	barred.comesAs(t, "guest")
	barred.next(t, "ConnectionInfo")
	board, _ := r.knock(t, "?token="+token)
	board.next(t, "AgentList")
	stream := make(chan error, 1)
	opened := make(chan struct{})
	go func() {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", r.Board+"/api/v1/events", nil)
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultClient.Do(req)
		close(opened)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
		stream <- err
	}()
	<-opened
	l.at("10.9.9.9")
	stays, _ := r.knock(t, "?peerKey="+other)
	stays.comesAs(t, "friend")
	stays.next(t, "ConnectionInfo")

	lists := `{"ui":{"allowlist":[]},"agent":{"allowlist":["10.9.0.0/16"],"requireKey":true},"mcp":{"allowlist":[]}}`
	if got, code := r.call(t, token, "PUT", "/api/access", lists); got != 403 || code != "not-allowed" {
		t.Errorf("lists changed from elsewhere: %d %s", got, code)
	}
	l.at("")
	if got, code := r.call(t, "", "PUT", "/api/access", lists); got != 401 {
		t.Errorf("lists changed by nobody: %d %s", got, code)
	}
	for bad, code := range map[string]string{`{"ui":{"allowlist":["0.0.0.0/0"]}}`: "public-address", `{"agent":{"requirekeys":1}}`: "bad-frame", `{"expose":true}`: "not-allowed"} {
		if got, c := r.call(t, token, "PUT", "/api/access", bad); c != code {
			t.Errorf("%s: %d %s, want %s", bad, got, c, code)
		}
	}
	if got, code := r.call(t, token, "PUT", "/api/access", lists); got != 200 {
		t.Fatalf("PUT answers %d %s", got, code)
	}
	if code := barred.rejected(t); code != "ip-not-allowlisted" {
		t.Errorf("the agent that is let in no more: %s", code)
	}
	board.next(t, "ConnectionRejected")
	select {
	case <-stream:
	case <-time.After(20 * time.Second):
		t.Error("the stream goes on")
	}
	main.send(t, map[string]any{"type": "CUSTOM", "name": "Request", "targetAgentId": "friend", "msgId": "still-1", "value": map[string]any{"text": "there?"}})
	if f := stays.next(t, "Request"); f.MsgID != "still-1" {
		t.Errorf("the one that stays got %s", f.MsgID)
	}
	raw, err := os.ReadFile(filepath.Join(r.home, "access.json"))
	if err != nil || !strings.Contains(string(raw), `"requireKey": true`) || !strings.Contains(string(raw), "10.9.0.0/16") {
		t.Errorf("kept: %s %v", raw, err)
	}
	if got, text := r.call(t, token, "GET", "/api/access", ""); got != 200 || !strings.Contains(text, "10.9.0.0/16") || !strings.Contains(text, `"expose":false`) {
		t.Errorf("GET answers %d %s", got, text)
	}
}

// TestAgentsOfOtherMachinesMayNeedAKey: whoever the person's token let in is no agent without one.
func TestAgentsOfOtherMachinesMayNeedAKey(t *testing.T) {
	r, l, token := startBehind(t, `{"agent":{"requireKey":true}}`)
	key := r.attach(t, "main-agent").issue(t, map[string]any{"kind": "collab"}).Key
	l.at("10.1.2.3")
	c, _ := r.knock(t, "?token="+token)
	c.comesAs(t, "w1")
	if code := c.rejected(t); code != "key-required" {
		t.Errorf("without a key: %s", code)
	}
	c, _ = r.knock(t, "?token="+token)
	c.send(t, map[string]any{"type": "HELLO", "agentId": "guest", "key": key})
	c.next(t, "ConnectionInfo")
	c, _ = r.knock(t, "?key="+key)
	c.comesAs(t, "guest")
	c.next(t, "ConnectionInfo")
	l.at("")
	r.attach(t, "w2")
}

// TestAFileThatIsNotReadableOpensNoDoor: at the start nobody but this machine is let in, later what held before holds; a
// good one holds within a moment.
func TestAFileThatIsNotReadableOpensNoDoor(t *testing.T) {
	r, l, token := startBehind(t, `{"ui":{"allowlist":["all"`)
	status := func() string {
		l.at("10.1.2.3")
		_, code := r.call(t, token, "GET", "/api/access", "")
		l.at("")
		return code
	}
	warned := func() bool {
		_, text := r.call(t, token, "GET", "/api/v1/status", "")
		return strings.Contains(text, "access.json")
	}
	if code := status(); code != "ip-not-allowlisted" || !warned() {
		t.Errorf("with half a file: %s", code)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(r.home, "access.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"ui":{"allowlist":["10.0.0.0/8"]}}`)
	until(t, "the good file holds", func() bool { return status() != "ip-not-allowlisted" && !warned() })
	write(`{"ui":{"allowlist":["203.0.113.0/24", "10.0.0.0/8"]}}`)
	until(t, "the bad file is told of", warned)
	if code := status(); code == "ip-not-allowlisted" {
		t.Error("a bad file shut the door")
	}
	write(`{"ui":{"allowlist":[]}}`)
	until(t, "the last file holds", func() bool { return status() == "ip-not-allowlisted" })
}

func TestABoardThatListensOnLoopbackAloneIsNotExposed(t *testing.T) {
	for addr, want := range map[string]bool{"127.0.0.1:1": false, "[::1]:1": false, "0.0.0.0:1": true, "[::]:1": true, "10.0.0.1:1": true} {
		at, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil || web.Exposed(at) != want {
			t.Errorf("%s: %v %v", addr, !want, err)
		}
	}
}

// TestAChangeBeforeTheFirstLookIsSeen: the lists are read at the start, and looked at only once everything runs.
func TestAChangeBeforeTheFirstLookIsSeen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"ui":{"allowlist":["10.0.0.0/8"]}}`)
	n := &Node{home: &home{dir: filepath.Dir(path)}, ctx: t.Context(), done: t.Context().Done()}
	n.loop = &loop{n: n, jobs: make(chan func(), 1)}
	var err error
	if n.web, err = web.New(web.Config{Backend: n, Access: operatorsFile(path)}); err != nil {
		t.Fatal(err)
	}
	n.openAccess()
	write(`{"ui":{"allowlist":["192.168.0.0/16"]}}`)
	n.lookAtAccess()
	rules := n.web.Access()
	if from := netip.MustParseAddr("10.1.2.3"); rules.Allows(access.UI, from) || len(n.loop.jobs) != 1 {
		t.Errorf("%s may still come in, and %d were told", from, len(n.loop.jobs))
	}
}

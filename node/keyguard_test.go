package node

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node/link"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// errorTo says a verb and returns the code of the KeyError that comes back, or the name of another answer.
func (c *client) errorTo(t testing.TB, name string, value any) string {
	t.Helper()
	c.send(t, verb(name, "q", value))
	for {
		select {
		case f := <-c.frames:
			if f.Name == "KeyError" {
				e := into[asterism.KeyError](t, f)
				if e.Re != "q" || e.Message == "" {
					t.Errorf("%s %v: %+v", name, value, e)
				}
				return e.Code
			}
			if strings.HasPrefix(f.Name, "Key") || strings.HasSuffix(f.Name, "KeyIssued") || f.Name == "ServerNotice" {
				return f.Name
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("no answer to %s %v", name, value)
		}
	}
}

// TestWrongValuesInEveryFieldOfEveryKeyVerb: the node lives, the sender gets the contract's error, others notice nothing.
// Guards: KA3, KA12.
func TestWrongValuesInEveryFieldOfEveryKeyVerb(t *testing.T) {
	r := start(t, nil)
	main, worker := r.attach(t, "main-agent"), r.attach(t, "worker")
	k := main.issue(t, map[string]any{"kind": "collab"})
	values := []any{map[string]any{"toString": 1}, []any{}, []any{map[string]any{}}, true, -1, 1.5, 1e20, 1e300, "", "\u202e", strings.Repeat("x", 5000)}
	wrong := map[string]map[string]map[string]bool{ // verb, field: values that are fine there by their fmt
		"KeyIssue":            {"kind": nil, "label": nil, "roleDescription": {"": true, "-1": false}, "ttl": nil, "boundAgent": nil},
		"KeyList":             {"includeRevoked": {"true": true}, "includeDeleted": {"true": true}},
		"KeyRevoke":           {"key": {}, "keyRef": {}, "mode": nil},
		"KeyLabel":            {"key": {}, "keyRef": {}, "newLabel": nil},
		"KeyRenew":            {"key": {}, "keyRef": {}, "ttl": nil},
		"RegisterUpstreamKey": {"label": nil},
		"RegisterCollabKey":   {"label": nil},
		"RevokeUpstreamKey":   {"key": nil},
		"RevokeCollabKey":     {"key": nil},
	}
	for name, fields := range wrong {
		for _, value := range values { // the whole value
			if _, object := value.(map[string]any); object {
				continue
			}
			if got := main.errorTo(t, name, value); got != "INVALID_VALUE" && got != "KEY_NOT_FOUND" {
				t.Errorf("%s with value %v: %s", name, value, got)
			}
		}
		for field, fine := range fields {
			for _, value := range values {
				v := map[string]any{field: value}
				if field != "key" && field != "keyRef" && strings.HasPrefix(name, "Key") && name != "KeyIssue" && name != "KeyList" {
					v["keyRef"] = k.KeyRef
				}
				if fine[fmt.Sprint(value)] {
					continue
				}
				if got := main.errorTo(t, name, v); strings.ToUpper(got) != got {
					t.Errorf("%s with %s %.60v: answered %s, want an error", name, field, value, got)
				}
			}
		}
	}
	if got := into[asterism.KeyListResult](t, ask(t, main, "KeyList", map[string]any{"includeRevoked": true})); len(got.Keys) != 1 || got.Keys[0].State != "ISSUED" {
		t.Errorf("after it there are %+v", got.Keys)
	}
	main.send(t, map[string]any{"type": "CUSTOM", "name": "Request", "targetAgentId": "worker", "msgId": "alive", "value": map[string]any{}})
	for {
		f := <-worker.frames
		if f.Name == "Request" {
			break
		}
		if f.Name != "AgentList" && f.Name != "History" {
			t.Errorf("the worker noticed %s %s", f.Name, f.Value)
		}
	}
}

func ask(t testing.TB, c *client, name string, value any) asterism.Frame {
	t.Helper()
	c.send(t, verb(name, "q", value))
	return c.next(t, map[string]string{"KeyList": "KeyListResult", "KeyRevoke": "KeyRevoked", "KeyLabel": "KeyLabeled", "KeyRenew": "KeyRenewed"}[name])
}

// TestOnlyMainAndTheOwnerManageKeys: each message of anybody else is refused, whatever its value. Guards: KB7.
func TestOnlyMainAndTheOwnerManageKeys(t *testing.T) {
	r := start(t, nil)
	main := r.attach(t, "main-agent")
	board := r.watch(t)
	k := board.issue(t, map[string]any{"kind": "collab"})
	up := main.issue(t, map[string]any{"kind": "upstream"})
	others := map[string]*client{"local": r.attach(t, "worker"), "collab": &r.joinWith(t, k.Key, "partner").client, "upstream": &r.joinWith(t, up.Key, "above").client}
	for who, c := range others {
		for _, name := range []string{"KeyIssue", "KeyList", "KeyRevoke", "KeyLabel", "KeyRenew", "RegisterUpstreamKey", "RegisterCollabKey", "RevokeUpstreamKey", "RevokeCollabKey"} {
			for _, value := range []any{map[string]any{"keyRef": k.KeyRef, "mode": "immediate", "newLabel": "x"}, "x", nil} {
				if got := c.errorTo(t, name, value); got != "PERMISSION_DENIED" {
					t.Errorf("%s as %s: %s", name, who, got)
				}
			}
		}
	}
	if got := board.errorTo(t, "KeyLabel", map[string]any{"keyRef": k.KeyRef, "newLabel": "mine"}); got != "KeyLabeled" {
		t.Errorf("the owner's board: %s", got)
	}
}

// TestKeyStringsAreShownOnceAndKeptNowhere: only who asked sees it; no list, notice, label or revocation repeats it, no
// file of the home holds it but a local key's own, and no log line. Guards: KB11, KB12.
func TestKeyStringsAreShownOnceAndKeptNowhere(t *testing.T) {
	logs := &safeBuffer{}
	r := start(t, func(c *Config) { c.Log = logs.logger() })
	main, board := r.attach(t, "main-agent"), r.watch(t)
	k := main.issue(t, map[string]any{"kind": "collab", "label": "c"})
	local := main.issue(t, map[string]any{"kind": "local", "label": "helper"})
	if local.Key != "" || local.JoinURL != "" || len(local.JoinURLs) != 0 || local.JoinFile != "local-keys/helper.key" {
		t.Errorf("KeyIssued of a local key: %+v", local)
	}
	path := filepath.Join(r.home, "local-keys", "helper.key")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	localKey := strings.TrimSpace(string(raw))
	for file, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if st, err := os.Stat(file); err != nil || st.Mode().Perm() != want {
			t.Errorf("%s: %v %v, want mode %o", file, st.Mode(), err, want)
		}
	}
	r.joinWith(t, k.Key, "partner")
	w := r.joinWith(t, localKey, "helper")
	main.send(t, verb("KeyLabel", "x", map[string]any{"key": k.Key, "newLabel": "d"}))
	main.send(t, verb("KeyLabel", "x", map[string]any{"keyRef": local.KeyRef, "newLabel": "helper2"}))
	main.send(t, verb("KeyRenew", "x", map[string]any{"key": k.Key}))
	main.send(t, verb("KeyList", "x", map[string]any{"includeRevoked": true}))
	main.send(t, verb("KeyRevoke", "x", map[string]any{"keyRef": local.KeyRef, "mode": "sessionEnd"}))
	main.send(t, verb("KeyRevoke", "x", map[string]any{"key": k.Key, "mode": "immediate"}))
	main.next(t, "KeyRevoked")
	for _, f := range drained(main, "KeyRevoked") {
		if strings.Contains(string(f.Value), k.Key) || strings.Contains(string(f.Value), localKey) {
			t.Errorf("main was shown a key again: %s", f.Value)
		}
	}
	w.conn.Close(1000, "")
	if _, err := os.Stat(filepath.Join(r.home, "local-keys", "helper2.key")); err != nil {
		t.Errorf("the file of a relabelled key: %v", err)
	}
	board.send(t, map[string]any{"type": "CUSTOM", "name": "UserPrompt", "targetAgentId": "main-agent", "msgId": "end", "value": map[string]any{}})
	main.next(t, "UserPrompt")
	for {
		select {
		case f := <-board.frames:
			if strings.HasPrefix(f.Name, "Key") {
				t.Errorf("a board that did not ask was shown %s %s", f.Name, f.Value)
			}
			continue
		default:
		}
		break
	}
	r.stop()
	err = filepath.WalkDir(r.home, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(file, ".key") && strings.Contains(file, "local-keys") {
			return err
		}
		raw, err := os.ReadFile(file)
		if strings.Contains(string(raw), k.Key[3:]) || strings.Contains(string(raw), localKey[3:]) {
			t.Errorf("%s holds a key", file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if text := logs.String(); strings.Contains(text, k.Key[3:]) || strings.Contains(text, localKey[3:]) || !strings.Contains(text, "fp:") {
		t.Errorf("the log holds a key, or nothing of one: %.2000s", text)
	}
}

// drained are the frames that wait already, up to the next of a name.
func drained(c *client, last string) (out []asterism.Frame) {
	for f := range c.frames {
		if out = append(out, f); f.Name == last {
			return out
		}
	}
	return out
}

// TestSocketWithAKeyIsShownNothingBeforeItsHello, however long it waits and whatever others say. Guards: KB10, B28.
func TestSocketWithAKeyIsShownNothingBeforeItsHello(t *testing.T) {
	r := start(t, nil)
	main, worker := r.attach(t, "main-agent"), r.attach(t, "worker")
	k := main.issue(t, map[string]any{"kind": "collab"})
	silent := r.come(t, "?key="+k.Key)
	if f := silent.next(t, "SERVER_HELLO"); f.Type != "SERVER_HELLO" {
		t.Fatal(f)
	}
	silent.send(t, map[string]any{"type": "CUSTOM", "name": "Request", "targetAgentId": "worker", "msgId": "early", "value": map[string]any{}})
	if f := <-silent.frames; f.Name != "ServerNotice" || !strings.Contains(string(f.Value), protocol.CodeNotHello) {
		t.Errorf("before its HELLO it got %s %s", f.Name, f.Value)
	}
	for i := range 20 {
		main.send(t, map[string]any{"type": "CUSTOM", "name": "Request", "targetAgentId": "worker", "msgId": fmt.Sprint(i), "value": map[string]any{}})
		main.send(t, map[string]any{"type": "CUSTOM", "name": "Status", "value": map[string]any{"text": "for boards"}})
		if f := worker.next(t, "Request"); f.MsgID == "early" {
			t.Error("a frame before the HELLO was passed on")
		}
	}
	silent.hello(t, "partner")
	if f := <-silent.frames; f.Name != "ConnectionInfo" {
		t.Errorf("shown before its HELLO: %s %s", f.Name, f.Value)
	}
}

// TestNothingBehindARefusedHelloInItsSegment: HELLO and messages in one write, also in one with the upgrade itself.
// Guards: KB4.
func TestNothingBehindARefusedHelloInItsSegment(t *testing.T) {
	r := start(t, nil)
	main, worker := r.attach(t, "main-agent"), r.attach(t, "worker")
	k := main.issue(t, map[string]any{"kind": "collab"})
	r.joinWith(t, k.Key, "partner")
	host := r.Board[len("http://"):]
	upgrade := "GET /ws?key=" + k.Key + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
	var frames []byte
	for _, text := range []string{`{"type":"HELLO","agentId":"trusted-partner"}`, `{"type":"CUSTOM","name":"Request","targetAgentId":"worker","msgId":"stolen","value":{}}`,
		`{"type":"HELLO","agentId":"partner"}`, `{"type":"CUSTOM","name":"Request","targetAgentId":"worker","msgId":"stolen2","value":{}}`} {
		frames = append(frames, 0x81, 0x80|126)
		frames = append(binary.BigEndian.AppendUint16(frames, uint16(len(text))), 0, 0, 0, 0)
		frames = append(frames, text...)
	}
	for _, together := range []bool{false, true} {
		conn, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		in := bufio.NewReader(conn)
		if together {
			_, err = conn.Write(append([]byte(upgrade), frames...))
		} else if _, err = conn.Write([]byte(upgrade)); err == nil {
			var res *http.Response
			if res, err = http.ReadResponse(in, nil); err == nil && res.StatusCode != http.StatusSwitchingProtocols {
				t.Fatalf("the upgrade was answered %d", res.StatusCode)
			}
			_, err = conn.Write(frames)
		}
		if err != nil {
			t.Fatal(err)
		}
		shown, _ := io.ReadAll(in) // until it is closed
		if !together && !strings.Contains(string(shown), protocol.CodeIdentityMismatch) || strings.Contains(string(shown), "AgentList") {
			t.Errorf("in one segment with the upgrade %v, the thief was shown %q", together, shown)
		}
		conn.Close()
	}
	main.send(t, map[string]any{"type": "CUSTOM", "name": "Request", "targetAgentId": "worker", "msgId": "honest", "value": map[string]any{}})
	if f := worker.next(t, "Request"); f.MsgID != "honest" || f.AgentID != "main-agent" {
		t.Errorf("the worker got %s of %s", f.MsgID, f.AgentID)
	}
}

// TestLocalKeyWorksOnThisMachineOnly: not through anything that forwards, by any of its headers, with or without a HELLO.
// Guards: B31.
func TestLocalKeyWorksOnThisMachineOnly(t *testing.T) {
	r := start(t, func(c *Config) { c.Access.Keyless = false })
	secret := localKey(t, r, "w")
	for _, header := range []string{"X-Forwarded-For", "X-Real-Ip", "Forwarded", "X-Forwarded-Host", "X-Client-Ip"} {
		c := r.comeBy(t, "?key="+secret, http.Header{header: {"127.0.0.1"}})
		if code, reason, before := c.close(t); code != 4403 || reason != protocol.CodeKeyRemote || len(before) != 1 {
			t.Errorf("by %s: %d %q after %d frames", header, code, reason, len(before))
		}
		c = r.comeBy(t, "", http.Header{header: {"127.0.0.1"}})
		c.send(t, map[string]any{"type": "HELLO", "agentId": "w", "key": secret})
		if code, reason, _ := c.close(t); code != 4403 || reason != protocol.CodeKeyRemote {
			t.Errorf("in a HELLO by %s: %d %q", header, code, reason)
		}
	}
	c := r.come(t, "")
	c.hello(t, "w")
	if code, reason, before := c.close(t); code != 4403 || reason != protocol.CodeKeyRequired || len(before) != 2 || before[0].Type != "SERVER_HELLO" {
		t.Errorf("without a key: %d %q after %d frames", code, reason, len(before))
	}
	w := r.come(t, "?key="+secret)
	w.hello(t, "w")
	if info := into[asterism.ConnectionInfo](t, w.next(t, "ConnectionInfo")); info.Role != protocol.RoleLocal || !info.Keyed || info.MayManageKeys {
		t.Errorf("with its key: %+v", info)
	}
	for _, kind := range []string{`"local"`, `"collab"`, `"collab","agent":"main-agent"`} {
		m := r.come(t, "?key="+issueByAPI(t, r, `{"label":"m","kind":`+kind+`}`))
		m.hello(t, "Main-Agent")
		if code, reason, _ := m.close(t); code != 4403 || reason != protocol.CodeIdentityMismatch {
			t.Errorf("main by a key of kind %s: %d %q", kind, code, reason)
		}
	}
	m := r.come(t, "?key="+issueByAPI(t, r, `{"kind":"local","label":"mine","agent":"main-agent"}`))
	m.hello(t, "main-agent")
	if info := into[asterism.ConnectionInfo](t, m.next(t, "ConnectionInfo")); info.Role != protocol.RoleMain || !info.MayManageKeys {
		t.Errorf("main by its own key: %+v", info)
	}
}

func (r *running) comeBy(t testing.TB, query string, header http.Header) *keyed {
	t.Helper()
	conn, err := link.Dial(t.Context(), "ws"+r.Board[len("http"):]+"/ws"+query, header, link.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return serveKeyed(t, conn)
}

// localKey issues a local key by the node's own API.
func localKey(t testing.TB, r *running, label string) string {
	t.Helper()
	return issueByAPI(t, r, `{"kind":"local","label":"`+label+`"}`)
}

// issueByAPI is what the command line does; of a local key it reads the file.
func issueByAPI(t testing.TB, r *running, body string) string {
	t.Helper()
	var file struct{ Board, Token string }
	raw, err := os.ReadFile(filepath.Join(r.home, "node.json"))
	if err == nil {
		err = json.Unmarshal(raw, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	req, _ := http.NewRequestWithContext(t.Context(), "POST", file.Board+"/api/v1/keys", strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer "+file.Token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var got struct{ File, Secret string }
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil || res.StatusCode != 200 {
		t.Fatalf("issue: %d %+v %v", res.StatusCode, got, err)
	}
	if got.File == "" {
		return got.Secret
	}
	if raw, err = os.ReadFile(got.File); err != nil || got.Secret != "" {
		t.Fatal(got, err)
	}
	return strings.TrimSpace(string(raw))
}

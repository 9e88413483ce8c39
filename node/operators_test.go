package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node/link"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// asOwner posts with the token of node.json.
func (r *running) asOwner(t *testing.T, path, body string) {
	t.Helper()
	file, err := ReadNodeFile(r.home)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", r.Board+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+file.Token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 200 {
		t.Fatalf("POST %s: %s", path, res.Status)
	}
}

// TestWithAnAccountEverySocketNeedsACredential. Guards: KB16.
func TestWithAnAccountEverySocketNeedsACredential(t *testing.T) {
	r := start(t, nil)
	main := r.attach(t, "main-agent")
	key := main.issue(t, map[string]any{"kind": "collab"})
	friend := r.joinWith(t, key.Key, "friend")
	before := map[string]*keyed{"a board": r.come(t, ""), "an agent": r.come(t, "")}
	before["a board"].next(t, "AgentList")
	before["an agent"].hello(t, "w")
	before["an agent"].next(t, "ConnectionInfo")

	r.asOwner(t, "/api/operators", `{"id":"ann","password":"long enough words"}`)
	for name, c := range before {
		c.close(t) // it was let in for being here
		_ = name
	}
	silent := r.come(t, "")
	silent.send(t, map[string]any{"type": "CUSTOM", "name": "DeleteChannelHistory", "value": map[string]any{"agentId": "main-agent"}})
	hello := r.come(t, "")
	hello.hello(t, "main-agent")
	code, reason, shown := hello.close(t)
	if code != 4403 || reason != protocol.CodeKeyRequired {
		t.Errorf("a HELLO without key: %d %s", code, reason)
	}
	for _, f := range shown {
		if f.Name == "AgentList" || f.Name == "History" {
			t.Errorf("without credential it was shown %s", f.Name)
		}
	}
	file, err := ReadNodeFile(r.home)
	if err != nil {
		t.Fatal(err)
	}
	owner := r.come(t, "?token="+file.Token)
	owner.next(t, "AgentList")
	friend.send(t, map[string]any{"type": "HELLO", "agentId": "friend", "capabilities": []string{"ack-layer"}})
	friend.next(t, "ConnectionInfo") // its key still holds
	if raw, err := os.ReadFile(operatorsPath(r)); err != nil || strings.Contains(string(raw), "long enough words") || !strings.Contains(string(raw), `"ann"`) {
		t.Errorf("what is kept: %s %v", raw, err)
	}
	if info, err := os.Stat(operatorsPath(r)); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others can read it: %v %v", info, err)
	}
}

func operatorsPath(r *running) string { return r.home + "/operators.json" }

// TestWhatIsShownAndDoesNotHoldIsRefused: a wrong token or another key is never passed over for being beside what holds.
// Guards: B17.
func TestWhatIsShownAndDoesNotHoldIsRefused(t *testing.T) {
	r := start(t, nil)
	main := r.attach(t, "main-agent")
	key := main.issue(t, map[string]any{"kind": "collab"}).Key
	file, err := ReadNodeFile(r.home)
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]int{
		"?token=wrong": 401, "?token=" + file.Token + "x": 401, "?token=" + file.Token + "&token=wrong": 401, "?token=wrong&key=" + key: 401,
		"?key=" + key + "&peerKey=pk-0123456789abcdef01234567": 401, "?key=" + key + "&key=ck-0123456789abcdef01234567": 401,
		"?token=": 0, "?token=" + file.Token: 0, "?key=" + key: 0, "?token=&key=" + key: 0, "?token=" + file.Token + "&key=" + key: 0, "": 0,
	} {
		conn, err := link.Dial(t.Context(), "ws"+r.Board[len("http"):]+"/ws"+query, nil, link.Options{})
		var no *link.RefusedError
		switch {
		case want == 0 && err != nil, want != 0 && (!errors.As(err, &no) || no.Status != want):
			t.Errorf("%s: %v, want %d", query, err, want)
		}
		if conn != nil {
			serveKeyed(t, conn)
		}
	}
}

// TestTheKeyRuleHoldsForEveryVerb: without a credential no name of the catalogue and no unknown one does anything, before a
// HELLO, behind a refused one, and to nobody. Guards: KB24.
func TestTheKeyRuleHoldsForEveryVerb(t *testing.T) {
	r := start(t, func(c *Config) { c.Access.Keyless = false })
	file, err := ReadNodeFile(r.home)
	if err != nil {
		t.Fatal(err)
	}
	board := r.come(t, "?token="+file.Token)
	main := r.come(t, "?token="+file.Token)
	main.hello(t, "main-agent")
	main.next(t, "ConnectionInfo")
	names := []string{"NoSuchName", "SetMain", "HandoffReady", "ArchiveChannel", "DeleteChannelHistory", "CloseChannel", "RequestChannelHistory"}
	for _, row := range protocol.Catalogue() {
		names = append(names, string(row.Name))
	}
	for name := range keyVerbs {
		names = append(names, string(name))
	}
	stranger := r.come(t, "")
	for i, name := range names {
		value := map[string]any{"agentId": "main-agent", "kind": "collab", "channelKey": "main-agent", "topic": "x", "promptId": "p", "word": "contraband"}
		frame := map[string]any{"type": "CUSTOM", "name": name, "agentId": "main-agent", "source": "board", "targetAgentId": "main-agent", "msgId": fmt.Sprint("s-", i), "value": value}
		stranger.send(t, frame)
		delete(frame, "targetAgentId")
		frame["msgId"] = fmt.Sprint("u-", i)
		stranger.send(t, frame)
	}
	for _, kind := range []string{"TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_STARTED", "STATE_SNAPSHOT"} {
		stranger.send(t, map[string]any{"type": kind, "messageId": "t", "delta": "contraband", "targetAgentId": "main-agent", "agentId": "main-agent"})
	}
	stranger.hello(t, "main-agent")
	stranger.behind(t, map[string]any{"type": "CUSTOM", "name": "Report", "targetAgentId": "main-agent", "msgId": "behind", "value": map[string]any{"word": "contraband"}})
	_, _, shown := stranger.close(t)
	for _, f := range shown {
		if f.Name != "ServerNotice" && f.Name != "ConnectionRejected" && f.Type != "SERVER_HELLO" {
			t.Errorf("a stranger was told %s %s", f.Type, f.Name)
		}
	}
	main.send(t, map[string]any{"type": "CUSTOM", "name": "Report", "targetAgentId": "main-agent", "msgId": "fence", "value": map[string]any{"n": 1}})
	for name, c := range map[string]*keyed{"main": main, "the board": board} {
		for deadline := time.After(20 * time.Second); ; {
			var f asterism.Frame
			select {
			case f = <-c.frames:
			case <-deadline:
				t.Fatalf("%s did not get the last frame", name)
			}
			if raw, _ := json.Marshal(f); strings.Contains(string(raw), "contraband") {
				t.Errorf("%s got %s", name, raw)
			}
			if f.MsgID == "fence" {
				break
			}
		}
	}
}

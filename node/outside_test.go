package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// TestClientByKeySeesItsOwnOnly: of talk, text and agents beside it an outside client receives not one byte, neither as it
// happens nor later by History or ChannelHistory; its own it does. Guards: KB10, B28.
func TestClientByKeySeesItsOwnOnly(t *testing.T) {
	r := start(t, nil)
	main, worker, board := r.attach(t, "main-agent"), r.attach(t, "worker"), r.watch(t)
	k := main.issue(t, map[string]any{"kind": "collab"})
	c := r.joinWith(t, k.Key, "partner")
	say := func(from *client, to, name, word string) {
		from.send(t, map[string]any{"type": "CUSTOM", "name": name, "targetAgentId": to, "msgId": word, "value": map[string]any{"text": word}})
	}
	for i := range 10 {
		say(main, "worker", "Request", fmt.Sprint("canary-a", i))
		say(worker, "main-agent", "Response", fmt.Sprint("canary-b", i))
		say(board, "worker", "UserPrompt", fmt.Sprint("canary-c", i))
		main.send(t, map[string]any{"type": "CUSTOM", "name": "Status", "value": map[string]any{"text": "canary-d"}})
		worker.send(t, map[string]any{"type": "CUSTOM", "name": "AgentActivity", "value": map[string]any{"tool": "canary-e"}})
		worker.send(t, map[string]any{"type": "TEXT_MESSAGE_CONTENT", "messageId": "s", "delta": "canary-f"})
		late := r.attach(t, fmt.Sprint("canary-g", i))
		say(late, "main-agent", "Request", fmt.Sprint("canary-h", i))
	}
	say(&c.client, "main-agent", "Request", "own-question")
	for main.next(t, "Request").MsgID != "own-question" {
	}
	say(main, "partner", "Response", "own-answer")
	c.next(t, "Response")
	c.send(t, map[string]any{"type": "CUSTOM", "name": "Request", "targetAgentId": "nobody-known", "msgId": "lost", "value": map[string]any{}})
	c.next(t, "RelayUnreachable")
	for _, channel := range []string{"main-agent", "worker", "partner", "elsewhere", "_"} {
		c.send(t, map[string]any{"type": "CUSTOM", "name": "RequestChannelHistory", "value": map[string]any{"channelKey": channel}})
	}
	c.conn.Send([]byte(`{"type":"CUSTOM","name":"Delegate","targetAgentId":"worker","msgId":"order","value":{"task":"x"}}`))
	again := 0
	for own := 0; own < 5; {
		f := <-c.frames
		mustNotTell(t, f)
		if f.Name == "ChannelHistory" {
			own++
			again += strings.Count(string(f.Value), "own-")
		}
	}
	if again == 0 {
		t.Error("its own messages are not in its channels: the test proves nothing")
	}
	for f := c.next(t, "ServerNotice"); ; f = c.next(t, "ServerNotice") {
		mustNotTell(t, f)
		if strings.Contains(string(f.Value), "order") {
			if !strings.Contains(string(f.Value), protocol.CodeNotAllowed) {
				t.Errorf("a Delegate of a collab: %s", f.Value)
			}
			break
		}
	}
	c.conn.Close(1000, "")
	c.close(t)
	back := r.come(t, "?key="+k.Key)
	back.hello(t, "partner")
	history := false
	for f := range back.frames {
		mustNotTell(t, f)
		if f.Name == "AgentList" && !strings.Contains(string(f.Value), "main-agent") {
			t.Errorf("it does not see main: %s", f.Value)
		}
		if history = f.Name == "History"; history {
			if !strings.Contains(string(f.Value), "own-question") || !strings.Contains(string(f.Value), "own-answer") {
				t.Errorf("its History lacks its own: %s", f.Value)
			}
			break
		}
	}
	// Once the worker has written to it, it sees the worker come and go, and nobody else.
	say(worker, "partner", "Request", "hello-there")
	if f := back.next(t, "AgentList"); !strings.Contains(string(f.Value), `"worker"`) || strings.Contains(string(f.Value), "canary") {
		t.Errorf("after the worker wrote: %s", f.Value)
	}
}

func mustNotTell(t *testing.T, f asterism.Frame) {
	t.Helper()
	all := fmt.Sprintf("%+v %s", f, f.Value)
	echo := f.Name == "ChannelHistory" || strings.Contains(all, "order") // of what it asked for itself
	if strings.Contains(all, "canary") || strings.Contains(all, "worker") && !echo {
		t.Errorf("the outside was told: %s %s", f.Name, f.Value)
	}
}

// TestUntargetedWordsOfAClientByKeyGoToMain: CUSTOM and joined text alike. Guards: B38.
func TestUntargetedWordsOfAClientByKeyGoToMain(t *testing.T) {
	r := start(t, nil)
	main := r.attach(t, "main-agent")
	for kind, id := range map[string]string{"collab": "a", "peer": "b", "upstream": "c"} {
		k := main.issue(t, map[string]any{"kind": kind})
		c := r.joinWith(t, k.Key, id)
		c.send(t, map[string]any{"type": "CUSTOM", "name": "SomethingNew", "msgId": "n-" + id, "agentId": "main-agent", "source": "server", "value": map[string]any{"text": "x"}})
		if got := main.next(t, "SomethingNew"); got.MsgID != "n-"+id || string(got.AgentID) != id || got.Source != "agent" {
			t.Errorf("%s: main got %s of %q by %s", kind, got.MsgID, got.AgentID, got.Source)
		}
		for _, typ := range []string{"TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"} {
			c.send(t, map[string]any{"type": typ, "messageId": "t-" + id, "delta": "words of " + id})
		}
		if got := main.next(t, "AgentText"); string(got.AgentID) != id || !strings.Contains(string(got.Value), "words of "+id) {
			t.Errorf("%s: main got %s of %q", kind, got.Value, got.AgentID)
		}
	}
}

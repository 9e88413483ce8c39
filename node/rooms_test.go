package node

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

func inRoom(id protocol.RoomID, msg, text string, addressee ...string) map[string]any {
	return map[string]any{"type": "CUSTOM", "name": "Say", "roomId": id, "msgId": msg, "addressee": addressee, "value": raw(`{"text":"` + text + `"}`)}
}

func roomAsk(name, value string) map[string]any {
	return map[string]any{"type": "CUSTOM", "name": name, "value": raw(value)}
}

// sees waits until a node knows how an agent is.
func (n *Node) sees(t *testing.T, id protocol.AgentID, away bool) {
	t.Helper()
	for there := false; !there; {
		if err := n.loop.call(t.Context(), func() {
			k, ok := n.loop.core.Agent(id)
			there = ok && (k.State == protocol.StateAway) == away
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// open makes a room at a board and returns its id once everybody heard of it.
func open(t *testing.T, board *client, value string, told ...*client) protocol.RoomID {
	t.Helper()
	board.send(t, roomAsk("RoomCreate", value))
	id := protocol.RoomID(board.next(t, "RoomCreated").RoomID)
	for _, c := range told {
		if got := c.next(t, "RoomCreated"); protocol.RoomID(got.RoomID) != id {
			t.Fatalf("another room: %s", got.RoomID)
		}
	}
	return id
}

// TestARoomSpansNodes: each participant gets one copy wherever it lives, addressed to itself, with the hub's stamps; who is
// away gets it with its next connection; boards of all nodes see everything; an acknowledgement finds its way back.
// Guards: KC13, B49.
func TestARoomSpansNodes(t *testing.T) {
	a, b, na, nb := pair(t, protocol.RoleLocal)
	here, there, away := a.attach(t, "agent-a"), b.attach(t, "agent-b"), b.attach(t, "agent-c")
	boardA, boardB := a.watch(t), b.watch(t)
	na.sees(t, "agent-b", false)
	na.sees(t, "agent-c", false)
	nb.sees(t, "agent-a", false)
	id := open(t, boardA, `{"topic":"Plan","participants":["agent-a","agent-b","agent-c","agent-new"]}`, here, there, away, boardB)
	away.conn.Close(1000, "")
	na.sees(t, "agent-c", true)
	here.send(t, inRoom(id, "m1", "hello", "agent-b"))
	ack := here.next(t, "Ack")
	var v struct {
		From       string
		Recipients int
		Offline    []string
	}
	if err := json.Unmarshal(ack.Value, &v); err != nil || v.From != "room:"+string(id) || v.Recipients != 1 || len(v.Offline) != 2 {
		t.Errorf("ack: %s", ack.Value)
	}
	check := func(got asterism.Frame, to string) {
		t.Helper()
		if string(got.TargetAgentID) != to || got.RoomID != string(id) || len(got.Addressee) != 1 || got.Addressee[0] != "agent-b" ||
			string(got.Extra["speakerClass"]) != `"agent"` || string(got.Extra["autoHop"]) != "1" || got.AgentID != "agent-a" {
			t.Errorf("copy for %q: %+v", to, got)
		}
	}
	check(there.next(t, "Say"), "agent-b")
	check(boardA.next(t, "Say"), "")
	check(boardB.next(t, "Say"), "")
	there.send(t, map[string]any{"type": "CUSTOM", "name": "AckProcessed", "targetAgentId": "agent-a", "value": raw(`{"ackFor":"m1"}`)})
	if got := here.next(t, "AckProcessed"); got.AgentID != "agent-b" {
		t.Errorf("acknowledged by %s", got.AgentID)
	}
	check(b.attach(t, "agent-c").next(t, "Say"), "agent-c")
	check(b.attach(t, "agent-new").next(t, "Say"), "agent-new")

	// A person at the other node: everybody hears it, as a person's.
	boardB.send(t, inRoom(id, "h1", "go"))
	here.next(t, "RoomYield")
	if got := here.next(t, "Say"); string(got.Extra["speakerClass"]) != `"human-operator"` || got.TargetAgentID != "agent-a" {
		t.Errorf("a person's copy: %+v", got)
	}
}

// TestARoomIsForWhoIsInIt: its channel is given to participants alone, and a stranger's word reaches nobody but, as a
// guard, the boards of all nodes. Guards: B49.
func TestARoomIsForWhoIsInIt(t *testing.T) {
	a, b, na, _ := pair(t, protocol.RoleLocal)
	there, stranger := b.attach(t, "agent-b"), a.attach(t, "stranger")
	boardA, boardB := a.watch(t), b.watch(t)
	na.sees(t, "agent-b", false)
	id := open(t, boardA, `{"participants":["agent-b"]}`, there, boardB)
	boardA.send(t, inRoom(id, "h1", "hello"))
	there.next(t, "Say")
	ask := roomAsk("RequestChannelHistory", `{"channelKey":"room:`+string(id)+`"}`)
	there.send(t, ask)
	if got := there.next(t, "ChannelHistory"); !strings.Contains(string(got.Value), "hello") {
		t.Errorf("the room's channel: %s", got.Value)
	}
	stranger.send(t, ask)
	if got := stranger.next(t, "ServerNotice"); !strings.Contains(string(got.Value), protocol.CodeNotAllowed) {
		t.Errorf("a stranger asked for the channel: %s", got.Value)
	}
	stranger.send(t, inRoom(id, "x1", "let me in"))
	if got := stranger.next(t, "RoomGuard"); !strings.Contains(string(got.Value), "not-participant") {
		t.Errorf("guard: %s", got.Value)
	}
	for _, board := range []*client{boardA, boardB} {
		if got := board.next(t, "RoomGuard"); !strings.Contains(string(got.Value), `"stranger"`) {
			t.Errorf("boards see the guard: %s", got.Value)
		}
	}
}

// TestWhatWaitsInARoomSurvivesARestart: a message above the limit is said when a person speaks, also by another process.
// Guards: KC14.
func TestWhatWaitsInARoomSurvivesARestart(t *testing.T) {
	dir := t.TempDir()
	home := func(c *Config) { c.Home = dir + "/home" }
	a := start(t, home)
	speaker, other, board := a.attach(t, "agent-a"), a.attach(t, "agent-b"), a.watch(t)
	id := open(t, board, `{"participants":["agent-a","agent-b"],"budgets":{"maxConsecutive":1}}`, speaker, other)
	speaker.send(t, inRoom(id, "m1", "one"))
	speaker.send(t, inRoom(id, "m2", "two"))
	if got := speaker.next(t, "RoomGuard"); !strings.Contains(string(got.Value), `"parked"`) || !strings.Contains(string(got.Value), `"m2"`) {
		t.Errorf("guard: %s", got.Value)
	}
	a.stop()
	b := start(t, home)
	again, late := b.attach(t, "agent-b"), b.watch(t)
	late.send(t, inRoom(id, "h1", "go on"))
	for want := map[string]bool{"m1": true, "h1": true, "m2": true}; len(want) > 0; {
		delete(want, again.next(t, "Say").MsgID)
	}
}

// TestASpokenStreamIsOneMessageOfTheRoom: its pieces are shown to boards, participants get the joined utterance, and it
// names whom the stream named.
func TestASpokenStreamIsOneMessageOfTheRoom(t *testing.T) {
	a := start(t, nil)
	speaker, other, board := a.attach(t, "agent-a"), a.attach(t, "agent-b"), a.watch(t)
	id := open(t, board, `{"participants":["agent-a","agent-b"]}`, speaker, other)
	for _, f := range []map[string]any{
		{"type": "TEXT_MESSAGE_START", "messageId": "s1", "roomId": id, "addressee": []string{"agent-b"}},
		{"type": "TEXT_MESSAGE_CONTENT", "messageId": "s1", "roomId": id, "delta": "hello "},
		{"type": "TEXT_MESSAGE_CONTENT", "messageId": "s1", "roomId": id, "delta": "all"},
		{"type": "TEXT_MESSAGE_END", "messageId": "s1", "roomId": id},
	} {
		speaker.send(t, f)
	}
	got := other.next(t, "AgentText")
	if !strings.Contains(string(got.Value), "hello all") || got.RoomID != string(id) || len(got.Addressee) != 1 || string(got.Extra["autoHop"]) != "1" {
		t.Errorf("the utterance in the room: %+v", got)
	}
}

package node

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// has says whether any byte that a node holds of any log tells a word.
func (n *Node) has(t *testing.T, word string) bool {
	t.Helper()
	for pos := uint64(0); ; {
		page, err := n.store.Since(pos, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			return false
		}
		for i := range page {
			pos = page[i].Pos
			if bytes.Contains(page[i].Record.Body, []byte(word)) {
				return true
			}
		}
	}
}

// TestAnAgentOfAnOutsideNodeHearsARoomWhileItIsIn: what was said before it came, after it went, and in other rooms is in no
// byte that its node holds, though all is said by the same people; what was said in between is, on both sides and to everybody
// who is in. Guards: KC13.
func TestAnAgentOfAnOutsideNodeHearsARoomWhileItIsIn(t *testing.T) {
	a, b, na, nb := pair(t, protocol.RoleCollab)
	main, local, guest, board := a.attach(t, "main-agent"), a.attach(t, "worker"), b.attach(t, "partner"), a.watch(t)
	na.sees(t, "partner", false)
	other := open(t, board, `{"topic":"Beside","participants":["main-agent","worker"]}`, main, local)
	id := open(t, board, `{"topic":"Plan","participants":["main-agent","worker"]}`, main, local)
	said := 0
	say := func(from *client, in protocol.RoomID, word string, to ...*client) {
		t.Helper()
		said++
		from.send(t, inRoom(in, fmt.Sprint("w", said), word))
		for _, c := range to {
			for f := c.next(t, "Say"); !bytes.Contains(f.Value, []byte(word)); f = c.next(t, "Say") {
			}
		}
	}
	say(main, id, "canary-before", local)
	say(main, other, "canary-beside-1", local)
	main.send(t, roomAsk("RoomJoin", `{"roomId":"`+string(id)+`","agentId":"partner"}`))
	if f := guest.next(t, "RoomCreated"); f.RoomID != string(id) || !bytes.Contains(f.Value, []byte(`"Plan"`)) || !bytes.Contains(f.Value, []byte("worker")) {
		t.Errorf("the guest is told %s", f.Value)
	}
	say(main, id, "word-one", local, guest, board)
	say(board, id, "word-two", local, guest, main)
	guest.send(t, map[string]any{"type": "CUSTOM", "name": "AckProcessed", "targetAgentId": "main-agent", "value": raw(`{"ackFor":"w3"}`)})
	if f := main.next(t, "AckProcessed"); f.AgentID != "partner" || !bytes.Contains(f.Value, []byte("w3")) {
		t.Errorf("the acknowledgement of the guest: %s of %s", f.Value, f.AgentID)
	}
	say(guest, id, "word-three", main, local, board)
	guest.send(t, verb("RequestChannelHistory", "", map[string]any{"channelKey": "room:" + string(id)}))
	if page := guest.next(t, "ChannelHistory"); !bytes.Contains(page.Value, []byte("word-two")) || bytes.Contains(page.Value, []byte("canary")) {
		t.Errorf("the room's channel as the guest reads it: %s", page.Value)
	}
	say(local, other, "canary-beside-2", main)
	guest.send(t, roomAsk("RoomLeave", `{"roomId":"`+string(id)+`"}`))
	for _, c := range []*client{main, local, guest, board} {
		if f := c.next(t, "RoomLeft"); !bytes.Contains(f.Value, []byte("partner")) {
			t.Errorf("who left: %s", f.Value)
		}
	}
	say(local, id, "canary-after", main)
	guest.send(t, inRoom(id, "late", "word-late"))
	if f := guest.next(t, "RoomGuard"); !bytes.Contains(f.Value, []byte("not-participant")) {
		t.Errorf("a guest that left speaks: %s", f.Value)
	}
	main.send(t, report("partner", "fence", "the end")) // all that went before it has gone as well
	guest.next(t, "Report")
	for _, word := range []string{"word-one", "word-two", "word-three"} {
		if !nb.has(t, word) || !na.has(t, word) {
			t.Errorf("%s is not on both nodes: the test proves nothing", word)
		}
	}
	if nb.has(t, "canary") || !na.has(t, "canary-before") || !na.has(t, "canary-after") {
		t.Error("the outside node holds a word that was not said to it")
	}
	if nb.has(t, string(other)) {
		t.Error("the outside node knows of the other room")
	}
	if got := b.channelsOf(t); got["partner"] == 0 {
		t.Errorf("channels at the outside node: %v", got)
	}
}

func (r *running) channelsOf(t *testing.T) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, e := range into[struct{ Events []struct{ AgentID string } }](t, r.dial(t).next(t, "History")).Events {
		out[e.AgentID]++
	}
	return out
}

// TestARoomOfAnOutsideNodeOutlivesItsRestart: its agent is in still, and what was said meanwhile comes.
func TestARoomOfAnOutsideNodeOutlivesItsRestart(t *testing.T) {
	a, b, na, _ := pair(t, protocol.RolePeer)
	main, board := a.attach(t, "main-agent"), a.watch(t)
	guest := b.attach(t, "partner")
	na.sees(t, "partner", false)
	id := open(t, board, `{"topic":"Plan","participants":["main-agent","partner"]}`, main, guest)
	b.stop()
	na.sees(t, "partner", true)
	main.send(t, inRoom(id, "m1", "while you were away"))
	var ack struct{ Offline []string }
	if ack = into[struct{ Offline []string }](t, main.next(t, "Ack")); len(ack.Offline) != 1 || ack.Offline[0] != "partner" {
		t.Errorf("who is away: %v", ack.Offline)
	}
	again := start(t, func(c *Config) { c.Home = b.home; c.Name = "mac-mini" })
	guest = again.attach(t, "partner")
	if f := guest.next(t, "Say"); f.MsgID != "m1" || f.RoomID != string(id) || f.AgentID != "main-agent" {
		t.Errorf("after the restart: %+v", f)
	}
	guest.send(t, inRoom(id, "g1", "here I am"))
	if f := main.next(t, "Say"); f.AgentID != "partner" || f.RoomID != string(id) || string(f.TargetAgentID) != "main-agent" {
		t.Errorf("the guest's word: %+v", f)
	}
	guest.send(t, roomAsk("RequestRoomArtifacts", `{"roomId":"`+string(id)+`"}`))
	if f := guest.next(t, "RoomArtifacts"); f.RoomID != string(id) {
		t.Errorf("what was agreed: %+v", f)
	}
	guest.send(t, roomAsk("RoomCreate", `{"topic":"own","participants":["main-agent"]}`))
	if f := guest.next(t, "ServerNotice"); !bytes.Contains(f.Value, []byte(protocol.CodeNotAllowed)) {
		t.Errorf("an outside node makes a room: %s", f.Value)
	}
	board.send(t, roomAsk("RoomClose", `{"roomId":"`+string(id)+`","reason":"done"}`))
	guest.next(t, "RoomClosed")
}

package node

import (
	"slices"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// person lets a person of a mesh say something to its board.
func (m *meshOf) person(t *testing.T, intent protocol.Intent, room protocol.RoomID, value any) {
	t.Helper()
	if _, err := m.n.Send(t.Context(), api.SendRequest{FromBoard: true, Intent: intent, Room: room, Value: protocol.EncodeBody(value)}); err != nil {
		t.Fatal(err)
	}
}

// opens makes a room at a mesh and returns its id there.
func (m *meshOf) opens(t *testing.T, budgets map[string]int, participants ...string) protocol.RoomID {
	t.Helper()
	m.person(t, "RoomCreate", "", map[string]any{"topic": "Plan", "participants": participants, "budgets": budgets})
	rooms, err := m.n.Rooms(t.Context())
	if err != nil || len(rooms) != 1 {
		t.Fatalf("%v %+v", err, rooms)
	}
	return rooms[0].ID
}

// speaks lets an agent say something in a room.
func (m *meshOf) speaks(t *testing.T, from protocol.AgentID, room protocol.RoomID, text string) (protocol.MsgID, error) {
	t.Helper()
	sent, err := m.n.Send(t.Context(), api.SendRequest{From: from, Room: room, Intent: "Say", Value: protocol.EncodeBody(map[string]string{"text": text})})
	return sent.MsgID, err
}

// hears are all words of rooms in an inbox, oldest first, as SPEAKER:text.
func (m *meshOf) hears(t *testing.T, agent protocol.AgentID) (out []string) {
	t.Helper()
	rows, err := m.n.store.Inbox(agent, journal.InboxQuery{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Envelope.Intent == "Say" {
			out = append(out, string(r.Envelope.From)+":"+valueOf[string](r.Envelope.Value, "text"))
		}
	}
	return out
}

func (m *meshOf) until(t *testing.T, agent protocol.AgentID, want ...string) {
	t.Helper()
	until(t, string(agent)+" hears "+strings.Join(want, " "), func() bool { return slices.Equal(m.hears(t, agent), want) })
}

// told are the states that an agent was told of in rooms of other boards.
func (m *meshOf) told(t *testing.T, agent protocol.AgentID) (out []string) {
	t.Helper()
	rows, err := m.n.store.Inbox(agent, journal.InboxQuery{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Envelope.Intent == "Status" && r.Envelope.Room != "" && r.Envelope.From == protocol.AgentID(r.Envelope.Room) {
			out = append(out, valueOf[string](r.Envelope.Value, "state"))
		}
	}
	return out
}

// joinedRooms are two meshes: agents of the first are at the second's board, where bob lives.
func joinedRooms(t *testing.T, agents ...protocol.AgentID) (one, two *meshOf) {
	t.Helper()
	one, two = founds(t, "one", "", ""), founds(t, "two", "", "")
	for _, id := range append(agents, "carol") {
		one.has(t, id)
	}
	two.has(t, "bob")
	one.joins(t, api.BoardRequest{URL: two.url, Name: "two", Agents: agents})
	until(t, "bob@two is shown", func() bool { return one.present(t, "bob@two") })
	return one, two
}

// TestOurAgentsAreInARoomOfAnotherBoard: two agents of one mesh and one of the other hear each other there, each word once and
// under the speaker's own name; whoever is not in it hears nothing and may say nothing.
func TestOurAgentsAreInARoomOfAnotherBoard(t *testing.T) {
	one, two := joinedRooms(t, "alice", "al")
	id := two.opens(t, nil, "bob", "alice", "al")
	here := protocol.RoomID(string(id) + "@two")
	for _, agent := range []protocol.AgentID{"alice", "al"} {
		until(t, "it is told that it is in", func() bool { return slices.Equal(one.told(t, agent), []string{"in"}) })
	}
	said, err := one.speaks(t, "alice", here, "from alice")
	if err != nil {
		t.Fatal(err)
	}
	two.until(t, "bob", "alice:from alice")
	one.until(t, "al", "alice:from alice")
	until(t, "the room has it", func() bool { return strings.HasPrefix(one.tiers(t, said), "logged,persisted") })
	if _, err := two.speaks(t, "bob", id, "from bob"); err != nil {
		t.Fatal(err)
	}
	two.person(t, "Say", id, map[string]string{"text": "from a person"})
	one.until(t, "alice", "bob@two:from bob", "board@two:from a person")
	one.until(t, "al", "alice:from alice", "bob@two:from bob", "board@two:from a person")
	if _, err := one.send(t, "al", protocol.AgentID(here), "Say", "by its name"); err != nil {
		t.Fatal(err)
	}
	two.until(t, "bob", "alice:from alice", ":from a person", "al:by its name")

	if got := one.hears(t, "carol"); len(got) > 0 || len(one.told(t, "carol")) > 0 {
		t.Errorf("carol, who is not in, hears %q", got)
	}
	if _, err := one.speaks(t, "carol", here, "let me in"); !isCode(err, "not-participant") {
		t.Errorf("carol speaks: %v", err)
	}
	if _, err := one.n.Send(t.Context(), api.SendRequest{From: "alice", Room: here, Intent: protocol.Delegate, Value: raw(`{"task":"do it"}`)}); !isCode(err, protocol.CodeNotAllowed) {
		t.Errorf("alice delegates: %v", err)
	}
	boards, err := one.n.Boards(t.Context())
	if err != nil || len(boards) != 1 || len(boards[0].Rooms) != 1 || boards[0].Rooms[0].ID != protocol.AgentID(here) || boards[0].Rooms[0].Topic != "Plan" {
		t.Errorf("the board is shown as %+v", boards)
	}
}

// TestAClientSeesARoomOfAnotherBoardLikeOneOfItsOwn: the hub's words on it come under the names that hold here, and what the
// client says with roomId is acknowledged by the room.
func TestAClientSeesARoomOfAnotherBoardLikeOneOfItsOwn(t *testing.T) {
	one, two := founds(t, "one", "", ""), founds(t, "two", "", "")
	alice, carol, bob := one.attach(t, "alice"), one.attach(t, "carol"), two.attach(t, "bob")
	one.joins(t, api.BoardRequest{URL: two.url, Name: "two", Agents: []protocol.AgentID{"alice"}})
	until(t, "bob@two is shown", func() bool { return one.present(t, "bob@two") })
	id := open(t, two.watch(t), `{"topic":"Plan","participants":["bob","alice","nobody"],"budgets":{"maxConsecutive":1}}`, bob)
	here := protocol.RoomID(string(id) + "@two")
	made := into[struct {
		RoomID, Topic string
		Participants  []string
	}](t, alice.next(t, "RoomCreated"))
	if made.RoomID != string(here) || made.Topic != "Plan" || !slices.Equal(made.Participants, []string{"bob@two", "alice", "nobody@two"}) {
		t.Errorf("the room is shown as %+v", made)
	}
	alice.send(t, inRoom(here, "a1", "hello", "bob@two"))
	ack := into[struct {
		AckFor, Kind, From string
		Recipients         int
		Offline            []string
	}](t, alice.next(t, "Ack"))
	if ack.AckFor != "a1" || ack.Kind != "delivered" || ack.From != "room:"+string(here) || ack.Recipients != 1 || !slices.Equal(ack.Offline, []string{"nobody@two"}) {
		t.Errorf("the room acknowledges %+v", ack)
	}
	if f := bob.next(t, "Say"); f.AgentID != "alice" || f.RoomID != string(id) || !slices.Equal(f.Addressee, []string{"bob"}) {
		t.Errorf("bob hears %+v", f)
	}
	alice.send(t, inRoom(here, "a2", "once more"))
	guard := into[struct{ RoomID, Rule, Action, MsgID, AgentID string }](t, alice.next(t, "RoomGuard"))
	if guard.RoomID != string(here) || guard.Rule != "consecutive" || guard.Action != "parked" || guard.MsgID != "a2" || guard.AgentID != "alice" {
		t.Errorf("the guard says %+v", guard)
	}
	bob.send(t, map[string]any{"type": "CUSTOM", "name": "Say", "roomId": id, "msgId": "b1", "addressee": []string{"alice"}, "replyTo": "a1", "value": raw(`{"text":"well"}`)})
	f := alice.next(t, "Say")
	if f.AgentID != "bob@two" || f.RoomID != string(here) || f.TargetAgentID != "alice" || f.ReplyTo != "a1" || !slices.Equal(f.Addressee, []string{"alice"}) {
		t.Errorf("alice hears %+v", f)
	}
	if f := bob.next(t, "Say"); f.MsgID != "a2" {
		t.Errorf("bob hears %+v", f)
	}
	for range 2 { // a repeat is acknowledged as the first was: the answer may have been lost
		bob.send(t, map[string]any{"type": "CUSTOM", "name": "Say", "roomId": id, "msgId": "b1", "addressee": []string{"alice"}, "replyTo": "a1", "value": raw(`{"text":"well"}`)})
	}
	for range 2 {
		if v := into[struct{ AckFor, Kind, From string }](t, bob.next(t, "Ack")); v.AckFor != "b1" || v.Kind != "delivered" || v.From != "room:"+string(id) {
			t.Errorf("bob is told %+v", v)
		}
	}
	alice.send(t, map[string]any{"type": "CUSTOM", "name": "AckProcessed", "targetAgentId": "bob@two", "value": raw(`{"ackFor":"b1"}`)})
	for done := false; !done; {
		got := bob.next(t, "AckProcessed")
		v := into[struct{ AckFor, Tier string }](t, got)
		done = got.AgentID == "alice" && v.AckFor == "b1" && v.Tier == ""
	}
	alice.send(t, roomAsk("RoomArtifactsUpdate", `{"roomId":"`+string(here)+`","decision":{"text":"Friday"}}`))
	if f := alice.next(t, "RoomArtifacts"); f.RoomID != string(here) || !strings.Contains(string(f.Value), "Friday") || !strings.Contains(string(f.Value), `"by":"alice"`) {
		t.Errorf("what was agreed is shown as %s", f.Value)
	}
	carol.send(t, inRoom(here, "c1", "let me in"))
	if f := carol.next(t, "ServerNotice"); !strings.Contains(string(f.Value), "not-participant") {
		t.Errorf("carol is told %s", f.Value)
	}
	carol.send(t, verb("RequestChannelHistory", "", map[string]any{"channelKey": "room:" + string(here)}))
	if f := carol.next(t, "ServerNotice"); !strings.Contains(string(f.Value), "not-allowed") {
		t.Errorf("carol reads the room's channel: %s", f.Value)
	}
}

// TestWordsWaitWhileARoomTakesNone: what breaks a budget there is said once it may be, in order and once: after another's turn,
// and after a person's word.
func TestWordsWaitWhileARoomTakesNone(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds of whole nodes")
	}
	one, two := joinedRooms(t, "alice")
	id := two.opens(t, map[string]int{"maxConsecutive": 2, "maxAutoHop": 4, "stallRounds": 20}, "bob", "alice")
	here := protocol.RoomID(string(id) + "@two")
	until(t, "alice is told that she is in", func() bool { return slices.Equal(one.told(t, "alice"), []string{"in"}) })
	var ids []protocol.MsgID
	for _, text := range []string{"1", "2", "3", "4", "5"} {
		said, err := one.speaks(t, "alice", here, text)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, said)
	}
	two.until(t, "bob", "alice:1", "alice:2")
	if _, err := two.speaks(t, "bob", id, "my turn"); err != nil {
		t.Fatal(err)
	}
	two.until(t, "bob", "alice:1", "alice:2", "alice:3")
	if got := one.tiers(t, ids[3]); got != "logged" {
		t.Errorf("the fourth waits at the end of the chain, and is %s", got)
	}
	two.person(t, "Say", id, map[string]string{"text": "go on"})
	two.until(t, "bob", "alice:1", "alice:2", "alice:3", ":go on", "alice:4", "alice:5")
	until(t, "the room has the last", func() bool { return one.tiers(t, ids[4]) == "logged,persisted" })
	one.until(t, "alice", "bob@two:my turn", "board@two:go on")
}

// TestARoomOfAnotherBoardIsFoundAgain: over restarts of either side what was said meanwhile is said and heard once; whoever was
// taken out meanwhile is told so, and its word is refused.
func TestARoomOfAnotherBoardIsFoundAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds of whole nodes")
	}
	one, two := joinedRooms(t, "alice")
	id := two.opens(t, nil, "bob", "alice")
	here := protocol.RoomID(string(id) + "@two")
	until(t, "alice is told that she is in", func() bool { return slices.Equal(one.told(t, "alice"), []string{"in"}) })
	until(t, "the room is written down", func() bool {
		dirty := true
		one.n.abroad.each(func(b *farBoard) { b.mu.Lock(); dirty = b.dirty; b.mu.Unlock() })
		return !dirty
	})
	two.stop()
	if _, err := one.speaks(t, "alice", here, "while two is away"); err != nil {
		t.Fatal(err)
	}
	two = two.again(t)
	two.until(t, "bob", "alice:while two is away")
	one.stop()
	if _, err := two.speaks(t, "bob", id, "while one is away"); err != nil {
		t.Fatal(err)
	}
	one = one.again(t)
	one.until(t, "alice", "bob@two:while one is away")
	two.stop()
	late, err := one.speaks(t, "alice", here, "too late")
	if err != nil {
		t.Fatal(err)
	}
	one.stop()
	two = two.again(t)
	two.person(t, "RoomLeave", "", map[string]any{"roomId": id, "agentId": "alice"})
	one = one.again(t)
	until(t, "alice's word is refused", func() bool { return one.tiers(t, late) == "logged,refused not-participant" })
	until(t, "alice is told that she is out", func() bool { return slices.Equal(one.told(t, "alice"), []string{"in", "out"}) })
	two.until(t, "bob", "alice:while two is away")
}

// heldAbroad is a room of two that alice of one is in, and what she said there that its floor holds back.
func heldAbroad(t *testing.T) (one, two *meshOf, here protocol.RoomID, waits protocol.MsgID) {
	t.Helper()
	one, two = joinedRooms(t, "alice")
	here = protocol.RoomID(string(two.opens(t, map[string]int{"maxConsecutive": 1}, "bob", "alice")) + "@two")
	until(t, "alice is told that she is in", func() bool { return slices.Equal(one.told(t, "alice"), []string{"in"}) })
	for _, words := range []string{"said", "held"} {
		var err error
		if waits, err = one.speaks(t, "alice", here, words); err != nil {
			t.Fatal(err)
		}
	}
	two.until(t, "bob", "alice:said")
	return one, two, here, waits
}

// TestTheEndOfARoomOfAnotherBoard: what waits when it is closed is refused by that name, and then there is no such agent.
func TestTheEndOfARoomOfAnotherBoard(t *testing.T) {
	one, two, here, waits := heldAbroad(t)
	two.person(t, "RoomClose", "", map[string]any{"roomId": strings.TrimSuffix(string(here), "@two")})
	until(t, "what waited is refused", func() bool { return strings.HasPrefix(one.tiers(t, waits), "logged,refused ") })
	until(t, "alice is told", func() bool { return slices.Equal(one.told(t, "alice"), []string{"in", "closed"}) })
	until(t, "the room is forgotten", func() bool {
		_, err := one.send(t, "alice", protocol.AgentID(here), "Say", "anybody there?")
		return isCode(err, protocol.CodeUnknownAgent)
	})
}

// TestWhatWaitedForARoomOfABoardThatIsLeft is refused by that name, and its sender finds it in its inbox.
func TestWhatWaitedForARoomOfABoardThatIsLeft(t *testing.T) {
	one, _, here, waits := heldAbroad(t)
	until(t, "it is shown what the held one waits for", func() bool {
		m, err := one.n.Message(t.Context(), string(waits))
		return err == nil && m.Waits != nil && *m.Waits == api.Waits{Board: "two", Room: protocol.AgentID(here), For: api.WaitsTurn}
	})
	alice := one.attach(t, "alice")
	if err := one.n.LeaveBoard(t.Context(), "two"); err != nil {
		t.Fatal(err)
	}
	for dead, notice := false, false; !dead || !notice; { // in either order
		f := alice.next(t, "")
		dead = dead || f.Name == "RelayUnreachable" && valueOf[string](f.Value, "msgId") == string(waits) && valueOf[string](f.Value, "reason") == "board-left"
		notice = notice || f.Name == "ServerNotice" && valueOf[string](f.Value, "kind") == "board-left" && slices.Equal(valueOf[[]string](f.Value, "msgIds"), []string{string(waits)})
	}
	until(t, "what waited is refused", func() bool { return one.tiers(t, waits) == "logged,refused board-left" })
	if m, err := one.n.Message(t.Context(), string(waits)); err != nil || m.Waits != nil {
		t.Errorf("it waits still: %+v, %v", m.Waits, err)
	}
	until(t, "alice is told", func() bool {
		rows, err := one.n.store.Inbox("alice", journal.InboxQuery{All: true})
		return err == nil && slices.ContainsFunc(rows, func(r journal.InboxRow) bool {
			return r.Envelope.Intent == protocol.ServerNotice && r.Envelope.Re == waits && strings.Contains(string(r.Envelope.Value), "left the board two")
		})
	})
}

// TestWhoLeavesABoardLeavesItsRooms: the board's people see it go, by the word of its node.
func TestWhoLeavesABoardLeavesItsRooms(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds of whole nodes")
	}
	one, two := joinedRooms(t, "alice", "al")
	id := two.opens(t, nil, "bob", "alice", "al")
	for _, agent := range []protocol.AgentID{"alice", "al"} {
		until(t, "it is told that it is in", func() bool { return slices.Equal(one.told(t, agent), []string{"in"}) })
	}
	are := func(want ...protocol.AgentID) {
		t.Helper()
		until(t, "who is in", func() bool {
			rooms, err := two.n.Rooms(t.Context())
			return err == nil && len(rooms) == 1 && slices.Equal(rooms[0].Participants, want)
		})
	}
	are("bob", "alice", "al")
	one.joins(t, api.BoardRequest{URL: two.url, Name: "two", Agents: []protocol.AgentID{"al"}})
	are("bob", "al")
	if _, err := one.n.Send(t.Context(), api.SendRequest{From: "al", Intent: "RoomLeave", Value: protocol.EncodeBody(map[string]any{"roomId": string(id) + "@two"})}); err != nil {
		t.Fatal(err)
	}
	are("bob")
	two.person(t, "RoomJoin", "", map[string]any{"roomId": id, "agentId": "al"})
	until(t, "al is told that it is in again", func() bool { return slices.Equal(one.told(t, "al"), []string{"in", "in"}) })
	if err := one.n.LeaveBoard(t.Context(), "two"); err != nil {
		t.Fatal(err)
	}
	are("bob")
}

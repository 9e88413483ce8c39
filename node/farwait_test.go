package node

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node/foreign"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// atBoard is the connection of an agent at the one board that was joined.
func (m *meshOf) atBoard(t *testing.T, agent protocol.AgentID) *visit {
	t.Helper()
	var v *visit
	until(t, string(agent)+" is at the board", func() bool {
		m.n.abroad.each(func(b *farBoard) {
			if s := b.seatOf(agent); s != nil {
				v = s.present()
			}
		})
		return v != nil
	})
	return v
}

// TestAGuardThatIsRepeatedCostsOneTimer: a hub that says without end that our agent is to wait has one wait a room.
func TestAGuardThatIsRepeatedCostsOneTimer(t *testing.T) {
	one, two := joinedRooms(t, "alice")
	id := two.opens(t, nil, "bob", "alice")
	until(t, "alice is told that she is in", func() bool { return slices.Equal(one.told(t, "alice"), []string{"in"}) })
	v := one.atBoard(t, "alice")
	before := runtime.NumGoroutine()
	for i := range 5_000 {
		room := string(id)
		if i%2 == 0 {
			room = fmt.Sprint("made-up-", i)
		}
		v.roomChange(foreign.RoomChange{Name: "RoomGuard", Room: room, Value: raw(`{}`), Hold: foreign.HoldMinute})
	}
	if grown := runtime.NumGoroutine() - before; grown > 3*farRoomsMax {
		t.Errorf("%d goroutines wait for 5,000 guards", grown)
	}
}

// TestATimerThatIsTooEarlyIsSetAgain: what has come since it was set is waited for.
func TestATimerThatIsTooEarlyIsSetAgain(t *testing.T) {
	var sp speaking
	now := time.Unix(1_800_000_000, 0)
	guard := &foreign.RoomChange{Room: "r", Hold: foreign.HoldMinute}
	sp.holds(guard, now)
	if !sp.times("r", true) || sp.times("r", true) || !sp.times("r", false) {
		t.Error("there is one timer for a minute and one for a word")
	}
	sp.holds(guard, now.Add(20*time.Second))
	if got := sp.timed("r", true, now.Add(roomMinute)); got != 20*time.Second {
		t.Errorf("the minute has %s left", got)
	}
	sp.frees("r", false)
	sp.confirm("r")
	if !sp.takes("r", "m", now.Add(10*time.Second)) {
		t.Error("the room takes no word")
	}
	if got := sp.timed("r", false, now.Add(protocol.RedeliverEvery)); got != 10*time.Second {
		t.Errorf("the word has %s left", got)
	}
	for hold, want := range map[foreign.Hold]api.WaitsFor{foreign.HoldTurn: api.WaitsTurn, foreign.HoldMinute: api.WaitsMinute, foreign.HoldYield: api.WaitsPerson} {
		sp.holds(&foreign.RoomChange{Room: "held", Hold: hold}, now)
		if got := sp.waits("held", now.Add(time.Second)); got != want {
			t.Errorf("a hold %q is shown as a wait for %q", hold, got)
		}
	}
	if got := sp.timed("r", true, now.Add(2*roomMinute)); got != 0 {
		t.Errorf("without a hold the minute has %s left", got)
	}
}

// TestARoomThatDidNotAnswerIsAskedAgain: as long as its hub has not said that our agent is in, and no longer.
func TestARoomThatDidNotAnswerIsAskedAgain(t *testing.T) {
	one, two := joinedRooms(t, "alice")
	id := two.opens(t, nil, "bob", "alice")
	until(t, "alice is told that she is in", func() bool { return slices.Equal(one.told(t, "alice"), []string{"in"}) })
	v := one.atBoard(t, "alice")
	v.rooms.mu.Lock()
	v.rooms.room(string(id)).sure = false // as if the hub had refused the question
	v.rooms.mu.Unlock()
	v.askForRoom(v.s.b.room(string(id))) // as its timer does
	until(t, "the hub has said that she is in", func() bool { return v.rooms.isSure(string(id)) })
	waits := runtime.NumGoroutine()
	for range 100 {
		v.askForRoom(v.s.b.room(string(id)))
	}
	if grown := runtime.NumGoroutine() - waits; grown > 50 {
		t.Errorf("a room that is sure is asked again: %d more wait", grown)
	}
}

// TestAConnectionOutlivesManyRooms: rooms that are over make place for others, in which our agent speaks as before.
func TestAConnectionOutlivesManyRooms(t *testing.T) {
	var sp speaking
	now := time.Unix(1_800_000_000, 0)
	for i := range 10 * farRoomsMax {
		id, word := fmt.Sprint("rt-", i), protocol.MsgID(fmt.Sprint("m", i))
		sp.confirm(id)
		if !sp.takes(id, word, now) {
			t.Fatalf("room %d takes no word", i)
		}
		sp.unbook(id)
	}
	if len(sp.rooms) > 2*farRoomsMax {
		t.Errorf("%d rooms are kept", len(sp.rooms))
	}
}

// TestANameGoesWithItsRoom: rooms come without end, and a board may show so many names.
func TestANameGoesWithItsRoom(t *testing.T) {
	one, two := joinedRooms(t, "alice")
	b := one.atBoard(t, "alice").s.b
	names := func() int {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.names.Count()
	}
	before := names()
	id := two.opens(t, nil, "bob", "alice")
	until(t, "the room has a name", func() bool { return names() == before+1 })
	two.person(t, "RoomClose", "", map[string]any{"roomId": id})
	until(t, "its name is free", func() bool { return names() == before })
}

// TestAWordThatComesAfterLeavingBringsNobodyBack: our agent is given up at the board while something said in its room is on its way
// through this node.
func TestAWordThatComesAfterLeavingBringsNobodyBack(t *testing.T) {
	one, two := joinedRooms(t, "alice", "al")
	id := two.opens(t, nil, "bob", "alice", "al")
	for _, agent := range []protocol.AgentID{"alice", "al"} {
		until(t, "it is told that it is in", func() bool { return slices.Equal(one.told(t, agent), []string{"in"}) })
	}
	v := one.atBoard(t, "alice")
	r := v.s.b.room(string(id))
	one.joins(t, api.BoardRequest{URL: two.url, Name: "two", Agents: []protocol.AgentID{"al"}})
	until(t, "alice is out", func() bool { return !v.s.b.holds(r, "alice") })
	m := &foreign.Message{From: "bob"}
	m.Frame.RoomID = string(id)
	env := protocol.Envelope{ID: "late", From: "bob@two", Intent: "Say", Value: raw(`{"text":"late"}`)}
	if err := one.n.loop.call(t.Context(), func() { one.n.loop.heardIn(v, m, env, "", 0) }); err != nil {
		t.Fatal(err)
	}
	if v.s.b.holds(r, "alice") || len(one.hears(t, "alice")) > 0 {
		t.Errorf("alice, who has left, is in again and hears %q", one.hears(t, "alice"))
	}
}

// TestABoardHasAShareOfTheLoop: of what it says so many words wait for the loop at once, and what brings our agents into rooms counts
// like a member's records.
func TestABoardHasAShareOfTheLoop(t *testing.T) {
	one, two := joinedRooms(t, "alice")
	id := two.opens(t, nil, "bob", "alice")
	until(t, "alice is told that she is in", func() bool { return slices.Equal(one.told(t, "alice"), []string{"in"}) })
	v := one.atBoard(t, "alice")
	one.n.debts.mu.Lock()
	if had := one.n.debts.of[source{from: "board/two"}]; had == nil || had.had != roomUnits {
		t.Errorf("a room counts %+v", had)
	}
	one.n.debts.mu.Unlock()
	busy, free := make(chan struct{}), make(chan struct{})
	if err := one.n.loop.post(t.Context(), func() { close(busy); <-free }); err != nil {
		t.Fatal(err)
	}
	<-busy
	var said atomic.Int32
	var wait sync.WaitGroup
	wait.Go(func() {
		for range 10 * peerLane {
			v.roomChange(foreign.RoomChange{Name: "RoomYield", Room: string(id), Value: raw(`{}`), Free: true})
			said.Add(1)
		}
	})
	until(t, "its share is used", func() bool { return len(v.s.b.lane) == peerLane })
	if got := said.Load(); got > peerLane {
		t.Errorf("%d words wait for the loop", got)
	}
	close(free)
	wait.Wait()
}

package node

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// TestAJoinThatFailsLeavesNobodyBehind: an agent that was made for it goes again, and so does the board that lets nobody in.
func TestAJoinThatFailsLeavesNobodyBehind(t *testing.T) {
	one, two := founds(t, "one", "", ""), founds(t, "two", "", "")
	one.has(t, "alice")
	two.has(t, "main-agent")
	key, err := two.n.IssueKey(t.Context(), api.KeyRequest{Kind: "collab", Agent: "alice"})
	if err != nil {
		t.Fatal(err)
	}
	gone := func(after string) {
		t.Helper()
		known := false
		if err := one.n.loop.call(t.Context(), func() { _, known = one.n.loop.core.Agent("dave") }); err != nil || known {
			t.Errorf("after %s dave is here: %v", after, err)
		}
	}
	row := one.joins(t, api.BoardRequest{URL: two.url, Name: "bad", Key: key.Secret, Agents: []protocol.AgentID{"dave"}})
	if len(row.Seats) != 1 || row.Seats[0].State != api.SeatStopped || !row.Undone {
		t.Errorf("another's key: %+v", row)
	}
	if all, err := one.n.Boards(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("boards %+v, %v", all, err)
	}
	gone("a key that is refused")
	one.joins(t, api.BoardRequest{URL: two.url, Name: "two", Key: key.Secret, Agents: []protocol.AgentID{"alice"}})
	for what, req := range map[string]api.BoardRequest{
		"a name that is taken":   {URL: "ws://127.0.0.1:9/ws", Name: "two", Agents: []protocol.AgentID{"dave"}},
		"a key for two":          {URL: "ws://127.0.0.1:9/ws", Name: "three", Key: "x", Agents: []protocol.AgentID{"dave", "alice"}},
		"an agent that is no id": {URL: "ws://127.0.0.1:9/ws", Name: "three", Agents: []protocol.AgentID{"dave", "a/b"}},
	} {
		if _, err := one.n.JoinBoard(t.Context(), req); err == nil {
			t.Errorf("%s: no error", what)
		}
		gone(what)
	}
}

// TestWhatIsLeftWithABoardIsNotBooked: a message that finds no room comes again, and is paid for once; what was here before is not
// paid for twice.
func TestWhatIsLeftWithABoardIsNotBooked(t *testing.T) {
	one := founds(t, "one", "", "")
	for i, tt := range []struct {
		told hub.Told
		want int64
	}{
		{hub.Told{}, 300},
		{hub.Told{Repeat: true}, 100},
		{hub.Told{Refusal: protocol.Refuse(protocol.CodeInboxFull, "full", "")}, 100},
		{hub.Told{Refusal: protocol.Refuse(protocol.CodeNotAllowed, "no", "")}, 300},
	} {
		name := fmt.Sprint("two", i)
		b := one.n.newFarBoard(joinedBoard{Name: name})
		if no := b.spend(100); no != nil {
			t.Fatal(no)
		}
		if no := b.spend(200); no != nil {
			t.Fatal(no)
		}
		b.settleUp(200, &tt.told)
		booked := func() int64 {
			got, _ := one.n.outsideUsed.Load(protocol.PeerID(boardQuota(name)))
			bytes, _ := got.(int64)
			return bytes
		}
		until(t, "it is given back", func() bool { return booked() == tt.want })
	}
}

// TestALargeValueOfABoardIsPaidForOnce: what is kept before a message is judged stays booked whatever becomes of the message, and of an id
// that is known here nothing is kept. Else a board would fill the disk by one id, or by what finds no room in an inbox.
func TestALargeValueOfABoardIsPaidForOnce(t *testing.T) {
	one := founds(t, "one", "", "")
	one.has(t, "alice")
	b := one.n.newFarBoard(joinedBoard{Name: "two"})
	v := &visit{s: &seat{b: b}}
	booked := func() int64 {
		got, _ := one.n.outsideUsed.Load(protocol.PeerID(boardQuota("two")))
		bytes, _ := got.(int64)
		return bytes
	}
	large := func(id protocol.MsgID, from protocol.AgentID, word string) *protocol.Envelope {
		return &protocol.Envelope{ID: id, From: from, Intent: "Note", Value: protocol.EncodeBody(map[string]string{"text": strings.Repeat(word, protocol.ValueBytesInline)})}
	}
	takes := func(env *protocol.Envelope, kept bool) {
		t.Helper()
		back, no, ok := v.charged(env)
		if back != 0 || no != nil || !ok || env.Value != nil {
			t.Fatalf("%d, %v, %v: %d bytes stay in it", back, no, ok, len(env.Value))
		}
		if one.n.store.HasBlob(env.ValueBlob.SHA256) != kept {
			t.Errorf("its value is on the disk: %v", !kept)
		}
	}
	takes(large("m1", "bob@two", "a"), true)
	paid := booked()
	if paid < protocol.ValueBytesInline {
		t.Errorf("%d bytes are booked", paid)
	}
	takes(large("m1", "bob@two", "a"), true) // it found no room, and comes again
	takes(large("m2", "bob@two", "a"), true)
	sent, err := one.n.Send(t.Context(), api.SendRequest{FromBoard: true, To: "alice", Intent: "Note", Value: protocol.EncodeBody(map[string]string{"text": "x"})})
	if err != nil {
		t.Fatal(err)
	}
	takes(large(sent.MsgID, "", "b"), false)
	if got := booked(); got != paid {
		t.Errorf("%d bytes are booked, and were %d", got, paid)
	}
	var seats sync.WaitGroup
	for i := range 8 { // one value to eight agents of ours, by the connection of each
		seats.Go(func() {
			env := large(protocol.MsgID(fmt.Sprint("m3-", i)), "bob@two", "c")
			if back, no, ok := (&visit{s: &seat{b: b}}).charged(env); back != 0 || no != nil || !ok {
				t.Errorf("%d, %v, %v", back, no, ok)
			}
		})
	}
	seats.Wait()
	if got := booked(); got != 2*paid {
		t.Errorf("%d bytes are booked, want %d", got, 2*paid)
	}
}

package foreign

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aster-mesh/aster/protocol"
)

// TestWhatAHubSaysOfARoom: what each word means for our agent; a guard's rule becomes the reason of its message, and what is
// parked waits instead.
func TestWhatAHubSaysOfARoom(t *testing.T) {
	refused := func(rule string) Event {
		return Settled{ID: "m", By: "room:rt-1", Tier: protocol.Refused, Reason: rule}
	}
	for in, want := range map[string][]Event{
		`RoomCreated {"roomId":"rt-1","topic":"Plan","participants":["bob","Alice"]}`:                          {RoomChange{In: true, Topic: "Plan"}},
		`RoomCreated {"roomId":"rt-1","participants":["bob"]}`:                                                 {RoomChange{}},
		`RoomJoined {"roomId":"rt-1","agentId":"alice"}`:                                                       {RoomChange{In: true}},
		`RoomJoined {"roomId":"rt-1","agentId":"bob"}`:                                                         {RoomChange{}},
		`RoomLeft {"roomId":"rt-1","agentId":"alice"}`:                                                         {RoomChange{Out: true, Agent: "alice"}},
		`RoomLeft {"roomId":"rt-1","agentId":"bob"}`:                                                           {RoomChange{Agent: "bob"}},
		`RoomClosed {"roomId":"rt-1","reason":"done"}`:                                                         {RoomChange{Over: true}},
		`RoomArtifacts {"roomId":"rt-1","artifacts":{"decisions":[]}}`:                                         {RoomChange{In: true}},
		`RoomArtifacts {"roomId":"rt-1","delta":{}}`:                                                           {RoomChange{}},
		`RoomYield {"roomId":"rt-1","msgId":"x"}`:                                                              {RoomChange{Free: true}},
		`RoomStall {"roomId":"rt-1","reason":"no-addressee-progress"}`:                                         {RoomChange{}},
		`RoomStall {"roomId":"rt-1","reason":"autoHop-cap","parkedMsgId":"m","from":"alice"}`:                  {RoomChange{Hold: HoldYield, ID: "m"}},
		`RoomStall {"roomId":"rt-1","reason":"autoHop-cap","parkedMsgId":"m","from":"bob"}`:                    {RoomChange{Hold: HoldYield}},
		`RoomGuard {"roomId":"rt-1","rule":"rate","action":"parked","msgId":"m","agentId":"alice"}`:            {RoomChange{Hold: HoldMinute, ID: "m"}},
		`RoomGuard {"roomId":"rt-1","rule":"consecutive","action":"parked","msgId":"m","agentId":"alice"}`:     {RoomChange{Hold: HoldTurn, ID: "m"}},
		`RoomGuard {"roomId":"rt-1","rule":"moderated","action":"parked","msgId":"m","agentId":"alice"}`:       {RoomChange{Hold: HoldYield, ID: "m"}},
		`RoomGuard {"roomId":"rt-1","rule":"muted","action":"dropped","msgId":"m","agentId":"alice"}`:          {refused("muted"), RoomChange{}},
		`RoomGuard {"roomId":"rt-1","rule":"not-participant","action":"parked","msgId":"m","agentId":"alice"}`: {refused("not-participant"), RoomChange{Out: true}},
		`RoomGuard {"roomId":"rt-1","rule":"no-such-room","action":"dropped","msgId":"m","agentId":"alice"}`:   {refused("no-such-room"), RoomChange{Over: true}},
		`RoomGuard {"roomId":"rt-1","rule":"no-such-room","action":"ignored","agentId":"alice"}`:               {RoomChange{Over: true}},
		`RoomGuard {"roomId":"rt-1","rule":"notice-reply","action":"warned","msgId":"m","agentId":"alice"}`:    {RoomChange{}},
		`RoomGuard {"roomId":"rt-1","rule":"not-participant","action":"dropped","msgId":"m","agentId":"bob"}`:  nil,
		`RoomClosed {"roomId":"rt-1@further"}`:                                                                 nil,
		`RoomClosed {"reason":"nowhere"}`:                                                                      nil,
		`RoomClosed {"roomId":7}`:                                                                              nil,
		`ServerNotice {"kind":"parked-dropped","msgId":"m","roomId":"rt-1","code":"rate","text":"not said"}`:   {Settled{ID: "m", Tier: protocol.Refused, Reason: "parked-dropped"}},
		`ServerNotice {"kind":"queued","msgId":"m","text":"away"}`:                                             nil,
		`Ack {"ackFor":"m","kind":"persisted","from":"room:rt-1"}`:                                             nil,
		`RoomCreated {"roomId":"` + strings.Repeat("r", 129) + `","participants":["alice"]}`:                   nil,
	} {
		name, value, _ := strings.Cut(in, " ")
		got := seated(t).Frame(frame(t, `{"name":"`+name+`","source":"server","value":`+value+`}`))
		for i := range want {
			if c, ok := want[i].(RoomChange); ok {
				c.Name, c.Room = protocol.Intent(name), "rt-1"
				want[i] = c
			}
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(RoomChange{}, "Value"), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", in, diff)
		}
		if got := seated(t).Frame(frame(t, `{"name":"`+name+`","source":"agent","agentId":"eve","value":`+value+`}`)); len(got) != 0 {
			t.Errorf("%s was believed from an agent: %v", in, got)
		}
	}
}

// TestARoomAndAnAgentOfOneNameAreTwo: whatever a board calls its agents.
func TestARoomAndAnAgentOfOneNameAreTwo(t *testing.T) {
	n := NewNames("far", nil)
	room, _ := n.Here(RoomKey("rt-1"))
	agent, _ := n.Here("rt-1")
	if room != "rt-1@far" || agent == room {
		t.Errorf("the room is called %q, the agent %q", room, agent)
	}
	again := NewNames("far", n.All())
	there, ok := again.There("RT-1@FAR")
	if id, is := RoomOf(there); !ok || !is || id != "rt-1" {
		t.Errorf("it comes back as %q", there)
	}
}

func TestNamesInWordsOnARoomAreOurs(t *testing.T) {
	got := Rename([]byte(`{"roomId":"rt-1","agentId":"bob","participants":["bob","alice"],"queue":[{"agentId":"bob","bid":5}],"artifacts":{"decisions":[{"by":"bob","text":"bob"}]}}`),
		"rt-1@far", func(id protocol.AgentID) protocol.AgentID {
			if id == "bob" {
				return "bob@far"
			}
			return id
		})
	want := `{"agentId":"bob@far","artifacts":{"decisions":[{"by":"bob@far","text":"bob"}]},"participants":["bob@far","alice"],"queue":[{"agentId":"bob@far","bid":5}],"roomId":"rt-1@far"}`
	if string(got) != want {
		t.Errorf("%s", got)
	}
	exact := `{"bid":9007199254740993,"roomId":"r","version":1.50}`
	if got := Rename([]byte(exact), "r", func(id protocol.AgentID) protocol.AgentID { return id }); string(got) != exact {
		t.Errorf("%s became %s", exact, got)
	}
	for _, odd := range []string{`7`, `"x"`, `[]`, `null`, ``} {
		if got := Rename([]byte(odd), "r", func(id protocol.AgentID) protocol.AgentID { return id }); string(got) != odd && odd != "null" {
			t.Errorf("%s became %s", odd, got)
		}
	}
}

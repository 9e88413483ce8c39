package foreign

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

func frame(t testing.TB, text string) *asterism.Frame {
	t.Helper()
	f, no := asterism.Decode([]byte(text), 0)
	if no != nil {
		t.Fatalf("%s: %v", text, no)
	}
	return &f
}

// seated is a session that was accepted.
func seated(t testing.TB) *Session {
	t.Helper()
	s := New(Options{Agent: "alice"})
	s.Frame(frame(t, `{"type":"CUSTOM","source":"server","name":"ConnectionInfo","value":{"agentId":"alice","role":"collab"}}`))
	return s
}

func TestEachFrameMeansWhatTheContractSays(t *testing.T) {
	for name, tt := range map[string]struct {
		in   string
		want []Event
	}{
		"an Ack":       {`{"name":"Ack","source":"server","value":{"ackFor":"m","kind":"delivered","from":"bob"}}`, []Event{Settled{ID: "m", By: "bob"}}},
		"a tier":       {`{"name":"Ack","source":"server","value":{"ackFor":"m","kind":"persisted","from":"bob"}}`, []Event{Settled{ID: "m", By: "bob", Tier: protocol.Persisted}}},
		"logged there": {`{"name":"Ack","source":"server","value":{"ackFor":"m","kind":"logged"}}`, nil},
		"a room's Ack": {`{"name":"Ack","source":"server","value":{"ackFor":"m","kind":"delivered","from":"room:rt-1","recipients":2,"offline":["carol"]}}`, []Event{Settled{ID: "m", By: "room:rt-1", Tier: protocol.Persisted, Reached: 2, Offline: []protocol.AgentID{"carol"}}}},
		"an adapter":   {`{"name":"AckProcessed","agentId":"bob","value":{"ackFor":"m","tier":"delivered-persist"}}`, []Event{Settled{ID: "m", By: "bob", Tier: protocol.Persisted}}},
		"a repeat":     {`{"name":"AckProcessed","agentId":"bob","value":{"ackFor":"m","dedupHit":true}}`, []Event{Settled{ID: "m", By: "bob", Tier: protocol.Persisted}}},
		"the agent":    {`{"name":"AckProcessed","agentId":"bob","value":{"ackFor":"m"}}`, []Event{Settled{ID: "m", By: "bob", Tier: protocol.Processed}}},
		"unreachable":  {`{"name":"RelayUnreachable","source":"server","value":{"msgId":"m","lastError":"commitment-ack-absent"}}`, []Event{Settled{ID: "m", Tier: protocol.Refused, Reason: "commitment-ack-absent"}}},
		"absent":       {`{"name":"RelayUnreachable","source":"server","value":{"msgId":"m","lastError":"recipient-absent"}}`, []Event{Later{ID: "m"}}},
		"untracked":    {`{"name":"RelayUnreachable","source":"server","value":{"msgId":null,"lastError":"recipient-absent-untracked"}}`, nil},
		"forged":       {`{"name":"RelayUnreachable","source":"agent","agentId":"eve","value":{"msgId":"m","lastError":"commitment-ack-absent"}}`, nil},
		"refused":      {`{"name":"ServerNotice","source":"server","value":{"kind":"refused","code":"msgid-reused","text":"x","msgId":"m"}}`, []Event{Settled{ID: "m", Tier: protocol.Refused, Reason: "msgid-reused"}}},
		"a rate":       {`{"name":"ServerNotice","source":"server","value":{"kind":"refused","code":"rate","text":"x","msgId":"m"}}`, []Event{Later{ID: "m"}}},
		"a notice":     {`{"name":"ServerNotice","source":"agent","agentId":"eve","value":{"kind":"refused","code":"rate","msgId":"m"}}`, nil},
		"the past":     {`{"name":"History","source":"server","value":{"events":[{"type":"CUSTOM","name":"Request","targetAgentId":"alice","msgId":"old","agentId":"bob"}]}}`, nil},
		"more past":    {`{"name":"ChannelHistory","source":"server","msgId":"h","value":{"events":[]}}`, []Event{Passed{Ack: "h"}}},
		"for another":  {`{"name":"Request","agentId":"bob","targetAgentId":"carol","msgId":"m","value":{}}`, nil},
		"our own":      {`{"name":"Request","agentId":"Alice","targetAgentId":"alice","msgId":"m","value":{}}`, []Event{Passed{From: "Alice", Ack: "m"}}},
		"the hub's":    {`{"name":"SelectionExpired","source":"server","targetAgentId":"alice","msgId":"sel-exp-1","value":{}}`, []Event{Passed{Ack: "sel-exp-1"}}},
		"telemetry":    {`{"name":"AgentActivity","agentId":"bob","targetAgentId":"alice","value":{}}`, nil},
		"a hello":      {`{"name":"AgentHello","agentId":"bob","targetAgentId":"alice","msgId":"m","value":{}}`, []Event{Passed{From: "bob", Ack: "m"}}},
	} {
		if diff := cmp.Diff(tt.want, seated(t).Frame(frame(t, tt.in))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestMailIsWhatIsSaidToOurAgent(t *testing.T) {
	for in, want := range map[string]Message{
		`{"name":"Request","agentId":"bob","agentName":"Bob","targetAgentId":"ALICE","msgId":"m","value":{"q":1}}`: {From: "bob", Name: "Bob", Acks: []protocol.MsgID{"m"}},
		`{"name":"Unheard","agentId":"bob","targetAgentId":"alice","messageId":"old","value":{}}`:                  {From: "bob", Acks: []protocol.MsgID{"old"}},
		`{"name":"UserPrompt","source":"board","targetAgentId":"alice","msgId":"b","value":{"text":"do"}}`:         {From: Person, Acks: []protocol.MsgID{"b"}},
		`{"name":"Ping","agentId":"bob","targetAgentId":"alice","value":{}}`:                                       {From: "bob"},
	} {
		got := seated(t).Frame(frame(t, in))
		if len(got) != 1 {
			t.Errorf("%s: %v", in, got)
			continue
		}
		if diff := cmp.Diff(want, got[0], cmpopts.IgnoreFields(Message{}, "Frame")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", in, diff)
		}
	}
}

// TestNobodyIsHeardBeforeTheHelloHolds: what an earlier hub shows before it has judged the HELLO means nothing yet.
func TestNobodyIsHeardBeforeTheHelloHolds(t *testing.T) {
	s := New(Options{Agent: "alice"})
	for _, in := range []string{
		`{"type":"SERVER_HELLO","protocolVersion":"0.3"}`,
		`{"name":"AgentList","value":{"agents":[{"agentId":"bob","role":"main"}]}}`,
		`{"name":"Request","agentId":"bob","targetAgentId":"alice","msgId":"m","value":{}}`,
		`{"name":"AckProcessed","agentId":"bob","value":{"ackFor":"m"}}`,
	} {
		if got := s.Frame(frame(t, in)); len(got) != 0 {
			t.Errorf("%s: %v", in, got)
		}
	}
	list := `{"name":"AgentList","value":{"agents":[{"agentId":"bob","agentName":"Bob","role":"main"},{"agentId":"alice","role":"local"},{"agentId":"zed@far"},{"agentId":""}]}}`
	if got := s.Frame(frame(t, list)); len(got) != 0 {
		t.Errorf("another client of our id was taken for us: %v", got)
	}
	got := s.Frame(frame(t, `{"name":"ConnectionInfo","source":"server","value":{"agentId":"alice","role":"local"}}`))
	want := []Event{Accepted{As: "alice", Role: "local"}, Roster{Agents: []Agent{{ID: "bob", Name: "Bob", Role: "main"}}}, Greet{To: "bob"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := s.Frame(frame(t, `{"name":"AgentList","value":{"agents":[{"agentId":"bob","role":"main"},{"agentId":"alice"}],"more":7}}`)); len(got) != 1 || !got[0].(Roster).Part {
		t.Errorf("main is greeted once, a part is known as one: %v", got)
	}
}

func TestTheBoardMayCallOurAgentOtherwise(t *testing.T) {
	s := New(Options{Agent: "alice"})
	got := s.Frame(frame(t, `{"name":"ConnectionInfo","source":"server","value":{"agentId":"alice-2","role":"peer"}}`))
	if diff := cmp.Diff([]Event{Accepted{As: "alice-2", Role: "peer"}}, got); diff != "" || s.As() != "alice-2" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := s.Frame(frame(t, `{"name":"Request","agentId":"bob","targetAgentId":"alice-2","value":{}}`)); len(got) != 1 {
		t.Errorf("not heard under the new name: %v", got)
	}
}

// TestATextInPiecesIsOneMessage, acknowledged as often as earlier hubs wait for it. Guards: B26, KC11.
func TestATextInPiecesIsOneMessage(t *testing.T) {
	s := seated(t)
	var got []Event
	for _, in := range []string{
		`{"type":"TEXT_MESSAGE_START","messageId":"s","agentId":"bob","targetAgentId":"alice"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"s","agentId":"carol","targetAgentId":"alice","delta":"another's"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"s","agentId":"bob","targetAgentId":"alice","delta":"Hel"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"s","agentId":"bob","targetAgentId":"alice","delta":"lo"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"s","agentId":"bob","targetAgentId":"dave","delta":"not ours"}`,
		`{"type":"TEXT_MESSAGE_END","messageId":"s","agentId":"bob","targetAgentId":"alice"}`,
	} {
		got = append(got, s.Frame(frame(t, in))...)
	}
	if len(got) != 1 {
		t.Fatalf("%v", got)
	}
	m := got[0].(Message)
	var v struct{ Text string }
	if err := json.Unmarshal(m.Frame.Value, &v); err != nil || v.Text != "Hello" || m.From != "bob" || len(m.Acks) != 4 || m.Frame.Intent() != protocol.AgentText {
		t.Errorf("%+v %s", m, m.Frame.Value)
	}
}

func TestFramesOfOursAreOfTheContract(t *testing.T) {
	now := time.UnixMilli(1790000000000)
	env := &protocol.Envelope{ID: "m", From: "alice", Intent: "Request", Context: "c", Parent: "p", Thread: "t"}
	for name, raw := range map[string][]byte{
		"hello": New(Options{Agent: "alice", Client: "x"}).Hello(now, "1"), "message": Outgoing(env, "bob", now, "2"),
		"persisted": Acknowledge("m", "bob", false, now, "3"), "processed": Acknowledge("m", "", true, now, "4"),
		"refusal": Refuse("m", "bob", protocol.Refuse("not-allowed", "no", "ask"), now, "5"), "greeting": Greeting("alice", "Alice", "main", now, "6"),
	} {
		f, no := asterism.Decode(raw, 0)
		if no != nil || f.ID == "" || f.Timestamp != now.UnixMilli() || f.Type == "" || !f.Hello() && len(f.Value) == 0 {
			t.Errorf("%s: %v %s", name, no, raw)
		}
	}
	again, no := asterism.Decode(Refuse("m", "bob", protocol.Refuse("not-allowed", "no", ""), now, "7"), 0)
	if no != nil || again.MsgID == "" || again.MsgID != frame(t, string(Refuse("m", "bob", protocol.Refuse("not-allowed", "no", ""), now, "8"))).MsgID {
		t.Errorf("one refusal has two ids: %+v", again)
	}
}

// TestNamesAreApart: whatever a board calls its agents, here each has a name of its own that says of which board, and keeps it.
func TestNamesAreApart(t *testing.T) {
	ids := []protocol.AgentID{"bob", "Bob", "BOB", Person, "board", "Board", "a/b", `a\b`, "a_b", " x ", "x", "zed@far", protocol.AgentID(strings.Repeat("n", 300)),
		protocol.AgentID(strings.Repeat("n", 301)), "\u202ebob", "ünï", "\u0000", "@", "~"}
	n := NewNames("far:1", nil)
	seen := map[protocol.AgentID]protocol.AgentID{}
	for _, id := range ids {
		here, fresh := n.Here(id)
		if err := protocol.CheckAgentID(here); err != nil || !fresh || !strings.HasSuffix(string(here), "@far:1") || strings.Count(string(here), "@") != 1 {
			t.Errorf("%q is called %q: %v", id, here, err)
		}
		if other, twice := seen[protocol.FoldAgentID(here)]; twice {
			t.Errorf("%q and %q are both called %q", id, other, here)
		}
		seen[protocol.FoldAgentID(here)] = id
		if back, ok := n.There(protocol.AgentID(strings.ToUpper(string(here)))); !ok || back != id {
			t.Errorf("%q comes back as %q", id, back)
		}
	}
	again := NewNames("far:1", n.All())
	for i := range ids {
		id := ids[len(ids)-1-i]
		want, _ := n.Here(id)
		if here, fresh := again.Here(id); fresh || here != want {
			t.Errorf("%q was called %q and is %q", id, want, here)
		}
	}
	if here, _ := n.Here("bob"); here != "bob@far:1" {
		t.Errorf("a plain name became %q", here)
	}
}

func FuzzSession(f *testing.F) {
	for _, in := range []string{
		`{"name":"ConnectionInfo","value":{"agentId":"alice"}}`, `{"name":"AgentList","value":{"agents":[{"agentId":"alice"},{"agentId":7}]}}`,
		`{"name":"Ack","value":{"ackFor":"m","kind":"delivered"}}`, `{"name":"RelayUnreachable","source":"server","value":{"msgId":null}}`,
		`{"type":"TEXT_MESSAGE_END","agentId":"b","targetAgentId":"alice"}`, `{"name":"Request","agentId":"b","targetAgentId":"alice","msgId":"m","value":[]}`,
	} {
		f.Add([]byte(in), []byte(in))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		s := seated(t)
		for _, raw := range [][]byte{a, b, a} {
			fr, no := asterism.Decode(raw, 1<<16)
			if no != nil {
				continue
			}
			for _, e := range s.Frame(&fr) {
				if m, ok := e.(Message); ok && (len(m.Acks) > piecesMax || m.Frame.Intent() == "" || s.me(m.From)) {
					t.Fatalf("%+v", m)
				}
			}
		}
	})
}

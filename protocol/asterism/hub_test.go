package asterism

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aster-mesh/aster/protocol"
)

var at = time.UnixMilli(1790000000000)

func encoder() *Encoder {
	n := 0
	return NewEncoder(func() string { n++; return fmt.Sprintf("evt_%d", n) })
}

// The hub's frames as existing clients know them; extra fields of ours are the last ones of a value.
func TestHubFramesLookLikeTheContracts(t *testing.T) {
	e := encoder()
	m := protocol.MsgID("m-1")
	for _, tt := range []struct {
		got  []byte
		want string
	}{
		{e.ServerHello(at, "9f8e", CapArtifacts), `{"type":"SERVER_HELLO",#,"source":"server","sessionId":"9f8e","protocolVersion":"0.3","serverTime":"2026-09-21T14:13:20.000Z","capabilities":["aster.artifacts"]}`},
		{e.AgentList(at, nil), `{"type":"CUSTOM",#,"source":"server","name":"AgentList","value":{"agents":[]}}`},
		{e.AgentList(at, []Agent{{"main-agent", "PM", protocol.RoleMain}, {ID: "w", Role: protocol.RoleLocal}}), `{"type":"CUSTOM",#,"source":"server","name":"AgentList","value":{"agents":[{"agentId":"main-agent","agentName":"PM","role":"main"},{"agentId":"w","agentName":"w","role":"local"}]}}`},
		{e.ConnectionInfo(at, ConnectionInfo{AgentID: "w", Role: protocol.RoleLocal, Surface: "agent", MayRelayTargeted: true, Keyed: true}), `{"type":"CUSTOM",#,"source":"server","name":"ConnectionInfo","value":{"agentId":"w","role":"local","surface":"agent","mayManageKeys":false,"mayRelayTargeted":true,"keyed":true,"historyScope":"active-channels+stubs"}}`},
		{e.ConnectionRejected(at, Rejection{Code: "key-expired", Reason: "r", Label: "l", ExpiresAt: 5}), `{"type":"CUSTOM",#,"source":"server","name":"ConnectionRejected","value":{"code":"key-expired","reason":"r","label":"l","expiresAt":5,"priorStateDelivered":false}}`},
		{e.Ack(at, "w", Ack{For: m, Kind: KindDelivered, From: "main-agent"}), `{"type":"CUSTOM",#,"source":"server","name":"Ack","targetAgentId":"w","value":{"ackFor":"m-1","kind":"delivered","from":"main-agent"}}`},
		{e.Ack(at, "w", Ack{For: m, Kind: KindDelivered, From: "room:rt-1", Room: true, Reached: 1}), `{"type":"CUSTOM",#,"source":"server","name":"Ack","targetAgentId":"w","value":{"ackFor":"m-1","kind":"delivered","from":"room:rt-1","recipients":1,"offline":[]}}`},
		{e.RelayUnreachable(at, "w", Unreachable{MsgID: &m, TargetAgentID: "x", AttemptCount: 3, LastError: UnreachableNoAck}), `{"type":"CUSTOM",#,"source":"server","name":"RelayUnreachable","targetAgentId":"w","value":{"msgId":"m-1","targetAgentId":"x","attemptCount":3,"lastError":"commitment-ack-absent"}}`},
		{e.RelayUnreachable(at, "w", Unreachable{TargetAgentID: "x", LastError: UnreachableUntracked}), `{"type":"CUSTOM",#,"source":"server","name":"RelayUnreachable","targetAgentId":"w","value":{"msgId":null,"targetAgentId":"x","attemptCount":0,"lastError":"recipient-absent-untracked"}}`},
		{e.MainChanged(at, "w"), `{"type":"CUSTOM",#,"source":"server","name":"MainChanged","value":{"agentId":"w"}}`},
		{e.Refused(at, "", "", protocol.Refuse("wrong-type", "name must be a string", "")), `{"type":"CUSTOM",#,"source":"server","name":"ServerNotice","value":{"kind":"refused","text":"name must be a string","code":"wrong-type"}}`},
		{e.Custom(at, Custom{Name: "SelectionExpired", To: "w", MsgID: "sel-exp-1"}), `{"type":"CUSTOM",#,"source":"server","name":"SelectionExpired","targetAgentId":"w","msgId":"sel-exp-1","value":{}}`},
		{e.HandoffRequested(at, "main-agent", "w", "h-1", "r"), `{"type":"CUSTOM",#,"source":"server","name":"HandoffRequested","targetAgentId":"main-agent","msgId":"h-1","value":{"to":"w","reason":"r"}}`},
		{e.History(at, History{Cold: []Stub{{"c", 2, 7, protocol.RoleLocal}}}), `{"type":"CUSTOM",#,"source":"server","name":"History","value":{"events":[],"cold":[{"key":"c","count":2,"lastTs":7,"role":"local"}],"archived":[],"manifests":{},"opsStates":{},"capManifests":{},"corporateChart":null,"roleStates":{},"seatTelemetry":{},"scope":{"activeEvents":0,"archivedChannels":0,"coldChannels":1,"note":"Cold and archived channels, and what stands in truncated, come on RequestChannelHistory; absent here does not mean not recorded.","perChannelLimit":150,"policy":"active-channels-recent+stubs","truncated":[]}}}`},
	} {
		var head struct {
			ID             string
			Seq, Timestamp int64
		}
		if err := json.Unmarshal(tt.got, &head); err != nil {
			t.Errorf("%s: %v", tt.got, err)
			continue
		}
		want := strings.Replace(tt.want, "#", fmt.Sprintf(`"id":"evt_%d","seq":%d,"timestamp":1790000000000`, head.Seq, head.Seq), 1)
		if diff := cmp.Diff(want, string(tt.got)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestAckProcessedIsNotItselfAcknowledged(t *testing.T) {
	got := string(encoder().AckProcessed(at, "main-agent", Processed{From: worker, For: "dlg-1", Tier: "delivered-persist", DedupHit: true}))
	want := `{"type":"CUSTOM","id":"evt_1","timestamp":1790000000000,"source":"agent","agentId":"worker-1","agentName":"Worker 1","name":"AckProcessed","targetAgentId":"main-agent","value":{"ackFor":"dlg-1","tier":"delivered-persist","dedupHit":true}}`
	if got != want {
		t.Errorf("got %s", got)
	}
}

func TestUtteranceAndToolCallInHistory(t *testing.T) {
	text := protocol.Envelope{ID: "m", Frame: "f", From: "w", Source: protocol.SourceAgent, To: "b", Thread: "th", Intent: protocol.AgentText, Value: json.RawMessage(`{"messageId":"t1","text":"Hello"}`)}
	tool := text
	tool.Intent, tool.Value = protocol.ToolCall, json.RawMessage(`{"toolCallId":"c1","toolCallName":"grep","args":"x","result":"found","display":{"kind":"y"}}`)
	for _, tt := range []struct {
		e    protocol.Envelope
		want string
	}{
		{text, `{"type":"TEXT_MESSAGE","messageId":"t1","role":"assistant","text":"Hello","id":"f","source":"agent","agentId":"w","targetAgentId":"b","msgId":"m","timestamp":7,"threadId":"th"}`},
		{tool, `{"type":"TOOL_CALL","toolCallId":"c1","toolCallName":"grep","args":"x","result":"found","display":{"kind":"y"},"id":"f","source":"agent","agentId":"w","targetAgentId":"b","msgId":"m","timestamp":7,"threadId":"th"}`},
	} {
		if got := string(AppendEvent(nil, &tt.e, 7)); got != tt.want {
			t.Errorf("got %s\nwant %s", got, tt.want)
		}
	}
}

// channel makes n events of size bytes; the times rise by step from first.
func channel(key string, n, size int, first, step int64) Channel {
	c := Channel{Key: key, Total: n}
	for i := range n {
		c.Events = append(c.Events, Event{&protocol.Envelope{
			ID: protocol.MsgID(fmt.Sprint(key, "-", i)), From: protocol.AgentID(key), Source: protocol.SourceAgent, Intent: protocol.Report,
			Value: json.RawMessage(`{"summary":"` + strings.Repeat("x", size) + `"}`),
		}, first + int64(i)*step})
	}
	return c
}

type historyFrame struct {
	Value struct {
		Events []struct {
			AgentID   string
			MsgID     string
			Timestamp int64
		}
		Scope struct{ Truncated []truncated }
	}
}

func TestHistoryStaysBelowAMebibyteAndKeepsTheNewestOfEveryChannel(t *testing.T) {
	h := History{Channels: []Channel{channel("loud", 400, 20_000, 1000, 10), channel("quiet", 3, 10, 1, 1), channel("busy", 400, 100, 500, 7)}}
	h.SeatTelemetry = map[string]json.RawMessage{"big": json.RawMessage(`"` + strings.Repeat("y", 700_000) + `"`)}
	out := encoder().History(at, h)
	if len(out) >= protocol.HubFrameBytesMax {
		t.Errorf("a History of %d bytes", len(out))
	}
	var f historyFrame
	if err := json.Unmarshal(out, &f); err != nil {
		t.Fatal(err)
	}
	sent, last := map[string]int{}, map[string]string{}
	for _, ev := range f.Value.Events {
		sent[ev.AgentID]++
		last[ev.AgentID] = ev.MsgID
	}
	if sent["quiet"] != 3 || sent["busy"] != HistoryPerChannel || sent["loud"] < 20 || last["loud"] != "loud-399" || last["busy"] != "busy-399" {
		t.Errorf("sent %v, last %v", sent, last)
	}
	if !slices.IsSortedFunc(f.Value.Events, func(a, b struct {
		AgentID   string
		MsgID     string
		Timestamp int64
	}) int {
		return int(a.Timestamp - b.Timestamp)
	}) {
		t.Error("events are not in the order of time")
	}
	want := []truncated{{"loud", sent["loud"], 400, 1000 + int64(400-sent["loud"])*10}, {"busy", 150, 400, 500 + 250*7}}
	if diff := cmp.Diff(want, f.Value.Scope.Truncated); diff != "" {
		t.Error(diff)
	}
}

func TestEmptyHistoryIsKnown(t *testing.T) {
	if h := (History{Channels: []Channel{{Key: "a"}}}); !h.Empty() {
		t.Error("an empty channel counts")
	}
	if h := (History{OpsStates: map[string]json.RawMessage{"a": nil}}); h.Empty() {
		t.Error("declarations do not count")
	}
}

func TestPagingByBeforeTsReachesEveryEventOnce(t *testing.T) {
	c := channel("w", 300, 15_000, 1000, 10)
	e := encoder()
	var got []string
	rest := c.Events
	for page := 0; len(rest) > 0; page++ {
		out := e.ChannelHistory(at, ChannelPage{Key: "w", Events: rest, Before: page > 0})
		if len(out) >= protocol.HubFrameBytesMax {
			t.Fatalf("a page of %d bytes", len(out))
		}
		var f struct {
			Value struct {
				ChannelKey    string
				Events        []struct{ MsgID string }
				Prepend, More bool
				Remaining     int
				OldestSentTs  int64
			}
		}
		if err := json.Unmarshal(out, &f); err != nil {
			t.Fatal(err)
		}
		v := f.Value
		if v.ChannelKey != "w" || v.Prepend != (page > 0) || v.More != (v.Remaining > 0) || v.Remaining != len(rest)-len(v.Events) || len(v.Events) == 0 {
			t.Fatalf("page %d: %d events, %+v", page, len(v.Events), v.Remaining)
		}
		var ids []string
		for _, ev := range v.Events {
			ids = append(ids, ev.MsgID)
		}
		got = append(ids, got...)
		n := 0
		for n < len(rest) && rest[n].At < v.OldestSentTs {
			n++
		}
		rest = rest[:n]
		if v.OldestSentTs == 0 {
			break
		}
	}
	if len(got) != 300 || got[0] != "w-0" || got[299] != "w-299" {
		t.Errorf("paged %d events", len(got))
	}
}

func TestRosterThatDoesNotFitSaysHowManyAreMissing(t *testing.T) {
	agents := make([]Agent, protocol.AgentsMax)
	for i := range agents {
		agents[i] = Agent{protocol.AgentID(fmt.Sprint(strings.Repeat("a", 100), i)), strings.Repeat("é", 80), protocol.RoleLocal}
	}
	out := encoder().AgentList(at, agents)
	var f struct {
		Value struct {
			Agents []struct{ AgentID string }
			More   int
		}
	}
	if err := json.Unmarshal(out, &f); err != nil {
		t.Fatal(err)
	}
	if len(out) >= protocol.HubFrameBytesMax || f.Value.More == 0 || f.Value.More+len(f.Value.Agents) != len(agents) {
		t.Errorf("%d bytes, %d agents and %d more", len(out), len(f.Value.Agents), f.Value.More)
	}
}

func TestStringsAreEscapedAsTheStandardLibraryReadsThem(t *testing.T) {
	for _, s := range []string{"", "a", "\"\\\n\r\t\b\f\x00\x1f\x7f", "é😀\u2028<&>", "a\xffb\xc3", strings.Repeat("\x01", 300)} {
		var got string
		if err := json.Unmarshal(AppendString(nil, s), &got); err != nil || got != strings.ToValidUTF8(s, "\ufffd") {
			t.Errorf("%q became %q, %v", s, got, err)
		}
	}
}

func BenchmarkHistory(b *testing.B) {
	h := History{}
	for i := range 20 {
		h.Channels = append(h.Channels, channel(fmt.Sprint("a", i), 150, 300, 1000, 10))
	}
	e := encoder()
	for b.Loop() {
		e.History(at, h)
	}
}

package asterism

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aster-mesh/aster/protocol"
)

var worker = Sender{ID: "worker-1", Name: "Worker 1", Role: protocol.RoleLocal, Source: protocol.SourceAgent}

func envelope(t testing.TB, in string) protocol.Envelope {
	t.Helper()
	f := decode(t, in)
	e, no := f.Envelope(worker, "ours")
	if no != nil {
		t.Fatalf("%s refused: %v", in, no)
	}
	return e
}

func TestEnvelopeCarriesTheAuthenticatedSenderWhateverTheFrameClaims(t *testing.T) {
	e := envelope(t, `{"type":"CUSTOM","name":"Delegate","agentId":"main-agent","agentName":"Boss","source":"server","role":"main","targetAgentId":"w2","msgId":"f-1","value":{}}`)
	if e.From != "worker-1" || e.FromName != "Worker 1" || e.FromRole != protocol.RoleLocal || e.Source != protocol.SourceAgent {
		t.Errorf("got sender %q %q %q %q", e.From, e.FromName, e.FromRole, e.Source)
	}
	out := string(AppendDelivery(nil, &e, 9))
	if strings.Contains(out, "main-agent") || strings.Contains(out, "Boss") || strings.Contains(out, "server") {
		t.Errorf("the claim is delivered: %s", out)
	}
}

func TestRecoveryKeyIsMsgIDAndLegacyMessageIDOnlyOfCustom(t *testing.T) {
	for in, want := range map[string]protocol.MsgID{
		`{"name":"Report","msgId":"m","messageId":"old"}`:             "m",
		`{"name":"Report","messageId":"old"}`:                         "old",
		`{"name":"Report"}`:                                           "ours",
		`{"name":"Report","msgId":"m","telemetry":true}`:              "ours",
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"s","delta":"x"}`: "ours",
		`{"name":"AgentActivity","msgId":"m"}`:                        "ours",
		`{"name":"Report","msgId":"m","threadId":"codex-watch"}`:      "ours",
	} {
		if e := envelope(t, in); e.ID != want {
			t.Errorf("%s: got id %q, want %q", in, e.ID, want)
		}
	}
}

func TestAnswerNamesItsRequest(t *testing.T) {
	for in, want := range map[string]protocol.MsgID{
		`{"name":"Report","value":{"re_msgId":"a","for":"b"}}`:           "a",
		`{"name":"DONE","value":{"for":"b"}}`:                            "b",
		`{"name":"DONE","value":{"for":7}}`:                              "",
		`{"name":"DONE","value":["re_msgId","a"]}`:                       "",
		`{"name":"Report","value":{"nested":{"re_msgId":"a"}}}`:          "",
		`{"name":"Report","value":{"re_msgId":"a\u0000"}}`:               "",
		`{"name":"Report","value":{"RE_MSGID":"a","re_msgId":"\u0062"}}`: "b",
	} {
		if e := envelope(t, in); e.Re != want {
			t.Errorf("%s: got re %q, want %q", in, e.Re, want)
		}
	}
}

func TestOnlyTheHubSendsWhatIsReserved(t *testing.T) {
	n := 0
	for _, row := range protocol.Catalogue() {
		for _, in := range []string{
			`{"type":"CUSTOM","name":"` + string(row.Name) + `","value":{}}`, `{"type":"` + string(row.Name) + `"}`,
			`{"type":"Odd","name":" ` + string(row.Name) + `"}`,
		} {
			f := decode(t, in)
			_, no := f.Envelope(worker, "x")
			if reserved := no != nil && no.Code == protocol.CodeReservedName; reserved != row.HubOnly {
				t.Errorf("%s: got %v, hub only: %v", in, no, row.HubOnly)
			}
			n++
		}
	}
	if n == 0 {
		t.Error("the catalogue is empty")
	}
}

func TestRunFrameGoesThroughAnEnvelopeUnchanged(t *testing.T) {
	for in, want := range map[string]string{
		`{"type":"TEXT_MESSAGE_CONTENT","id":"1","messageId":"m","delta":"a\"b","agentId":"x"}`: `{"type":"TEXT_MESSAGE_CONTENT","id":"1","source":"agent","agentId":"worker-1","agentName":"Worker 1","timestamp":9,"messageId":"m","delta":"a\"b"}`,
		`{"type":"RUN_FINISHED","id":"2","runId":"r","outcome":{"type":"success"}}`:             `{"type":"RUN_FINISHED","id":"2","source":"agent","agentId":"worker-1","agentName":"Worker 1","msgId":"ours","timestamp":9,"runId":"r","outcome":{"type":"success"}}`,
		`{"type":"STATE_SNAPSHOT","id":"3","scope":"s","snapshot":{"a":1}}`:                     `{"type":"STATE_SNAPSHOT","id":"3","source":"agent","agentId":"worker-1","agentName":"Worker 1","timestamp":9,"scope":"s","snapshot":{"a":1}}`,
		`{"type":"STEP_STARTED","id":"4","stepName":"build"}`:                                   `{"type":"STEP_STARTED","id":"4","source":"agent","agentId":"worker-1","agentName":"Worker 1","msgId":"ours","timestamp":9,"stepName":"build"}`,
	} {
		e := envelope(t, in)
		if got := string(AppendDelivery(nil, &e, 9)); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

func TestAnotherNodesRunValueCannotForgeTheSender(t *testing.T) {
	e := protocol.Envelope{
		ID: "m", From: "sender", Source: protocol.SourceAgent, Intent: "RUN_STARTED",
		Value: json.RawMessage(`{"agentId":"main","\u0061gentId":"main","source":"server","type":"AgentList","name":"AgentList","value":{},"timestamp":1,"declaredTs":1,"stepName":"ok"}`),
	}
	checkDelivery(t, &e)
	if out := string(AppendDelivery(nil, &e, 5)); !strings.Contains(out, `"stepName":"ok"`) || strings.Contains(out, "AgentList") {
		t.Errorf("got %s", out)
	}
}

func TestDeliveryOfADelegateLooksLikeTheContracts(t *testing.T) {
	e := envelope(t, `{"type":"CUSTOM","id":"l-1","seq":5,"threadId":"main","timestamp":100,"agentId":"x","name":"Delegate","targetAgentId":"worker-2","msgId":"dlg-1","contextId":"task-1","parentId":"p","channelId":"c","runId":"r","value":{ "task" : "count" }}`)
	want := `{"type":"CUSTOM","name":"Delegate","id":"l-1","source":"agent","agentId":"worker-1","agentName":"Worker 1","targetAgentId":"worker-2","msgId":"dlg-1","timestamp":120,"declaredTs":100,"contextId":"task-1","parentId":"p","threadId":"main","runId":"r","channelId":"c","value":{ "task" : "count" }}`
	if diff := cmp.Diff(want, string(AppendDelivery(nil, &e, 120))); diff != "" {
		t.Error(diff)
	}
}

func TestDeliveryAlwaysHasAnIDAndAnObject(t *testing.T) {
	e := protocol.Envelope{ID: "m-1", Source: protocol.SourceServer, Intent: "UserPrompt"}
	if got, want := string(AppendDelivery(nil, &e, 1)), `{"type":"CUSTOM","name":"UserPrompt","id":"m-1","source":"server","msgId":"m-1","timestamp":1,"value":{}}`; got != want {
		t.Errorf("got %s", got)
	}
}

func TestEventsAreCutToWhatTheContractStores(t *testing.T) {
	long := strings.Repeat("é", 20_000)
	value := func(key string) json.RawMessage {
		return json.RawMessage(`{"messageId":"m","toolCallId":"c","toolCallName":"grep","` + key + `":"` + long + `"}`)
	}
	for intent, key := range map[protocol.Intent]string{protocol.AgentText: "text", protocol.ToolCall: "result", protocol.Report: "summary"} {
		e := protocol.Envelope{ID: "m", From: "sender", Source: protocol.SourceAgent, Intent: intent, Value: value(key)}
		if intent == protocol.Report {
			e.Value = json.RawMessage(`{"summary":"` + long + long + `"}`)
		}
		out := AppendEvent(nil, &e, 5)
		checkDelivery(t, &e)
		if len(out) > 9_000 {
			t.Errorf("%s: an event of %d bytes", intent, len(out))
		}
	}
}

func ExampleDecode() {
	f, no := Decode([]byte(`{"type":"CUSTOM","name":"Report","value":{"summary":"done"}}`), 0)
	fmt.Println(f.Intent(), no == nil)
	_, no = Decode([]byte(`{"type":"CUSTOM","name":{"toString":1}}`), 0)
	fmt.Println(no)
	// Output:
	// Report true
	// name must be a string
}

func ExampleAppendDelivery() {
	e := protocol.Envelope{ID: "m-1", From: "w", Source: protocol.SourceAgent, To: "main", Intent: protocol.Report, Value: json.RawMessage(`{"summary":"done"}`)}
	fmt.Println(string(AppendDelivery(nil, &e, 1796056831952)))
	// Output: {"type":"CUSTOM","name":"Report","id":"m-1","source":"agent","agentId":"w","targetAgentId":"main","msgId":"m-1","timestamp":1796056831952,"value":{"summary":"done"}}
}

package asterism

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/aster-mesh/aster/protocol"
)

func decode(t testing.TB, s string) Frame {
	t.Helper()
	f, no := Decode([]byte(s), 0)
	if no != nil {
		t.Fatalf("%s refused: %v", protocol.CutText(s, 200), no)
	}
	return f
}

func TestDecodeReadsAFrameOfEachKind(t *testing.T) {
	for in, want := range map[string]Frame{
		`{"type":"CUSTOM","id":"l-1","seq":5,"runId":null,"threadId":"main","timestamp":1796056831952,"source":"agent","agentId":"main-agent","name":"Delegate","targetAgentId":"worker-1","msgId":"dlg-1","contextId":"task-1","value":{"task":"count"}}`: {
			Type: "CUSTOM", Name: "Delegate", ID: "l-1", Seq: 5, ThreadID: "main", Timestamp: 1796056831952, Source: "agent",
			AgentID: "main-agent", TargetAgentID: "worker-1", MsgID: "dlg-1", ContextID: "task-1", Value: json.RawMessage(`{"task":"count"}`),
		},
		` {"name":"Report","value":{"targetAgentId":" w ","targetAgentId":"main"},"weird":[1]} `: {
			Type: "CUSTOM", Name: "Report", TargetAgentID: "main",
			Value: json.RawMessage(`{"targetAgentId":" w ","targetAgentId":"main"}`), Extra: map[string]json.RawMessage{"weird": json.RawMessage(`[1]`)},
		},
		`{"type":"HELLO","agentId":" w1 ","clientId":"w1-1","agentName":"W","role":"local","protocolVersion":0.3,"pid":12,"upstreamKey":"uk-1","capabilities":["a2a","mcp-proxy","ack-layer",7]}`: {
			Type: "HELLO", AgentID: "w1", ClientID: "w1-1", AgentName: "W", Role: "local", ProtocolVersion: "0.3", PID: 12, Key: "uk-1",
			Capabilities: []string{"a2a", "mcp-proxy", "ack-layer"}, MCPProxy: true,
		},
		`{"type":"HELLO","agentId":"w","capabilities":{"inbound":["Delegate"],"outbound":["CUSTOM"],"features":["aster.tiers"],"ack-layer":true,"mcp-proxy":true,"off":false}}`: {
			Type: "HELLO", AgentID: "w", Capabilities: []string{"aster.tiers", "ack-layer", "mcp-proxy"},
		},
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"h\u00e9\ud83d\ude00"}`: {
			Type: "TEXT_MESSAGE_CONTENT", MessageID: "m", Delta: "hé😀",
		},
		`{"type":"STATE_DELTA","delta":[{"op":"add"}],"scope":"s"}`: {
			Type: "STATE_DELTA", Extra: map[string]json.RawMessage{"delta": json.RawMessage(`[{"op":"add"}]`), "scope": json.RawMessage(`"s"`)},
		},
		`{"type":"TOOL_CALL_RESULT","toolCallId":"c","content":{"a":1},"display":null}`: {
			Type: "TOOL_CALL_RESULT", ToolCallID: "c", Result: json.RawMessage(`{"a":1}`),
		},
		`{"\u0074ype":"CUSTOM","name":"X","addressee":["a","b"],"telemetry":true}`: {
			Type: "CUSTOM", Name: "X", Addressee: []string{"a", "b"}, Telemetry: true,
		},
	} {
		if diff := cmp.Diff(want, decode(t, in)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", in, diff)
		}
	}
}

func TestTimesOfAllKindsAreTolerated(t *testing.T) {
	for in, want := range map[string]int64{
		`1796056831952`: 1796056831952, `1796056831952.7`: 1796056831952, `"1796056831952"`: 1796056831952,
		`"2026-11-30T16:40:31.952Z"`: 1796056831952, `"2026-11-30T17:40:31.952+01:00"`: 1796056831952,
		`1e300`: 0, `-1`: 0, `1e999`: 0, `"soon"`: 0, `9007199254740993`: 0, `0`: 0, `null`: 0, `-0`: 0, `1.7e12`: 1700000000000,
	} {
		if got := decode(t, `{"name":"X","timestamp":`+in+`}`).Timestamp; got != want {
			t.Errorf("timestamp %s: got %d, want %d", in, got, want)
		}
	}
}

// The inputs that ended or misled the old hub (known-faults A and B), each with the code that its sender now hears.
func TestKnownFaultsAreRefusedByCode(t *testing.T) {
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	for in, want := range map[string]struct{ code, names string }{
		`{"type":"HELLO","agentId":{"toString":1}}`:                          {protocol.CodeWrongType, "agentId"},
		`{"type":"HELLO","agentId":"a","agentName":{"toString":1}}`:          {protocol.CodeWrongType, "agentName"},
		`{"type":"CUSTOM","name":"X","channelId":{"toString":1},"value":{}}`: {protocol.CodeWrongType, "channelId"},
		`{"type":"CUSTOM","name":"RoomJoin","roomId":{"toString":1}}`:        {protocol.CodeWrongType, "roomId"},
		`{"type":"CUSTOM","name":"X","value":` + deep + `}`:                  {protocol.CodeTooDeep, ""},
		deep:                                   {protocol.CodeTooDeep, ""},
		`null`:                                 {protocol.CodeBadFrame, ""},
		`[]`:                                   {protocol.CodeBadFrame, ""},
		`1`:                                    {protocol.CodeBadFrame, ""},
		`"x"`:                                  {protocol.CodeBadFrame, ""},
		`true`:                                 {protocol.CodeBadFrame, ""},
		`{}`:                                   {protocol.CodeBadFrame, "type"},
		``:                                     {protocol.CodeBadFrame, ""},
		`{"type":{}}`:                          {protocol.CodeWrongType, "type"},
		`{"type":"CUSTOM"}`:                    {protocol.CodeBadFrame, "name"},
		`{"name":"X"`:                          {protocol.CodeBadFrame, ""},
		`{"name":"X"} {"name":"Y"}`:            {protocol.CodeBadFrame, ""},
		`{"name":"X","targetAgentId":{"a":1}}`: {protocol.CodeWrongType, "targetAgentId"},
		`{"name":"X","value":{"targetAgentId":[]}}`:                   {protocol.CodeWrongType, "value.targetAgentId"},
		`{"name":"X","targetAgentId":"a/../b"}`:                       {protocol.CodeBadAgentID, "targetAgentId"},
		`{"name":"X","name":"Y"}`:                                     {protocol.CodeDuplicateKey, "name"},
		`{"name":"X","\u006eame":"Y"}`:                                {protocol.CodeDuplicateKey, "name"},
		`{"name":"X","agentId":null,"agentId":"b"}`:                   {protocol.CodeDuplicateKey, "agentId"},
		`{"name":"X","odd":1,"odd":2}`:                                {protocol.CodeDuplicateKey, "odd"},
		`{"type":"TEXT_MESSAGE_CONTENT","delta":[1]}`:                 {protocol.CodeWrongType, "delta"},
		`{"name":"X","agentId":"` + strings.Repeat("a", 1<<20) + `"}`: {protocol.CodeBadAgentID, "agentId"},
		`{"name":"X","threadId":"` + strings.Repeat("a", 600) + `"}`:  {protocol.CodeBadFrame, "threadId"},
		"{\"name\":\"X\xff\"}":                                        {protocol.CodeNotUTF8, ""},
		"{\"name\":\"X\x01\"}":                                        {protocol.CodeBadFrame, ""},
		"\ufeff{\"name\":\"X\"}":                                      {protocol.CodeBadFrame, ""},
		`{"name":"X",}`:                                               {protocol.CodeBadFrame, ""},
		`{"name":"X","a":01}`:                                         {protocol.CodeBadFrame, ""},
		`{"name":"X","a":[1}]}`:                                       {protocol.CodeBadFrame, ""},
	} {
		_, no := Decode([]byte(in), 0)
		if no == nil || no.Code != want.code || !strings.Contains(no.Reason, want.names) {
			t.Errorf("%s: got %+v, want %s naming %q", protocol.CutText(in, 100), no, want.code, want.names)
		}
	}
}

func TestFrameAboveTheLimitIsRefusedUnread(t *testing.T) {
	if _, no := Decode([]byte(`{"name":"X"}`), 5); no == nil || no.Code != protocol.CodeFrameTooLarge {
		t.Errorf("got %v", no)
	}
}

func TestManyUnknownFieldsAreRefused(t *testing.T) {
	b := []byte(`{"name":"X"`)
	for i := range 300_000 {
		b = append(append(b, `,"k`...), strings.Repeat("z", i%7)...)
		b = append(b, []byte(`":1`)...)
	}
	if _, no := Decode(append(b, '}'), 0); no == nil || no.Code != protocol.CodeBadFrame {
		t.Errorf("got %v", no)
	}
}

// Every known field of every verb with a value of every wrong type: refused by the field's name, never a panic.
func TestWrongTypedValueInEveryFieldOfEveryVerbIsRefusedByName(t *testing.T) {
	if len(fields) > 64 {
		t.Fatal("the set of seen fields is too small")
	}
	values := map[byte][]string{
		'n': {`1`, `-1.5e3`, `1e300`}, 's': {`"x"`, `""`}, 'b': {`true`, `false`},
		'a': {`[]`, `[[1]]`, `["a"]`, `[{"toString":1}]`}, 'o': {`{}`, `{"toString":1}`, `{"length":-1}`},
	}
	may := map[sort]string{
		sortText: "s", sortDelta: "s", sortVersion: "sn", sortNumber: "n", sortTime: "ns", sortBool: "b",
		sortCaps: "ao", sortAny: "nsbao", sortTexts: "",
	}
	var verbs []string
	for _, row := range protocol.Catalogue() {
		verbs = append(verbs, `"type":"CUSTOM","name":"`+string(row.Name)+`"`, `"type":"`+string(row.Name)+`"`)
	}
	verbs = append(verbs, `"name":"KeyIssue"`, `"name":"RoomCreate"`, `"name":"SetMain"`, `"name":"RequestChannelHistory"`, `"type":"HELLO","agentId":"a"`)
	n := 0
	for _, verb := range verbs {
		for _, d := range fields {
			if strings.Contains(verb, `"`+d.name+`":`) || d.sort == sortDelta && strings.Contains(verb, "STATE_DELTA") {
				continue
			}
			for kind, all := range values {
				for _, v := range all {
					in := []byte(`{` + verb + `,"` + d.name + `":` + v + `}`)
					f, no := Decode(in, 0)
					n++
					ok := strings.IndexByte(may[d.sort], kind) >= 0 || d.sort == sortTexts && (v == `[]` || v == `["a"]`)
					if ok {
						if no != nil && d.name != "type" && d.name != "name" {
							t.Fatalf("%s: refused: %v", in, no)
						}
						_, _ = f.Envelope(Sender{ID: "a", Source: protocol.SourceAgent}, "id")
						continue
					}
					if no == nil || no.Code != protocol.CodeWrongType || !strings.HasPrefix(no.Reason, d.name+" ") {
						t.Fatalf("%s: got %v, want it refused by the name of %s", in, no, d.name)
					}
				}
			}
		}
	}
	t.Logf("%d frames", n)
}

func TestFrameSurvivesAppendAndDecode(t *testing.T) {
	for _, in := range []string{
		`{"type":"CUSTOM","name":"Report","id":"1","seq":2,"timestamp":3,"agentId":"a","agentName":"N \"q\"\n","targetAgentId":"b","msgId":"m","contextId":"c","parentId":"p","runId":"r","roomId":"rt","replyTo":"x","addressee":["y"],"telemetry":true,"notice":true,"noWake":true,"value":{"a":[1,2,{"b":null}]},"odd\u0000":{"z":1},"messageId":"q"}`,
		`{"type":"HELLO","agentId":"w","clientId":"c","protocolVersion":"0.1","pid":9,"key":"ck-1","capabilities":["ack-layer","aster.tiers"]}`,
		`{"type":"TOOL_CALL_RESULT","toolCallId":"c","toolCallName":"grep","content":"found \u2028 \ud83d\ude00","display":{"kind":"x"}}`,
		`{"type":"RUN_FINISHED","runId":"r","outcome":{"type":"success"}}`,
	} {
		f := decode(t, in)
		out := f.Append(nil)
		again := decode(t, string(out))
		if diff := cmp.Diff(f, again); diff != "" {
			t.Errorf("%s\nbecame %s (-before +after):\n%s", in, out, diff)
		}
	}
}

// scanTwin says what the standard library thinks.
func scanTwin(b []byte) bool { return json.Valid(b) }

func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"type":"CUSTOM","name":"X","value":{"re_msgId":"a"}}`, `{"name":"X","timestamp":1e300}`, `null`, `[[[[]]]]`,
		`{"type":"HELLO","agentId":"a","capabilities":{"x":["y"]}}`, `{"a":"\ud800\u0041\\","a":1}`, "{\"name\":\"\xff\"}",
		`{"type":"TEXT_MESSAGE_CONTENT","delta":"x","n":-0.0e-1}`, `{"type":"RUN_ERROR","message":"m","agentid":"x","Value":1}`,
		`{"name":"X","value":{"e":1e999999}}`, `{"name":"X","value":` + strings.Repeat("7", 5000) + `}`, `[1e999`,
		`{"":[],"name":"X","value":"x"}`, `[1,2`, `{"a":tru}`, `"\x"`, `{"a" : 1 , "b":[ ] }`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		ms, fault := scan(b, nil)
		if fault == nil != scanTwin(b) && (fault == nil || !fault.deep && !fault.wild) {
			t.Fatalf("scan says %v of %q, encoding/json says valid: %v", fault, b, scanTwin(b))
		}
		if fault == nil && utf8.Valid(b) {
			checkMembers(t, b, ms)
		}
		fr, no := Decode(b, 0)
		if no != nil {
			if no.Code == "" || no.Reason == "" {
				t.Fatalf("an empty refusal for %q", b)
			}
			return
		}
		again, no := Decode(fr.Append(nil), 0)
		if no != nil {
			t.Fatalf("%q decodes, but what Append makes of it does not: %v", b, no)
		}
		if fr.TargetAgentID != again.TargetAgentID || fr.Intent() != again.Intent() || fr.MsgID != again.MsgID || fr.Delta != again.Delta {
			t.Fatalf("%q changed on its way: %+v, %+v", b, fr, again)
		}
		env, no := fr.Envelope(Sender{ID: "sender", Name: "S", Role: protocol.RoleLocal, Source: protocol.SourceAgent}, "id")
		if no != nil {
			return
		}
		checkDelivery(t, &env)
	})
}

// checkMembers compares scan with the standard library for an object.
func checkMembers(t *testing.T, b []byte, ms []member) {
	var want map[string]json.RawMessage
	if bytes.TrimSpace(b)[0] != '{' {
		return
	}
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	got := map[string]json.RawMessage{}
	for _, m := range ms {
		got[unescape(m.key)] = m.value
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%q: scan found %q, encoding/json %q", b, got, want)
	}
}

// checkDelivery says that a delivery and an event are one JSON object each in which every name stands once, and that
// nobody but the authenticated sender shows as its sender.
func checkDelivery(t *testing.T, env *protocol.Envelope) {
	for _, out := range [][]byte{AppendDelivery(nil, env, 5), AppendEvent(nil, env, 5)} {
		ms, fault := scan(out, nil)
		if fault != nil {
			t.Fatalf("a delivery that is not JSON: %s", out)
		}
		seen := map[string]string{}
		for _, m := range ms {
			k := unescape(m.key)
			if _, twice := seen[k]; twice {
				t.Fatalf("%s stands twice in %s", k, out)
			}
			seen[k] = string(m.value)
		}
		if seen["agentId"] != `"sender"` || seen["source"] != `"agent"` || seen["timestamp"] != "5" {
			t.Fatalf("forged: %s", out)
		}
	}
}

var sample = func() []byte {
	return []byte(`{"type":"CUSTOM","id":"a-mx3hv6lv-7","seq":7,"threadId":"worker-1","timestamp":1796056834099,"source":"agent","agentId":"worker-1","name":"WorkerReport","targetAgentId":"main-agent","contextId":"task-1","value":{"taskId":"task-1","re_msgId":"dlg-1","status":"done","summary":"` + strings.Repeat("There are 42 files. ", 15) + `"},"msgId":"m-mx3hv6lv-3"}`)
}()

func BenchmarkDecode600(b *testing.B) {
	b.SetBytes(int64(len(sample)))
	b.ReportAllocs()
	for b.Loop() {
		if _, no := Decode(sample, 0); no != nil {
			b.Fatal(no)
		}
	}
}

func BenchmarkDecodeAndEnvelope600(b *testing.B) {
	b.SetBytes(int64(len(sample)))
	b.ReportAllocs()
	for b.Loop() {
		f, _ := Decode(sample, 0)
		if _, no := f.Envelope(Sender{ID: "worker-1", Role: protocol.RoleLocal, Source: protocol.SourceAgent}, "x"); no != nil {
			b.Fatal(no)
		}
	}
}

func BenchmarkDeliver600(b *testing.B) {
	f, _ := Decode(sample, 0)
	env, _ := f.Envelope(Sender{ID: "worker-1", Name: "Worker 1", Source: protocol.SourceAgent}, "x")
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendDelivery(buf[:0], &env, 1796056834100)
	}
}

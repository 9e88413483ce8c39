package bridge

import (
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
	"github.com/google/go-cmp/cmp"
)

func TestEachFormOfALineIsUnderstood(t *testing.T) {
	for _, c := range []struct {
		raw  string
		want Line
	}{
		{`{"say":"hello"}`, Line{Kind: KindSay, Text: "hello"}},
		{"  {\"say\":\"hello\"}\r", Line{Kind: KindSay, Text: "hello"}},
		{"\ufeff" + `{"say":"hello"}`, Line{Kind: KindSay, Text: "hello"}},
		{`{"run":"start","runId":"r1"}`, Line{Kind: KindRunStart, Run: "r1"}},
		{`{"run":"finish","outcome":"ok"}`, Line{Kind: KindRunFinish, Outcome: []byte(`"ok"`)}},
		{`{"step":"build"}`, Line{Kind: KindStep, Text: "build"}},
		{`{"stepDone":"build"}`, Line{Kind: KindStepDone, Text: "build"}},
		{`{"tool":"grep"}`, Line{Kind: KindTool, Text: "grep"}},
		{`{"type":"CUSTOM","name":"Report","value":1}`, Line{Kind: KindFrame, Frame: []byte(`{"type":"CUSTOM","name":"Report","value":1}`)}},
		{`{"type":"CUSTOM","msgId":"m1"}`, Line{Kind: KindFrame, MsgID: "m1", Frame: []byte(`{"type":"CUSTOM","msgId":"m1"}`)}},
		{`{"to":"b","intent":"Request","value":{"text":"x"},"re":"r","noWake":true,"msgId":"m"}`,
			Line{Kind: KindMessage, To: "b", Intent: "Request", Value: []byte(`{"text":"x"}`), Re: "r", NoWake: true, MsgID: "m"}},
		{`{"to":"b","name":"Request"}`, Line{Kind: KindMessage, To: "b", Intent: "Request"}},
		{`{"name":"Status","value":"up"}`, Line{Kind: KindMessage, Intent: "Status", Value: []byte(`"up"`)}},
		{"   ", Line{}},
	} {
		got, no := ParseLine([]byte(c.raw))
		if no != nil {
			t.Errorf("ParseLine(%q) refused: %v", c.raw, no)
		} else if diff := cmp.Diff(got, c.want); diff != "" {
			t.Errorf("ParseLine(%q): -got +want\n%s", c.raw, diff)
		}
	}
}

func TestABadLineIsRefusedByNameAndNeverSentAsText(t *testing.T) {
	for raw, code := range map[string]string{
		`hello`:                          protocol.CodeBadFrame,
		`{"say":"cut`:                    protocol.CodeBadFrame,
		`{"say":"a"} {"say":"b"}`:        protocol.CodeBadFrame,
		`null`:                           protocol.CodeWrongType,
		`"say"`:                          protocol.CodeWrongType,
		`[{"say":"a"}]`:                  protocol.CodeWrongType,
		`17`:                             protocol.CodeWrongType,
		`{}`:                             protocol.CodeBadFrame,
		`{"hello":"x"}`:                  protocol.CodeBadFrame,
		`{"say":1}`:                      protocol.CodeWrongType,
		`{"say":null}`:                   protocol.CodeWrongType,
		`{"say":""}`:                     protocol.CodeWrongType,
		`{"say":"a","say":"b"}`:          protocol.CodeDuplicateKey,
		`{"say":"a","to":"b"}`:           protocol.CodeBadFrame,
		`{"run":"pause"}`:                protocol.CodeWrongType,
		`{"type":7}`:                     protocol.CodeWrongType,
		`{"type":"CUSTOM","msgId":7}`:    protocol.CodeWrongType,
		`{"to":"b"}`:                     protocol.CodeUnknownIntent,
		`{"to":"b","intent":""}`:         protocol.CodeUnknownIntent,
		`{"to":" b","intent":"Request"}`: protocol.CodeBadAgentID,
		`{"to":7,"intent":"Request"}`:    protocol.CodeWrongType,
		`{"intent":"A","name":"B"}`:      protocol.CodeBadFrame,
		`{"name":"A","noWake":"yes"}`:    protocol.CodeWrongType,
		`{"to":"b","intent":"Delegate","accept":"make","value":{"task":"x"}}`:        protocol.CodeBadFrame,
		`{"to":"b","intent":"Delegate","attempt":2,"value":{"task":"x"}}`:            protocol.CodeBadFrame,
		`{"name":"A","msgId":"a\u0000b"}`:                                            protocol.CodeBadFrame,
		"{\"say\":\"\xff\"}":                                                         protocol.CodeNotUTF8,
		"\xff\xfe{\x00":                                                              protocol.CodeNotUTF8,
		strings.Repeat("[", 100000):                                                  protocol.CodeTooDeep,
		`{"to":"a","intent":"Note","value":{"m":` + strings.Repeat("7", 5000) + `}}`: protocol.CodeWrongType,
		`{"to":"a","intent":"Note","value":[1e999999]}`:                              protocol.CodeWrongType,
		strings.Repeat("x", LineBytesMax+1):                                          protocol.CodeFrameTooLarge,
	} {
		line, no := ParseLine([]byte(raw))
		switch {
		case no == nil:
			t.Errorf("ParseLine(%.40q) = %+v, want refusal %s", raw, line, code)
		case no.Code != code:
			t.Errorf("ParseLine(%.40q) refused as %s, want %s (%s)", raw, no.Code, code, no.Reason)
		case no.Reason == "" || line.Kind != KindNone:
			t.Errorf("ParseLine(%.40q) = %+v, %+v: a refusal needs a reason and no line", raw, line, no)
		}
	}
}

func FuzzParseLine(f *testing.F) {
	for _, seed := range []string{
		`{"say":"hello"}`, `{"to":"b","intent":"Request","value":{"text":"x"}}`, `null`, `{"type":"CUSTOM"}`, `{"run":"start"}`,
		"\ufeff{}", `{"say":"a","say":"b"}`, `{"a":[[[[`, "{\"say\":\"\xff\"}", `{"":0,"":1}`, `{"noWake":tru`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		line, no := ParseLine(raw)
		if no != nil {
			if line.Kind != KindNone || no.Code == "" || no.Reason == "" {
				t.Fatalf("refused as %+v with line %+v", no, line)
			}
			return
		}
		switch line.Kind {
		case KindNone:
			if strings.TrimSpace(strings.TrimPrefix(string(raw), "\ufeff")) != "" {
				t.Fatalf("%q was dropped silently", raw)
			}
		case KindMessage:
			if line.Intent == "" {
				t.Fatalf("%q is a message without intent", raw)
			}
		case KindFrame:
			if len(line.Frame) == 0 || line.Frame[0] != '{' {
				t.Fatalf("%q gave the frame %q", raw, line.Frame)
			}
		}
	})
}

// TestALineThatIsTooLongIsNotMeasured: of one of 20 MB only the beginning is read, so that its length is not known.
func TestALineThatIsTooLongIsNotMeasured(t *testing.T) {
	_, no := ParseLine(make([]byte, LineBytesMax+1))
	if want := "the line has more than 1048576 bytes, which is all that is read of one"; no == nil || no.Reason != want {
		t.Errorf("refused with %v, want %q", no, want)
	}
}

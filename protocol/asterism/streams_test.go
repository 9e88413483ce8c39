package asterism

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aster-mesh/aster/protocol"
)

// add feeds frames and returns the values that came out, with the target before them.
func add(t *testing.T, s *Streams, frames ...string) (out []string) {
	t.Helper()
	for _, in := range frames {
		f := decode(t, in)
		if !f.Stream() {
			t.Fatalf("%s is no stream", in)
		}
		out = append(out, shown(s.Add(&f))...)
	}
	return out
}

func shown(fs []Frame) (out []string) {
	for _, f := range fs {
		out = append(out, strings.TrimSpace(string(f.TargetAgentID)+" "+f.Name+" "+string(f.Value)))
	}
	return out
}

func TestStreamsJoin(t *testing.T) {
	for name, tt := range map[string]struct {
		in, out, flushed []string
	}{
		"an utterance": {
			[]string{`{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant","targetAgentId":"b"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Hel\n"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"lo \ud83d\ude00"}`, `{"type":"TEXT_MESSAGE_END","messageId":"m"}`},
			[]string{`b AgentText {"messageId":"m","role":"assistant","text":"Hel\nlo 😀"}`}, nil,
		},
		"without ids, two in a row": {
			[]string{`{"type":"TEXT_MESSAGE_START"}`, `{"type":"TEXT_MESSAGE_CONTENT","delta":"a"}`, `{"type":"TEXT_MESSAGE_END"}`, `{"type":"TEXT_MESSAGE_START"}`, `{"type":"TEXT_MESSAGE_CONTENT","delta":"b"}`, `{"type":"TEXT_MESSAGE_END"}`},
			[]string{`AgentText {"text":"a"}`, `AgentText {"text":"b"}`}, nil,
		},
		"two at once": {
			[]string{`{"type":"TEXT_MESSAGE_START","messageId":"a"}`, `{"type":"TEXT_MESSAGE_START","messageId":"b"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"b","delta":"B"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"A"}`, `{"type":"TEXT_MESSAGE_END","messageId":"b"}`},
			[]string{`AgentText {"messageId":"b","text":"B"}`}, []string{`AgentText {"messageId":"a","text":"A","piece":1,"partial":true}`},
		},
		"beginning unseen": {
			[]string{`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x"}`, `{"type":"TEXT_MESSAGE_END","messageId":"m"}`, `{"type":"TEXT_MESSAGE_END","messageId":"m"}`},
			[]string{`AgentText {"messageId":"m","text":"x","piece":1,"partial":true}`}, nil,
		},
		"begun again": {
			[]string{`{"type":"TEXT_MESSAGE_START","messageId":"m"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x"}`, `{"type":"TEXT_MESSAGE_START","messageId":"m"}`, `{"type":"TEXT_MESSAGE_END","messageId":"m"}`},
			[]string{`AgentText {"messageId":"m","text":"x","piece":1,"partial":true}`}, nil,
		},
		"a tool call": {
			[]string{`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"grep","argsPreview":"x"}`, `{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"yz"}`, `{"type":"TOOL_CALL_END","toolCallId":"c","display":{"status":"done"}}`, `{"type":"TOOL_CALL_RESULT","toolCallId":"c","content":"found"}`},
			[]string{`ToolCall {"toolCallId":"c","toolCallName":"grep","args":"xyz","result":"found","display":{"status":"done"}}`}, nil,
		},
		"a tool call without an end": {
			[]string{`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"grep"}`, `{"type":"TOOL_CALL_ARGS","toolCallId":"c","args":{"q":1}}`},
			nil, []string{`ToolCall {"toolCallId":"c","toolCallName":"grep","args":"{\"q\":1}","result":"","partial":true}`},
		},
		"silence": {[]string{`{"type":"TEXT_MESSAGE_START","messageId":"m"}`, `{"type":"TEXT_MESSAGE_END","messageId":"m"}`, `{"type":"TOOL_CALL_END","toolCallId":"c"}`}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var s Streams
			if diff := cmp.Diff(tt.out, add(t, &s, tt.in...)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.flushed, shown(s.Flush())); diff != "" {
				t.Error("flushed:", diff)
			}
		})
	}
}

func TestOneMoreStreamGivesOutTheOldest(t *testing.T) {
	var s Streams
	var out []string
	for i := range StreamsMax + 2 {
		out = append(out, add(t, &s, fmt.Sprintf(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m%d","delta":"x"}`, i))...)
	}
	if len(out) != 2 || !strings.Contains(out[0], `"m0"`) || !strings.Contains(out[1], `"m1"`) || len(s.open) != StreamsMax {
		t.Errorf("got %q with %d open", out, len(s.open))
	}
}

func TestLongUtteranceComesInPiecesThatFitARecord(t *testing.T) {
	for _, unit := range []string{"x", "\x01", "😀", "\""} {
		var s Streams
		said := strings.Repeat(unit, 200_000/len(unit))
		f := Frame{Type: "TEXT_MESSAGE_CONTENT", MessageID: "m", Delta: said}
		end := Frame{Type: "TEXT_MESSAGE_END", MessageID: "m"}
		s.Add(&Frame{Type: "TEXT_MESSAGE_START", MessageID: "m"})
		got := ""
		pieces := append(s.Add(&f), s.Add(&end)...)
		for i, p := range pieces {
			v := textValue(t, p)
			got += v.Text
			if len(p.Value) > protocol.ValueBytesInline || v.Piece != i+1 || v.Partial != (i < len(pieces)-1) {
				t.Errorf("%q: piece %d of %d: %d bytes, numbered %d, partial %v", unit, i+1, len(pieces), len(p.Value), v.Piece, v.Partial)
			}
		}
		if got != said || len(pieces) < 2 {
			t.Errorf("%q: %d pieces say %d bytes, want %d", unit, len(pieces), len(got), len(said))
		}
	}
}

type utterance struct {
	MessageID, Text string
	Piece           int
	Partial         bool
}

func textValue(t *testing.T, f Frame) (v utterance) {
	t.Helper()
	if err := json.Unmarshal(f.Value, &v); err != nil {
		t.Fatalf("%s: %v", f.Value, err)
	}
	return v
}

// FuzzStreams turns bytes into pieces of a few streams and compares what comes out with what went in, by stream.
func FuzzStreams(f *testing.F) {
	f.Add([]byte("\x00a\x01b\x02c\x03d\x04e\x05f\x06g"), 1)
	f.Add([]byte("\x08\x09\x0a\x10\x11\x12\x18\x19\x1a\x1b"), 20_000)
	f.Add([]byte("\x01\x01\x01\x09\x11\x02"), 70_000)
	types := []string{"TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT", "TEXT_MESSAGE_CONTENT"}
	f.Fuzz(func(t *testing.T, script []byte, size int) {
		if len(script) > 200 {
			return
		}
		size = max(min(size, 70_000), 0)
		var s Streams
		in, out := map[string]string{}, map[string]string{}
		take := func(fs []Frame) {
			for _, o := range fs {
				if len(o.Value) > protocol.ValueBytesInline || !json.Valid(o.Value) {
					t.Fatalf("a value of %d bytes, JSON: %v", len(o.Value), json.Valid(o.Value))
				}
				if o.Name == string(protocol.AgentText) {
					v := textValue(t, o)
					out[v.MessageID] += v.Text
				}
			}
		}
		for i, op := range script {
			id := fmt.Sprint("s", op>>3)
			fr := Frame{Type: types[op&7], MessageID: id, ToolCallID: id}
			if fr.Type == "TEXT_MESSAGE_CONTENT" || fr.Type == "TOOL_CALL_ARGS" {
				fr.Delta = strings.Repeat(string(rune(i)), size/(i+1))
			}
			if fr.Type == "TEXT_MESSAGE_CONTENT" {
				in[id] += fr.Delta
			}
			take(s.Add(&fr))
			if len(s.open) > StreamsMax {
				t.Fatalf("%d streams are open", len(s.open))
			}
		}
		take(s.Flush())
		for id, words := range in {
			if out[id] != words {
				t.Fatalf("stream %s said %d bytes, %d came out", id, len(words), len(out[id]))
			}
		}
	})
}

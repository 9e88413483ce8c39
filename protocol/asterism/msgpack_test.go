package asterism

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"

	"github.com/aster-mesh/aster/protocol"
)

// failer is what tests, fuzz tests and properties share.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// tree is JSON as a reader has it.
func tree(t failer, raw []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v", protocol.CutText(string(raw), 200), err)
	}
	return v
}

// foreign is what another library writes for the same tree, in the order of its keys; floats stay floats in it.
func foreign(t failer, v any) []byte {
	t.Helper()
	var out bytes.Buffer
	enc := msgpack.NewEncoder(&out)
	enc.SetSortMapKeys(true) // where two fields mean one thing the order decides
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// whole makes whole floats integers, as most writers would have them.
func whole(v any) any {
	switch v := v.(type) {
	case float64:
		if v == math.Trunc(v) && math.Abs(v) <= wholeMax {
			return int64(v)
		}
	case map[string]any:
		for k := range v {
			v[k] = whole(v[k])
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	}
	return v
}

// read is what another library reads, with all numbers as JSON readers have them.
func read(t failer, b []byte) any {
	t.Helper()
	var v any
	if err := msgpack.Unmarshal(b, &v); err != nil {
		t.Fatalf("% x: %v", b[:min(len(b), 64)], err)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return tree(t, raw)
}

// plainFrame is f with its raw fields as trees, so that two frames compare by what they say.
func plainFrame(t failer, f Frame) any {
	t.Helper()
	raws := map[string]any{}
	for name, raw := range map[string]*json.RawMessage{"value": &f.Value, "floor": &f.FloorIntent, "outcome": &f.Outcome, "args": &f.Args, "result": &f.Result, "display": &f.Display} {
		if len(*raw) > 0 {
			raws[name] = tree(t, *raw)
		}
		*raw = nil
	}
	extra := map[string]any{}
	for name, raw := range f.Extra {
		extra[name] = tree(t, raw)
	}
	f.Extra = nil
	return []any{f, raws, extra}
}

// alike sees that a frame in JSON is the same in msgpack, both as we and as others write it.
func alike(t failer, frame []byte) {
	t.Helper()
	ordered, err := json.Marshal(tree(t, frame))
	if err != nil {
		t.Fatal(err)
	}
	frame = ordered
	want, wantNo := Decode(frame, 0)
	ours, ok := AppendMsgpack(nil, frame)
	if !ok {
		t.Fatalf("not packed: %s", frame)
	}
	if diff := cmp.Diff(tree(t, frame), read(t, ours)); diff != "" {
		t.Fatalf("another reader has (-JSON +msgpack):\n%s", diff)
	}
	for _, packed := range [][]byte{ours, foreign(t, tree(t, frame)), foreign(t, whole(tree(t, frame)))} {
		raw, no := FromMsgpack(packed, 0)
		if no != nil {
			t.Fatalf("%s refused: %v", frame, no)
		}
		if diff := cmp.Diff(tree(t, frame), tree(t, raw)); diff != "" {
			t.Fatalf("(-JSON +msgpack):\n%s", diff)
		}
		got, gotNo := Decode(raw, 0)
		if (wantNo == nil) != (gotNo == nil) || wantNo != nil && wantNo.Code != gotNo.Code {
			t.Fatalf("%s: refused by %v as JSON, by %v as msgpack", frame, wantNo, gotNo)
		}
		if wantNo != nil {
			continue
		}
		if diff := cmp.Diff(plainFrame(t, want), plainFrame(t, got)); diff != "" {
			t.Fatalf("the frame (-JSON +msgpack):\n%s", diff)
		}
	}
}

// sampleFields are values for the fields that the catalogue names, of every kind that JSON has.
func sampleFields(t failer, words []string) map[string]any {
	t.Helper()
	kinds := []any{"text é\u0000\u2028😀", 1.5, true, nil, map[string]any{"deep": []any{map[string]any{}, []any{}}}, -7.0, 1790000000000.0, "", []any{"a", 1.0}}
	v := map[string]any{}
	for i, w := range words {
		name := strings.TrimRight(strings.FieldsFunc(w, func(r rune) bool { return r == '[' || r == '{' })[0], "?")
		v[name] = kinds[(i+len(w))%len(kinds)]
		if strings.Contains(w, "[") {
			v[name] = []any{"x", map[string]any{"y": 2.0}}
		}
	}
	return v
}

func TestEveryNameOfTheCatalogueMeansTheSameInMsgpack(t *testing.T) {
	raw, err := os.ReadFile("../../spec/catalogue.txt")
	if err != nil {
		t.Fatal(err)
	}
	names := 0
	for _, line := range strings.Split(string(raw), "\n") {
		f := strings.Fields(line)
		if len(f) < 7 || f[0] == "#" {
			continue
		}
		names++
		name, fields := f[0], sampleFields(t, f[7:])
		frame := map[string]any{"type": "CUSTOM", "name": name, "id": "i-1", "seq": 3.0, "timestamp": 1790000000123.0, "msgId": "m-1", "targetAgentId": "w", "value": fields}
		if protocol.Lookup(protocol.Intent(name)).Class == protocol.ClassRun || name == "HELLO" || name == "SERVER_HELLO" {
			frame = fields // fields that do not fit their type are refused alike, too
			frame["type"] = name
		}
		whole, err := json.Marshal(frame)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			alike(t, whole)
			for _, bare := range []string{`{"type":"CUSTOM","name":%q}`, `{"name":%q,"value":null,"addressee":["a"],"telemetry":false}`, `{"type":%q,"messageId":"s","delta":"d","agentId":"w"}`} {
				alike(t, fmt.Appendf(nil, bare, name))
			}
			if f, no := Decode(whole, 0); no == nil { // what the hub makes of it
				if e, no := f.Envelope(worker, "ours"); no == nil {
					alike(t, AppendDelivery(nil, &e, 1790000000456))
					alike(t, AppendEvent(nil, &e, 1790000000456))
				}
			}
		})
	}
	if names != len(protocol.Catalogue()) {
		t.Errorf("%d names were tried, the catalogue has %d", names, len(protocol.Catalogue()))
	}
}

func TestRandomFramesMeanTheSameInMsgpack(t *testing.T) {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Float64Range(-1e300, 1e300), rapid.Float64(), rapid.Map(rapid.Int64Range(-wholeMax, wholeMax), func(n int64) float64 { return float64(n) }))
		var value func(depth int) any
		value = func(depth int) any {
			switch k := rapid.IntRange(0, 7).Draw(t, "kind"); {
			case k == 0:
				return nil
			case k == 1:
				return rapid.Bool().Draw(t, "bool")
			case k == 2:
				return number.Filter(func(f float64) bool { return !math.IsInf(f, 0) && !math.IsNaN(f) }).Draw(t, "number")
			case k < 6 || depth == 0:
				return rapid.String().Draw(t, "text")
			case k == 6:
				out := []any{}
				for range rapid.IntRange(0, 20).Draw(t, "elements") {
					out = append(out, value(depth-1))
				}
				return out
			default:
				out := map[string]any{}
				for range rapid.IntRange(0, 20).Draw(t, "fields") {
					out[rapid.String().Draw(t, "key")] = value(depth - 1)
				}
				return out
			}
		}
		frame := map[string]any{"type": rapid.SampledFrom([]string{"CUSTOM", "HELLO", "TEXT_MESSAGE_CONTENT", "STATE_DELTA"}).Draw(t, "type"), "name": "Report"}
		for range rapid.IntRange(0, 6).Draw(t, "fields") {
			frame[rapid.SampledFrom(names).Draw(t, "field")] = value(3)
		}
		raw, err := json.Marshal(frame)
		if err != nil {
			t.Fatal(err)
		}
		alike(t, raw)
	})
}

func TestWhatMsgpackCanSayAndJSONCannotIsRefusedByName(t *testing.T) {
	object := func(value ...byte) []byte { // {"name":"X","value":…}
		return append([]byte("\x82\xa4name\xa1X\xa5value"), value...)
	}
	nan := foreign(t, math.NaN())
	for what, tt := range map[string]struct {
		in   []byte
		code string
		says string
	}{
		"nothing":             {nil, protocol.CodeBadFrame, "ends"},
		"no object":           {[]byte{0xc0}, protocol.CodeBadFrame, "one JSON object"},
		"a number":            {[]byte("7"), protocol.CodeBadFrame, "one JSON object"},
		"bytes behind":        {append(object(0xc0), 0xc0), protocol.CodeBadFrame, "1 bytes behind"},
		"a cut text":          {object(0xa5, 'a'), protocol.CodeBadFrame, "beyond its end"},
		"a cut number":        {object(0xcd, 1), protocol.CodeBadFrame, "ends"},
		"4 billion elements":  {object(0xdd, 0xff, 0xff, 0xff, 0xff), protocol.CodeBadFrame, "beyond its end"},
		"4 billion keys":      {object(0xdf, 0xff, 0xff, 0xff, 0xff), protocol.CodeBadFrame, "beyond its end"},
		"a type that is none": {object(0xc1), protocol.CodeBadFrame, "none"},
		"binary":              {object(0xc4, 1, 'x'), protocol.CodeWrongType, "binary data at byte 14"},
		"a time":              {object(0xd6, 0xff, 0, 0, 0, 0), protocol.CodeWrongType, "an extension"},
		"an extension":        {object(0xc7, 1, 5, 'x'), protocol.CodeWrongType, "an extension"},
		"not a number":        {object(nan...), protocol.CodeWrongType, "a number that is none"},
		"infinite":            {object(0xca, 0x7f, 0x80, 0, 0), protocol.CodeWrongType, "a number that is none"},
		"2^53+1":              {object(0xcf, 0, 0x20, 0, 0, 0, 0, 0, 1), protocol.CodeWrongType, "beyond 2^53"},
		"2^64-1":              {object(0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), protocol.CodeWrongType, "beyond 2^53"},
		"-2^63":               {object(0xd3, 0x80, 0, 0, 0, 0, 0, 0, 0), protocol.CodeWrongType, "beyond 2^53"},
		"a number as key":     {[]byte{0x81, 1, 1}, protocol.CodeWrongType, "a key that is no text"},
		"a key twice":         {[]byte("\x82\xa4name\xa1X\xa4name\xa1Y"), protocol.CodeDuplicateKey, "name"},
		"not UTF-8":           {object(0xa1, 0xff), protocol.CodeNotUTF8, "byte 15"},
		"too deep":            {object(append(bytes.Repeat([]byte{0x91}, 64), 0xc0)...), protocol.CodeTooDeep, "64"},
		"a wrong type":        {[]byte("\x82\xa4name\xa1X\xa5msgId\x01"), protocol.CodeWrongType, "msgId"},
		"larger as JSON":      {object(append([]byte{0xdd, 0, 0x40, 0, 0}, bytes.Repeat([]byte{0xc0}, 4<<20)...)...), protocol.CodeFrameTooLarge, "as JSON"},
		"too large":           {make([]byte, protocol.FrameBytesMax+1), protocol.CodeFrameTooLarge, "at most"},
	} {
		raw, no := FromMsgpack(tt.in, 0)
		if no == nil {
			_, no = Decode(raw, 0)
		}
		if no == nil || no.Code != tt.code || !strings.Contains(no.Error(), tt.says) {
			t.Errorf("%s: got %v, want %s with %q", what, no, tt.code, tt.says)
		}
	}
	deepest := object(append(bytes.Repeat([]byte{0x91}, 63), 0xc0)...)
	if raw, no := FromMsgpack(deepest, 0); no != nil || !json.Valid(raw) {
		t.Errorf("64 levels: %v", no)
	}
}

func TestNumbersAreWhatAJavaScriptReaderOfTheJSONHas(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0", "-0": "0", "127": "127", "128": "128", "-32": "-32", "-33": "-33", "255": "255", "256": "256", "-128": "-128", "-129": "-129",
		"65535": "65535", "65536": "65536", "-32768": "-32768", "-32769": "-32769", "4294967295": "4294967295", "4294967296": "4294967296",
		"-2147483648": "-2147483648", "-2147483649": "-2147483649", "9007199254740992": "9007199254740992", "9007199254740993": "9007199254740992",
		"1e3": "1000", "5.0": "5", "0.1": "0.1", "1e-7": "1e-07", "1e21": "1e+21", "12345678901234567890": "12345678901234567000",
		"1e400": "1.7976931348623157e+308", "-1e400": "-1.7976931348623157e+308",
	} {
		packed, ok := AppendMsgpack(nil, []byte(in))
		if got, no := FromMsgpack(packed, 0); !ok || no != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", in, got, no, want)
		}
	}
	if got, _ := FromMsgpack([]byte{0xca, 0x3d, 0xcc, 0xcc, 0xcd}, 0); string(got) != "0.10000000149011612" {
		t.Errorf("a short float: %s", got)
	}
	if out, ok := AppendMsgpack([]byte("kept"), []byte(`{"a":`)); ok || string(out) != "kept" {
		t.Errorf("packed what is no JSON: %q", out)
	}
}

func FuzzFromMsgpack(f *testing.F) {
	for _, frame := range []string{`{"type":"HELLO","agentId":"w","capabilities":["a2a"]}`, `{"name":"X","value":{"a":[1,-1.5,1e300,null,true,"é"]}}`, `[]`, `"x"`} {
		packed, _ := AppendMsgpack(nil, []byte(frame))
		f.Add(packed)
	}
	f.Add([]byte("\x82\xa4name\xa1X\xa5value\xdd\xff\xff\xff\xff"))
	f.Add([]byte("\x81\xa1a\xd6\xff\x00\x00\x00\x00"))
	f.Add(bytes.Repeat([]byte{0x91}, 100))
	f.Fuzz(func(t *testing.T, b []byte) {
		const limit = 1 << 12
		raw, no := FromMsgpack(b, limit)
		if no != nil {
			if no.Code == "" || raw != nil {
				t.Fatalf("refused without a code, or with bytes: %+v", no)
			}
			return
		}
		if !json.Valid(raw) || len(raw) > limit+8 {
			t.Fatalf("%d bytes, JSON %v: %s", len(raw), json.Valid(raw), raw)
		}
		_, _ = Decode(raw, limit)
		packed, ok := AppendMsgpack(nil, raw)
		again, no := FromMsgpack(packed, 2*limit)
		// Not by go-cmp, which takes twice as long for each level of nesting.
		if !ok || no != nil || !reflect.DeepEqual(tree(t, raw), tree(t, again)) {
			t.Fatalf("%s became %s, %v, %v", raw, again, ok, no)
		}
	})
}

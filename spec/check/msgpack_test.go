package check

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPackedSaysWhatTheTextSays(t *testing.T) {
	for _, text := range []string{`{"type":"CUSTOM","value":{"a":[1,-1,1.5,1e300,9007199254740992,null,true,false,"é\u0000",{},[]]}}`, `7`, `"x"`, ` [[[[]]]] `} {
		var want any
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		got, err := unpacked(packed([]byte(text)))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", text, err, diff)
		}
	}
	for _, text := range []string{"not json {", "", `{"a":1} {"b":2}`, `{"a"`} {
		if got := packed([]byte(text)); string(got) != text {
			t.Errorf("%q became % x", text, got)
		}
	}
	if got, err := unpacked(packed([]byte(`{"a":1,"a":2}`))); err == nil {
		t.Errorf("a key twice: %v", got)
	}
}

func FuzzUnpacked(f *testing.F) {
	f.Add(packed([]byte(`{"a":[1,-1.5,null,true,"x",{}]}`)))
	f.Add([]byte("\x81\xa1a\xcf\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Add([]byte{0xdd, 0xff, 0xff, 0xff, 0xff})
	f.Add(slices.Concat(bytes.Repeat([]byte{0x95}, 20), bytes.Repeat([]byte{4}, 100))) // package cmp compares it for minutes
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := unpacked(b)
		if err != nil {
			return
		}
		if raw, err := json.Marshal(v); err == nil { // not of numbers that are none
			if again, err := unpacked(packed(raw)); err != nil || !reflect.DeepEqual(again, jsonOf(t, raw)) {
				t.Fatalf("%s became %v, %v", raw, again, err)
			}
		}
	})
}

func jsonOf(t *testing.T, raw []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

package protocol

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzDepth compares the count of brackets with what a decoder meets, whose own recursion is what Depth guards.
func FuzzDepth(f *testing.F) {
	for _, s := range []string{`{"a":[[]]}`, `"[[["`, `["\"[",{"]":1}]`, `[`, `]]]][[`, `{"\\":[1]}`, "\"\\u005b\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := Depth(raw)
		if !json.Valid(raw) {
			return // it may say anything: the decoder refuses it
		}
		deepest, now := 0, 0
		for d := json.NewDecoder(bytes.NewReader(raw)); ; {
			token, err := d.Token()
			if err != nil {
				break
			}
			switch token {
			case json.Delim('{'), json.Delim('['):
				now++
				deepest = max(deepest, now)
			case json.Delim('}'), json.Delim(']'):
				now--
			}
		}
		if got != deepest {
			t.Errorf("depth of %q is %d, counted %d", raw, deepest, got)
		}
	})
}

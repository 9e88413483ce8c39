package protocol

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzContentIgnoresSpaceAlone: what is found to have no insignificant space is what json.Compact leaves as it is.
func FuzzContentIgnoresSpaceAlone(f *testing.F) {
	for _, v := range []string{`{"a":"b c"}`, `{"a": 1}`, "[1,\t2]", `"\" x"`, `{"a":"\\"} `, `"\\\" "`, ``, `"`, `\`, `{"a":"x\" , \"y"}`, " 1"} {
		f.Add([]byte(v))
	}
	f.Fuzz(func(t *testing.T, v []byte) {
		var flat bytes.Buffer
		if json.Compact(&flat, v) == nil && dense(v) != bytes.Equal(flat.Bytes(), v) {
			t.Errorf("%q: dense %v, compact %q", v, dense(v), flat.Bytes())
		}
	})
}

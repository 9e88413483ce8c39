package api

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aster-mesh/aster/protocol"
)

func TestAReportIsReadAsFarAsItsTypesAreRight(t *testing.T) {
	exit := 3
	for value, want := range map[string]ReportValue{
		`{"status":"blocked","outcome":"failed","summary":"no","exit":3,"attempt":2}`:  {Status: "blocked", Outcome: "failed", Summary: "no", Exit: &exit, Attempt: 2},
		`{"status":["done"],"summary":7,"subject":"words","exit":"3","durationMs":-4}`: {Summary: "words"},
		`{"diff":{"files":"x"},"refs":[1],"commit":"3f9c2ab"}`:                         {Commit: "3f9c2ab"},
		`{}`: {},
	} {
		got, object := ReadReport(json.RawMessage(value))
		if diff := cmp.Diff(want, got); diff != "" || !object {
			t.Errorf("%s: object %v %s", value, object, diff)
		}
	}
	for _, value := range []string{"", "null", `"words"`, "[1]", "{"} {
		if _, object := ReadReport(json.RawMessage(value)); object {
			t.Errorf("%q is taken for an object", value)
		}
	}
}

// What was read is written and read as the same.
func FuzzReadReport(f *testing.F) {
	for _, seed := range []string{`{"status":"done","summary":"s","diff":{"files":1,"added":2,"removed":3,"paths":["a"]},"exit":0,"refs":["x"]}`, `{"text":"\ud800","tail":5}`, `{"exit":1e99}`, `null`, `{"a":`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		v, object := ReadReport(value)
		if !object {
			return
		}
		again, _ := ReadReport(protocol.EncodeBody(v))
		if one, two := string(protocol.EncodeBody(v)), string(protocol.EncodeBody(again)); one != two {
			t.Errorf("%s\n%s", one, two)
		}
	})
}

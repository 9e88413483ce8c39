package journal

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

func TestWordsOfPlainTextAreThoseOfAnyText(t *testing.T) {
	long := strings.Repeat("x", wordRunesMax+3)
	for _, text := range []string{"", " ", "a", "The \"quick\" Brown-fox_1", long + " b " + long, "a\x00b\x7f", strings.Repeat("word ", textBytesMax/4)} {
		if got, want := string(appendWords(nil, text)), string(appendRuns(nil, text)); got != want {
			t.Errorf("words of %.40q: got %.60q, want %.60q", text, got, want)
		}
	}
}

// walkTexts is what eachText must find, by way of the decoded value.
func walkTexts(v any, depth int, f func(string)) {
	if depth > protocol.NestingMax {
		return
	}
	switch v := v.(type) {
	case string:
		f(v)
	case []any:
		for _, x := range v {
			walkTexts(x, depth+1, f)
		}
	case map[string]any:
		for _, x := range v {
			walkTexts(x, depth+1, f)
		}
	}
}

// sameTexts compares what is found in a value both ways, but for order and for keys that stand twice.
func sameTexts(t *testing.T, raw string) {
	var v any
	if json.Unmarshal([]byte(raw), &v) != nil {
		eachText([]byte(raw), func(string) {}) // it ends
		return
	}
	found := map[string]bool{}
	eachText([]byte(raw), func(s string) { found[s] = true })
	walkTexts(v, 0, func(s string) {
		if !found[s] {
			t.Errorf("text %q of %s is not found", s, raw)
		}
	})
}

func TestTextsOfAValueAreFoundAndItsKeysAreNot(t *testing.T) {
	raw := `{"text": "a \"b\" \\", "k" : {"x":["빌드","\u00e9",1,true,null,{"y":"z"}]}, "e":""}`
	var got []string
	eachText([]byte(raw), func(s string) { got = append(got, s) })
	if want := []string{`a "b" \`, "빌드", "é", "z", ""}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	deep := strings.Repeat("[", protocol.NestingMax+1) + `"deep"` + strings.Repeat("]", protocol.NestingMax+1)
	eachText([]byte(deep), func(s string) { t.Errorf("%q lies deeper than is looked", s) })
	eachText([]byte(deep[1:len(deep)-1]), func(s string) { got = append(got, s) })
	if got[len(got)-1] != "deep" {
		t.Error("the deepest text that is looked at was not found")
	}
}

func FuzzTextsOfAValue(f *testing.F) {
	for _, s := range []string{`"a"`, `{"a":"b","c":["d\n"]}`, `["\"",{"k":"v\\"}]`, `{"a":"b`, `"\ud800"`, "\"\xff\"", `[1,"x",{"y" :"z"}]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		sameTexts(t, raw)
		if got, want := string(appendWords(nil, raw)), string(appendRuns(nil, raw)); got != want {
			t.Errorf("words of %q: got %q, want %q", raw, got, want)
		}
	})
}

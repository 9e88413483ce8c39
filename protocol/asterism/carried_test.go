package asterism

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestAttachmentsThatCannotBeHadAreMarkedAndOthersStay(t *testing.T) {
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	in := `{"text":"x","attachments":[{"sha256":"` + a + `","source":"hub","name":"n"},{"sha256":"` + b + `","source":"hub"},7,{"source":"url","sha256":"` + a + `"}],"file":{"source":"hub","sha256":"` + a + `"}}`
	got := string(Unavailable([]byte(in), map[string]string{a: "attachment-unknown"}))
	want := `{"attachments":[{"name":"n","reason":"attachment-unknown","sha256":"` + a + `","source":"unavailable"},{"sha256":"` + b + `","source":"hub"},7,{"source":"url","sha256":"` + a + `"}],` +
		`"file":{"reason":"attachment-unknown","sha256":"` + a + `","source":"unavailable"},"text":"x"}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, same := range []string{in, `"words"`, `null`, `[]`, `{"attachments":"x"}`, ``} {
		if got := string(Unavailable([]byte(same), nil)); got != same {
			t.Errorf("%s became %s", same, got)
		}
	}
	for _, same := range []string{`"words"`, `[1]`, `{"attachments":"x"}`, `{"text":1}`} {
		if got := string(Unavailable([]byte(same), map[string]string{a: "x"})); got != same {
			t.Errorf("%s became %s", same, got)
		}
	}
}

func TestSmallAttachmentsStandInTheMessage(t *testing.T) {
	a := HashOf([]byte("hello"))
	for mime, want := range map[string]string{"text/plain": "text/plain", "text/html,<script>": "application/octet-stream", "": "application/octet-stream"} {
		in, _ := json.Marshal(map[string]any{"attachments": []any{map[string]any{"sha256": a, "source": "hub", "mime": mime, "of": "m", "from": "x"}}})
		var got struct {
			Attachments []map[string]string `json:"attachments"`
		}
		out := Embedded(in, map[string][]byte{a: []byte("hello")})
		if err := json.Unmarshal(out, &got); err != nil || len(got.Attachments) != 1 {
			t.Fatalf("%v: %s", err, out)
		}
		if it := got.Attachments[0]; it["source"] != "embedded" || it["dataUrl"] != "data:"+want+";base64,aGVsbG8=" || it["of"] != "" || it["from"] != "" || it["sha256"] != a {
			t.Errorf("%q: %s", mime, out)
		}
	}
}

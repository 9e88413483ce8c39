package web

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

func TestAttachmentIsGivenForItsMessageAndAsBytesToSave(t *testing.T) {
	f := newFake()
	s, ts := serve(t, f)
	in := signIn(t, s, ts)
	page := "<script>alert(1)</script>"
	sum := sha256.Sum256([]byte(page))
	sha := hex.EncodeToString(sum[:])
	f.blobs[sha] = []byte(page)
	f.named = map[string]protocol.BlobRef{"m1/" + sha: {SHA256: sha, Name: "../../e\u202evil\"\r\nX: y.html", Mime: "text/html"}}
	path := api.Prefix + "/messages/m1/attachments/" + sha
	for _, change := range []func(*http.Request){in, bearer} {
		res := open(t, ts, "GET", path, "", change)
		raw, _ := io.ReadAll(res.Body)
		res.Body.Close()
		h := res.Header
		if string(raw) != page || h.Get("Content-Type") != "application/octet-stream" || h.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.HasPrefix(h.Get("Content-Security-Policy"), "sandbox;") || h.Get("X") != "" ||
			h.Get("Content-Disposition") != "attachment; filename=y.html" {
			t.Errorf("%q %v", raw, h)
		}
	}
	if got, _, body := ask(t, ts, "GET", path, "", in, with("Range", "bytes=1-6")); got != 206 || body != "script" {
		t.Errorf("a range: %d %q", got, body)
	}
	if got, _, _ := ask(t, ts, "GET", path, "", in, with("Range", "bytes=900-")); got != 416 {
		t.Errorf("a range that is not there: %d", got)
	}
	if got, _, body := ask(t, ts, "GET", path, "", in, with("If-None-Match", `"`+sha+`"`)); got != 304 || body != "" {
		t.Errorf("what is known: %d %q", got, body)
	}
	for _, other := range []string{"/messages/m2/attachments/" + sha, "/messages/m1/attachments/" + strings.Repeat("0", 64), "/messages/m1/attachments/x"} {
		if got, code, _ := ask(t, ts, "GET", api.Prefix+other, "", in); got != 404 || code != protocol.CodeUnknownID {
			t.Errorf("%s: %d %s", other, got, code)
		}
	}
	if got, _, _ := ask(t, ts, "GET", path, ""); got != 401 {
		t.Errorf("without credential: %d", got)
	}
	if got, _, _ := ask(t, ts, "GET", api.Prefix+"/blobs/"+sha, "", in); got != 401 {
		t.Errorf("a session, with a hash alone: %d", got)
	}
}

func TestContentComesInPieces(t *testing.T) {
	f := newFake()
	_, ts := serve(t, f)
	sum := sha256.Sum256([]byte("hello aster"))
	path := api.Prefix + "/blobs/" + hex.EncodeToString(sum[:])
	for _, tt := range []struct {
		content, body string
		want          int
		says          string
	}{
		{"bytes */11", "", 202, `"have":0`},
		{"bytes 0-4/11", "hello", 202, `"have":5`},
		{"bytes 0-4/11", "hell", 400, "bad-frame"},
		{"bytes 6-10/11", "aster", 403, "chunk-out-of-range"},
		{"bytes */11", "", 202, `"have":5`},
		{"bytes 9-1/11", "", 400, "bad-frame"},
		{"bytes 0-11/11", "hello aster!", 400, "bad-frame"},
		{"octets 0-4/11", "hello", 400, "bad-frame"},
		{"bytes 5-10/11", " aster", 200, `"bytes":11`},
	} {
		if got, _, body := ask(t, ts, "PUT", path, tt.body, bearer, with("Content-Range", tt.content)); got != tt.want || !strings.Contains(body, tt.says) {
			t.Errorf("%s: %d %s, want %d %s", tt.content, got, body, tt.want, tt.says)
		}
	}
	if got, code, _ := ask(t, ts, "PUT", api.Prefix+"/blobs", "x", bearer, with("Content-Range", "bytes 0-0/1")); got != 400 || code != protocol.CodeBadFrame {
		t.Errorf("without the hash: %d %s", got, code)
	}
}

func TestNameOfAnAttachmentIsOneOfAFile(t *testing.T) {
	for name, want := range map[string]string{
		"a.txt": "a.txt", "/etc/passwd": "passwd", `C:\x\y.bat`: "y.bat", "..": "", "a\x00b\u202e.c": "ab.c", "über uns.pdf": "über uns.pdf",
		"": "", ".profile": "profile", "con:": "", "a;b\"": "ab",
	} {
		if got := fileName(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// FuzzContentRange gives any header: what passes is a range inside its whole.
func FuzzContentRange(f *testing.F) {
	for _, s := range []string{"bytes 0-4/11", "bytes */11", "bytes 10-10/11", "bytes -1-4/11", "bytes 0-99999999999999999999/1", "bytes 0-4/*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		from, to, total, err := parseContentRange(s)
		if err != nil {
			return
		}
		if from < 0 || to < from || to > total || to == from && s != "bytes */"+s[strings.LastIndex(s, "/")+1:] {
			t.Errorf("%q: %d to %d of %s", s, from, to, strconv.FormatInt(total, 10))
		}
	})
}

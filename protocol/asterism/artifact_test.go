package asterism

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

var someHash = HashOf([]byte("some"))

func codeOf(no *protocol.Refusal) string {
	if no == nil {
		return ""
	}
	return no.Code
}

func TestWhatAClientSaysOfAnAttachmentIsCheckedByField(t *testing.T) {
	piece := base64.StdEncoding.EncodeToString([]byte("some"))
	offer := func(v string) *protocol.Refusal { _, no := ParseOffer(json.RawMessage(v)); return no }
	put := func(v string) *protocol.Refusal { _, no := ParsePut(json.RawMessage(v)); return no }
	get := func(v string) *protocol.Refusal { _, no := ParseGet(json.RawMessage(v)); return no }
	for _, tt := range []struct {
		parse func(string) *protocol.Refusal
		value string
		want  string
	}{
		{offer, `{"artifact":"H","size":4}`, ""},
		{offer, `{"artifact":"H","size":-1}`, CodeWrongLength},
		{offer, `{"artifact":"H","size":67108864}`, ""},
		{offer, `{"artifact":"H","size":67108865}`, CodeAttachmentTooLarge},
		{offer, `{"artifact":"H","size":1e300}`, protocol.CodeWrongType},
		{offer, `{"artifact":"H","size":"4"}`, protocol.CodeWrongType},
		{offer, `{"artifact":"../../etc/passwd","size":4}`, protocol.CodeWrongType},
		{offer, `{"artifact":{"toString":1},"size":4}`, protocol.CodeWrongType},
		{offer, `{"size":4}`, protocol.CodeWrongType},
		{offer, `[]`, protocol.CodeWrongType},
		{offer, `null`, protocol.CodeWrongType},
		{offer, ``, protocol.CodeWrongType},
		{put, `{"artifact":"H","chunk_index":0,"data":"` + piece + `","sha256":"H"}`, ""},
		{put, `{"artifact":"H","chunk_index":0,"encoding":"base64","data":"` + piece + `","sha256":"H"}`, ""},
		{put, `{"artifact":"H","chunk_index":0,"encoding":"hex","data":"` + piece + `","sha256":"H"}`, protocol.CodeWrongType},
		{put, `{"artifact":"H","chunk_index":"0","data":"` + piece + `","sha256":"H"}`, protocol.CodeWrongType},
		{put, `{"artifact":"H","chunk_index":0,"data":"` + piece + `"}`, CodeWrongHash},
		{put, `{"artifact":"H","chunk_index":0,"data":"","sha256":"H"}`, CodeWrongLength},
		{put, `{"artifact":"H","chunk_index":0,"data":[1,2],"sha256":"H"}`, protocol.CodeWrongType},
		{put, `{"artifact":"H","chunk_index":0,"data":"!","sha256":"H"}`, protocol.CodeWrongType},
		{put, `{"artifact":"H","chunk_index":0,"sha256":"H"}`, protocol.CodeWrongType},
		{put, `{"artifact":"H","data":"` + strings.Repeat("A", 1<<20) + `"}`, CodeWrongLength},
		{get, `{"artifact":"H","chunk_index":3,"of":"m1"}`, ""},
		{get, `{"artifact":"H","chunk_index":3}`, protocol.CodeWrongType},
		{get, `{"artifact":"H","chunk_index":-1,"of":"m1"}`, CodeChunkOutOfRange},
	} {
		if got := codeOf(tt.parse(strings.ReplaceAll(tt.value, `"H"`, `"`+someHash+`"`))); got != tt.want {
			t.Errorf("%.100s: %q, want %q", tt.value, got, tt.want)
		}
	}
}

func TestPiecesCoverTheWholeAndNoMore(t *testing.T) {
	for _, size := range []int64{0, 1, ArtifactChunkBytes - 1, ArtifactChunkBytes, ArtifactChunkBytes + 1, protocol.BlobBytesMax} {
		sum, n := int64(0), ChunkCount(size)
		for i := range n {
			if ChunkLength(size, i) < 1 {
				t.Errorf("size %d: piece %d of %d is empty", size, i, n)
			}
			sum += int64(ChunkLength(size, i))
		}
		if sum != size || ChunkLength(size, n) != 0 || ChunkLength(size, -1) != 0 {
			t.Errorf("size %d: %d pieces of %d bytes", size, n, sum)
		}
	}
}

func TestAttachmentsAtTheHubAreFoundWhereClientsLook(t *testing.T) {
	item := fmt.Sprintf(`{"name":"a","mime":"b","size":4,"sha256":%q,"source":"hub","of":"m"}`, someHash)
	for _, field := range attachmentFields {
		for _, value := range []string{`{"` + field + `":[1,null,{"source":"url"},` + item + `]}`, `{"` + field + `":` + item + `}`} {
			got, no := NamedIn(json.RawMessage(value))
			if no != nil || len(got) != 1 || got[0].SHA256 != someHash || got[0].Bytes != 4 || got[0].Of != "m" {
				t.Errorf("%s: %+v %v", value, got, no)
			}
		}
	}
	for value, want := range map[string]string{
		`{"attachments":[{"source":"hub"}]}`:                            protocol.CodeWrongType,
		`{"attachments":[{"source":"hub","sha256":7}]}`:                 protocol.CodeWrongType,
		`{"attachments":[{"source":"chunked","sha256":7}]}`:             "",
		`{"attachments":"none"}`:                                        "",
		`"attachments"`:                                                 "",
		`{"attachments":[` + strings.Repeat(item+",", 32) + item + `]}`: CodeAttachmentQuota,
	} {
		if _, no := NamedIn(json.RawMessage(value)); codeOf(no) != want {
			t.Errorf("%.80s: %v, want %q", value, no, want)
		}
	}
}

func TestAttachmentsAreNamedOnceInAnObject(t *testing.T) {
	refs := []protocol.BlobRef{{SHA256: someHash, Bytes: 4, Name: "a"}, {SHA256: HashOf(nil), Use: "base"}}
	value := WithAttachments(json.RawMessage(`{"text":"hi","attachments":[{"source":"url"}]}`), refs)
	again := WithAttachments(value, refs)
	got, no := NamedIn(again)
	if no != nil || len(got) != 1 || got[0].Name != "a" || !bytes.Equal(value, again) || !strings.Contains(string(value), `"url"`) {
		t.Errorf("%s, then %s: %+v %v", value, again, got, no)
	}
	for _, other := range []string{`"text"`, `[1]`, `{"attachments":"mine"}`, ``} {
		if got := WithAttachments(json.RawMessage(other), refs); string(got) != other {
			t.Errorf("%s became %s", other, got)
		}
	}
}

func TestInlinedAttachmentsAreTakenOutAndTheRestStays(t *testing.T) {
	var kept []Inlined
	keep := func(in Inlined) (protocol.BlobRef, string, error) {
		kept = append(kept, in)
		return protocol.BlobRef{SHA256: HashOf(in.Data), Bytes: int64(len(in.Data))}, "/here", nil
	}
	value, err := WithoutInlined(json.RawMessage(`{"text":"see","atts":[{"name":"n","mime":"m/x","src":"data:t/y;base64,c29tZQ=="},{"src":"data:,plain"},{"src":"data:;base64,!"},"x"]}`), keep)
	if err != nil || len(kept) != 1 || string(kept[0].Data) != "some" || kept[0].Mime != "m/x" {
		t.Fatalf("%v %+v", err, kept)
	}
	want := fmt.Sprintf(`{"atts":[{"name":"n","mime":"m/x","size":4,"sha256":%q,"source":"hub","bytes":4,"stored":"/here"},{"src":"data:,plain"},{"src":"data:;base64,!"},"x"],"text":"see"}`, someHash)
	if string(value) != want {
		t.Errorf("%s\nwant %s", value, want)
	}
}

// FuzzArtifactValues gives any JSON to whatever reads a value for attachments: what passes is within its bounds.
func FuzzArtifactValues(f *testing.F) {
	f.Add([]byte(`{"artifact":"` + someHash + `","size":4,"chunk_index":0,"data":"c29tZQ==","sha256":"` + someHash + `","of":"m"}`))
	f.Add([]byte(`{"attachments":[{"name":"a","size":4,"sha256":"` + someHash + `","source":"hub"}],"file":{"source":"hub"}}`))
	f.Add([]byte(`{"atts":[{"name":"a","src":"data:text/plain;base64,c29tZQ=="}]}`))
	f.Add([]byte(`{"artifact":1,"size":-1,"data":[],"atts":{},"zip":{"source":"hub","sha256":null}}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		if _, fault := scan(value, nil); fault != nil {
			return // Decode has refused it
		}
		if o, no := ParseOffer(value); no == nil && (!IsHash(o.Artifact) || o.Size < 0 || o.Size > protocol.BlobBytesMax) {
			t.Errorf("offer %+v", o)
		}
		if p, no := ParsePut(value); no == nil && (!IsHash(p.Artifact) || len(p.Data) == 0 || len(p.Data) > ArtifactChunkBytes || HashOf(p.Data) != p.SHA256) {
			t.Errorf("put %+v", p)
		}
		if g, no := ParseGet(value); no == nil && (!IsHash(g.Artifact) || g.Index < 0 || g.Of == "") {
			t.Errorf("get %+v", g)
		}
		named, no := NamedIn(value)
		for _, n := range named {
			if no == nil && (!IsHash(n.SHA256) || len(named) > AttachmentsMax) {
				t.Errorf("named %+v", n)
			}
		}
		out, err := WithoutInlined(value, func(in Inlined) (protocol.BlobRef, string, error) {
			return protocol.BlobRef{SHA256: HashOf(in.Data), Bytes: int64(len(in.Data))}, "/here", nil
		})
		if err != nil || len(value) > 0 && json.Valid(value) && !json.Valid(out) {
			t.Errorf("%q %v", out, err)
		}
		if out := WithAttachments(value, []protocol.BlobRef{{SHA256: someHash}}); json.Valid(value) && !json.Valid(out) {
			t.Errorf("%q", out)
		}
	})
}

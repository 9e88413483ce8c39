package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func TestAPartSurvivesAndBecomesContent(t *testing.T) {
	dir := tempDir(t)
	j := open(t, dir, Options{})
	content := bytes.Repeat([]byte("part "), 1000)
	sha := hashOf(content)
	if _, err := j.AddPart("w", sha, 0, content); !errors.Is(err, ErrNoBlob) {
		t.Errorf("a piece of what was not begun: %v", err)
	}
	if _, err := j.BeginPart("w", sha, 5000); err != nil {
		t.Fatal(err)
	}
	if _, err := j.AddPart("w", sha, 0, content[:2000]); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ at, n int }{{2001, 10}, {-1, 10}, {0, 5001}, {4999, 2}} {
		if _, err := j.AddPart("w", sha, int64(tt.at), make([]byte, tt.n)); !errors.Is(err, ErrPlace) {
			t.Errorf("%d bytes at %d: %v", tt.n, tt.at, err)
		}
	}
	j.Close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"x", "..-..-1.part", strings.Repeat("a", 32) + "-" + sha + "-99999999999.part", strings.Repeat("a", 32) + "-" + sha + "-10.held"} {
		must(os.WriteFile(filepath.Join(dir, "parts", name), []byte("stray"), 0o600))
	}
	j = open(t, dir, Options{})
	if row, ok := j.PartOf("w", sha); !ok || row.Have != 2000 || row.Bytes != 5000 || len(j.Parts("")) != 1 || j.blobBytes.Load() != 2000 {
		t.Errorf("after reopening: %+v, %d parts, %d bytes counted", row, len(j.Parts("")), j.blobBytes.Load())
	}
	if _, err := j.FinishPart(t.Context(), "w", sha); !errors.Is(err, ErrPlace) {
		t.Errorf("completed early: %v", err)
	}
	row, err := j.AddPart("w", sha, 1000, content[1000:]) // some of it again
	if err != nil || row.Have != 5000 {
		t.Fatalf("%+v %v", row, err)
	}
	row, err = j.FinishPart(t.Context(), "w", sha)
	if err != nil || !row.Whole || !j.HasBlob(sha) || j.blobBytes.Load() != 5000 {
		t.Fatalf("%+v %v, %d bytes counted", row, err, j.blobBytes.Load())
	}
	must(j.SentPart("w", sha))
	must(j.SentPart("w", sha))
	must(j.SentPart("nobody", sha))
	j.Close()
	j = open(t, dir, Options{})
	if row, ok := j.PartOf("w", sha); !ok || !row.Whole || !row.Sent {
		t.Errorf("what its owner gave is forgotten: %+v", row)
	}
	if _, ok := j.PartOf("x", sha); ok {
		t.Error("another owner has it as well")
	}
	must(j.DropPart("w", sha))
	if !j.HasBlob(sha) || len(j.Parts("")) != 0 || j.blobBytes.Load() != 5000 {
		t.Errorf("dropping the part: content is here %v, %d bytes counted", j.HasBlob(sha), j.blobBytes.Load())
	}
}

func TestAPartOfOtherContentLeavesNothing(t *testing.T) {
	dir := tempDir(t)
	j := open(t, dir, Options{BytesMax: 1 << 20})
	sha := strings.Repeat("0", 64)
	if _, err := j.BeginPart("w", sha, 4); err != nil {
		t.Fatal(err)
	}
	if _, err := j.AddPart("w", sha, 0, []byte("else")); err != nil {
		t.Fatal(err)
	}
	if _, err := j.FinishPart(t.Context(), "w", sha); !errors.Is(err, ErrHash) {
		t.Errorf("got %v", err)
	}
	files, err := os.ReadDir(filepath.Join(dir, "parts"))
	if err != nil || len(files) != 0 || len(j.Parts("")) != 0 || j.HasBlob(sha) || j.blobBytes.Load() != 0 {
		t.Errorf("left: %v, %v, %d bytes counted", files, j.Parts(""), j.blobBytes.Load())
	}
	for _, tt := range []struct {
		sha   string
		bytes int64
		want  error
	}{{"../x", 1, ErrHash}, {sha, -1, ErrHash}, {sha, protocol.BlobBytesMax + 1, ErrTooLarge}} {
		if _, err := j.BeginPart("w", tt.sha, tt.bytes); !errors.Is(err, tt.want) {
			t.Errorf("%s, %d bytes: %v", tt.sha, tt.bytes, err)
		}
	}
	if _, err := j.BeginPart("w", sha, 4<<20); err != nil {
		t.Fatal(err)
	}
	if _, err := j.AddPart("w", sha, 0, make([]byte, 2<<20)); !errors.Is(err, ErrFull) {
		t.Errorf("beyond the store's limit: %v", err)
	}
}

func TestPiecesOfManyAtOnceMakeOneWhole(t *testing.T) {
	j := open(t, tempDir(t), Options{})
	content := bytes.Repeat([]byte("0123456789"), 20_000)
	sha := hashOf(content)
	if _, err := j.BeginPart("w", sha, int64(len(content))); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for at := 0; at < len(content); at += 1000 {
				if _, err := j.AddPart("w", sha, int64(at), content[at:at+1000]); err != nil {
					t.Error(err)
				}
				j.Parts("w")
				if err := j.SentPart("w", sha); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	if _, err := j.FinishPart(t.Context(), "w", sha); err != nil {
		t.Fatal(err)
	}
	f, _, err := j.OpenBlob(sha)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestContentIsAnOrphanOnlyIfNoRecordCanNameIt(t *testing.T) {
	j := open(t, tempDir(t), Options{})
	var hashes []string
	for _, s := range []string{"named", "lost", "kept"} {
		ref, err := j.PutBlob(t.Context(), strings.NewReader(s), "")
		if err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, ref.SHA256)
		path, _ := j.blobPath(ref.SHA256)
		old := time.Now().Add(-48 * time.Hour)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	env := note(1)
	env.Blobs = []protocol.BlobRef{{SHA256: hashes[0], Bytes: 5}}
	commit(t, j, Batch{Entries: []Entry{newAuthor(1, 1).say(env)}})
	if !j.KeepBlob(hashes[2]) || j.KeepBlob(strings.Repeat("0", 64)) {
		t.Error("what is here was not kept, or what is not was")
	}
	before := time.Now().Add(-24 * time.Hour)
	removed, bytes, err := j.SweepBlobs(t.Context(), before)
	if err != nil || removed != 1 || bytes != 4 || !j.HasBlob(hashes[0]) || j.HasBlob(hashes[1]) || !j.HasBlob(hashes[2]) {
		t.Errorf("%d removed, %d bytes, %v; here: %v %v %v", removed, bytes, err, j.HasBlob(hashes[0]), j.HasBlob(hashes[1]), j.HasBlob(hashes[2]))
	}
}

func TestHashesAreFoundInAnyBody(t *testing.T) {
	a, b := strings.Repeat("0a", 32), strings.Repeat("f", 64)
	var got []string
	eachHash([]byte(a+` {"x":"`+b+`"} 1`+b+` `+strings.Repeat("a", 63)+"g "+strings.ToUpper(a)+" "+a), func(s string) { got = append(got, s) })
	if strings.Join(got, " ") != a+" "+b+" "+a {
		t.Errorf("got %v", got)
	}
}

package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

func TestContentIsKeptUnderItsHash(t *testing.T) {
	dir := tempDir(t)
	j := open(t, dir, Options{})
	content := bytes.Repeat([]byte("content "), 10_000)
	sum := sha256.Sum256(content)
	sha := hex.EncodeToString(sum[:])
	for _, want := range []string{"", sha, sha} {
		ref, err := j.PutBlob(t.Context(), bytes.NewReader(content), want)
		if err != nil || ref.SHA256 != sha || ref.Bytes != int64(len(content)) {
			t.Fatalf("PutBlob(want %q): got %+v, %v", want, ref, err)
		}
	}
	if n := j.blobBytes.Load(); n != int64(len(content)) {
		t.Errorf("three times the same content: %d bytes are counted, want %d", n, len(content))
	}
	f, size, err := j.OpenBlob(sha)
	if err != nil || size != int64(len(content)) || !j.HasBlob(sha) {
		t.Fatalf("OpenBlob: %d bytes, %v", size, err)
	}
	got, err := io.ReadAll(f)
	if f.Close(); err != nil || !bytes.Equal(got, content) {
		t.Errorf("content differs: %d bytes, %v", len(got), err)
	}
	j.Close()
	if j = open(t, dir, Options{}); j.blobBytes.Load() != int64(len(content)) || !j.HasBlob(sha) {
		t.Error("content is not there after reopening")
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestNothingIsKeptOfContentThatIsRefused(t *testing.T) {
	dir := tempDir(t)
	j := open(t, dir, Options{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	other := strings.Repeat("0", 64)
	for name, tc := range map[string]struct {
		ctx  context.Context
		r    io.Reader
		want string
		err  error
	}{
		"wrong hash":   {t.Context(), strings.NewReader("x"), other, ErrHash},
		"no hash":      {t.Context(), strings.NewReader("x"), "../../etc/passwd", ErrHash},
		"endless":      {t.Context(), endless{}, "", ErrTooLarge},
		"broken":       {t.Context(), broken{}, "", io.ErrUnexpectedEOF},
		"given up":     {ended, strings.NewReader("x"), "", context.Canceled},
		"upper case":   {t.Context(), strings.NewReader("x"), strings.Repeat("A", 64), ErrHash},
		"just too big": {t.Context(), io.LimitReader(endless{}, protocol.BlobBytesMax+1), "", ErrTooLarge},
	} {
		if _, err := j.PutBlob(tc.ctx, tc.r, tc.want); !errors.Is(err, tc.err) {
			t.Errorf("%s: got %v, want %v", name, err, tc.err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "blobs", "*")); left != nil || j.HasBlob(other) {
		t.Errorf("left over: %v", left)
	}
}

func TestNoNameEscapesTheBlobs(t *testing.T) {
	dir := tempDir(t)
	j := open(t, dir, Options{})
	for _, sha := range []string{"", ".", "..", "../journal.db", strings.Repeat("../", 21) + "a", strings.Repeat("a", 63), strings.Repeat("a", 65),
		strings.Repeat("A", 64), strings.Repeat("a", 62) + "/.", "tmp-" + strings.Repeat("a", 60), strings.Repeat("\x00", 64)} {
		if _, _, err := j.OpenBlob(sha); !errors.Is(err, ErrNoBlob) || j.HasBlob(sha) {
			t.Errorf("OpenBlob(%q): got %v, want ErrNoBlob", sha, err)
		}
	}
}

func TestUnfinishedAndDamagedContentGoes(t *testing.T) {
	dir := tempDir(t)
	j := open(t, dir, Options{})
	ref, err := j.PutBlob(t.Context(), strings.NewReader("some content"), "")
	if err != nil {
		t.Fatal(err)
	}
	tmp := filepath.Join(dir, "blobs", "tmp-unfinished")
	if err := os.WriteFile(tmp, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	j.Close()
	j = open(t, dir, Options{})
	if _, err := os.Stat(tmp); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("unfinished content is still there: %v", err)
	}
	path, _ := j.blobPath(ref.SHA256)
	if err := os.WriteFile(path, []byte("some Content"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Scrub(t.Context()); err != nil {
		t.Fatal(err)
	}
	if j.HasBlob(ref.SHA256) {
		t.Error("damaged content counts as there")
	}
	if _, err := j.PutBlob(t.Context(), strings.NewReader("some content"), ref.SHA256); err != nil || !j.HasBlob(ref.SHA256) {
		t.Errorf("fetched again: %v", err)
	}
}

func TestAFullJournalRefusesContent(t *testing.T) {
	j := open(t, tempDir(t), Options{BytesMax: 1 << 20})
	if _, err := j.PutBlob(t.Context(), io.LimitReader(endless{}, 1<<20), ""); !errors.Is(err, ErrFull) {
		t.Errorf("got %v, want ErrFull", err)
	}
	if _, err := j.PutBlob(t.Context(), io.LimitReader(endless{}, 1<<18), ""); err != nil {
		t.Errorf("content that fits: %v", err)
	}
}

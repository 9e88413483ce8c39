package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// sample is an archive of three files, the middle one random so that it does not compress.
func sample(t testing.TB) (raw []byte, files map[string]string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, 3))
	noise := make([]byte, 40_000)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	files = map[string]string{"node.key": "seed\n", "journal/journal.db": string(noise), "agents/bob/outbox.jsonl": strings.Repeat("{}\n", 1000)}
	var buf bytes.Buffer
	w, err := NewWriter(&buf, Head{Peer: "12D3", Name: "devbox", Version: "test", At: time.Unix(1_700_000_000, 0).UTC()})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"node.key", "journal/journal.db", "agents/bob/outbox.jsonl"} {
		if err := w.Add(name, int64(len(files[name])), strings.NewReader(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes(), files
}

func read(raw []byte) (got map[string]string, head Head, err error) {
	got = map[string]string{}
	_, err = Read(bytes.NewReader(raw), func(h Head) error { head = h; return nil }, func(name string, _ int64, r io.Reader) error {
		b, err := io.ReadAll(r)
		got[name] = string(b)
		return err
	})
	return got, head, err
}

func TestWhatWasWrittenIsReadAgain(t *testing.T) {
	raw, files := sample(t)
	got, head, err := read(raw)
	if err != nil || head.Name != "devbox" || head.Form != Form || len(got) != len(files) {
		t.Fatalf("got %d parts, %+v, %v", len(got), head, err)
	}
	for name, want := range files {
		if got[name] != want {
			t.Errorf("%s differs", name)
		}
	}
	zip, err := gzip.NewReader(bytes.NewReader(raw)) // any tar reads it
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for in := tar.NewReader(zip); ; n++ {
		if _, err := in.Next(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n != len(files)+2 {
		t.Errorf("a plain tar reader finds %d parts", n)
	}
}

// TestNoCutAndNoFlipIsTaken: cut anywhere, or with any one bit changed, an archive is refused, or means the same (some bits
// of a gzip header say nothing).
func TestNoCutAndNoFlipIsTaken(t *testing.T) {
	raw, files := sample(t)
	for cut := 0; cut < len(raw); cut += 1 + cut/97 {
		if _, _, err := read(raw[:cut]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut at %d of %d: %v", cut, len(raw), err)
		}
	}
	rng := rand.New(rand.NewPCG(5, 5))
	named := 0
	for range 600 {
		at := rng.IntN(len(raw))
		bad := bytes.Clone(raw)
		bad[at] ^= 1 << rng.IntN(8)
		got, _, err := read(bad)
		switch {
		case err == nil:
			for name, want := range files {
				if got[name] != want {
					t.Fatalf("bit at %d: %s changed and nothing is said", at, name)
				}
			}
		case strings.Contains(err.Error(), "journal/journal.db"):
			named++
		}
	}
	if named < 500 { // nearly all of the archive is that part
		t.Errorf("only %d of 600 damages were named after the part that they are in", named)
	}
}

func TestANameThatLeadsOutIsRefused(t *testing.T) {
	for _, name := range []string{"../x", "/etc/x", "a/../../x", "", ".", "..", "a//b", `a\b`, "c:x", "a/", "./a", "a\x00b"} {
		w, err := NewWriter(io.Discard, Head{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Add(name, 0, strings.NewReader("")); err == nil {
			t.Errorf("%q was written", name)
		}
		raw := forged(t, homeParts+name, tar.TypeReg)
		if _, _, err := read(raw); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q was read: %v", name, err)
		}
	}
	if _, _, err := read(forged(t, homeParts+"link", tar.TypeSymlink)); !errors.Is(err, ErrDamaged) {
		t.Errorf("a link was read: %v", err)
	}
}

// forged is an archive with one entry that no Writer makes.
func forged(t *testing.T, name string, kind byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	w, err := NewWriter(&buf, Head{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.tar.WriteHeader(&tar.Header{Name: name, Typeflag: kind, Linkname: "/etc/passwd", Format: tar.FormatPAX}); err != nil {
		return nil // the library itself refuses it; an empty file is refused as well
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestALaterFormIsRefusedAsSuch(t *testing.T) {
	var buf bytes.Buffer
	zip := gzip.NewWriter(&buf)
	out := tar.NewWriter(zip)
	body := fmt.Sprintf(`{"form":%d,"version":"9.9"}`, Form+1)
	if err := errors.Join(out.WriteHeader(&tar.Header{Name: headPart, Size: int64(len(body))}), writeAll(out, body), out.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := read(buf.Bytes()); !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "9.9") {
		t.Errorf("got %v", err)
	}
}

func writeAll(w io.Writer, s string) error {
	_, err := io.WriteString(w, s)
	return err
}

// FuzzRead: whatever the bytes, Read ends, and gives no name that leads out.
func FuzzRead(f *testing.F) {
	raw, _ := sample(f)
	f.Add(raw)
	f.Add(raw[:len(raw)/2])
	f.Add([]byte{0x1f, 0x8b})
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, _ = Read(bytes.NewReader(raw), func(Head) error { return nil }, func(name string, _ int64, r io.Reader) error {
			if !plain(name) {
				t.Fatalf("name %q", name)
			}
			_, err := io.Copy(io.Discard, r)
			return err
		})
	})
}

// TestWhatFollowsAnArchiveIsCalledSo, and not that it was cut short.
func TestWhatFollowsAnArchiveIsCalledSo(t *testing.T) {
	raw, _ := sample(t)
	for _, more := range []string{"\n", "more\n", "123456789", "1234567890", strings.Repeat("more ", 100)} {
		if _, _, err := read(append(bytes.Clone(raw), more...)); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "something follows") {
			t.Errorf("%d bytes more: %v", len(more), err)
		}
	}
	for cut := 1; cut <= 20; cut++ {
		if _, _, err := read(raw[:len(raw)-cut]); !errors.Is(err, ErrDamaged) || strings.Contains(err.Error(), "something follows") {
			t.Errorf("%d bytes less: %v", cut, err)
		}
	}
}

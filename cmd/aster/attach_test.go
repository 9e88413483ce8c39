package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFilesOfTheNodeItselfDoNotGoAlong: its keys, its store and its agents' mail; what agents and tasks made does.
func TestFilesOfTheNodeItselfDoNotGoAlong(t *testing.T) {
	home := t.TempDir()
	for name, want := range map[string]bool{
		"node.key": true, "mesh.json": true, "journal/a.db": true, "agents/bob/inbox.jsonl": true, "agents/bob/outbox.rejected.jsonl": true,
		"agents/bob/report.txt": false, "agents/bob/out/inbox.jsonl": false, "runs/t/tree/result.txt": false, "../elsewhere.txt": false,
	} {
		path := filepath.Join(home, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := ofHome(home, path); got != want {
			t.Errorf("%s is the node's own: %t", name, got)
		}
	}
	link := filepath.Join(t.TempDir(), "innocent.txt")
	if err := os.Symlink(filepath.Join(home, "node.key"), link); err == nil && !ofHome(home, link) {
		t.Error("a link to a key goes along")
	}
}

func TestSavedFilesStandBesideWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	content := func() io.ReadCloser { return io.NopCloser(strings.NewReader("x")) }
	const sum = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881" // of x
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), filepath.Join(dir, "a.txt")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := saveAs(dir, "a.txt", sum, content()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := saveAs(dir, "b.txt", strings.Repeat("0", 64), content()); err == nil {
		t.Error("other content than was promised stays")
	}
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	want := []string{filepath.Join(dir, "a-2.txt"), filepath.Join(dir, "a-3.txt"), filepath.Join(dir, "a.txt")}
	if slices.Sort(found); err != nil || !slices.Equal(found, want) {
		t.Errorf("there are %q, %v", found, err)
	}
}

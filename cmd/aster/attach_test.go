package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

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

package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestAnAbsolutePathIsClaimedOnlyBelowTheRepository: /etc is nobody's folder "etc".
func TestAnAbsolutePathIsClaimedOnlyBelowTheRepository(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{".git", "src/deep"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(root, "src", "deep"))
	got, err := claimScopes([]string{"src/api", filepath.Join(root, "src", "new", "file.go"), "contract:/login", "path:" + root})
	if want := []string{"src/api", "src/new/file.go", "contract:/login", "."}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	for _, text := range []string{"/etc", filepath.Dir(root), root + "-beside"} {
		if got, err := claimScopes([]string{text}); err == nil {
			t.Errorf("%s became %q", text, got)
		}
	}
	t.Chdir(t.TempDir())
	if got, err := claimScopes([]string{root}); err == nil {
		t.Errorf("outside any repository %s became %q", root, got)
	}
}

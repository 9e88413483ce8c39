package main

import (
	"os"
	"strings"
	"testing"
)

// TestAnExportIsAFileByName: keys go into no pipe and no file called "-", and a folder is no export.
func TestAnExportIsAFileByName(t *testing.T) {
	f := newFake(t, nil)
	t.Chdir(t.TempDir())
	if got := f.type_(t, "", "export", "-"); got.code == 0 || !strings.Contains(got.err, "Name a file") {
		t.Errorf("export -: %+v", got)
	}
	if _, err := os.Lstat("-"); err == nil {
		t.Error("a file was made")
	}
	if got := f.type_(t, "", "import", t.TempDir()); got.code == 0 || !strings.Contains(got.err, "is a folder") {
		t.Errorf("import of a folder: %+v", got)
	}
}

package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAKeyThatCannotBeReadNowIsNotTakenForNone: a repair or an export would file for good without a signature what a crash left
// unsigned.
func TestAKeyThatCannotBeReadNowIsNotTakenForNone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "node.key")
	if sign, err := signerIn(dir); sign != nil || err != nil {
		t.Errorf("without a key: %v", err)
	}
	for name, words := range map[string]string{path: "broken\n", filepath.Join(dir, "mesh.json"): "{}"} {
		if err := os.WriteFile(name, []byte(words), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if sign, err := signerIn(dir); sign != nil || err != nil {
		t.Errorf("with a broken key: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil { // a folder is there and cannot be read as a file
		t.Fatal(err)
	}
	if _, err := RepairHome(t.Context(), dir); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("repair: %v", err)
	}
	if _, _, err := copyAtRest(t.Context(), dir); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("export: %v", err)
	}
	if isThere(filepath.Join(dir, "journal")) {
		t.Error("the store was opened")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, copyPrefix+"*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := keyFile(path, true); err != nil {
		t.Fatal(err)
	}
	if sign, err := signerIn(dir); sign == nil || err != nil {
		t.Errorf("with a key: %v", err)
	}
}

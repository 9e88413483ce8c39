package web

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// elsewhere are the codes of refusals that nobody meets at a board, and who does.
var elsewhere = map[string]string{
	"second-hello": "a client of /ws", "hello-first": "a client of /ws", "chunk-out-of-range": "a client of /ws",
	"port-taken":         "who types aster up",
	"attachment-missing": "an agent by its files", "attachment-outside": "an agent by its files", "attachment-not-a-file": "an agent by its files",
	"attachment-unreadable": "an agent by its files", "attachment-changed": "an agent by its files", "attachment-reserved": "an agent by its files",
}

// TestEveryCodeOfARefusalHasItsLine: the page says in its own language what a code means, whatever the node's sentence is; a code
// without a line fails, and so does a line whose code no source names.
func TestEveryCodeOfARefusalHasItsLine(t *testing.T) {
	named := regexp.MustCompile(`\b(?:Code[A-Z]\w*|reason[A-Z]\w*)\s+=\s+"([A-Za-z_0-9-]+)"|\bRefuse\("([a-z0-9-]+)"|Code: "([a-z0-9-]+)", Reason:`)
	codes := map[string]string{"internal": "board/web", "parked-dropped": "the contract"}
	for _, dir := range []string{"protocol", "roles", "node", "board"} {
		err := filepath.WalkDir(filepath.Join("..", "..", dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			src, err := os.ReadFile(path)
			for _, m := range named.FindAllSubmatch(src, -1) {
				codes[string(m[1])+string(m[2])+string(m[3])] = path
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(codes) < 70 {
		t.Fatalf("%d codes are found: the sources name them otherwise now", len(codes))
	}
	lines := map[string]bool{}
	for _, m := range regexp.MustCompile(`\bcode_([a-z_0-9]+): "`).FindAllStringSubmatch(string(loadAssets()["strings.js"].body), -1) {
		lines[m[1]] = true
	}
	for code, path := range codes {
		line := strings.ToLower(strings.ReplaceAll(code, "-", "_"))
		if elsewhere[code] == "" && !lines[line] {
			t.Errorf("%q of %s has no line code_%s in strings.js; if nobody meets it at a board, say in elsewhere who does", code, path, line)
		}
		delete(lines, line)
	}
	for line := range lines {
		t.Errorf("code_%s is the line of a code that no source names", line)
	}
}

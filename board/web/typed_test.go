package web

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestTypesHold lets TypeScript look through the page: what it infers, and what JSDoc says, must agree. Nothing is compiled.
// .ci/run installs it; where it cannot be had it says so there.
func TestTypesHold(t *testing.T) {
	if testing.Short() {
		t.Skip("a compiler takes seconds")
	}
	files, err := filepath.Abs("static")
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(files, "..", "..", "..")
	tsc := filepath.Join(root, ".ci", "cache", "node_modules", ".bin", "tsc")
	if _, err := os.Stat(tsc); err != nil {
		if tsc, err = exec.LookPath("tsc"); err != nil {
			const how = "no TypeScript: npm install --prefix .ci/cache --no-save typescript@5.9.3"
			if os.Getenv("CI") == "true" {
				t.Fatal(how)
			}
			t.Skip(how)
		}
	}
	config, err := json.Marshal(map[string]any{
		"compilerOptions": map[string]any{"allowJs": true, "checkJs": true, "noEmit": true, "target": "ES2024", "lib": []string{"ES2024", "DOM", "DOM.Iterable"},
			"module": "ES2022", "moduleResolution": "bundler", "strict": false, "types": []string{}},
		"include": []string{files + "/*.js"}, "exclude": []string{files + "/sw.js"},
	})
	if err != nil {
		t.Fatal(err)
	}
	project := filepath.Join(t.TempDir(), "tsconfig.json")
	if err := os.WriteFile(project, config, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tsc, "-p", project, "--pretty", "false").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

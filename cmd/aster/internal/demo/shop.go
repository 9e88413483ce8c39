package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Task is what devbox asks of mac-mini, Check the command that must pass in the end.
const (
	Task  = "make ./cart pass"
	Check = "go test ./cart"
)

// Write is what devbox asks of build-1.
const Write = "describe ./cart in docs/cart.md"

// The repository. The function forgets how many of an item are bought; the test says so.
var shopFiles = map[string]string{
	".gitattributes": "* -text\n",
	"go.mod":         "module shop\n\ngo 1.21\n",
	"cart/total.go": `// Package cart adds up what somebody buys.
package cart

// Item is one line of a cart. A count of 0 means one.
type Item struct {
	Name  string
	Cents int
	Count int
}

// Total is the price of all items, in cents.
func Total(items []Item) int {
	total := 0
	for _, it := range items {
		` + wrongLine + `
	}
	return total
}
`,
	"cart/total_test.go": `package cart

import "testing"

func TestTotal(t *testing.T) {
	got := Total([]Item{{"pen", 120, 0}, {"cup", 700, 2}})
	if got != 1520 {
		t.Errorf("a pen at 1.20 and two cups at 7.00: %d cents, want 1520", got)
	}
}
`,
}

const (
	wrongLine = "total += it.Cents"
	rightLine = "count := max(it.Count, 1)\n\t\ttotal += count * it.Cents"
)

// makeShop makes the repository with one commit, in which the check fails.
func makeShop(ctx context.Context, dir string) error {
	for name, text := range shopFiles {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("make the shop: %w", err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return fmt.Errorf("make the shop: %w", err)
		}
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--template="},
		{"symbolic-ref", "HEAD", "refs/heads/main"},
		{"config", "user.name", "devbox"},
		{"config", "user.email", "devbox@localhost"},
		{"config", "commit.gpgSign", "false"},
		{"add", "--all"},
		{"commit", "--quiet", "-m", "a cart that cannot count"},
	} {
		cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
		cmd.Env = environment()
		out, err := cmd.CombinedOutput()
		if errors.Is(err, exec.ErrNotFound) {
			return errors.New("the demo works in a git repository, and git was not found: install it")
		}
		if err != nil {
			return fmt.Errorf("make the shop: git %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}

// CanCheck says whether the repository's check can run here: there is a go, and a folder where it may build.
func CanCheck(ctx context.Context) bool {
	out, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	cache := strings.TrimSpace(string(out))
	return err == nil && cache != "" && cache != "off"
}

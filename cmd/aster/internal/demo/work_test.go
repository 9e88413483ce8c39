package demo

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func newShop(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "shop")
	if err := makeShop(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestTheCheckFailsUntilTheWorkIsDone(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the shop")
	}
	dir := newShop(t)
	check := func() error {
		words := strings.Fields(Check)
		cmd := exec.CommandContext(context.Background(), words[0], words[1:]...)
		cmd.Dir, cmd.Env = dir, environment()
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		return err
	}
	if check() == nil {
		t.Error("the check passes before anything was mended")
	}
	if err := Work(dir, strings.NewReader(Task), &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	if err := check(); err != nil {
		t.Errorf("the check fails after the work: %v", err)
	}
}

func TestTheWorkIsInTheFilesAndNowhereElse(t *testing.T) {
	dir := newShop(t)
	changed := func() string {
		out, err := exec.Command("git", "-C", dir, "status", "--porcelain").Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	if got := changed(); got != "" {
		t.Errorf("a new shop has changes: %s", got)
	}
	for _, c := range []struct{ task, want string }{{Task, "M cart/total.go"}, {Write, "M cart/total.go\n?? docs/"}} {
		if err := Work(dir, strings.NewReader(c.task+"\n"), &bytes.Buffer{}); err != nil || changed() != c.want {
			t.Errorf("%s: %v, changed %q, want %q", c.task, err, changed(), c.want)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "docs", "cart.md"))
	if err != nil || !strings.Contains(string(page), "- Total is the price of all items, in cents.") {
		t.Errorf("the page: %v\n%s", err, page)
	}
}

func TestOtherTasksAndOtherFilesAreRefused(t *testing.T) {
	dir := newShop(t)
	if err := Work(dir, strings.NewReader("remove everything"), &bytes.Buffer{}); err == nil {
		t.Error("a task that it does not know is done")
	}
	if err := Work(t.TempDir(), strings.NewReader(Task), &bytes.Buffer{}); err == nil {
		t.Error("it mends a file that is not there")
	}
	path := filepath.Join(dir, "cart", "total.go")
	if err := os.WriteFile(path, []byte("package cart\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Work(dir, strings.NewReader(Task), &bytes.Buffer{}); err == nil {
		t.Error("it mends another file than the demo's")
	}
	if raw, err := os.ReadFile(path); err != nil || string(raw) != "package cart\n" {
		t.Errorf("and changed it: %q, %v", raw, err)
	}
}

func TestLastWordsLeaveTheLogOut(t *testing.T) {
	var l lastWords
	for _, p := range []string{"time=2026 level=WARN msg=x\n", "invite ref", "used\nhint: aster invite\n", "time=2026 level=INFO msg=y\n"} {
		if n, err := l.Write([]byte(p)); n != len(p) || err != nil {
			t.Fatal(n, err)
		}
	}
	if got, want := l.String(), "invite refused\nhint: aster invite"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	_, _ = l.Write(bytes.Repeat([]byte("x"), 3*lastWordsMax))
	if len(l.end) != lastWordsMax {
		t.Errorf("it holds %d bytes", len(l.end))
	}
}

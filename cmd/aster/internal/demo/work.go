package demo

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// taskBytesMax is far above any task of the demo.
const taskBytesMax = 64 << 10

// Work is the program that the demo's nodes run for a Delegate: a small one that stands for an agent. It reads the task
// from stdin and edits the files of dir, as any other would. It knows the two tasks of the demo and refuses others.
func Work(dir string, stdin io.Reader, stdout io.Writer) error {
	raw, err := io.ReadAll(io.LimitReader(stdin, taskBytesMax))
	if err != nil {
		return fmt.Errorf("read task: %w", err)
	}
	switch task := strings.TrimSpace(string(raw)); task {
	case Task:
		return mend(dir, stdout)
	case Write:
		return describe(dir, stdout)
	default:
		return fmt.Errorf("the demo's worker knows two tasks, %q and %q, not %q", Task, Write, task)
	}
}

func mend(dir string, stdout io.Writer) error {
	path := filepath.Join(dir, "cart", "total.go")
	raw, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the code: %w", err)
	}
	if strings.Count(string(raw), wrongLine) != 1 {
		return errors.New("cart/total.go is not the file of the demo")
	}
	fmt.Fprintln(stdout, "cart/total.go forgets how many of an item are bought")
	mended := strings.Replace(string(raw), wrongLine, rightLine, 1)
	if err := os.WriteFile(path, []byte(mended), 0o600); err != nil {
		return fmt.Errorf("write the code: %w", err)
	}
	fmt.Fprintln(stdout, "mended")
	return nil
}

// describe writes a page with what the code says of itself.
func describe(dir string, stdout io.Writer) error {
	f, err := os.Open(filepath.Join(dir, "cart", "total.go"))
	if err != nil {
		return fmt.Errorf("read the code: %w", err)
	}
	defer f.Close()
	page := []string{"# cart", ""}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if said, ok := strings.CutPrefix(lines.Text(), "// "); ok {
			page = append(page, "- "+said)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the code: %w", err)
	}
	path := filepath.Join(dir, "docs", "cart.md")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	if err := os.WriteFile(path, []byte(strings.Join(page, "\n")+"\n"), 0o644); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	fmt.Fprintf(stdout, "docs/cart.md has %d lines\n", len(page))
	return nil
}

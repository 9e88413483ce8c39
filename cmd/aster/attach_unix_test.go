//go:build unix

package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestNamedPipeIsNoAttachment: to open one waits for somebody who writes, so it is refused unopened.
func TestNamedPipeIsNoAttachment(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	if _, err := (&app{}).attachOne(t.Context(), nil, pipe); err == nil || !strings.Contains(err.Error(), "only a file can go along") {
		t.Errorf("it ended with %v", err)
	}
}

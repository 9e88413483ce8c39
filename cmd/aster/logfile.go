package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

const (
	logName = "log"
	// logBytesMax bounds the diagnostics on disk to twice this: log and log.1.
	logBytesMax = 8 << 20
)

// logFile is the home's diagnostics file. Safe for concurrent use.
type logFile struct {
	path string

	// Guarded by mu.
	mu   sync.Mutex
	f    *os.File
	size int64
}

func newLogFile(home string) *logFile { return &logFile{path: filepath.Join(home, logName)} }

// Write appends one entry. Diagnostics that cannot be written stop nothing.
func (l *logFile) Write(entry []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil || l.size > logBytesMax {
		if err := l.reopen(); err != nil {
			return 0, err
		}
	}
	n, err := l.f.Write(entry)
	l.size += int64(n)
	return n, err
}

func (l *logFile) open() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reopen()
}

// reopen opens the file, moving it away first if it is full.
func (l *logFile) reopen() error {
	if l.f != nil {
		l.f.Close()
		l.f = nil
	}
	if info, err := os.Stat(l.path); err == nil && info.Size() > logBytesMax {
		if err := os.Rename(l.path, l.path+".1"); err != nil {
			return fmt.Errorf("rotate log: %w", err)
		}
	}
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return fmt.Errorf("open log: %w", err)
	}
	l.f, l.size = f, info.Size()
	return nil
}

func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return nil
	}
	err := l.f.Close()
	l.f = nil
	return err
}

// secretNames are attributes that must never be read back from a log.
var secretNames = []string{"token", "secret", "invite", "key", "password", "cookie", "authorization"}

func isSecretName(name string) bool {
	name = strings.ToLower(name)
	for _, s := range secretNames {
		if name == s || strings.HasSuffix(name, "_"+s) || strings.HasSuffix(name, "-"+s) {
			return true
		}
	}
	return false
}

func logHandler(w io.Writer, level slog.Level) slog.Handler {
	return slog.NewTextHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, at slog.Attr) slog.Attr {
		if isSecretName(at.Key) {
			return slog.String(at.Key, "redacted")
		}
		return at
	}})
}

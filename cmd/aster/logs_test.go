package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestLogsPrintsTheLastLines(t *testing.T) {
	home := newHome(t)
	if got := typeIn(t, nil, "", "logs", "--home", home); got.code != 1 || !strings.Contains(got.err, "aster --home "+tilde(home)+" up") {
		t.Errorf("without a log: %+v", got)
	}
	if err := os.WriteFile(filepath.Join(home, logName), []byte("one\ntwo\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{"logs": "one\ntwo\nthree\n", "logs -n 2": "two\nthree\n", "logs -n 0": "one\ntwo\nthree\n", "logs -n 9": "one\ntwo\nthree\n"} {
		if got := typeIn(t, nil, "", append(strings.Fields(args), "--home", home)...); got.code != 0 || got.out != want {
			t.Errorf("aster %s: %+v", args, got)
		}
	}
}

func TestLogsFollowsOverARotation(t *testing.T) {
	home := newHome(t)
	path := filepath.Join(home, logName)
	if err := os.WriteFile(path, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, in := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- runWith(ctx, nil, []string{"logs", "-f", "--home", home}, nil, in, io.Discard)
	}()
	expect := func(want string) {
		t.Helper()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(out, got); err != nil || string(got) != want {
			t.Fatalf("got %q, %v, want %q", got, err, want)
		}
	}
	expect("one\n")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("two\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect("two\n")
	stop()
	if got := <-code; got != 0 {
		t.Errorf("exit %d", got)
	}
}

func TestTheLogIsBoundedAndHidesSecrets(t *testing.T) {
	home := newHome(t)
	file := newLogFile(home)
	defer file.Close()
	log := slog.New(logHandler(file, slog.LevelInfo))
	log.Info("x", "token", "s3cret", "session_key", "s3cret", "peer", "12D3")
	raw, err := os.ReadFile(file.path)
	if err != nil || strings.Contains(string(raw), "s3cret") || !strings.Contains(string(raw), "peer=12D3") {
		t.Errorf("log %q, %v", raw, err)
	}
	line := strings.Repeat("x", 1<<20) + "\n"
	for range 20 {
		if _, err := file.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{logName, logName + ".1"} {
		if info, err := os.Stat(filepath.Join(home, name)); err != nil || info.Size() > logBytesMax+int64(len(line)) || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

func TestAMomentIsReadInThreeWays(t *testing.T) {
	now := time.Date(2026, 3, 4, 15, 6, 7, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"1m": now.Add(-time.Minute), "14:00": time.Date(2026, 3, 4, 14, 0, 0, 0, time.UTC), "14:00:05": time.Date(2026, 3, 4, 14, 0, 5, 0, time.UTC),
		"2026-01-02T15:04:05Z": time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC),
	} {
		if got, err := moment(text, now); err != nil || !got.Equal(want) {
			t.Errorf("moment(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
}

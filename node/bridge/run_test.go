package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/fsnotify/fsnotify"
)

// running starts Run and returns what ends it.
func running(t *testing.T, b *Bridge) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	stop = func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	}
	return stop
}

func TestARunningBridgeSendsWhatIsAppendedAndWritesWhatCame(t *testing.T) {
	l := newLedger()
	b := New(l.config(t.TempDir()))
	defer running(t, b)()
	other := protocol.AgentID("codex-shop")
	for _, a := range []protocol.AgentID{agent, other} {
		if err := b.Enable(a); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(FolderOf(b.cfg.Dir, agent), outboxFile)
	add(t, path, `{"say":"one"}`+"\n")
	l.until(t, "the first line", func() bool { return len(l.said()) == 1 })
	add(t, path, `{"say":"two"}`+"\n")
	add(t, filepath.Join(FolderOf(b.cfg.Dir, other), outboxFile), `{"say":"three"}`+"\n")
	l.until(t, "the other lines", func() bool { return len(l.said()) == 3 })

	watch, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	dir := FolderOf(b.cfg.Dir, agent)
	if err := watch.Add(dir); err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	l.mail = letters(1, 100)
	l.mu.Unlock()
	b.Notify(agent)
	limit := time.After(10 * time.Second)
	for strings.Count(read(t, filepath.Join(dir, inboxFile)), "\n") < 100 {
		select {
		case <-watch.Events:
		case <-limit:
			t.Fatal("the mail did not come")
		}
	}
	wantPositions(t, dir, 100)
}

func TestAMissedHintIsMadeUpByTheRescan(t *testing.T) {
	l := newLedger()
	cfg := l.config(t.TempDir())
	cfg.Rescan = 5 * time.Millisecond
	b := New(cfg)
	if err := b.Enable(agent); err != nil {
		t.Fatal(err)
	}
	dir := FolderOf(b.cfg.Dir, agent)
	defer running(t, b)()
	add(t, filepath.Join(dir, outboxFile), `{"say":"one"}`+"\n")
	l.until(t, "the first line", func() bool { return len(l.said()) == 1 })
	// A folder that was replaced is watched no more.
	if err := os.Rename(dir, dir+"-aside"); err != nil { // whole, while the bridge may be writing in it
		t.Fatal(err)
	}
	if err := makeFolder(dir); err != nil {
		t.Fatal(err)
	}
	add(t, filepath.Join(dir, outboxFile), `{"say":"two"}`+"\n")
	l.until(t, "the line in the new folder", func() bool { return slices.Contains(l.said(), "two") })
}

func TestALineThatCouldNotBeCommittedIsTriedAgain(t *testing.T) {
	l := newLedger()
	l.failAt = 1
	cfg := l.config(t.TempDir())
	cfg.Rescan = 5 * time.Millisecond // sooner than the retry's own second
	b := New(cfg)
	if err := b.Enable(agent); err != nil {
		t.Fatal(err)
	}
	defer running(t, b)()
	add(t, filepath.Join(FolderOf(b.cfg.Dir, agent), outboxFile), `{"say":"one"}`+"\n")
	l.until(t, "the line", func() bool { return len(l.said()) == 1 })
}

func TestADisabledAgentIsServedNoMore(t *testing.T) {
	l := newLedger()
	b := New(l.config(t.TempDir()))
	defer running(t, b)()
	for _, a := range []protocol.AgentID{agent, "other"} {
		if err := b.Enable(a); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(FolderOf(b.cfg.Dir, agent), outboxFile)
	add(t, path, `{"say":"one"}`+"\n")
	l.until(t, "the first line", func() bool { return len(l.said()) == 1 })
	b.Disable(agent)
	// The other agent is enabled again behind it: when its line is there, the loop has seen both.
	b.Disable("other")
	if err := b.Enable("third"); err != nil {
		t.Fatal(err)
	}
	add(t, filepath.Join(FolderOf(b.cfg.Dir, "third"), outboxFile), `{"say":"third"}`+"\n")
	l.until(t, "the third agent's line", func() bool { return slices.Contains(l.said(), "third") })
	add(t, path, `{"say":"unheard"}`+"\n")
	add(t, filepath.Join(FolderOf(b.cfg.Dir, "third"), outboxFile), `{"say":"fourth"}`+"\n")
	l.until(t, "the next line", func() bool { return slices.Contains(l.said(), "fourth") })
	if slices.Contains(l.said(), "unheard") {
		t.Fatal("a disabled agent was served")
	}
}

// A pace lets one line through for each wait that its refusal names: the bridge waits that long, not longer each time, and
// fills no log meanwhile.
func TestALineThatCameTooFastComesAgainWhenItsRefusalSays(t *testing.T) {
	l := newLedger()
	cfg := l.config(t.TempDir())
	inner, asked := cfg.Submit, 0
	cfg.Submit = func(ctx context.Context, a protocol.AgentID, line Line, key string, cur []byte) error {
		if asked++; asked%2 == 1 {
			no := protocol.Refuse(protocol.CodeRate, "too fast for the %dth time", "", asked)
			no.RetryMs = 20
			return no
		}
		return inner(ctx, a, line, key, cur)
	}
	var log strings.Builder
	cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	cfg.Rescan = time.Hour
	b := New(cfg)
	if err := b.Enable(agent); err != nil {
		t.Fatal(err)
	}
	add(t, filepath.Join(FolderOf(b.cfg.Dir, agent), outboxFile), strings.Repeat(`{"say":"line"}`+"\n", 12))
	stop := running(t, b)
	began := time.Now()
	l.until(t, "the lines", func() bool { return len(l.said()) == 12 })
	took := time.Since(began)
	stop()
	if took > 15*time.Second { // doubled from a second, the twelve waits are four minutes
		t.Errorf("twelve lines of 20 ms each took %s", took)
	}
	if n := strings.Count(log.String(), "too fast"); n != 1 {
		t.Errorf("%d lines in the log: %s", n, log.String())
	}
}

func TestAToldWaitIsBounded(t *testing.T) {
	for ms, want := range map[int64]time.Duration{0: 0, -5: 0, 1: toldFirst, 490: 490 * time.Millisecond, 1 << 62: retryMax} {
		no := &protocol.Refusal{Code: protocol.CodeRate, RetryMs: ms}
		if got := toldWait(fmt.Errorf("submit: %w", no)); got != want {
			t.Errorf("%d ms is %s, want %s", ms, got, want)
		}
	}
}

package bridge

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ledger is the node's side: lines and cursors are committed together, or not at all.
type ledger struct {
	mu      sync.Mutex
	cursors map[string][]byte
	lines   []Line
	calls   int
	// failAt ends the call of this number (from 1) with an error; kept says that the commit had happened all the same.
	failAt int
	kept   bool
	refuse map[protocol.AgentID]*protocol.Refusal // by target
	mail   []Item
	came   chan struct{} // capacity 1: something was committed
	files  []string      // contents that were kept, in order
	// reading, when set, is called in the middle of keeping.
	reading func()
	noRoom  error // what Keep returns, when set
}

var errCrash = errors.New("crash")

func newLedger() *ledger {
	return &ledger{cursors: map[string][]byte{}, refuse: map[protocol.AgentID]*protocol.Refusal{}, came: make(chan struct{}, 1)}
}

func (l *ledger) submit(_ context.Context, _ protocol.AgentID, line Line, key string, cur []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	if no := l.refuse[line.To]; no != nil && line.Kind == KindMessage {
		return no
	}
	if l.calls == l.failAt && !l.kept {
		return errCrash
	}
	l.cursors[key] = cur
	if line.Kind != KindNone {
		l.lines = append(l.lines, line)
	}
	select {
	case l.came <- struct{}{}:
	default:
	}
	if l.calls == l.failAt {
		return errCrash
	}
	return nil
}

func (l *ledger) keep(_ context.Context, r io.Reader) (protocol.BlobRef, error) {
	if l.noRoom != nil {
		return protocol.BlobRef{}, l.noRoom
	}
	first := make([]byte, 1)
	n, err := io.ReadFull(r, first)
	if err != nil && err != io.EOF {
		return protocol.BlobRef{}, err
	}
	if l.reading != nil {
		l.reading()
	}
	rest, err := io.ReadAll(r)
	if err != nil {
		return protocol.BlobRef{}, err
	}
	whole := append(first[:n], rest...)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files = append(l.files, string(whole))
	return protocol.BlobRef{SHA256: hash(string(whole)), Bytes: int64(len(whole))}, nil
}

func (l *ledger) cursor(key string) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cursors[key]
}

func (l *ledger) unread(_ protocol.AgentID, after uint64, limit int) ([]Item, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Item
	for _, it := range l.mail {
		if it.Pos > after && len(out) < limit {
			out = append(out, it)
		}
	}
	return out, nil
}

func (l *ledger) said() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, line := range l.lines {
		out = append(out, line.Text)
	}
	return out
}

func (l *ledger) config(dir string) Config {
	return Config{Dir: dir, Submit: l.submit, Keep: l.keep, Cursor: l.cursor, Unread: l.unread}
}

const agent = protocol.AgentID("claude-shop")

// desk is one agent's folder without a loop: tests take each step themselves.
func desk(t *testing.T, l *ledger) (b *Bridge, dir string) {
	t.Helper()
	b = New(l.config(t.TempDir()))
	dir = FolderOf(b.cfg.Dir, agent)
	if err := makeFolder(dir); err != nil {
		t.Fatal(err)
	}
	return b, dir
}

func (b *Bridge) outboxOf(a protocol.AgentID) *outbox {
	return &outbox{agent: a, dir: FolderOf(b.cfg.Dir, a), cfg: &b.cfg, log: b.log}
}

func (b *Bridge) inboxOf(t *testing.T, a protocol.AgentID) *inbox {
	in := &inbox{agent: a, dir: FolderOf(b.cfg.Dir, a), cfg: &b.cfg}
	t.Cleanup(func() { in.close() })
	return in
}

func scanAll(t *testing.T, o *outbox) {
	t.Helper()
	for {
		more, err := o.scan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return
		}
	}
}

func add(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(raw)
}

func rejected(t *testing.T, dir string) []string {
	t.Helper()
	text := strings.TrimSpace(read(t, filepath.Join(dir, rejectedFile)))
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// until waits for a commit at a time until ok.
func (l *ledger) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	limit := time.After(10 * time.Second)
	for !ok() {
		select {
		case <-l.came:
		case <-limit:
			t.Fatalf("%s did not happen", what)
		}
	}
}

package keeper

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/aster-mesh/aster/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAttemptIsClaimedByOneAlone(t *testing.T) {
	dir := t.TempDir()
	var won atomic.Int32
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			mine, err := Claim(dir, Launch{Keeper: Process{PID: i}})
			if err != nil {
				t.Error(err)
			}
			if mine {
				won.Add(1)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d won", won.Load())
	}
}

func TestLockIsHeldUntilReleased(t *testing.T) {
	dir := t.TempDir()
	unlock, err := lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if held, err := Held(dir); !held || err != nil {
		t.Errorf("held %v, %v", held, err)
	}
	unlock()
	if held, err := Held(dir); held || err != nil {
		t.Errorf("after unlock: held %v, %v", held, err)
	}
}

func TestSinkKeepsItsBounds(t *testing.T) {
	dir := t.TempDir()
	s, err := openSink(dir, 100_000)
	if err != nil {
		t.Fatal(err)
	}
	defer s.file.Close()
	line := []byte(strings.Repeat("y", 999) + "\n")
	for range 1000 {
		s.take(line)
	}
	if c := s.counts(); c.bytes != 1_000_000 || !c.over {
		t.Errorf("counts %d, over %v", c.bytes, c.over)
	}
	if len(s.tail) > 2*sinkTailBytes {
		t.Errorf("tail of %d bytes", len(s.tail))
	}
	if info, err := os.Stat(filepath.Join(dir, FileOutput)); err != nil || info.Size() != 100_000 {
		t.Errorf("%v %v", info, err)
	}
	tail, err := SaveTail(dir)
	if err != nil || len(tail) > protocol.ShortTextBytesMax {
		t.Errorf("tail of %d bytes, %v", len(tail), err)
	}
	if info, err := os.Stat(filepath.Join(dir, FileTail)); err != nil || info.Size() != protocol.OutputTailBytesMax {
		t.Errorf("%v %v", info, err)
	}
}

func TestLastLinesAreReadable(t *testing.T) {
	for in, want := range map[string]string{
		"a\nb\n\n":                       "a\nb",
		"\x1b[31mred\x1b[0m \a\x00\xff!": "red !",
		"safe\u202Eelif":                 "safeelif",
		"":                               "",
	} {
		if got := lastLines([]byte(in)); got != want {
			t.Errorf("lastLines(%q) = %q, want %q", in, got, want)
		}
	}
	long := lastLines([]byte(strings.Repeat("ä", 50_000)))
	if len(long) > protocol.ShortTextBytesMax || !utf8.ValidString(long) {
		t.Errorf("%d bytes", len(long))
	}
}

func TestUsageOfKnownAgents(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		want  int64
	}{
		"codex": {[]string{`{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":90,"output_tokens":5}}`,
			`{"type":"turn.completed","usage":{"input_tokens":10,"output_tokens":1}}`}, 116},
		"stream-json": {[]string{`{"type":"assistant","message":{"id":"m1","usage":{"input_tokens":3,"output_tokens":1}}}`,
			`{"type":"assistant","message":{"id":"m1","usage":{"input_tokens":3,"output_tokens":7}}}`,
			`{"type":"assistant","message":{"id":"m2","usage":{"input_tokens":4,"output_tokens":2}}}`}, 16},
		"its total": {[]string{`{"type":"assistant","message":{"id":"m1","usage":{"input_tokens":3,"output_tokens":1}}}`,
			`{"type":"result","result":"ok","usage":{"input_tokens":3,"output_tokens":40}}`}, 43},
		"foreign": {[]string{`{"usage":"much"}`, `{"usage":{"input_tokens":-5,"output_tokens":"x"}}`, `"usage" {`, `{"usage":null}`,
			`{"usage":{"input_tokens":-5}}`, `{"usage":{"input_tokens":1e99}}`}, 0},
	} {
		var u usage
		u.add([]byte(strings.Join(c.lines, "\n")))
		u.end()
		if got := u.tokens(); got != c.want {
			t.Errorf("%s: %d tokens, want %d", name, got, c.want)
		}
	}
}

// The same bytes give the same count however they are cut, and the count never falls.
func FuzzUsage(f *testing.F) {
	f.Add([]byte(`{"usage":{"input_tokens":1,"output_tokens":2}}`+"\n"), 7)
	f.Add([]byte("text\n{\"message\":{\"id\":\"a\",\"usage\":{\"input_tokens\":9}}}\n{\"type\":\"result\",\"usage\":{}}"), 1)
	f.Add([]byte("{\"usage\":{\"input_tokens\":9223372036854775807,\"output_tokens\":9223372036854775807}}\n"), 3)
	f.Fuzz(func(t *testing.T, out []byte, step int) {
		var whole, pieces usage
		whole.add(out)
		whole.end()
		step = max(1, min(step, 1<<16))
		var last int64
		for rest := out; len(rest) > 0; rest = rest[min(step, len(rest)):] {
			pieces.add(rest[:min(step, len(rest))])
			if n := pieces.tokens(); n < last {
				t.Fatalf("the count fell from %d to %d", last, n)
			} else {
				last = n
			}
		}
		pieces.end()
		if whole.tokens() != pieces.tokens() || whole.tokens() < 0 {
			t.Fatalf("whole %d, in pieces %d", whole.tokens(), pieces.tokens())
		}
	})
}

func TestUsageHoldsNoLongLine(t *testing.T) {
	var u usage
	u.add([]byte("{"))
	for range 100 {
		u.add(make([]byte, 1<<18))
	}
	if cap(u.line) > 4*lineBytesMax {
		t.Errorf("%d bytes held", cap(u.line))
	}
}

func TestOldResultsStayReadable(t *testing.T) {
	exit := 0
	b, err := json.Marshal(Result{Outcome: Done, Exit: &exit})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(b), fmt.Sprintf(`{"outcome":%q,"summary":"","exit":0,"outputBytes":0}`, Done); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

package bench

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestARowIsJudgedByItsBar(t *testing.T) {
	for _, c := range []struct {
		row   Row
		met   bool
		ratio float64
	}{
		{Row{Value: 3, Unit: "ms", Bar: 4, Raw: []Raw{{"bare", 2, "ms"}}}, true, 1.5},
		{Row{Value: 5, Unit: "ms", Bar: 4, Raw: []Raw{{"bare", 2, "ms"}}}, false, 2.5},
		{Row{Value: 5, Unit: "msg/s", Bar: 4, Floor: true, Raw: []Raw{{"bare", 10, "msg/s"}}}, true, 0.5},
		{Row{Value: 3, Unit: "msg/s", Bar: 4, Floor: true, Raw: []Raw{{"p50", 10, "ms"}}}, false, 0},
	} {
		got := c.row.judge()
		if got.Met == nil || *got.Met != c.met || got.Ratio != c.ratio {
			t.Errorf("%+v: got met %v, ratio %v, want %v, %v", c.row, got.Met, got.Ratio, c.met, c.ratio)
		}
	}
	if (Row{Value: 1}).judge().Met != nil {
		t.Error("a figure without a bar has a verdict")
	}
}

func TestOutputSaysBarVerdictAndBaseline(t *testing.T) {
	rows := []Row{
		Row{Bench: "relay", Case: "one node", Value: 0.512, Unit: "ms", P99: 2, Bar: 0.4, Rule: "bare + 2 fdatasync", Raw: []Raw{{"bare relay", 0.1, "ms"}}, Note: "why"}.judge(),
	}
	var text, lines bytes.Buffer
	if err := Print(&text, rows); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"relay one node", "0.51 ms", "2.00 ms", "at most 0.40 ms (bare + 2 fdatasync)", "not met", "bare relay 0.10 ms", "ratio 5.12", "one node: why"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, text.String())
		}
	}
	if err := PrintJSON(&lines, rows); err != nil {
		t.Fatal(err)
	}
	var back Row
	if err := json.Unmarshal(lines.Bytes(), &back); err != nil || back.Met == nil || *back.Met || bytes.Count(lines.Bytes(), []byte("\n")) != 1 {
		t.Errorf("json: %s, %v", lines.String(), err)
	}
}

func TestQuantiles(t *testing.T) {
	var s samples
	for i := range 100 {
		s = append(s, time.Duration(100-i)*time.Millisecond)
	}
	if s.p50() != 51 || s.p99() != 100 || samples(nil).p50() != 0 {
		t.Errorf("got p50 %v, p99 %v", s.p50(), s.p99())
	}
}

func TestSidesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		make := func(name string) *side {
			return &side{once: func() (time.Duration, error) {
				order = append(order, name)
				time.Sleep(time.Microsecond)
				return 1, nil
			}}
		}
		a, b := make("a"), make("b")
		if err := interleave(time.Millisecond, 0, a, b); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(order[:2*blockOf], ""); got != strings.Repeat("a", blockOf)+strings.Repeat("b", blockOf) {
			t.Errorf("order %s", got)
		}
		if len(a.got) != len(b.got) || len(a.got)%(blockOf-1) != 0 {
			t.Errorf("%d and %d samples", len(a.got), len(b.got))
		}
	})
}

func TestNumbersAreFoundInFrames(t *testing.T) {
	for frame, want := range map[string]int64{
		`{"type":"CUSTOM","msgId":"b-17","value":{}}`: 17,
		`{"type":"CUSTOM","msgId":"b-x"}`:             -1,
		`{"type":"CUSTOM","msgId":"b-1`:               -1,
		`{"type":"CUSTOM","msgId":"m-1"}`:             -1,
	} {
		n, ok := numberAfter([]byte(frame), msgMark)
		if !ok {
			n = -1
		}
		if n != want {
			t.Errorf("%s: got %d, want %d", frame, n, want)
		}
	}
}

// TestAnAttackerReadsItsInputToTheEnd: nothing of it is left when it returns.
func TestAnAttackerReadsItsInputToTheEnd(t *testing.T) {
	home := t.TempDir()
	seed := base64.StdEncoding.EncodeToString(make([]byte, ed25519.SeedSize))
	if err := os.WriteFile(filepath.Join(home, "node.key"), []byte(seed), 0o600); err != nil {
		t.Fatal(err)
	}
	words, err := json.Marshal(target{Kind: "client: garbage", Home: home})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		in, stdin := io.Pipe()
		returned := make(chan error, 1)
		go func() { returned <- ServeAttack(ctx, in, io.Discard) }()
		if _, err := stdin.Write(words); err != nil {
			t.Fatal(err)
		}
		if _, err := stdin.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case err := <-returned:
			t.Errorf("it returned before its input ended: %v", err)
		default:
		}
		stdin.Close()
		synctest.Wait()
		select {
		case err := <-returned:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("it goes on without its input")
		}
	})
}

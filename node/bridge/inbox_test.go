package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

func letter(pos uint64) Item {
	return Item{Pos: pos, At: 1_700_000_000_123, Envelope: protocol.Envelope{
		ID: protocol.MsgID(fmt.Sprintf("m%d", pos)), From: "codex-shop", FromName: "Codex", FromRole: protocol.RoleLocal, Source: protocol.SourceAgent,
		To: agent, Intent: protocol.Request, Value: json.RawMessage(`{"text":"hi"}`), Re: "m0", Parent: "p", Context: "c", Thread: "t",
	}}
}

func letters(from, to uint64) []Item {
	var out []Item
	for p := from; p <= to; p++ {
		out = append(out, letter(p))
	}
	return out
}

func deliverAll(in *inbox) error {
	for {
		more, err := in.deliver(context.Background())
		if err != nil || !more {
			return err
		}
	}
}

// positions are those of all parts, oldest first.
func positions(t *testing.T, dir string) []uint64 {
	t.Helper()
	var out []uint64
	for n := inboxPartsMax; n >= 0; n-- {
		name := inboxFile
		if n > 0 {
			name = fmt.Sprintf("inbox.%d.jsonl", n)
		}
		for line := range strings.Lines(read(t, filepath.Join(dir, name))) {
			var l inboxLine
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatalf("%s: %v in %q", name, err, line)
			}
			out = append(out, l.Pos)
		}
	}
	return out
}

func wantPositions(t *testing.T, dir string, to uint64) {
	t.Helper()
	var want []uint64
	for p := uint64(1); p <= to; p++ {
		want = append(want, p)
	}
	if got := positions(t, dir); !slices.Equal(got, want) {
		t.Fatalf("positions %v, want 1 to %d once each", got, to)
	}
}

func TestAnInboxLineKeepsTheOldKeysAndHasTheEnvelope(t *testing.T) {
	var got map[string]any
	if err := json.Unmarshal(encodeItem(letter(7), "s"), &got); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"at": "2023-11-14T22:13:20.123Z", "name": "Request", "source": "agent",
		"agentId": "codex-shop", "agentName": "Codex", "msgId": "m7", "targetAgentId": "claude-shop",
		"contextId": "c", "parentId": "p", "threadId": "t", "re": "m0", "pos": 7.0,
	} {
		if got[key] != want {
			t.Errorf("%s = %v, want %v", key, got[key], want)
		}
	}
	if value, ok := got["value"].(map[string]any); !ok || value["text"] != "hi" {
		t.Errorf("value = %v", got["value"])
	}
}

func TestMailIsInTheFileOnceOverRestarts(t *testing.T) {
	l := newLedger()
	b, dir := desk(t, l)
	for to := uint64(1); to <= 200; to += 37 {
		l.mail = letters(1, to)
		if err := deliverAll(b.inboxOf(t, agent)); err != nil {
			t.Fatal(err)
		}
		wantPositions(t, dir, to)
	}
}

func TestATornTailIsCutAndItsMessageComesAgain(t *testing.T) {
	whole := ""
	for _, it := range letters(1, 3) {
		whole += string(encodeItem(it, "store"))
	}
	cut := len(encodeItem(letter(3), "store"))
	for torn := 1; torn <= cut; torn += 13 {
		l := newLedger()
		b, dir := desk(t, l)
		l.cursors["bridge/inbox/"+string(agent)] = []byte("store")
		put(t, filepath.Join(dir, inboxFile), whole[:len(whole)-torn])
		l.mail = letters(1, 4)
		if err := deliverAll(b.inboxOf(t, agent)); err != nil {
			t.Fatal(err)
		}
		wantPositions(t, dir, 4)
	}
}

func TestAnEmptiedInboxIsNotFilledAgain(t *testing.T) {
	for name, restart := range map[string]bool{"while it runs": false, "over a restart": true} {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			b, dir := desk(t, l)
			l.mail = letters(1, 3)
			in := b.inboxOf(t, agent)
			if err := deliverAll(in); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(dir, inboxFile), "")
			if restart {
				in = b.inboxOf(t, agent)
			}
			l.mail = letters(1, 4)
			if err := deliverAll(in); err != nil {
				t.Fatal(err)
			}
			if got := positions(t, dir); !slices.Equal(got, []uint64{4}) {
				t.Fatalf("positions %v, want 4 alone", got)
			}
		})
	}
}

func TestForeignLinesInTheInboxAreLeftAlone(t *testing.T) {
	l := newLedger()
	b, dir := desk(t, l)
	put(t, filepath.Join(dir, inboxFile), string(encodeItem(letter(1), "store"))+strings.Repeat("a note of the agent's own\n", 20_000))
	l.mail = letters(1, 2)
	if err := deliverAll(b.inboxOf(t, agent)); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(read(t, filepath.Join(dir, inboxFile))), "\n")
	if len(lines) != 20_002 || !strings.Contains(lines[20_001], `"pos":2`) {
		t.Fatalf("%d lines, last %q", len(lines), lines[len(lines)-1])
	}
}

// The process dies before each step in turn, with rotations among them.
func TestMailIsInTheFilesOnceWhereverTheNodeDies(t *testing.T) {
	errDied := errors.New("died")
	for dieAt := 1; ; dieAt++ {
		l := newLedger()
		b, dir := desk(t, l)
		steps, died := 0, false
		step := func(string) error {
			if steps++; steps == dieAt {
				died = true
				return errDied
			}
			return nil
		}
		pos := uint64(0)
		for range 4 { // each round fills the file and makes it rotate
			in := b.inboxOf(t, agent)
			in.step = step
			pos += 3
			l.mail = letters(1, pos)
			if err := deliverAll(in); errors.Is(err, errDied) {
				in.f = nil // the process is gone
				in = b.inboxOf(t, agent)
				if err := deliverAll(in); err != nil {
					t.Fatal(err)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			in.size = inboxBytesMax
			pos++
			l.mail = letters(1, pos)
			if err := in.rotateAnd(deliverAll, step); errors.Is(err, errDied) {
				in = b.inboxOf(t, agent)
				if err := deliverAll(in); err != nil {
					t.Fatal(err)
				}
			} else if err != nil {
				t.Fatal(err)
			}
		}
		wantPositions(t, dir, pos)
		if !died {
			return
		}
	}
}

// rotateAnd rotates and delivers, as a full file makes deliver do.
func (b *inbox) rotateAnd(deliver func(*inbox) error, step func(string) error) error {
	b.step = step
	if err := b.rotate(); err != nil {
		b.close()
		return err
	}
	return deliver(b)
}

func TestAFullInboxIsMovedAwayAndFourPartsAreKept(t *testing.T) {
	l := newLedger()
	b, dir := desk(t, l)
	in := b.inboxOf(t, agent)
	for round := uint64(1); round <= 7; round++ {
		if err := os.Truncate(filepath.Join(dir, inboxFile), inboxBytesMax); err != nil && round > 1 {
			t.Fatal(err)
		}
		in.close()
		if in.f, _ = os.OpenFile(filepath.Join(dir, inboxFile), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600); in.f == nil {
			t.Fatal("open")
		}
		if round > 1 {
			in.size = inboxBytesMax
		}
		l.mail = letters(round, round)
		if err := deliverAll(in); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "inbox") {
			names = append(names, e.Name())
		}
	}
	if want := []string{"inbox.1.jsonl", "inbox.2.jsonl", "inbox.3.jsonl", "inbox.4.jsonl", "inbox.jsonl"}; !slices.Equal(names, want) {
		t.Fatalf("files %v, want %v", names, want)
	}
	if text := read(t, filepath.Join(dir, inboxFile)); !strings.Contains(text, `"pos":7`) {
		t.Fatalf("the newest message is not in %s: %q", inboxFile, text)
	}
}

// A damaged store is set aside and rebuilt: positions begin anew, and the messages are the same.
func TestAStoreThatWasRebuiltDeliversTheRestAndNothingTwice(t *testing.T) {
	errDied := errors.New("died")
	for dieAt := 0; dieAt < 6; dieAt++ {
		l := newLedger()
		b, dir := desk(t, l)
		l.mail = letters(1, 100)
		if err := deliverAll(b.inboxOf(t, agent)); err != nil {
			t.Fatal(err)
		}
		l.cursors = map[string][]byte{}
		l.mail = nil
		for i, it := range letters(1, 150) { // of 150 the first 20 were acknowledged; all have other positions now
			it.Pos = uint64(i + 3)
			if i >= 20 {
				l.mail = append(l.mail, it)
			}
		}
		in := b.inboxOf(t, agent)
		steps := 0
		in.step = func(string) error {
			if steps++; steps == dieAt {
				return errDied
			}
			return nil
		}
		if err := deliverAll(in); err != nil && !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		for range 2 {
			if err := deliverAll(b.inboxOf(t, agent)); err != nil {
				t.Fatal(err)
			}
		}
		seen := map[string]int{}
		for line := range strings.Lines(read(t, filepath.Join(dir, inboxFile))) {
			var got inboxLine
			if err := json.Unmarshal([]byte(line), &got); err != nil {
				t.Fatal(err)
			}
			seen[string(got.MsgID)]++
		}
		for _, it := range letters(1, 150) {
			if n := seen[string(it.Envelope.ID)]; n != 1 {
				t.Fatalf("died at %d: %s is there %d times", dieAt, it.Envelope.ID, n)
			}
		}
	}
}

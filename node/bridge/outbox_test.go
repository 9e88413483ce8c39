package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

func TestAHalfWrittenLineWaitsForItsEnd(t *testing.T) {
	l := newLedger()
	b, dir := desk(t, l)
	o := b.outboxOf(agent)
	path := filepath.Join(dir, outboxFile)
	add(t, path, `{"say":"one"}`+"\n"+`{"say":"tw`)
	scanAll(t, o)
	if got := l.said(); !slices.Equal(got, []string{"one"}) {
		t.Fatalf("after one line and a half: %q", got)
	}
	add(t, path, "o\"}\n")
	scanAll(t, o)
	if got := l.said(); !slices.Equal(got, []string{"one", "two"}) {
		t.Fatalf("after the rest: %q", got)
	}
	if bad := rejected(t, dir); bad != nil {
		t.Fatalf("rejected %q", bad)
	}
}

func TestWhatWasAppendedWhileTheNodeWasDownIsSentOnce(t *testing.T) {
	l := newLedger()
	b, dir := desk(t, l)
	path := filepath.Join(dir, outboxFile)
	add(t, path, `{"say":"before the first start"}`+"\n")
	scanAll(t, b.outboxOf(agent))
	add(t, path, `{"say":"while it was down"}`+"\n")
	for range 3 { // three starts of the process
		scanAll(t, b.outboxOf(agent))
	}
	if got := l.said(); !slices.Equal(got, []string{"before the first start", "while it was down"}) {
		t.Fatalf("said %q", got)
	}
}

func TestABadLineIsShownAndTheRestGoesOn(t *testing.T) {
	l := newLedger()
	l.refuse["nobody"] = protocol.Refuse(protocol.CodeUnknownAgent, `no agent "nobody"`, "aster agents")
	b, dir := desk(t, l)
	long := strings.Repeat("x", 3*LineBytesMax)
	add(t, filepath.Join(dir, outboxFile), strings.Join([]string{
		`{"say":"one"}`, `not json`, `null`, "", `{"to":"nobody","intent":"Request"}`, long, `{"say":"two"}`,
	}, "\n")+"\n")
	scanAll(t, b.outboxOf(agent))
	if got := l.said(); !slices.Equal(got, []string{"one", "two"}) {
		t.Fatalf("said %q", got)
	}
	var got []string
	for _, line := range rejected(t, dir) {
		var r rejection
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.Reason == "" || len(r.Text) > rejectedTextBytesMax || r.Text == "" {
			t.Errorf("rejection %+v", r)
		}
		got = append(got, fmt.Sprintf("%d %s", r.Line, r.Code))
	}
	want := []string{"2 bad-frame", "3 wrong-type", "5 unknown-agent", "6 frame-too-large"}
	if !slices.Equal(got, want) {
		t.Fatalf("rejected %q, want %q", got, want)
	}
}

func TestAFullDiskHoldsTheLine(t *testing.T) {
	l := newLedger()
	l.refuse["b"] = protocol.Refuse(protocol.CodeDiskFull, "the disk is full", "")
	b, dir := desk(t, l)
	o := b.outboxOf(agent)
	add(t, filepath.Join(dir, outboxFile), `{"to":"b","intent":"Request"}`+"\n")
	if _, err := o.scan(t.Context()); err == nil {
		t.Fatal("a full disk was taken for an answer")
	}
	delete(l.refuse, "b")
	scanAll(t, o)
	if len(l.lines) != 1 || rejected(t, dir) != nil {
		t.Fatalf("lines %v, rejected %v", l.lines, rejected(t, dir))
	}
}

// Each Submit in turn fails, before its commit or after it, and the process starts again.
func TestEachLineIsCommittedOnceWhereverTheNodeDies(t *testing.T) {
	text := strings.Join([]string{`{"say":"a"}`, `bad`, `{"say":"b"}`, `null`, `bad`, `{"say":"c"}`}, "\n") + "\n"
	for _, kept := range []bool{false, true} {
		for failAt := 1; ; failAt++ {
			l := newLedger()
			l.failAt, l.kept = failAt, kept
			b, dir := desk(t, l)
			add(t, filepath.Join(dir, outboxFile), text)
			_, err := b.outboxOf(agent).scan(t.Context())
			died := err != nil
			scanAll(t, b.outboxOf(agent))
			if got := l.said(); !slices.Equal(got, []string{"a", "b", "c"}) {
				t.Fatalf("died at %d (kept %v): said %q", failAt, kept, got)
			}
			ids := map[protocol.MsgID]bool{}
			for _, line := range l.lines {
				ids[line.MsgID] = true
			}
			if len(ids) != 3 {
				t.Fatalf("died at %d: ids %v", failAt, ids)
			}
			if bad := rejected(t, dir); len(bad) != 3 {
				t.Fatalf("died at %d (kept %v): rejected %q", failAt, kept, bad)
			}
			if !died {
				break
			}
		}
	}
}

func TestARetriedLineKeepsItsID(t *testing.T) {
	l := newLedger()
	b, dir := desk(t, l)
	add(t, filepath.Join(dir, outboxFile), `{"say":"a"}`+"\n")
	var ids []protocol.MsgID
	inner := b.cfg.Submit
	b.cfg.Submit = func(ctx context.Context, a protocol.AgentID, line Line, key string, cur []byte) error {
		ids = append(ids, line.MsgID)
		if len(ids) < 3 {
			return errCrash
		}
		return inner(ctx, a, line, key, cur)
	}
	for range 3 {
		_, _ = b.outboxOf(agent).scan(t.Context())
	}
	if len(ids) != 3 || ids[0] != ids[1] || ids[1] != ids[2] || ids[0] == "" {
		t.Fatalf("ids %q", ids)
	}
}

func TestAnotherFileUnderTheNameIsReadFromItsStart(t *testing.T) {
	first := `{"say":"one"}` + "\n" + `{"say":"two"}` + "\n"
	for name, change := range map[string]func(t *testing.T, path string){
		"emptied and written": func(t *testing.T, path string) { put(t, path, `{"say":"new"}`+"\n") },
		"removed and written": func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			put(t, path, `{"say":"new"}`+"\n")
		},
		"longer than before": func(t *testing.T, path string) {
			put(t, path, `{"say":"new"}`+"\n"+strings.Repeat("\n", 2*len(first)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			b, dir := desk(t, l)
			o := b.outboxOf(agent)
			path := filepath.Join(dir, outboxFile)
			add(t, path, first)
			scanAll(t, o)
			change(t, path)
			scanAll(t, o)
			scanAll(t, b.outboxOf(agent)) // and after a restart
			if got := l.said(); !slices.Equal(got, []string{"one", "two", "new"}) {
				t.Fatalf("said %q", got)
			}
			if l.lines[0].MsgID == l.lines[2].MsgID {
				t.Fatal("two lines at one offset of two files have one id")
			}
		})
	}
}

func TestARotatedOutboxIsReadToItsEnd(t *testing.T) {
	l := newLedger()
	b, dir := desk(t, l)
	path := filepath.Join(dir, outboxFile)
	add(t, path, `{"say":"one"}`+"\n")
	scanAll(t, b.outboxOf(agent))
	add(t, path, `{"say":"two"}`+"\n"+`{"say":"cut of`)
	if err := os.Rename(path, filepath.Join(dir, "outbox.1.jsonl")); err != nil {
		t.Fatal(err)
	}
	scanAll(t, b.outboxOf(agent)) // between renaming and the new file
	if bad := rejected(t, dir); bad != nil {
		t.Fatalf("a renamed file that may still grow was given up: %q", bad)
	}
	add(t, path, `{"say":"three"}`+"\n")
	scanAll(t, b.outboxOf(agent))
	scanAll(t, b.outboxOf(agent))
	if got := l.said(); !slices.Equal(got, []string{"one", "two", "three"}) {
		t.Fatalf("said %q", got)
	}
	if bad := rejected(t, dir); len(bad) != 1 || !strings.Contains(bad[0], "outbox.1.jsonl") {
		t.Fatalf("rejected %q, want the line that was cut off", bad)
	}
}

func TestAnEditorThatSavesByRenamingSendsNothingTwice(t *testing.T) {
	l := newLedger()
	b, dir := desk(t, l)
	path := filepath.Join(dir, outboxFile)
	add(t, path, `{"say":"one"}`+"\n")
	scanAll(t, b.outboxOf(agent))
	put(t, path+".new", `{"say":"one"}`+"\n"+`{"say":"two"}`+"\n")
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	scanAll(t, b.outboxOf(agent))
	if got := l.said(); !slices.Equal(got, []string{"one", "two"}) {
		t.Fatalf("said %q", got)
	}
}

func TestALineOfGigabytesIsSearchedOnce(t *testing.T) {
	l := newLedger()
	b, dir := desk(t, l)
	o := b.outboxOf(agent)
	path := filepath.Join(dir, outboxFile)
	for range 4 { // grows, without an end
		add(t, path, strings.Repeat("x", LineBytesMax))
		scanAll(t, o)
	}
	if want := int64(4 * LineBytesMax); o.searched != want {
		t.Fatalf("searched up to %d, want %d", o.searched, want)
	}
	add(t, path, "\n"+`{"say":"after"}`+"\n")
	scanAll(t, o)
	if got := l.said(); !slices.Equal(got, []string{"after"}) || len(rejected(t, dir)) != 1 {
		t.Fatalf("said %q, rejected %d", got, len(rejected(t, dir)))
	}
}

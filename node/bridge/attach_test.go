//go:build unix

package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// sends makes a line that attaches what items say.
func sends(items string) string {
	return `{"to":"bob","intent":"Note","value":{"text":"here"},"attachments":[` + items + `]}` + "\n"
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func codes(t *testing.T, dir string) (out []string) {
	t.Helper()
	for _, line := range rejected(t, dir) {
		var r rejection
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r.Code)
	}
	return out
}

// TestAnAgentsMailDoesNotGoAlong: it would be copied with every line.
func TestAnAgentsMailDoesNotGoAlong(t *testing.T) {
	for name, want := range map[string]bool{
		"inbox.jsonl": true, "Inbox.jsonl": true, "inbox.3.jsonl": true, "outbox.jsonl": true, "outbox.rejected.jsonl": true, "./inbox.jsonl": true,
		"inbox.txt": false, "mine.jsonl": false, "out/inbox.jsonl": false,
	} {
		l := newLedger()
		b, dir := desk(t, l)
		write(t, filepath.Join(dir, "out", "x"), "")
		if !strings.HasPrefix(name, "outbox.") { // those are there, or come with the refusal
			write(t, filepath.Join(dir, name), "words")
		}
		add(t, filepath.Join(dir, outboxFile), sends(string(protocol.EncodeBody(name))))
		scanAll(t, b.outboxOf(agent))
		if got := slices.Equal(codes(t, dir), []string{CodeAttachReserved}); got != want {
			t.Errorf("%s: refused %t (%q), want %t", name, got, codes(t, dir), want)
		}
	}
}

func TestFilesOfALineGoAlong(t *testing.T) {
	l := newLedger()
	b, dir := desk(t, l)
	write(t, filepath.Join(dir, "report.txt"), "all well")
	write(t, filepath.Join(dir, "out", "plot.bin"), "")
	path := protocol.EncodeBody(filepath.Join(dir, "report.txt"))
	add(t, filepath.Join(dir, outboxFile), sends(`"out/../report.txt",`+string(path)+`,{"path":"out/plot.bin","name":"Plot é.png","mime":"image/x-own"}`))
	scanAll(t, b.outboxOf(agent))
	if bad := rejected(t, dir); bad != nil || len(l.lines) != 1 {
		t.Fatalf("lines %+v, rejected %q", l.lines, bad)
	}
	var got []string
	for _, ref := range l.lines[0].Blobs {
		got = append(got, fmt.Sprintf("%s %d %s", ref.Name, ref.Bytes, strings.TrimSuffix(ref.Mime, "; charset=utf-8")))
	}
	want := []string{"report.txt 8 text/plain", "report.txt 8 text/plain", "Plot é.png 0 image/x-own"}
	if !slices.Equal(got, want) || !slices.Equal(l.files, []string{"all well", "all well", ""}) {
		t.Fatalf("sent %q with %q", got, l.files)
	}
}

// TestAFileThatCannotGoAlongIsNamed: nothing of such a line is said, and the next one is.
func TestAFileThatCannotGoAlongIsNamed(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	write(t, outside, "secret")
	for name, tt := range map[string]struct{ items, want string }{
		"missing":           {`"nothing.txt"`, CodeAttachMissing},
		"a folder":          {`"folder"`, CodeAttachNotFile},
		"the folder":        {`"."`, CodeAttachNotFile},
		"a link":            {`"link"`, CodeAttachNotFile},
		"a link within":     {`"inner"`, CodeAttachNotFile},
		"behind a link":     {`"linked/secret"`, CodeAttachNotFile},
		"behind a file":     {`"good.txt/more"`, CodeAttachNotFile},
		"a pipe":            {`"pipe"`, CodeAttachNotFile},
		"above":             {`"../secret"`, CodeAttachOutside},
		"an address":        {`"file:///etc/passwd"`, CodeAttachOutside},
		"above by a detour": {`"folder/../../x"`, CodeAttachOutside},
		"absolute":          {string(protocol.EncodeBody(outside)), CodeAttachOutside},
		"absolute, above":   {`"DIR/../x"`, CodeAttachOutside},
		"the root":          {`"/"`, CodeAttachOutside},
		"not readable":      {`"closed"`, CodeAttachUnreadable},
		"too large":         {`"large"`, CodeAttachTooLarge},
		"too much":          {`"half","half","half","half","half"`, CodeAttachTooMany},
		"too many":          {strings.TrimSuffix(strings.Repeat(`"good.txt",`, attachMax+1), ","), CodeAttachTooMany},
		"no path":           {`{"name":"x"}`, protocol.CodeWrongType},
		"a number":          {`7`, protocol.CodeWrongType},
		"null":              {`null`, protocol.CodeWrongType},
		"an empty path":     {`""`, protocol.CodeWrongType},
		"a zero":            {`"a\u0000b"`, protocol.CodeWrongType},
		"the second":        {`"good.txt","nothing.txt"`, CodeAttachMissing},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.want == CodeAttachUnreadable && os.Geteuid() == 0 {
				t.Skip("root reads everything")
			}
			l := newLedger()
			b, dir := desk(t, l)
			write(t, filepath.Join(dir, "good.txt"), "good")
			write(t, filepath.Join(dir, "folder", "x"), "x")
			write(t, filepath.Join(dir, "closed"), "closed")
			for _, err := range []error{
				os.Chmod(filepath.Join(dir, "closed"), 0), os.Symlink(outside, filepath.Join(dir, "link")), os.Symlink("good.txt", filepath.Join(dir, "inner")),
				os.Symlink(filepath.Dir(outside), filepath.Join(dir, "linked")), syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600),
				sparse(filepath.Join(dir, "large"), protocol.BlobBytesMax+1), sparse(filepath.Join(dir, "half"), protocol.BlobBytesMax),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			if name == "too much" { // without the reading
				b.cfg.Keep = func(context.Context, io.Reader) (protocol.BlobRef, error) {
					return protocol.BlobRef{Bytes: protocol.BlobBytesMax}, nil
				}
			}
			add(t, filepath.Join(dir, outboxFile), sends(strings.ReplaceAll(tt.items, "DIR", dir))+`{"say":"on"}`+"\n")
			scanAll(t, b.outboxOf(agent))
			if got := codes(t, dir); !slices.Equal(got, []string{tt.want}) {
				t.Errorf("rejected %q\n%q", got, rejected(t, dir))
			}
			if got := l.said(); !slices.Equal(got, []string{"on"}) {
				t.Errorf("said %q", got)
			}
		})
	}
}

// sparse makes a file of a size that takes no room.
func sparse(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Truncate(size)
}

func TestAttachmentsAreOfMessages(t *testing.T) {
	for _, in := range []string{
		`{"say":"x","attachments":["a"]}`, `{"run":"start","attachments":[]}`, `{"step":"x","attachments":["a"]}`,
		`{"type":"CUSTOM","name":"Note","value":{},"attachments":["a"]}`, `{"to":"b","intent":"Note","attachments":"a"}`,
		`{"to":"b","intent":"Note","attachments":null}`, `{"to":"b","intent":"Note","value":"words","attachments":["a"]}`,
		`{"to":"b","intent":"Note","value":{"attachments":"x"},"attachments":["a"]}`,
	} {
		if line, no := ParseLine([]byte(in)); no == nil || no.Code != protocol.CodeWrongType {
			t.Errorf("%s: %+v, %v", in, line, no)
		}
	}
	for _, in := range []string{`{"to":"b","intent":"Note","attachments":["a"]}`, `{"to":"b","intent":"Note","value":null,"attachments":["a"]}`} {
		line, no := ParseLine([]byte(in))
		if no != nil || string(line.Value) != "{}" || len(line.Attach) != 1 {
			t.Errorf("%s: %+v, %v", in, line, no)
		}
	}
}

// TestAFileThatChangesWhileItIsReadIsRefused: cut short, grown, or written anew at the same size.
func TestAFileThatChangesWhileItIsReadIsRefused(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"cut":   func(path string) error { return os.Truncate(path, 10) },
		"grown": func(path string) error { return os.Truncate(path, 1<<20+1) },
		"anew": func(path string) error {
			return os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			b, dir := desk(t, l)
			path := filepath.Join(dir, "growing")
			write(t, path, strings.Repeat("x", 1<<20))
			l.reading = func() {
				if err := change(path); err != nil {
					t.Error(err)
				}
			}
			add(t, filepath.Join(dir, outboxFile), sends(`"growing"`))
			scanAll(t, b.outboxOf(agent))
			if got := codes(t, dir); !slices.Equal(got, []string{CodeAttachChanged}) || len(l.lines) != 0 {
				t.Errorf("rejected %q, said %+v", got, l.lines)
			}
		})
	}
}

// TestALineWaitsForRoomForItsFiles, and is said once.
func TestALineWaitsForRoomForItsFiles(t *testing.T) {
	l := newLedger()
	b, dir := desk(t, l)
	l.noRoom = protocol.Refuse(protocol.CodeDiskFull, "full", "")
	write(t, filepath.Join(dir, "a"), "content")
	add(t, filepath.Join(dir, outboxFile), sends(`"a"`))
	o := b.outboxOf(agent)
	if _, err := o.scan(t.Context()); err == nil {
		t.Fatal("a full disk was taken for an answer")
	}
	l.noRoom = nil
	scanAll(t, o)
	if len(l.lines) != 1 || len(l.lines[0].Blobs) != 1 || rejected(t, dir) != nil {
		t.Fatalf("lines %+v, rejected %q", l.lines, rejected(t, dir))
	}
}

// TestALineWithFilesIsSaidOnceWhereverTheNodeDies: while its files are read, before its commit and after it.
func TestALineWithFilesIsSaidOnceWhereverTheNodeDies(t *testing.T) {
	for _, at := range []string{"first file", "second file", "before the commit", "after the commit"} {
		t.Run(at, func(t *testing.T) {
			l := newLedger()
			b, dir := desk(t, l)
			write(t, filepath.Join(dir, "a"), "first")
			write(t, filepath.Join(dir, "b"), "second")
			add(t, filepath.Join(dir, outboxFile), sends(`"a","b"`)+`{"say":"on"}`+"\n")
			keeps, inner := 0, b.cfg.Keep
			switch at {
			case "first file", "second file":
				b.cfg.Keep = func(ctx context.Context, r io.Reader) (protocol.BlobRef, error) {
					if keeps++; keeps == 1 && at == "first file" || keeps == 2 && at == "second file" {
						return protocol.BlobRef{}, errCrash
					}
					return inner(ctx, r)
				}
			default:
				l.failAt, l.kept = 1, at == "after the commit"
			}
			if _, err := b.outboxOf(agent).scan(t.Context()); err == nil {
				t.Fatal("it did not die")
			}
			scanAll(t, b.outboxOf(agent))
			if len(l.lines) != 2 || len(l.lines[0].Blobs) != 2 || l.lines[0].MsgID == "" || rejected(t, dir) != nil {
				t.Fatalf("lines %+v, rejected %q", l.lines, rejected(t, dir))
			}
		})
	}
}

// TestAnInboxLineSaysHowToHaveItsFiles, in a command that holds no words of the sender.
func TestAnInboxLineSaysHowToHaveItsFiles(t *testing.T) {
	for id, want := range map[protocol.MsgID]string{
		"0190a000-0000-7000-8000-000000000001": "aster show 0190a000-0000-7000-8000-000000000001 --save DIR",
		"x; rm -rf ~":                          "aster show " + protocol.ShortID("x; rm -rf ~") + " --save DIR",
		"--home":                               "aster show " + protocol.ShortID("--home") + " --save DIR",
	} {
		var got inboxLine
		env := protocol.Envelope{ID: id, Intent: "Note", Blobs: []protocol.BlobRef{{SHA256: "ab", Name: "a.txt", Bytes: 3}}}
		if err := json.Unmarshal(encodeItem(Item{Pos: 1, Envelope: env}, "s"), &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Files) != 1 || got.Files[0] != (inboxAttached{Name: "a.txt", Bytes: 3, Get: want}) {
			t.Errorf("%s: %+v", id, got.Files)
		}
	}
	if line := encodeItem(Item{Pos: 1, Envelope: protocol.Envelope{ID: "m", Intent: "Note"}}, "s"); strings.Contains(string(line), "files") {
		t.Errorf("a line without files: %s", line)
	}
}

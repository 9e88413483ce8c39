package node

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// TestAFileOfAnOutboxLineArrives: a client of the socket has its content, and the inbox file of who works by files says how to
// have it.
func TestAFileOfAnOutboxLineArrives(t *testing.T) {
	m := founds(t, "here", "", "")
	bob := m.attach(t, "bob")
	own := filepath.Join(m.home, "agents", "main-agent")
	data := content(7, 300_000)
	until(t, "the folder is served", func() bool { return isThere(filepath.Join(own, "inbox.jsonl")) })
	if err := os.WriteFile(filepath.Join(own, "plot.bin"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	say := func(line string) {
		f, err := os.OpenFile(filepath.Join(own, "outbox.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(line + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	say(`{"to":"bob","intent":"Note","attachments":["../../node.key"]}`)
	say(`{"to":"bob","intent":"Note","value":{"text":"the plot"},"attachments":["plot.bin"]}`)
	f := bob.next(t, "Note")
	if got := bob.take(t, f.MsgID, data); !bytes.Equal(got, data) {
		t.Fatalf("bob has %d bytes of %d", len(got), len(data))
	}
	if raw, err := os.ReadFile(filepath.Join(own, "outbox.rejected.jsonl")); err != nil || !bytes.Contains(raw, []byte("attachment-outside")) {
		t.Errorf("the key's line: %v %s", err, raw)
	}
	say(string(protocol.EncodeBody(map[string]any{"to": "main-agent", "intent": "Note", "attachments": []string{filepath.Join(own, "plot.bin")}})))
	var line struct {
		Files []struct{ Name, Get string }
	}
	until(t, "the inbox file tells of it", func() bool {
		raw, _ := os.ReadFile(filepath.Join(own, "inbox.jsonl"))
		return bytes.HasSuffix(raw, []byte("\n")) && json.Unmarshal(raw[bytes.LastIndexByte(raw[:max(len(raw)-1, 0)], '\n')+1:], &line) == nil && len(line.Files) == 1
	})
	if get := line.Files[0].Get; line.Files[0].Name != "plot.bin" || !strings.HasPrefix(get, "aster show ") || !strings.HasSuffix(get, " --save DIR") {
		t.Errorf("it says %+v", line.Files)
	}
}

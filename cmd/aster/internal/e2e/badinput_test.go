package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/aster-mesh/aster/node/link"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// TestHomesAreRefusedByName: a home that is not this user's alone, a broken configuration, a port that is taken.
func TestHomesAreRefusedByName(t *testing.T) {
	n := newNode(t, "n", "")
	want := func(what string, code int, words string, args ...string) {
		t.Helper()
		ready, r := n.start("", args...)
		if ready != nil {
			t.Errorf("%s: it is up", what)
			n.kill()
		} else if r.code != code || !strings.Contains(r.stderr, words) {
			t.Errorf("%s: want exit %d and %q: %s", what, code, words, r)
		}
	}
	if runtime.GOOS != "windows" {
		must(t, os.Chmod(n.home, 0o755))
		want("readable by others", 4, "chmod 700")
		must(t, os.Chmod(n.home, 0o700))
		if os.Geteuid() == 0 {
			must(t, os.Chown(n.home, 4711, -1))
			want("another user's", 4, "4711")
			must(t, os.Chown(n.home, 0, -1))
		}
	}
	n.configure("[worker]\nslots = 1\ncomand = [\"x\"]\n")
	want("a misspelt setting", 1, "config.toml:3")
	n.configure("[store]\nbytes_max = -5\n")
	want("a limit below nothing", 1, "store.bytes_max")
	n.configure("name = ")
	want("broken TOML", 1, "config.toml:1")
	must(t, os.Remove(filepath.Join(n.home, "config.toml")))
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer busy.Close()
	want("a busy port", 4, busy.Addr().String(), "--board", busy.Addr().String())
	must(t, os.WriteFile(filepath.Join(n.home, "mesh.json"), []byte("{half"), 0o600))
	want("a damaged mesh.json", 1, "mesh.json")
	must(t, os.Remove(filepath.Join(n.home, "mesh.json")))

	// None of this has hurt the home.
	n.up("")
	first := n.mustStatus().PID
	r := n.run("up", "--json")
	if r.code != 0 || !strings.Contains(r.stdout, fmt.Sprintf(`"pid":%d`, first)) {
		t.Errorf("a second node on the home: want exit 0 and pid %d: %s", first, r)
	}
	if r := n.run("up"); r.code != 0 || !strings.Contains(r.stdout, fmt.Sprintf("already running pid %d", first)) {
		t.Errorf("a second node on the home: %s", r)
	}
	if st := n.mustStatus(); st.PID != first {
		t.Errorf("pid %d, want %d", st.PID, first)
	}
	for path, mode := range modes(t, n.home) {
		if mode.Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v: others can read it", path, mode)
		}
	}
}

func modes(t *testing.T, dir string) map[string]os.FileMode {
	t.Helper()
	out := map[string]os.FileMode{}
	must(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil {
			out[path] = info.Mode()
		}
		return nil // what goes away meanwhile has no mode
	}))
	return out
}

// TestMessagesAreRefusedByName: unknown agents, names that only the hub sends, values that are none.
func TestMessagesAreRefusedByName(t *testing.T) {
	n := newNode(t, "n", "")
	n.up("")
	n.declare("bob")
	for _, c := range []struct {
		code  int
		words string
		args  []string
	}{
		{4, `no agent "nobody"`, []string{"send", "--to", "nobody", "x"}},
		{4, "AgentList", []string{"send", "--to", "bob", "--intent", "AgentList", "x"}},
		{4, "", []string{"send", "--to", "bob", "--intent", strings.Repeat("x", 300), "x"}},
		{4, "", []string{"send", "--to", "bob", "--from", "a/b", "x"}},
		{2, "not JSON", []string{"send", "--to", "bob", "--value", "{half"}},
		{2, "stdin was empty", []string{"send", "--to", "bob", "-"}},
		{2, "empty", []string{"send", "--to", "bob", ""}},
		{2, "relative to", []string{"claim", "acquire", "/etc"}},
		{4, "", []string{"report", "--re", "nothing", "--status", "done", "--summary", "x"}},
		{4, "", []string{"ack", "nothing"}},
		{4, "", []string{"task", "cancel", "nothing"}},
		{0, "", []string{"send", "--to", "bob", "--intent", "NeverHeardOf", "a name of somebody's own is carried"}},
	} {
		r := n.run(c.args...)
		if r.code != c.code || !strings.Contains(r.stderr, c.words) {
			t.Errorf("aster %.80s: want exit %d and %q: %s", strings.Join(c.args, " "), c.code, c.words, r)
		}
	}
	if inbox := inboxOf(n, "bob"); len(inbox) != 1 {
		t.Errorf("the inbox holds %d messages, want the one that is good", len(inbox))
	}
}

// TestOutboxLinesAreRefusedByName: bad lines are named beside the outbox, good ones around them are said, once each.
func TestOutboxLinesAreRefusedByName(t *testing.T) {
	n := newNode(t, "n", "")
	n.up("")
	n.declare("bob")
	dir := filepath.Join(n.home, "agents", "main-agent")
	outbox, err := os.OpenFile(filepath.Join(dir, "outbox.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(t, err)
	defer outbox.Close()
	write := func(line string) {
		t.Helper()
		_, err := outbox.WriteString(line)
		must(t, err)
	}
	good := func(i int) string {
		return fmt.Sprintf(`{"to":"bob","intent":"Request","value":{"text":"good %d"}}`, i)
	}
	bad := []string{
		`not JSON at all`, `{"to":"bob","intent":"Request"`, `[1,2]`, `"text"`, `{"to":"nobody","intent":"Request","value":{}}`,
		`{"to":"bob","to":"eve","intent":"Request","value":{}}`, "{\"say\":\"\xff\xfe\"}", `{"say":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`,
		`{"to":"bob","intent":"AgentList","value":{}}`, `{"to":7,"intent":"Request","value":{}}`,
	}
	write(good(0) + "\n")
	for _, line := range bad {
		write(line + "\n")
	}
	write(good(1) + "\n" + good(2)[:20]) // an agent is killed in the middle of a line
	count := func() map[string]int {
		texts := map[string]int{}
		for _, items := range inboxOf(n, "bob") {
			for _, it := range items {
				texts[it.Text]++
			}
		}
		return texts
	}
	eventually(t, patience, "the good lines are said", func() (bool, string) {
		got := count()
		return got["good 0"] == 1 && got["good 1"] == 1, fmt.Sprint(got)
	})
	n.kill() // and so is the node
	n.up("")
	write(good(2)[20:] + "\n")
	eventually(t, patience, "the completed line is said", func() (bool, string) {
		got := count()
		return got["good 2"] == 1, fmt.Sprint(got)
	})
	if got := count(); len(got) != 3 || got["good 0"] != 1 || got["good 1"] != 1 {
		t.Errorf("the inbox holds %v", got)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "outbox.rejected.jsonl"))
	must(t, err)
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	if len(lines) != len(bad) {
		t.Errorf("%d lines are rejected, want %d:\n%s", len(lines), len(bad), raw)
	}
	for i, line := range lines {
		var r struct {
			Line         int
			Code, Reason string
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Code == "" || r.Reason == "" || r.Line != i+2 {
			t.Errorf("rejection %d: %s (%v)", i, line, err)
		}
	}
}

// TestHostileFramesHurtNobodyElse: each is answered by name on its own socket; another client notices nothing.
func TestHostileFramesHurtNobodyElse(t *testing.T) {
	n := newNode(t, "n", "")
	n.up("")
	good := attach(n, "good")
	deep := `{"type":"CUSTOM","name":"Report","value":` + strings.Repeat("[", 60_000) + strings.Repeat("]", 60_000) + `}`
	for _, c := range []struct {
		name, frame, code string
	}{
		{"truncated", `{"type":"CUSTOM","name":"Repo`, protocol.CodeBadFrame},
		{"empty", ``, protocol.CodeBadFrame},
		{"no object", `[]`, ""},
		{"nested", deep, protocol.CodeTooDeep},
		{"not UTF-8", "{\"type\":\"CUSTOM\",\"name\":\"Report\",\"value\":{\"text\":\"\xff\xfe\"}}", ""},
		{"twice the same key", `{"type":"CUSTOM","name":"Report","name":"Delegate","value":{}}`, protocol.CodeDuplicateKey},
		{"hub's own name", `{"type":"CUSTOM","name":"AgentList","value":{}}`, protocol.CodeReservedName},
		{"wrong type", `{"type":"CUSTOM","name":"Report","value":{},"targetAgentId":7}`, protocol.CodeWrongType},
		{"unknown agent", `{"type":"CUSTOM","name":"Request","value":{},"targetAgentId":"nobody","msgId":"x1"}`, protocol.CodeUnknownAgent},
		{"verb without what it needs", `{"type":"CUSTOM","name":"ArchiveChannel","value":{}}`, protocol.CodeWrongType},
		{"too large", `{"type":"CUSTOM","name":"Report","value":"` + strings.Repeat("x", protocol.FrameBytesMax) + `"}`, "1009"},
	} {
		if got := answerTo(t, n, c.frame); !strings.Contains(got, c.code) || got == "" {
			t.Errorf("%s: want a refusal %q, got %.300s", c.name, c.code, got)
		}
	}
	strangers(t, n)
	for i := range 3 {
		id := protocol.MsgID(fmt.Sprintf("after-%d", i))
		_, err := n.api().Send(t.Context(), api.SendRequest{From: "main-agent", To: "good", Intent: protocol.Request, Value: text("hello"), MsgID: id})
		must(t, err)
		eventually(t, patience, "the good client gets its mail", func() (bool, string) { return good.times(id) == 1, "" })
	}
	good.mu.Lock()
	defer good.mu.Unlock()
	if good.conns != 1 {
		t.Errorf("the good client had to connect %d times", good.conns)
	}
}

// answerTo sends one frame on a socket of its own and returns the refusal that comes, or how the socket was closed.
func answerTo(t *testing.T, n *node, frame string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := link.Dial(ctx, socketOf(n), nil, link.Options{QueueBytes: 64 << 20})
	must(t, err)
	got := ""
	c.Send([]byte(frame))
	err = c.Serve(ctx, func(data []byte, _ bool) {
		var f struct {
			Name  string
			Value struct{ Kind, Code, Text string }
		}
		if json.Unmarshal(data, &f) == nil && f.Name == "ServerNotice" && f.Value.Kind == "refused" && got == "" {
			got = f.Value.Code + " " + f.Value.Text
			cancel()
		}
	})
	if got == "" {
		got = fmt.Sprint(err)
	}
	return got
}

// strangers knock at the mesh port with what is no libp2p, and at the board's with what is no HTTP.
func strangers(t *testing.T, n *node) {
	t.Helper()
	ports := []string{fmt.Sprintf("127.0.0.1:%d", meshPort(t, n)), strings.TrimPrefix(n.api().Node().Board, "http://")}
	noise := strings.Repeat("\x00\xff\x13BitTorrent protocol", 4000)
	for _, addr := range ports {
		for _, words := range []string{"", "GET / HTTP/1.1\r\n\r\n", "\x13/multistream/1.0.0\n\x20/noise\n" + noise, noise} {
			c, err := net.DialTimeout("tcp", addr, 5*time.Second)
			if err != nil {
				t.Errorf("dial %s: %v", addr, err)
				continue
			}
			_ = c.SetDeadline(time.Now().Add(5 * time.Second))
			_, _ = c.Write([]byte(words)) // it may be closed at any byte
			_ = c.Close()
		}
	}
	if _, err := n.status(); err != nil {
		t.Errorf("after strangers: %v", err)
	}
}

// TestSmallDisk: a store at its bound refuses new messages by name, loses nothing and goes on reading.
func TestSmallDisk(t *testing.T) {
	n := newNode(t, "n", "[store]\nbytes_max = 2000000\n")
	n.up("")
	n.declare("bob")
	var kept []protocol.MsgID
	if r := n.pipe(strings.Repeat("x", 3<<20), "send", "--to", "bob", "--from", "ann", "-"); r.code != 4 || !strings.Contains(r.stderr, "Nothing is lost") {
		t.Errorf("more than ever fits: want exit 4 and that nothing is lost: %s", r)
	}
	words := strings.Repeat("a word or two ", 3500)
	send := func() error {
		got, err := n.api().Send(t.Context(), api.SendRequest{From: "ann", To: "bob", Intent: protocol.Request, Value: text(words)})
		if err == nil {
			kept = append(kept, got.MsgID)
		}
		return err
	}
	eventually(t, patience, "it is full", func() (bool, string) {
		err := send()
		if code := client.RefusalCode(err); err != nil && code != protocol.CodeDiskFull {
			t.Fatalf("want %s: %v", protocol.CodeDiskFull, err)
		}
		return err != nil, fmt.Sprintf("%d kept", len(kept))
	})
	if r := n.pipe(words+words, "send", "--to", "bob", "--from", "ann", "-"); r.code != 4 || !strings.Contains(r.stderr, "Nothing is lost") {
		t.Errorf("want exit 4 and that nothing is lost: %s", r)
	}
	if len(kept) == 0 {
		t.Fatal("not one message found room")
	}
	check := func(when string, more int) {
		t.Helper()
		inbox := inboxOf(n, "bob")
		for _, id := range kept {
			if len(inbox[id]) != 1 {
				t.Errorf("%s: %s is in the inbox %d times", when, id, len(inbox[id]))
			}
		}
		if len(inbox) != len(kept)+more {
			t.Errorf("%s: %d messages in the inbox, want %d", when, len(inbox), len(kept)+more)
		}
		n.ok("search", "--json", "word")
		n.ok("tail", "--help")
	}
	check("full", 0)
	// However hard it is pressed, what it does not refuse it keeps, and the bound holds.
	for i := range 30 {
		if err := send(); err != nil && client.RefusalCode(err) != protocol.CodeDiskFull {
			t.Fatalf("message %d on a full disk: %v", i, err)
		}
	}
	if st := n.mustStatus(); st.DiskMax != 2_000_000 || st.Disk > 3_000_000 {
		t.Errorf("status: %d of %d", st.Disk, st.DiskMax)
	}
	n.kill()
	n.up("")
	check("full and killed", 0)
	n.kill()
	n.configure("[store]\nbytes_max = 400000000\n")
	n.up("")
	n.ok("send", "--to", "bob", "--from", "ann", "room again")
	check("with more room", 1)
}

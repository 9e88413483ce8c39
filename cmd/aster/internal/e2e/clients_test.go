package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// ws is the package for Nodes that have no WebSocket of their own.
const ws = "ws@8.18.3"

// language is a way to run clients that were written without us.
type language struct {
	name string
	argv func(t *testing.T, script string) []string // script without its ending
}

var languages = []language{{"node", nodeArgv}, {"python", pythonArgv}}

// lacking fails in CI, where a step installs it, and skips elsewhere.
func lacking(t *testing.T, how string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(how)
	}
	t.Skip(how)
}

func nodeArgv(t *testing.T, script string) []string {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		lacking(t, "no Node: apt-get install -y nodejs")
	}
	script += ".mjs"
	if exec.Command("node", "-e", "WebSocket").Run() == nil {
		return []string{"node", script}
	}
	if exec.Command("node", "--experimental-websocket", "-e", "WebSocket").Run() == nil {
		return []string{"node", "--experimental-websocket", "--no-warnings", script}
	}
	raw, err := os.ReadFile(script)
	must(t, err)
	dir := t.TempDir() // packages are looked for beside the script
	script = filepath.Join(dir, filepath.Base(script))
	must(t, os.WriteFile(script, raw, 0o600))
	if exec.Command("node", "-e", `require("ws")`).Run() != nil {
		out, err := exec.Command("npm", "install", "--no-audit", "--no-fund", "--prefix", dir, ws).CombinedOutput()
		if err != nil {
			lacking(t, fmt.Sprintf("a Node without WebSocket, and npm install %s: %v %.300s. Or: apt-get install -y node-ws", ws, err, out))
		}
	}
	return []string{"node", script}
}

func pythonArgv(t *testing.T, script string) []string {
	t.Helper()
	for _, python := range []string{"python3", "/usr/bin/python3"} { // Debian's packages are for Debian's own
		if exec.Command(python, "-c", "import websockets").Run() == nil {
			return []string{python, script + ".py"}
		}
	}
	lacking(t, "no websockets for Python: apt-get install -y python3-websockets")
	return nil
}

// mainHere names the agent of the founding node: it is main before anything attached.
const mainHere = "agent = \"main-agent\"\n"

// did is one line of a client.
type did struct {
	Did, Role, From, RoomID, Text, Speaker, Why string
	Keyed, Complete                             bool
	Labels                                      []string
	Name                                        string
	Code, Shown, Bytes, Began                   int
	MsgID                                       protocol.MsgID
}

// foreign is a running client of another language.
type foreign struct {
	t     *testing.T
	stdin io.Writer
	lines chan string
	said  strings.Builder // stderr
	ended chan error
	past  []string
}

func start(t *testing.T, l language, script string, args ...string) *foreign {
	t.Helper()
	argv := append(l.argv(t, script), args...)
	f := &foreign{t: t, lines: make(chan string, 1000), ended: make(chan error, 1)}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr, cmd.Stderr = dieWithUs(), &f.said
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, startProcess(cmd))
	f.stdin = in
	done := make(chan struct{})
	go func() {
		defer close(done)
		for s := bufio.NewScanner(out); s.Scan(); {
			f.lines <- s.Text()
		}
		close(f.lines)
		f.ended <- cmd.Wait()
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-done }) // gone already is as good
	return f
}

// line is the client's next one.
func (f *foreign) line(want string) string {
	f.t.Helper()
	select {
	case line, ok := <-f.lines:
		if !ok {
			f.t.Fatalf("the client ended and should have said %s: %v; so far %q\n%s", want, <-f.ended, f.past, f.said.String())
		}
		f.past = append(f.past, line)
		return line
	case <-time.After(patience):
		f.t.Fatalf("the client does not say %s; so far %q", want, f.past)
	}
	return ""
}

func (f *foreign) next(want string) did {
	f.t.Helper()
	var d did
	line := f.line(want)
	if err := json.Unmarshal([]byte(line), &d); err != nil || d.Did != want {
		f.t.Fatalf("want %s, the client says %s (%v)\nbefore: %q", want, line, err, f.past)
	}
	return d
}

func (f *foreign) tell(line string) {
	f.t.Helper()
	_, err := io.WriteString(f.stdin, line+"\n")
	must(f.t, err)
}

// TestClientsOfOtherLanguages: small clients written from the wire contract alone join with a key, take a task and report,
// acknowledge, speak in a room, ask a person, come back, and are out within a second when their key is revoked; at the
// node of main, and at another one. Each takes an attachment of 20 MiB and gives one, cut off in the middle. Guards: B17,
// B21, B50, KB5, KF11.
func TestClientsOfOtherLanguages(t *testing.T) {
	for _, names := range [][]string{{"devbox"}, {"devbox", "mac-mini"}} {
		t.Run(fmt.Sprintf("%d nodes", len(names)), func(t *testing.T) {
			nodes := meshOf(t, map[string]string{"devbox": mainHere}, names...)
			for _, l := range languages {
				t.Run(l.name, func(t *testing.T) { wholeLife(t, l, nodes) })
				t.Run(l.name+" silent", func(t *testing.T) { silentLife(t, l, nodes[0], nodes[len(nodes)-1]) })
			}
		})
	}
}

// wholeLife runs a client at the last node; all that it deals with is at the first.
func wholeLife(t *testing.T, l language, nodes []*node) {
	home, at := nodes[0], nodes[len(nodes)-1]
	id := l.name + "-client"
	key := home.ok("key", "issue", "--kind", "upstream", "--label", id)
	atBoard := listen(t, socketOf(home), "")
	var f *foreign
	eventually(t, patience, "the key is known at "+at.name, func() (bool, string) {
		out := at.ok("key", "list")
		return strings.Contains(out, id), out
	})
	f = start(t, l, "testdata/client", socketOf(at)+"?upstreamKey="+key, id, "main-agent", "all")
	if d := f.next("hello"); d.Role != "upstream" || !d.Keyed {
		t.Errorf("hello: %+v", d)
	}
	home.knows(protocol.AgentID(id))

	r := home.run("delegate", "--from", "main-agent", "--to", id, "--wait", "--json", "--timeout", "40s", "look at it")
	lines := followLines(t, r.stdout)
	if r.code != 0 || len(lines) == 0 || lines[len(lines)-1].Outcome != "done" {
		t.Fatalf("delegate: %s", r)
	}
	eventually(t, patience, "the task is processed", func() (bool, string) {
		out := home.ok("show", string(lines[0].MsgID), "--json")
		return strings.Contains(out, `"processed"`), out
	})
	for line := range strings.Lines(home.ok("inbox", "--agent", "main-agent", "--json")) {
		var it api.InboxItem
		must(t, json.Unmarshal([]byte(line), &it))
		home.ok("ack", "--agent", "main-agent", string(it.MsgID))
	}
	if d := f.next("report"); d.From != "main-agent" {
		t.Errorf("the task came from %q", d.From)
	}

	attachments(t, home, f, id)

	room := f.next("room").RoomID
	atBoard.hears("the client's words in the room", func(h heard) bool {
		return h.RoomID == room && h.AgentID == protocol.AgentID(id) && strings.Contains(string(h.Value), id+" in the room")
	})
	atBoard.say(`{"type":"CUSTOM","name":"Note","roomId":%q,"msgId":"said-%s","value":{"text":"heard you"}}`, room, room)
	if d := f.next("heard"); d.Text != "heard you" || d.Speaker != "human-operator" {
		t.Errorf("in the room: %+v", d)
	}
	f.next("left")
	atBoard.hears("that it left", func(h heard) bool { return h.Name == "RoomLeft" })

	atBoard.hears("the question", func(h heard) bool { return h.Name == "SelectionPrompt" })
	atBoard.say(`{"type":"CUSTOM","name":"SelectionAnswer","msgId":"answer-%s","value":{"promptId":"%s-q","selectedLabels":["blue"]}}`, id, id)
	if d := f.next("answered"); !slices.Equal(d.Labels, []string{"blue"}) {
		t.Errorf("the answer: %q", d.Labels)
	}

	f.next("away")
	home.ok("send", "--from", "main-agent", "--to", id, "--intent", "Request", "while you were away")
	f.tell("back")
	f.next("hello")
	if d := f.next("mail"); d.Text != "while you were away" {
		t.Errorf("the mail: %q", d.Text)
	}

	began := time.Now()
	revoke(home, id)
	if d := f.next("revoked"); d.Code != 4003 || !strings.Contains(d.Why, "revoked") {
		t.Errorf("revoked: %+v", d)
	}
	if took := time.Since(began); took > promised(2*time.Second) { // a second, and that of the command
		t.Errorf("it was out after %s", took)
	}
	if d := f.next("refused"); d.Code != 4003 || d.Shown != 0 {
		t.Errorf("with a dead key again: %+v", d)
	}
	if err := <-f.ended; err != nil {
		t.Errorf("the client: %v\n%s", err, f.said.String())
	}
}

// attachments sends a client 20 MiB and takes them back, the other way round.
func attachments(t *testing.T, home *node, f *foreign, id string) {
	t.Helper()
	const size = 20 << 20
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(len(id))}).Read(data)
	dir := t.TempDir()
	file := filepath.Join(dir, "big.bin")
	must(t, os.WriteFile(file, data, 0o600))
	home.ok("send", "--from", "main-agent", "--to", id, "--attach", file, "here it is")
	if d := f.next("fetched"); d.Bytes != size || d.Name != "big.bin" {
		t.Errorf("the client has %+v", d)
	}
	f.next("hello")
	gave := f.next("gave")
	if gave.Began != 30 || !gave.Complete {
		t.Errorf("after the cut: %+v", gave)
	}
	eventually(t, patience, "the report is at "+home.name, func() (bool, string) {
		r := home.run("show", string(gave.MsgID), "--save", filepath.Join(dir, "back"))
		return r.code == 0, r.String()
	})
	back, err := os.ReadFile(filepath.Join(dir, "back", "back.bin"))
	must(t, err)
	slices.Reverse(data)
	if !bytes.Equal(back, data) {
		t.Errorf("%d bytes came back, not those that were given", len(back))
	}
}

// revoke ends the key of a label, at once.
func revoke(n *node, label string) {
	n.t.Helper()
	for line := range strings.Lines(n.ok("key", "list", "--json")) {
		var k struct{ Label, Ref string }
		must(n.t, json.Unmarshal([]byte(line), &k))
		if k.Label == label {
			n.ok("key", "revoke", k.Ref)
			return
		}
	}
	n.t.Fatalf("%s has no key %s", n.name, label)
}

// silentLife is DLV-11 as a whole: it never acknowledges, connects 20 times more, and is given each of 100 messages once.
func silentLife(t *testing.T, l language, home, at *node) {
	id := l.name + "-silent"
	f := start(t, l, "testdata/client", socketOf(at), id, "main-agent", "silent")
	f.next("hello")
	home.knows(protocol.AgentID(id))
	got := map[protocol.MsgID]int{}
	sent := 0
	send := func(n int) {
		for range n {
			sent++
			_, err := home.api().Send(t.Context(), api.SendRequest{From: "main-agent", To: protocol.AgentID(id), Intent: protocol.Request, Value: text(fmt.Sprint("number ", sent))})
			must(t, err)
		}
	}
	take := func(upTo int) {
		for len(got) < upTo {
			d := f.next("got")
			got[d.MsgID]++
		}
	}
	for again := range 20 {
		if again%2 == 0 { // while it is there
			send(5)
			take(sent)
		}
		f.tell("again")
		f.amid("away", got)
		if again%2 == 1 { // while it is away, or as it comes
			send(5)
		}
		f.amid("hello", got)
		take(sent)
	}
	f.tell("end")
	f.amid("away", got)
	for id, n := range got {
		if n != 1 {
			t.Errorf("%s was given %d times", id, n)
		}
	}
	if len(got) != 100 || sent != 100 {
		t.Errorf("%d messages sent, %d came", sent, len(got))
	}
}

// amid is next among messages, which are counted.
func (f *foreign) amid(want string, got map[protocol.MsgID]int) {
	f.t.Helper()
	for {
		var d did
		line := f.line(want)
		if err := json.Unmarshal([]byte(line), &d); err != nil || d.Did != want && d.Did != "got" {
			f.t.Fatalf("want %s, the client says %s (%v)", want, line, err)
		}
		if d.Did == want {
			return
		}
		got[d.MsgID]++
	}
}

// TestExampleAgentsWork runs the agents of examples/ with a key: they report, come back after their node was away, and stop
// when their key is revoked.
func TestExampleAgentsWork(t *testing.T) {
	home := newNode(t, "devbox", mainHere)
	home.up("")
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			id := "example-" + l.name
			key := home.ok("key", "issue", "--kind", "upstream", "--label", id)
			f := start(t, l, "../../../../examples/agent", socketOf(home)+"?upstreamKey="+key, id)
			f.says(id + " is upstream")
			work := func(task string) {
				t.Helper()
				r := home.run("delegate", "--from", "main-agent", "--to", id, "--wait", "--timeout", "40s", task)
				if r.code != 0 || !strings.Contains(r.stdout, "done") {
					t.Errorf("delegate: %s", r)
				}
				f.says("main-agent asks: " + task)
			}
			work("the first thing")
			address := strings.TrimPrefix(home.api().Node().Board, "http://")
			home.kill()
			home.up("", "--board", address)
			f.says(id + " is upstream")
			work("the second thing")
			withFile(t, home, f, id)
			revoke(home, id)
			select {
			case err := <-f.ended:
				var code *exec.ExitError
				if !errors.As(err, &code) || code.ExitCode() != 1 || !strings.Contains(f.said.String(), "refused: ") {
					t.Errorf("its key is dead: %v, %q", err, f.said.String())
				}
			case <-time.After(patience):
				t.Error("it goes on with a dead key")
			}
		})
	}
}

// withFile gives an example a file of 20 MiB with its task, which it gives back.
func withFile(t *testing.T, home *node, f *foreign, id string) {
	t.Helper()
	data := bytes.Repeat([]byte("twenty bytes of it. "), 1<<20)
	dir := t.TempDir()
	file := filepath.Join(dir, "task.bin")
	must(t, os.WriteFile(file, data, 0o600))
	home.ok("delegate", "--from", "main-agent", "--to", id, "--attach", file, "the file")
	f.says("main-agent asks: the file")
	var report api.InboxItem
	eventually(t, patience, "the report with the file", func() (bool, string) {
		out := home.ok("inbox", "--agent", "main-agent", "--json")
		for line := range strings.Lines(out) {
			var it api.InboxItem
			must(t, json.Unmarshal([]byte(line), &it))
			if it.From == protocol.AgentID(id) && len(it.Blobs) == 1 {
				report = it
			}
		}
		return report.MsgID != "", out
	})
	home.ok("show", string(report.MsgID), "--save", dir) // beside the first
	back, err := os.ReadFile(filepath.Join(dir, "task-2.bin"))
	must(t, err)
	if !bytes.Equal(back, data) {
		t.Errorf("%d bytes came back, not those that were given", len(back))
	}
}

func (f *foreign) says(want string) {
	f.t.Helper()
	if line := f.line(want); line != want {
		f.t.Fatalf("want %q, it says %q\n%s", want, line, f.said.String())
	}
}

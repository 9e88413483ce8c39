package demo_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

const readme = "../../../../README.md"

// patience is for what has no promised time, on a busy machine.
const patience = 2 * time.Minute

var builtIn string // set by built

// built is the program, made once for all tests here.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "aster-firstrun-")
	if err != nil {
		return "", err
	}
	builtIn = dir
	path := filepath.Join(dir, "aster")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	out, err := exec.Command("go", "build", "-o", path, "github.com/aster-mesh/aster/cmd/aster").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build aster: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if builtIn != "" {
		_ = os.RemoveAll(builtIn) // a temporary folder; the system clears what is left
	}
	os.Exit(code)
}

func aster(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the program and starts nodes")
	}
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// shown is a demo that was started as a person does.
type shown struct {
	lines []string
	path  string // of the program
	cmd   *exec.Cmd
	own   string // the user's folder
	err   bytes.Buffer
	more  chan string
}

const lastLine = "Ctrl-C stops everything and removes its files"

// show starts the demo and returns when it said its last line.
func show(t *testing.T) *shown {
	t.Helper()
	return showIn(t, t.TempDir())
}

// prepare is a demo to be started for a user whose folder is own.
func prepare(t *testing.T, own string) *shown {
	t.Helper()
	s := &shown{path: aster(t), own: own, more: make(chan string, 100)}
	goCache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.Command(s.path, "demo")
	s.cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "XDG_") })
	s.cmd.Env = append(s.cmd.Env, "HOME="+s.own, "USERPROFILE="+s.own, "LocalAppData="+s.own, "GOCACHE="+strings.TrimSpace(string(goCache)))
	s.cmd.Stderr = &s.err
	return s
}

// showIn is show for a user whose folder is own.
func showIn(t *testing.T, own string) *shown {
	t.Helper()
	s := prepare(t, own)
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.more)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			s.more <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			s.end(t)
		}
	})
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		select {
		case line, ok := <-s.more:
			if !ok {
				err := s.cmd.Wait()
				t.Fatalf("the demo ended: %v\n%s\n%s", err, strings.Join(s.lines, "\n"), s.err.String())
			}
			if s.lines = append(s.lines, line); line == lastLine {
				return s
			}
		case <-late.C:
			t.Fatalf("the demo did not get to its end:\n%s\n%s", strings.Join(s.lines, "\n"), s.err.String())
		}
	}
}

// end interrupts the demo and returns its exit code.
func (s *shown) end(t *testing.T) int {
	t.Helper()
	if runtime.GOOS == "windows" {
		_ = s.cmd.Process.Kill()
	} else if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	for line := range s.more {
		t.Errorf("said after the end: %q", line)
	}
	_ = s.cmd.Wait()
	return s.cmd.ProcessState.ExitCode()
}

// left is what the demo did not take away.
func (s *shown) left(t *testing.T) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(s.own, func(path string, d os.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), "demo-") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return paths
}

// part is what stands behind a pattern in the output.
func (s *shown) part(t *testing.T, pattern string) string {
	t.Helper()
	for _, l := range s.lines {
		if found := regexp.MustCompile(pattern).FindStringSubmatch(l); found != nil {
			return found[1]
		}
	}
	t.Fatalf("no line like %s in\n%s", pattern, strings.Join(s.lines, "\n"))
	return ""
}

func TestFirstRunTranscripts(t *testing.T) {
	blocks := transcripts(t, readme)
	t.Run("demo", func(t *testing.T) {
		first := blocks[0][0]
		if first.text != "go run ./cmd/aster demo" || first.want[len(first.want)-1] != lastLine {
			t.Fatalf("%s is not the demo's transcript", first.at)
		}
		s := show(t)
		if err := (ids{}).follow(first.want, s.lines); err != nil {
			t.Errorf("%s: %v\nin\n%s", first.at, err, strings.Join(s.lines, "\n"))
		}
		// The same transcript must not pass where the work is missing.
		without := slices.DeleteFunc(slices.Clone(s.lines), func(l string) bool { return strings.Contains(l, "done in") })
		if (ids{}).follow(first.want, without) == nil {
			t.Error("a demo in which nothing was done matches, too")
		}
		seesTheBoard(t, s)
		fetchesTheCommit(t, s)
		if code := s.end(t); code != 0 || s.err.Len() > 0 {
			t.Errorf("interrupted: exit %d, stderr %q", code, s.err.String())
		}
		if left := s.left(t); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	})
	t.Run("tests", func(t *testing.T) { ciRunsWhatTheReadmeSays(t, blocks[1][0].text) })
	t.Run("two machines", func(t *testing.T) {
		twoMachines(t, append(blocks[2:], transcripts(t, "../../../../docs/when-a-node-goes.md")...))
	})
}

// seesTheBoard opens the link as a browser does and asks the page's own first question.
func seesTheBoard(t *testing.T, s *shown) {
	t.Helper()
	link := s.part(t, `^board +(http://\S+) `)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, Timeout: patience}
	defer browser.CloseIdleConnections()
	if code, page := get(t, browser, link); code != http.StatusOK || !strings.Contains(string(page), "<html") {
		t.Fatalf("the board's link: %d\n%.300s", code, page)
	}
	base := regexp.MustCompile(`^http://[^/]+`).FindString(link)
	code, raw := get(t, browser, base+api.Prefix+"/snapshot")
	var shot api.Snapshot
	if err := json.Unmarshal(raw, &shot); err != nil || code != http.StatusOK {
		t.Fatalf("snapshot: %d, %v\n%.300s", code, err, raw)
	}
	roles := map[string]protocol.Role{}
	for _, p := range shot.Peers {
		roles[p.Name] = p.Role
		if p.Peer == shot.Status.Main.Peer {
			roles[p.Name] = protocol.RoleMain
		}
		if !p.Self && !p.Linked {
			t.Errorf("%s is not linked", p.Name)
		}
	}
	for name, want := range map[string]protocol.Role{"devbox": "main", "mac-mini": "local", "build-1": "upstream", "guest": "collab"} {
		if roles[name] != want || len(roles) != 4 {
			t.Errorf("%s is %q, want %q, among %d", name, roles[name], want, len(roles))
		}
	}
	at := slices.IndexFunc(shot.Tasks, func(k api.Task) bool { return k.Title == "make ./cart pass" })
	if at < 0 || shot.Tasks[at].State != api.TaskDone || len(shot.Tasks[at].Commit) != 40 || shot.Tasks[at].To != "mac-mini" {
		t.Errorf("the task is not there as done with a commit: %+v", shot.Tasks)
	}
	if code, _ := get(t, &http.Client{Timeout: patience}, link); code == http.StatusOK {
		t.Error("the link opens the board twice")
	}
}

func get(t *testing.T, c *http.Client, url string) (int, []byte) {
	t.Helper()
	res, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, raw
}

// fetchesTheCommit types the line that begins with "in", in the folder that it names.
func fetchesTheCommit(t *testing.T, s *shown) {
	t.Helper()
	at := s.part(t, `^in +(.*): aster `)
	fetch := strings.Fields(s.part(t, `: aster (task fetch .*)$`))
	commit := s.part(t, `^mac-mini .*commit ([0-9a-f]{7})$`)
	id := s.part(t, `-> mac-mini +Delegate t-(\S+) `)
	expand := func(path string) string {
		if rest, ok := strings.CutPrefix(path, "~"); ok {
			return s.own + rest
		}
		return path
	}
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = expand(at)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	if has := exec.Command("git", "-C", expand(at), "cat-file", "-e", commit); has.Run() == nil {
		t.Error("the commit is in the clone before it was fetched")
	}
	fetch[len(fetch)-1] = expand(fetch[len(fetch)-1])
	run(s.path, fetch...)
	change := run("git", "show", "aster/"+id)
	for _, want := range []string{"commit " + commit, "Author: mac-mini", "-\t\ttotal += it.Cents\n", "+\t\ttotal += count * it.Cents\n"} {
		if !strings.Contains(change, want) {
			t.Errorf("git show has no %q:\n%s", want, change)
		}
	}
}

func ciRunsWhatTheReadmeSays(t *testing.T, command string) {
	raw, err := os.ReadFile("../../../../.ci/run")
	if os.IsNotExist(err) {
		t.Skip("this copy has no .ci/run")
	}
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(raw), command) {
		t.Errorf(".ci/run does not run %q, which the README names", command)
	}
}

// hosts are the two machines of the walk-through, on this one: a home and a folder each.
type hosts struct {
	t      *testing.T
	known  ids
	dirs   map[string]string
	invite string
}

func twoMachines(t *testing.T, blocks [][]typed) {
	path := aster(t)
	if runtime.GOOS == "windows" {
		t.Skip("the commands are for a Unix shell")
	}
	if !onANetwork(t) {
		t.Skip("this machine has no network to invite from")
	}
	h := &hosts{t: t, known: ids{}, dirs: map[string]string{}}
	t.Setenv("PATH", filepath.Dir(path)+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, host := range []string{"devbox", "mac-mini"} {
		h.dirs[host] = t.TempDir()
		h.shell(host, "git init -q . && git config user.name devbox && git config user.email devbox@localhost && git commit -q --allow-empty -m start", "")
	}
	home := filepath.Join(h.dirs["mac-mini"], ".local/state/aster")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for host := range h.dirs {
			h.shell(host, "aster down", "")
		}
	})
	for _, block := range blocks {
		for _, c := range block {
			if strings.HasPrefix(c.text, "cat ") { // what the owner wrote before
				if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(strings.Join(c.want, "\n")+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if strings.Contains(c.text, "--to echo") {
				h.startEcho()
			}
			h.type_(c)
			if t.Failed() {
				return
			}
		}
	}
}

func onANetwork(t *testing.T) bool {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(addrs, func(a net.Addr) bool {
		ip, ok := a.(*net.IPNet)
		return ok && ip.IP.IsGlobalUnicast()
	})
}

// type_ types one command on its host and compares.
func (h *hosts) type_(c typed) {
	h.t.Helper()
	command := h.known.actual(c.text)
	stdin := ""
	if strings.Contains(command, "--join -") {
		stdin = h.invite + "\n"
		c.want = slices.DeleteFunc(c.want, func(l string) bool { return strings.HasPrefix(l, "paste the invite") }) // said on a terminal
	}
	out, code := h.shell(c.host, command, stdin)
	lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
	if out == "" {
		lines = nil
	}
	for _, l := range lines {
		if strings.HasPrefix(l, "aster1-") {
			h.invite = l
		}
	}
	if err := h.known.follow(c.want, lines); err != nil || code != 0 {
		h.t.Errorf("%s: %s$ %s\nexit %d, %v\nin\n%s", c.at, c.host, command, code, err, out)
	}
}

// shell runs a line as a person's shell would on that host, with both outputs in one.
func (h *hosts) shell(host, line, stdin string) (string, int) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir = h.dirs[host]
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "ASTER_") || strings.HasPrefix(kv, "XDG_")
	})
	cmd.Env = append(cmd.Env, "HOME="+h.dirs[host], "ASTER_HOME="+filepath.Join(h.dirs[host], ".local/state/aster"), "ASTER_NAME="+host)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		h.t.Fatalf("%s$ %s hangs\n%s", host, line, out)
	}
	if err != nil && cmd.ProcessState == nil {
		h.t.Fatalf("%s$ %s: %v", host, line, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// startEcho runs the README's own agent on devbox and returns when mac-mini knows it.
func (h *hosts) startEcho() {
	h.t.Helper()
	raw, err := os.ReadFile(readme)
	if err != nil {
		h.t.Fatal(err)
	}
	program := regexp.MustCompile("(?s)```js\n(.*?)```").FindSubmatch(raw)
	if program == nil {
		h.t.Fatal("the README has no agent in JavaScript")
	}
	path := filepath.Join(h.t.TempDir(), "echo.mjs")
	if err := os.WriteFile(path, program[1], 0o600); err != nil {
		h.t.Fatal(err)
	}
	args := []string{path}
	if out, err := exec.Command("node", "--experimental-websocket", "-e", "WebSocket").CombinedOutput(); err == nil {
		args = []string{"--experimental-websocket", "--no-warnings", path} // Node 20 has it behind this flag
	} else if exec.Command("node", "-e", "WebSocket").Run() != nil {
		h.t.Skipf("no Node with WebSocket here: %.100s", out)
	}
	var status struct{ Address string }
	if runtime.GOOS != "linux" {
		h.t.Skip("its address needs a token here")
	}
	out, _ := h.shell("devbox", "aster status --json", "")
	if err := json.Unmarshal([]byte(out), &status); err != nil {
		h.t.Fatalf("status: %v\n%s", err, out)
	}
	cmd := exec.Command("node", append(args, "ws"+strings.TrimPrefix(status.Address, "http")+"/ws")...)
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	h.until("mac-mini", "aster agents", "echo")
}

// until types a command again and again until its output has a word.
func (h *hosts) until(host, line, word string) {
	h.t.Helper()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for began := time.Now(); ; <-look.C {
		out, _ := h.shell(host, line, "")
		if strings.Contains(out, word) {
			return
		}
		if time.Since(began) > patience {
			h.t.Fatalf("%s$ %s never shows %s:\n%s", host, line, word, out)
		}
	}
}

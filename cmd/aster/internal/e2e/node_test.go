package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// node is one home with the process that runs on it now and then.
type node struct {
	t       *testing.T
	name    string
	home    string
	said    string                            // file of everything that its processes said on stderr
	prefix  []string                          // argv in front of the binary: another network namespace
	passed  []*os.File                        // files from 3 on that up is started with
	program string                            // that up runs instead of the one that was built
	env     []string                          // of up, beside ours
	reach   func(api.NodeFile) *client.Client // how this process gets at its API; nil: as its commands do

	// Changed by start and kill, which one goroutine calls.
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process is gone

	// Guarded by mu: the client is read while the node is restarted.
	mu     sync.Mutex
	client *client.Client
	ready  api.Ready
}

// newNode makes a home. config is its config.toml, if any.
func newNode(t *testing.T, name, config string) *node {
	t.Helper()
	if err := build(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	n := &node{t: t, name: name, home: filepath.Join(dir, "home"), said: filepath.Join(dir, "stderr")}
	must(t, os.Mkdir(n.home, 0o700))
	n.configure(config)
	t.Cleanup(func() {
		if t.Failed() {
			n.show()
		}
		n.kill()
		n.tidyRuns()
		n.inspect()
	})
	return n
}

func (n *node) configure(config string) {
	n.t.Helper()
	if config != "" {
		must(n.t, os.WriteFile(filepath.Join(n.home, "config.toml"), []byte(config), 0o600))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// argv is a command line of this node's home.
func (n *node) argv(args ...string) []string {
	binary := built
	if len(args) > 0 && args[0] == "up" {
		if binary = nodeBuilt; n.program != "" {
			binary = n.program
		}
	}
	return append(append(append([]string{}, n.prefix...), binary, "--home", n.home), args...)
}

// run is one command of this node's home.
func (n *node) run(args ...string) result { n.t.Helper(); return n.pipe("", args...) }

// pipe is run with something on stdin. The result's hints are without --home, which they have since the command had it.
func (n *node) pipe(stdin string, args ...string) result {
	n.t.Helper()
	r := command(n.t, stdin, n.argv(args...)...)
	return result{r.code, n.plain(r.stdout), n.plain(r.stderr)}
}

func (n *node) plain(text string) string {
	return strings.ReplaceAll(text, "aster --home "+n.home+" ", "aster ")
}

// ok is run for what must succeed; it returns stdout.
func (n *node) ok(args ...string) string {
	n.t.Helper()
	r := n.run(args...)
	if r.code != 0 {
		n.t.Fatalf("%s: aster %s: %s", n.name, strings.Join(args, " "), r)
	}
	return strings.TrimSpace(r.stdout)
}

// up starts the node and waits until it is ready. A token joins its mesh.
func (n *node) up(token string, more ...string) api.Ready {
	n.t.Helper()
	ready, r := n.start(token, more...)
	if ready == nil {
		n.t.Fatalf("%s does not come up: %s", n.name, r)
	}
	return *ready
}

// start runs aster up in the foreground. Where that ends before it is ready its result is returned instead.
func (n *node) start(token string, more ...string) (*api.Ready, result) {
	n.t.Helper()
	args := append([]string{"up", "--json", "--name", n.name, "--board", "127.0.0.1:0"}, more...)
	if token != "" {
		args = append(args, "--join", "-")
	}
	argv := n.argv(args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin = strings.NewReader(token + "\n")
	cmd.SysProcAttr, cmd.ExtraFiles = dieWithUs(), n.passed
	if len(n.env) > 0 {
		cmd.Env = append(os.Environ(), n.env...)
	}
	stderr, err := os.OpenFile(n.said, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	must(n.t, err)
	from, err := stderr.Seek(0, io.SeekEnd)
	must(n.t, err)
	cmd.Stderr = stderr
	stdout, w, err := os.Pipe()
	must(n.t, err)
	cmd.Stdout = w
	must(n.t, startProcess(cmd))
	must(n.t, errors.Join(w.Close(), stderr.Close()))
	n.cmd, n.ended = cmd, make(chan struct{})
	ended := n.ended
	go func() {
		_ = cmd.Wait() // how it ended is in its state
		close(ended)
	}()
	line := make(chan string, 1)
	go func() {
		defer stdout.Close()
		out := bufio.NewReader(stdout)
		first, _ := out.ReadString('\n')
		line <- first
		_, _ = io.Copy(io.Discard, out)
	}()
	var first string
	select {
	case first = <-line:
	case <-time.After(patience):
		n.t.Fatalf("%s: neither ready nor ended after %s", n.name, patience)
	}
	var ready api.Ready
	if json.Unmarshal([]byte(first), &ready) == nil && ready.Event == "ready" {
		c, err := client.Open(n.home)
		must(n.t, err)
		if n.reach != nil {
			c = n.reach(c.Node())
		}
		n.mu.Lock()
		n.client, n.ready = c, ready
		n.mu.Unlock()
		return &ready, result{}
	}
	select {
	case <-ended:
	case <-time.After(patience):
		n.t.Fatalf("%s: said %q and goes on", n.name, first)
	}
	n.cmd = nil
	all, err := os.ReadFile(n.said)
	must(n.t, err)
	return nil, result{cmd.ProcessState.ExitCode(), first, n.plain(string(all[from:]))}
}

// kill is kill -9 of the node's process, and of nothing else. It returns when the process is gone.
func (n *node) kill() {
	if n.cmd == nil {
		return
	}
	_ = n.cmd.Process.Kill() // gone already is as good
	<-n.ended
	n.cmd = nil
}

// down asks the node to end and waits for it.
func (n *node) down() {
	n.t.Helper()
	n.ok("down")
	select {
	case <-n.ended:
		n.cmd = nil
	case <-time.After(patience):
		n.t.Fatalf("%s goes on after aster down", n.name)
	}
}

func (n *node) api() *client.Client {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.client
}

func (n *node) status() (api.Status, error) { return n.api().Status(n.t.Context()) }

func (n *node) mustStatus() api.Status {
	n.t.Helper()
	st, err := n.status()
	if err != nil {
		n.t.Fatalf("%s: status: %v", n.name, err)
	}
	return st
}

// invite returns a token.
func (n *node) invite(args ...string) string {
	n.t.Helper()
	return n.ok(append([]string{"invite"}, args...)...)
}

// linked waits until this node has links with n others.
func (n *node) linked(to int) time.Duration {
	n.t.Helper()
	return eventually(n.t, patience, fmt.Sprintf("%s linked with %d", n.name, to), func() (bool, string) {
		st, err := n.status()
		return err == nil && st.Linked == to, fmt.Sprintf("linked %d of %d, %v", st.Linked, st.Nodes, err)
	})
}

// knows waits until the agent is in this node's roster.
func (n *node) knows(agent protocol.AgentID) {
	n.t.Helper()
	eventually(n.t, patience, fmt.Sprintf("%s knows %s", n.name, agent), func() (bool, string) {
		all, err := n.api().Agents(n.t.Context())
		for _, a := range all {
			if a.ID == agent {
				return true, ""
			}
		}
		return false, fmt.Sprint(all, err)
	})
}

// declare makes an agent of this node known: it has an inbox from now on.
func (n *node) declare(agent string) {
	n.t.Helper()
	eventually(n.t, patience, n.name+" declares "+agent, func() (bool, string) {
		r := n.run("wait", "--agent", agent, "--new", "--timeout", "20ms")
		if r.code != 5 {
			return false, r.String()
		}
		listed := n.ok("agents", "--json") // a wait that ended at once may not have got so far
		return strings.Contains(listed, `"id":"`+agent+`"`), listed
	})
}

// say sends a message with an id of the caller's, again and again until the node says logged: it may be down meanwhile.
func (n *node) say(ctx context.Context, req api.SendRequest) (api.SendResult, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		got, err := n.api().Send(ctx, req)
		if err == nil || client.RefusalCode(err) != "" && client.RefusalCode(err) != client.CodeNotReady && client.RefusalCode(err) != client.CodeInternal {
			return got, err
		}
		select {
		case <-ctx.Done():
			return got, errors.Join(context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

func text(s string) json.RawMessage {
	raw, _ := json.Marshal(map[string]string{"text": s}) // texts always encode
	return raw
}

// show prints what the node said, as far as anybody reads it.
func (n *node) show() {
	for _, file := range []string{n.said, filepath.Join(n.home, "log")} {
		raw, err := os.ReadFile(file)
		if err != nil || len(raw) == 0 {
			continue
		}
		const tail = 12 << 10
		if len(raw) > tail {
			raw = raw[len(raw)-tail:]
		}
		n.t.Logf("%s, %s:\n%s", n.name, filepath.Base(file), raw)
	}
}

// inspect fails the test for what no node may ever say.
func (n *node) inspect() {
	raw, err := os.ReadFile(n.said)
	if err != nil {
		return // it never ran
	}
	for _, bad := range []string{"DATA RACE", "panic:", "fatal error:"} {
		if at := bytes.Index(raw, []byte(bad)); at >= 0 {
			n.t.Errorf("%s: %s", n.name, raw[at:min(len(raw), at+6000)])
		}
	}
}

// meshOf starts names[0] as the founder and joins the others to it as locals, all linked with all.
func meshOf(t *testing.T, configs map[string]string, names ...string) []*node {
	t.Helper()
	var all []*node
	for i, name := range names {
		n := newNode(t, name, configs[name])
		token := ""
		if i > 0 {
			token = all[0].invite()
		}
		n.up(token)
		all = append(all, n)
	}
	began := time.Now()
	for _, n := range all {
		n.linked(len(all) - 1)
	}
	t.Logf("%d nodes linked %s after the last was up", len(all), time.Since(began).Round(time.Millisecond))
	return all
}

package demo

import (
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
	"sync/atomic"
	"time"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// Node is one of the four. Name, Role and Home are fixed; Client and Ready are set once it is ready.
type Node struct {
	Name   string
	Role   protocol.Role
	Home   string
	Client *client.Client
	Ready  api.Ready

	cmd      *exec.Cmd
	said     lastWords
	stopping atomic.Bool
	gone     chan struct{} // closed when the process has ended and everything it said was read
	exit     error         // of the process; to be read after gone
}

// prepare makes the home. The two that work get a runner, in the file where people look for it.
func (n *Node) prepare(self string) error {
	if err := os.Mkdir(n.Home, 0o700); err != nil {
		return fmt.Errorf("make home of %s: %w", n.Name, err)
	}
	if n.Role != protocol.RoleLocal && n.Role != protocol.RoleUpstream {
		return nil
	}
	command, err := json.Marshal([]string{self, "demo", "work"}) // a JSON text is a TOML text
	if err != nil {
		return fmt.Errorf("prepare %s: %w", n.Name, err)
	}
	text := "# Any program can stand here: the task comes on stdin, the repository is the folder it is in.\n[worker]\ncommand = " + string(command) + "\n"
	if err := os.WriteFile(filepath.Join(n.Home, "config.toml"), []byte(text), 0o600); err != nil {
		return fmt.Errorf("prepare %s: %w", n.Name, err)
	}
	return nil
}

// start runs the node and returns when it is ready.
func (n *Node) start(ctx context.Context, self, invite string, ended chan<- error) error {
	args := []string{"up", "--json", "--home", n.Home, "--name", n.Name}
	if n.Role == protocol.RoleMain || n.Role == protocol.RoleCollab {
		args = append(args, "--agent", n.Name)
	}
	if n.Role != protocol.RoleMain { // main's board is the one to look at: it gets the usual port, if that is free
		args = append(args, "--board", "127.0.0.1:0")
	}
	if invite != "" {
		args = append(args, "--join", "-")
	}
	cmd := exec.Command(self, args...)
	cmd.Dir = n.Home
	cmd.Env = environment()
	cmd.SysProcAttr = apart()
	cmd.Stdin = strings.NewReader(invite + "\n")
	cmd.Stderr = &n.said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start %s: %w", n.Name, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", n.Name, err)
	}
	n.cmd, n.gone = cmd, make(chan struct{})
	first := make(chan api.Ready, 1)
	go n.attend(out, first, ended)
	select {
	case n.Ready = <-first:
	case <-n.gone:
		return n.failure(n.exit)
	case <-ctx.Done():
		return n.failure(context.Cause(ctx))
	}
	n.Client, err = client.Open(n.Home)
	if err != nil {
		return n.failure(err)
	}
	return nil
}

// attend reads what the node says and waits for its end.
func (n *Node) attend(out io.Reader, first chan<- api.Ready, ended chan<- error) {
	defer close(n.gone)
	var r api.Ready
	if json.NewDecoder(out).Decode(&r) == nil && r.Event == "ready" {
		first <- r
	}
	_, _ = io.Copy(io.Discard, out)
	n.exit = n.cmd.Wait()
	if n.exit == nil {
		n.exit = errors.New("it ended by itself")
	}
	if !n.stopping.Load() {
		select {
		case ended <- n.failure(n.exit):
		default: // enough is known
		}
	}
}

// failure names the node, what it said last, and its log.
func (n *Node) failure(err error) error {
	said := n.said.String()
	if said != "" {
		said = ": " + said
	}
	return fmt.Errorf("node %s: %w%s\nits log: %s", n.Name, err, said, filepath.Join(n.Home, "log"))
}

// stop asks the node to end, and ends it when it does not.
func (n *Node) stop() error {
	if n.cmd == nil || n.cmd.Process == nil {
		return nil
	}
	n.stopping.Store(true)
	if n.Client != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopWait/2)
		_ = n.Client.Down(ctx) // one that does not answer is ended below
		cancel()
		n.Client.Close()
	} else {
		_ = n.cmd.Process.Signal(os.Interrupt)
	}
	late := time.NewTimer(stopWait)
	defer late.Stop()
	select {
	case <-n.gone:
		return nil
	case <-late.C:
	}
	err := n.cmd.Process.Kill()
	<-n.gone
	return errors.Join(fmt.Errorf("node %s did not stop within %s and was ended", n.Name, stopWait), err)
}

// environment is ours without what would make four nodes one, or bend the repository's check.
func environment() []string {
	var out []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		name = strings.ToUpper(name)
		if strings.HasPrefix(name, "ASTER_") || strings.HasPrefix(name, "GIT_") || name == "GOFLAGS" || name == "GOWORK" {
			continue
		}
		out = append(out, kv)
	}
	return append(out, "GOWORK=off")
}

// lastWords keeps the end of what a node said on stderr. Safe for concurrent use.
type lastWords struct {
	mu  sync.Mutex
	end []byte
}

// lastWordsMax holds a refusal with its hint several times over.
const lastWordsMax = 4096

func (l *lastWords) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = append(l.end, p...)
	if over := len(l.end) - lastWordsMax; over > 0 {
		l.end = bytes.Clone(l.end[over:])
	}
	return len(p), nil
}

// String is what was said to a person; the rest is in the log.
func (l *lastWords) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var said []string
	for line := range strings.Lines(string(l.end)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "time=") {
			said = append(said, line)
		}
	}
	return strings.Join(said, "\n")
}

package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// process is this program running as something that is measured: a node, or the bare hub.
type process struct {
	cmd   *exec.Cmd
	said  *strings.Builder
	stdin io.WriteCloser
	out   *bufio.Reader
	rest  chan []byte // what it said after its first line, at most restMax; comes when it ends
}

// restMax is far above what anything that is measured says.
const restMax = 64 << 10

// startWait is far above any start.
const startWait = 60 * time.Second

// stopWait is what a node has to write its checkpoint and go.
const stopWait = 20 * time.Second

// spawn runs this program and returns its first line of output.
func (b *Bench) spawn(ctx context.Context, stdin string, args ...string) (*process, []byte, error) {
	p := &process{cmd: exec.Command(b.Self, args...), said: &strings.Builder{}}
	if nice, err := exec.LookPath("nice"); b.nice && err == nil {
		p.cmd = exec.Command(nice, append([]string{"-n", "19", b.Self}, args...)...)
	}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "ASTER_") {
			p.cmd.Env = append(p.cmd.Env, kv)
		}
	}
	for _, limit := range []string{"SENDER_PER_SECOND", "SENDER_BURST", "PAIR_PER_SECOND", "PAIR_BURST"} {
		p.cmd.Env = append(p.cmd.Env, "ASTER_LIMITS_"+limit+"=1000000000") // what the node can, not what one sender may
	}
	p.cmd.Env = append(p.cmd.Env, b.env...)
	p.cmd.Stderr = p.said
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		p.stdin, err = p.cmd.StdinPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	if stdin != "" {
		_, _ = io.WriteString(p.stdin, stdin+"\n") // a process that is gone is found out below
	}
	p.out = bufio.NewReader(out)
	kill := time.AfterFunc(startWait, func() { _ = p.cmd.Process.Kill() })
	unwatch := context.AfterFunc(ctx, func() { _ = p.cmd.Process.Kill() })
	line, err := p.out.ReadBytes('\n')
	kill.Stop()
	unwatch()
	if err != nil {
		_ = p.cmd.Wait() // its words say more than its exit code
		return nil, nil, fmt.Errorf("%s did not start: %s", strings.Join(args, " "), strings.TrimSpace(p.said.String()))
	}
	p.rest = make(chan []byte, 1)
	go func() {
		said, _ := io.ReadAll(io.LimitReader(p.out, restMax))
		p.rest <- said
		_, _ = io.Copy(io.Discard, p.out)
	}()
	return p, line, nil
}

// endSaying is end for a process whose last words count.
func (p *process) endSaying() ([]byte, error) {
	_ = p.stdin.Close()
	var said []byte
	select {
	case said = <-p.rest:
	case <-time.After(stopWait):
	}
	return said, p.end()
}

// end interrupts the process, and kills it when it does not go.
func (p *process) end() error {
	_ = p.stdin.Close()
	_ = p.cmd.Process.Signal(os.Interrupt)
	late := time.AfterFunc(stopWait, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && !late.Stop() {
		return fmt.Errorf("process %d did not end within %s", p.cmd.Process.Pid, stopWait)
	}
	return nil // how it says goodbye is not measured
}

// node is one running node.
type node struct {
	*process
	client *client.Client
	ready  api.Ready
	home   string
	took   time.Duration // from the start of the process to its first line
}

// startNode runs a node in home. A non-empty invite makes it join.
func (b *Bench) startNode(ctx context.Context, name, invite string) (*node, error) {
	n := &node{home: filepath.Join(b.Dir, name)}
	args := []string{"up", "--json", "--home", n.home, "--name", name, "--board", "127.0.0.1:0"}
	if invite != "" {
		args = append(args, "--join", "-")
	}
	began := time.Now()
	p, line, err := b.spawn(ctx, invite, args...)
	if err != nil {
		return nil, err
	}
	n.process, n.took = p, time.Since(began)
	if err := json.Unmarshal(line, &n.ready); err != nil || n.ready.Event != "ready" {
		return nil, errors.Join(fmt.Errorf("node %s said %q", name, protocol.CutText(string(line), 200)), n.end())
	}
	if n.client, err = client.Open(n.home); err != nil {
		return nil, errors.Join(err, n.end())
	}
	return n, nil
}

// stop ends the node in order.
func (n *node) stop() error {
	n.client.Close()
	return n.end()
}

// url is where agents and boards attach.
func (n *node) url() string { return "ws" + strings.TrimPrefix(n.ready.Board, "http") + "/ws" }

// startMesh runs count nodes of one mesh and returns when all are linked with all.
func (b *Bench) startMesh(ctx context.Context, prefix string, count int) (nodes []*node, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, stopAll(nodes))
		}
	}()
	for i := range count {
		invite := ""
		if i > 0 {
			in, err := nodes[0].client.Invite(ctx, api.InviteRequest{Role: protocol.RoleLocal, TTLMillis: time.Hour.Milliseconds()})
			if err != nil {
				return nodes, fmt.Errorf("invite: %w", err)
			}
			invite = in.Token
		}
		n, err := b.startNode(ctx, fmt.Sprintf("%s%d", prefix, i+1), invite)
		if err != nil {
			return nodes, err
		}
		nodes = append(nodes, n)
	}
	for _, n := range nodes {
		if err := until(ctx, "the nodes are not linked", func() (bool, error) {
			s, err := n.client.Status(ctx)
			return s.Linked == count-1, err
		}); err != nil {
			return nodes, err
		}
	}
	return nodes, nil
}

func stopAll(nodes []*node) error {
	var err error
	for _, n := range nodes {
		err = errors.Join(err, n.stop())
	}
	return err
}

// until asks every 20 ms, for at most startWait.
func until(ctx context.Context, what string, done func() (bool, error)) error {
	return untilWithin(ctx, startWait, what, done)
}

func untilWithin(ctx context.Context, within time.Duration, what string, done func() (bool, error)) error {
	deadline := time.Now().Add(within)
	for {
		ok, err := done()
		if err != nil || ok {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s after %s", what, within)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

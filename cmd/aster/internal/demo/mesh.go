package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// Config says how the mesh is made.
type Config struct {
	Self  string             // this program's path
	Dir   string             // where the folder of this mesh is made; empty: the user's cache, else the system's temporary folder
	Alive func(pid int) bool // tells what an earlier demo left behind from one that still runs
}

// Mesh is four running nodes. Its files are all below Root.
type Mesh struct {
	Root  string // made by Start, removed by Stop
	Dir   string // Root/demo
	Shop  string // the repository, in Dir
	Nodes []*Node
	Ended chan error // the first node that ended by itself, named with its log; at most one for each node
}

// The four, in the order in which people read of them. The founder is main; the others are invited as what they are.
var four = []struct {
	name string
	role protocol.Role
}{
	{"devbox", protocol.RoleMain},
	{"mac-mini", protocol.RoleLocal},
	{"build-1", protocol.RoleUpstream},
	{"guest", protocol.RoleCollab},
}

// startWait bounds the start of the whole mesh, on a machine that is busy with something else.
const startWait = 60 * time.Second

// Start makes the repository and the four nodes, and returns when devbox is linked to the three others. An error names
// the node and its log; what was made is then stopped, and its files stay for a look until the next demo. When ctx ends
// they go, too.
func Start(whole context.Context, cfg Config) (*Mesh, error) {
	ctx, cancel := context.WithTimeoutCause(whole, startWait, fmt.Errorf("the nodes were not ready after %s", startWait))
	defer cancel()
	root, err := makeRoot(ctx, cfg)
	if err != nil {
		return nil, err
	}
	m := &Mesh{Root: root, Dir: filepath.Join(root, "demo"), Ended: make(chan error, len(four))}
	m.Shop = filepath.Join(m.Dir, "shop")
	if err := m.start(ctx, cfg); err != nil {
		err = errors.Join(err, m.stopNodes())
		if whole.Err() != nil { // nobody wants to know why it did not get ready
			return nil, errors.Join(context.Cause(whole), removeRoot(root))
		}
		return nil, m.keeping(err)
	}
	return m, nil
}

// keeping says where to look at what went wrong.
func (m *Mesh) keeping(err error) error {
	return fmt.Errorf("%w\nthe files stay until the next demo: %s", err, m.Dir)
}

func (m *Mesh) start(ctx context.Context, cfg Config) error {
	if err := os.Mkdir(m.Dir, 0o700); err != nil {
		return fmt.Errorf("make the demo's folder: %w", err)
	}
	if err := makeShop(ctx, m.Shop); err != nil {
		return err
	}
	for _, f := range four {
		m.Nodes = append(m.Nodes, &Node{Name: f.name, Role: f.role, Home: filepath.Join(m.Dir, f.name)})
	}
	for _, n := range m.Nodes {
		if err := n.prepare(cfg.Self); err != nil {
			return err
		}
	}
	devbox := m.Nodes[0]
	if err := devbox.start(ctx, cfg.Self, "", m.Ended); err != nil {
		return err
	}
	var wait sync.WaitGroup
	errs := make([]error, len(m.Nodes))
	for i, n := range m.Nodes[1:] {
		wait.Go(func() { errs[i] = devbox.admit(ctx, n, cfg.Self, m.Ended) })
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return m.linked(ctx)
}

// admit invites n and starts it. The invite goes through pipes only: arguments are for everybody to read.
func (n *Node) admit(ctx context.Context, newcomer *Node, self string, ended chan<- error) error {
	in, err := n.Client.Invite(ctx, api.InviteRequest{Role: newcomer.Role, TTLMillis: startWait.Milliseconds()})
	if err != nil {
		return fmt.Errorf("%s invites %s: %w", n.Name, newcomer.Name, err)
	}
	return newcomer.start(ctx, self, in.Token, ended)
}

// linked returns when devbox holds a link to each of the others, with the role that it was invited for.
func (m *Mesh) linked(ctx context.Context) error {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		peers, err := m.Nodes[0].Client.Peers(ctx)
		if err != nil {
			return m.Nodes[0].failure(err)
		}
		up := 0
		for _, p := range peers {
			if n := m.Node(p.Name); n != nil && (p.Self || p.Linked && p.Role == n.Role) {
				up++
			}
		}
		if up == len(m.Nodes) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-m.Ended:
			return err
		case <-look.C:
		}
	}
}

// Node is the node of that name, or nil.
func (m *Mesh) Node(name string) *Node {
	for _, n := range m.Nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// Follow returns the task once it has ended.
func Follow(ctx context.Context, n *Node, id protocol.MsgID) (task api.Task, err error) {
	q := client.TailQuery{Intent: protocol.WorkerReport, Since: time.UnixMilli(1), Follow: true}
	if task, err = n.Client.Task(ctx, string(id)); err != nil || task.State.Final() {
		return task, err
	}
	err = n.Client.Tail(ctx, q, func(e api.Event) (bool, error) {
		if e.Message == nil || e.Message.Envelope.Re != id {
			return false, nil
		}
		task, err = n.Client.Task(ctx, string(id))
		return task.State.Final(), err
	})
	return task, err
}

// Stop ends what still runs, stops the nodes, waits for them and removes all files. With a cause, which is why the demo
// went wrong, it leaves the files to the next demo and returns the cause with their place.
func (m *Mesh) Stop(cause error) error {
	m.cancelOpen()
	err := m.stopNodes()
	if cause != nil {
		return m.keeping(errors.Join(cause, err))
	}
	return errors.Join(err, removeRoot(m.Root))
}

// stopWait is how long a node may take to end before it is ended: one commit, and a store to close.
const stopWait = 10 * time.Second

// cancelOpen asks for the end of tasks that run: their processes outlive a node, and would write where nothing is.
func (m *Mesh) cancelOpen() {
	ctx, cancel := context.WithTimeout(context.Background(), stopWait/2)
	defer cancel()
	devbox := m.Nodes[0]
	tasks, err := devbox.Client.Tasks(ctx)
	if err != nil {
		return // it is gone, and its tasks are beyond our reach
	}
	for _, t := range tasks {
		if t.State.Final() {
			continue
		}
		if _, err := devbox.Client.CancelTask(ctx, string(t.ID)); err == nil {
			_, _ = Follow(ctx, devbox, t.ID)
		}
	}
}

func (m *Mesh) stopNodes() error {
	errs := make([]error, len(m.Nodes))
	var wait sync.WaitGroup
	for i, n := range m.Nodes {
		wait.Go(func() { errs[i] = n.stop() })
	}
	wait.Wait()
	return errors.Join(errs...)
}

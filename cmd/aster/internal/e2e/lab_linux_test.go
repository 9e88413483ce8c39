package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/aster-mesh/aster/protocol/api"
)

// lab is a network of its own: hosts in network namespaces on one switch. The namespaces have no names and belong to this
// process, so that nothing of them outlives it, however it ends.
type lab struct {
	t     *testing.T
	sw    *space
	hosts []*labHost
}

// labHost is one machine of the lab. Its one interface is eth0.
type labHost struct {
	*space
	lab   *lab
	port  string // of the switch
	ip4   string
	ip6   string
	front net.Listener // of this process, outside: what comes there goes to the board of the host's node

	mu    sync.Mutex
	board string // host:port inside
}

// newLab needs root, iproute2, nftables and nsenter. A test that cannot have them fails: a promise that was not tried is
// not kept.
func newLab(t *testing.T, hosts int) *lab {
	t.Helper()
	for _, tool := range []string{"ip", "nft", "nsenter"} {
		if _, err := exec.LookPath(tool); err != nil || os.Geteuid() != 0 {
			t.Fatalf("this test makes networks of its own: it needs root, iproute2, nftables and util-linux; uid is %d, %v", os.Geteuid(), err)
		}
	}
	l := &lab{t: t, sw: newSpace(t)}
	must(t, l.sw.run("", "ip", "link", "add", "br0", "type", "bridge", "mcast_snooping", "0"))
	must(t, l.sw.run("", "ip", "link", "set", "br0", "up"))
	for i := range hosts {
		h := &labHost{space: newSpace(t), lab: l, port: fmt.Sprintf("p%d", i), ip4: fmt.Sprintf("10.83.21.%d", i+1), ip6: fmt.Sprintf("fd83:21::%d", i+1)}
		l.hosts = append(l.hosts, h)
		must(t, l.sw.run("", "ip", "link", "add", h.port, "type", "veth", "peer", "name", "eth0", "netns", h.path))
		must(t, l.sw.run("", "ip", "link", "set", h.port, "master", "br0", "up"))
		must(t, h.run("", "ip", "link", "set", "lo", "up"))
		must(t, h.run("", "ip", "link", "set", "eth0", "up"))
		must(t, h.addresses(h.ip4+"/24", h.ip6+"/64"))
		must(t, h.run("table inet lab {\n chain in { type filter hook input priority 0; }\n}\n", "nft", "-f", "-"))
		var err error
		h.front, err = net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		t.Cleanup(func() { _ = h.front.Close() })
		go h.forward()
	}
	return l
}

// addresses gives the host these instead of those that it has.
func (h *labHost) addresses(cidrs ...string) error {
	err := h.run("", "ip", "addr", "flush", "dev", "eth0", "scope", "global")
	for _, c := range cidrs {
		args := []string{"ip", "addr", "add", c, "dev", "eth0"}
		if strings.Contains(c, ":") {
			args = append(args, "nodad") // nobody waits for the other's objection
		}
		err = errors.Join(err, h.run("", args...))
	}
	return err
}

// plug is the host's cable: out, its port at the switch has no carrier.
func (h *labHost) plug(in bool) error {
	state := "down"
	if in {
		state = "up"
	}
	return h.lab.sw.run("", "ip", "link", "set", h.port, state)
}

// filter has the host drop what it gets, by nft's words for it; none: it takes everything again.
func (h *labHost) filter(rules ...string) error {
	script := "flush chain inet lab in\n"
	for _, r := range rules {
		script += fmt.Sprintf("add rule inet lab in iifname eth0 %s drop\n", r)
	}
	return h.run(script, "nft", "-f", "-")
}

// from are the rules that drop what another host sends.
func from(other *labHost) []string {
	return []string{"ip saddr " + other.ip4, "ip6 saddr " + other.ip6}
}

const lossy = "numgen random mod 100 < 30"

// node makes a home whose node runs on this host.
func (h *labHost) node(name, config string) *node {
	h.lab.t.Helper()
	n := newNode(h.lab.t, name, config)
	n.prefix = []string{"nsenter", "--net=" + h.path, "--"}
	n.reach = func(f api.NodeFile) *client.Client {
		at, err := url.Parse(f.Board)
		must(h.lab.t, err)
		h.mu.Lock()
		h.board = at.Host
		h.mu.Unlock()
		f.Board = "http://" + h.front.Addr().String()
		return client.New(f)
	}
	return n
}

// forward passes connections on to the board, from a thread in the host's namespace.
func (h *labHost) forward() {
	for {
		outer, err := h.front.Accept()
		if err != nil {
			return
		}
		go func() {
			h.mu.Lock()
			board := h.board
			h.mu.Unlock()
			inner, err := h.dial(board)
			if err != nil {
				_ = outer.Close()
				return
			}
			end := func() { _, _ = outer.Close(), inner.Close() }
			go func() { defer end(); _, _ = io.Copy(inner, outer) }()
			defer end()
			_, _ = io.Copy(outer, inner)
		}()
	}
}

// space is a network namespace with a thread in it.
type space struct {
	path string // while this process lives
	jobs chan func()
	end  chan struct{}
}

func newSpace(t *testing.T) *space {
	t.Helper()
	s := &space{jobs: make(chan func()), end: make(chan struct{})}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
		if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
			ready <- fmt.Errorf("a network namespace: %w", err)
			return
		}
		f, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			ready <- err
			return
		}
		defer f.Close()
		s.path = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd())
		ready <- nil
		for {
			select {
			case job := <-s.jobs:
				job()
			case <-s.end:
				return
			}
		}
	}()
	must(t, <-ready)
	t.Cleanup(func() { close(s.end) })
	return s
}

// dial makes a connection from inside the namespace: a socket stays where its thread was.
func (s *space) dial(addr string) (c net.Conn, err error) {
	done := make(chan struct{})
	select {
	case s.jobs <- func() { defer close(done); c, err = net.Dial("tcp", addr) }:
		<-done
		return c, err
	case <-s.end:
		return nil, net.ErrClosed
	}
}

// run runs a command in the namespace.
func (s *space) run(stdin string, argv ...string) error {
	cmd := exec.Command("nsenter", append([]string{"--net=" + s.path, "--"}, argv...)...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, out)
	}
	return nil
}

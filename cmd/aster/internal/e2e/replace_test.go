//go:build unix

package e2e

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// refusedMax is how long the board's port may be closed over a restart (DESIGN 6): several clients give up for good when
// it is refused once about half a second after a disconnect.
const refusedMax = 300 * time.Millisecond

// knocker dials a port every 10 ms and remembers how long it was refused at a stretch.
type knocker struct {
	stop chan struct{}
	done sync.WaitGroup

	// Read after end.
	knocks, refused int
	longest         time.Duration
}

func knock(addr string) *knocker {
	k := &knocker{stop: make(chan struct{})}
	k.done.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		var since time.Time // of the first refusal of this stretch
		for {
			select {
			case <-k.stop:
				return
			case <-tick.C:
			}
			began := time.Now()
			c, err := net.DialTimeout("tcp", addr, time.Second)
			k.knocks++
			if err == nil {
				c.Close()
				since = time.Time{}
				continue
			}
			if !errors.Is(err, syscall.ECONNREFUSED) {
				continue // reset, or slow: clients try those again
			}
			k.refused++
			if since.IsZero() {
				since = began
			}
			k.longest = max(k.longest, time.Since(since))
		}
	})
	return k
}

func (k *knocker) end() {
	close(k.stop)
	k.done.Wait()
}

// TestThePortIsNeverClosedLongOverReplace: clients that dial all the time, an agent with mail, three replacements.
func TestThePortIsNeverClosedLongOverReplace(t *testing.T) {
	n := newNode(t, "n0", "")
	board := n.up("").Board
	a := attach(n, "listener")
	n.declare("writer")
	k := knock(strings.TrimPrefix(board, "http://"))
	sent := 0
	send := func(count int) {
		for range count {
			id := protocol.MsgID(fmt.Sprintf("r-%05d", sent))
			sent++
			if _, err := n.say(t.Context(), api.SendRequest{From: "writer", To: "listener", Intent: protocol.Request, Value: text(string(id)), MsgID: id}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for turn := range 3 {
		send(20)
		before, ended, began := n.mustStatus().PID, n.ended, time.Now()
		ready := n.up("", "--replace")
		took := time.Since(began)
		select {
		case <-ended:
		case <-time.After(patience):
			t.Fatal("the node that was replaced goes on")
		}
		if ready.Board != board || ready.PID == before {
			t.Fatalf("turn %d: %s pid %d after %s pid %d", turn, ready.Board, ready.PID, board, before)
		}
		send(20)
		t.Logf("replaced within %s", took.Round(time.Millisecond))
	}
	eventually(t, patience, "all delivered", func() (bool, string) {
		for i := range sent {
			if id := protocol.MsgID(fmt.Sprintf("r-%05d", i)); a.times(id) == 0 {
				return false, string(id)
			}
		}
		return true, ""
	})
	inbox := inboxOf(n, "listener")
	for i := range sent {
		if id := protocol.MsgID(fmt.Sprintf("r-%05d", i)); len(inbox[id]) != 1 {
			t.Errorf("%s is in the inbox %d times", id, len(inbox[id]))
		}
	}
	k.end()
	t.Logf("%d knocks, %d refused, at most %s at a stretch", k.knocks, k.refused, k.longest)
	if k.longest > refusedMax || k.knocks < 50 {
		t.Errorf("the port was refused for %s, want at most %s (%d of %d)", k.longest, refusedMax, k.refused, k.knocks)
	}
}

// TestReplaceDetachesAndASecondNodeIsStillToldThatThePortIsTaken.
func TestReplaceDetachesAndASecondNodeIsStillToldThatThePortIsTaken(t *testing.T) {
	n := newNode(t, "n0", "")
	first := n.up("")
	port := strings.TrimPrefix(first.Board, "http://")
	n.declare("anna")
	n.ok("send", "--from", "anna", "--to", "anna", "--no-wake", "kept")
	n.ok("up", "--detach", "--replace", "--name", "n0", "--board", port)
	select {
	case <-n.ended:
		n.cmd = nil
	case <-time.After(patience):
		t.Fatal("the node that was replaced goes on")
	}
	defer n.run("down")
	c, err := client.Open(n.home)
	must(t, err)
	st, err := c.Status(t.Context())
	if err != nil || st.PID == first.PID || st.Board != first.Board {
		t.Fatalf("%+v, %v", st, err)
	}
	if got := n.ok("inbox", "--agent", "anna"); !strings.Contains(got, "kept") {
		t.Errorf("the inbox after the replacement: %s", got)
	}
	if r := n.run("up", "--detach"); r.code != 0 || !strings.Contains(r.stdout, fmt.Sprintf("already running pid %d", st.PID)) {
		t.Errorf("up without --replace: %s", r)
	}

	other := newNode(t, "n1", "")
	ready, r := other.start("", "--board", port)
	if ready != nil || r.code == 0 || !strings.Contains(r.stderr, "cannot be opened") {
		t.Errorf("a second node on the port: %s", r)
	}
	// --replace replaces the node of this home and no other's.
	if ready, r = other.start("", "--board", port, "--replace"); ready != nil || r.code == 0 {
		t.Errorf("a second node with --replace on the port of another home: %s", r)
	}
	if now, err := c.Status(t.Context()); err != nil || now.PID != st.PID {
		t.Errorf("the first node: %+v, %v", now, err)
	}
}

// TestReplaceSaysWhoDoesNotLetGo: a process that holds the home and answers nobody.
func TestReplaceSaysWhoDoesNotLetGo(t *testing.T) {
	n := newNode(t, "n0", "")
	n.up("")
	stopped := n.cmd.Process
	must(t, stopped.Signal(syscall.SIGSTOP))
	r := n.run("up", "--replace", "--board", "127.0.0.1:0")
	must(t, stopped.Signal(syscall.SIGCONT))
	if r.code != 1 || !strings.Contains(r.stderr, fmt.Sprintf("pid %d", stopped.Pid)) || !strings.Contains(r.stderr, "still holds") {
		t.Errorf("%s", r)
	}
}

// TestTheNodeServesASocketThatTheServiceManagerOpened as systemd passes it: file 3, LISTEN_FDS, LISTEN_PID.
func TestTheNodeServesASocketThatTheServiceManagerOpened(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	f, err := ln.(*net.TCPListener).File()
	must(t, err)
	defer f.Close()
	n := newNode(t, "n0", "")
	// A shell stands where the manager does: it knows the pid that the node will have.
	n.prefix = []string{"sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"`, "sh"}
	n.passed = []*os.File{f}
	if ready := n.up(""); ready.Board != "http://"+ln.Addr().String() {
		t.Errorf("the board is at %s, the socket at %s", ready.Board, ln.Addr())
	}
	if st := n.mustStatus(); st.Board != "http://"+ln.Addr().String() {
		t.Errorf("%+v", st)
	}
	n.kill()
	c, err := net.Dial("tcp", ln.Addr().String()) // the manager holds it while no node runs
	must(t, err)
	must(t, c.Close())
	if _, err := os.Stat(filepath.Join(n.home, "mesh.json")); err != nil {
		t.Error(err)
	}
}

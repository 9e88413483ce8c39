package e2e

import (
	"bufio"
	"context"
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

// smallDisk gives a node a home on a file system of its own, of so many MiB, in a mount namespace of its own: it is gone with
// the process that holds that, whatever becomes of the test. The path that is returned leads there from outside.
func smallDisk(t *testing.T, n *node, mib int) (root string) {
	t.Helper()
	for _, tool := range []string{"unshare", "nsenter"} {
		if _, err := exec.LookPath(tool); err != nil || os.Geteuid() != 0 {
			t.Skipf("NOT TRIED: this test fills a disk of its own; it needs root and %s (util-linux), uid is %d, %v", tool, os.Geteuid(), err)
		}
	}
	dir := t.TempDir()
	script := fmt.Sprintf(`mount -t tmpfs -o size=%dm,mode=0700 tmpfs "$0" && mkdir -m 0700 "$0/home" && echo mounted && exec cat`, mib)
	holder := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", script, dir)
	holder.SysProcAttr = dieWithUs()
	in, err := holder.StdinPipe()
	must(t, err)
	out, err := holder.StdoutPipe()
	must(t, err)
	must(t, startProcess(holder))
	t.Cleanup(func() {
		n.kill()
		_ = in.Close() // cat ends, and the file system with it
		_ = holder.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); strings.TrimSpace(line) != "mounted" {
		t.Fatalf("no disk of %d MiB: %q %v", mib, line, err)
	}
	root = filepath.Join("/proc", fmt.Sprint(holder.Process.Pid), "root", dir)
	must(t, os.Symlink(filepath.Join(root, "home"), filepath.Join(dir, "home"))) // for who is outside
	n.home, n.prefix = filepath.Join(dir, "home"), []string{"nsenter", "--mount", "--target", fmt.Sprint(holder.Process.Pid), "--"}
	return root
}

// spoken is what was acknowledged, and what was refused by which code.
type spoken struct {
	mu      sync.Mutex
	acked   []protocol.MsgID
	refused map[string]int
}

func (l *spoken) count() (acked, full int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked), l.refused[protocol.CodeDiskFull]
}

// load sends until ctx ends.
func (l *spoken) load(ctx context.Context, n *node, to protocol.AgentID) {
	for i := 0; ctx.Err() == nil; i++ {
		id := protocol.MsgID(fmt.Sprintf("%s-%d", to, i))
		got, err := n.api().Send(ctx, api.SendRequest{From: "anna", To: to, Intent: "Note", MsgID: id, Value: text(strings.Repeat("x", 200))})
		l.mu.Lock()
		if code := client.RefusalCode(err); err == nil {
			l.acked = append(l.acked, got.MsgID)
		} else if code != "" {
			l.refused[code]++
		}
		l.mu.Unlock()
		instant(40 * time.Millisecond) // an inbox is bounded too
	}
}

// TestDiskRunsFullUnderLoad is the first half of acceptance 3 of the bounded disk: on 32 MiB the node refuses by name, serves
// reads, lives, and goes on within seconds once there is space. What it acknowledged is there, once.
func TestDiskRunsFullUnderLoad(t *testing.T) {
	n := newNode(t, "small", "")
	filler := filepath.Join(smallDisk(t, n, 32), "filler")
	n.up("")
	n.declare("anna")
	var to []protocol.AgentID
	for i := range 4 {
		to = append(to, protocol.AgentID(fmt.Sprint("bert", i)))
		n.declare(string(to[i]))
	}
	l := &spoken{refused: map[string]int{}}
	ctx, cancel := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for _, id := range to {
		load.Go(func() { l.load(ctx, n, id) })
	}
	defer load.Wait()
	defer cancel()
	eventually(t, patience, "messages are taken", func() (bool, string) { a, _ := l.count(); return a >= 50, fmt.Sprint(a) })

	rounds := 2
	if long {
		rounds = 5 // an inbox takes 1,000
	}
	for round := range rounds {
		fillDisk(t, filler)
		_, before := l.count()
		eventually(t, patience, "refused by name", func() (bool, string) { _, full := l.count(); return full >= before+20, fmt.Sprint(l.refused) })
		eventually(t, patience, "status says so", func() (bool, string) { st, err := n.status(); return err == nil && st.DiskFull, fmt.Sprint(err) })
		acked, _ := l.count() // fewer than the inboxes have from now on
		if read := len(readAll(n, to)); read < acked {
			t.Errorf("round %d: %d of %d messages are read", round, read, acked)
		}
		if r := n.run("send", "--from", "anna", "--to", "bert0", "no room for it"); r.code == 0 || !strings.Contains(r.stderr, "Nothing is lost") {
			t.Errorf("round %d: a command is told %s", round, r)
		}
		must(t, os.Remove(filler))
		freed := time.Now()
		acked, _ = l.count()
		eventually(t, patience, "goes on", func() (bool, string) { now, _ := l.count(); return now >= acked+20, fmt.Sprint(l.refused) })
		if took := time.Since(freed); took > promised(5*time.Second) {
			t.Errorf("round %d: it went on after %s", round, took)
		}
	}
	cancel()
	load.Wait()
	for code := range l.refused {
		if code != protocol.CodeDiskFull {
			t.Errorf("refused with %s", code)
		}
	}
	n.kill()
	n.up("")
	inbox := readAll(n, to)
	for _, id := range l.acked {
		if len(inbox[id]) != 1 {
			t.Errorf("%s was acknowledged and is in the inbox %d times", id, len(inbox[id]))
		}
	}
	t.Logf("ok %d lost 0 unexpected 0 duplicated 0 refused %d", len(l.acked), l.refused[protocol.CodeDiskFull])
}

func readAll(n *node, of []protocol.AgentID) map[protocol.MsgID][]api.InboxItem {
	out := map[protocol.MsgID][]api.InboxItem{}
	for _, id := range of {
		for msg, items := range inboxOf(n, id) {
			out[msg] = append(out[msg], items...)
		}
	}
	return out
}

// fillDisk writes a file until there is not a byte left.
func fillDisk(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	zeros := make([]byte, 1<<20)
	for size := len(zeros); size > 0; {
		if _, err := f.Write(zeros[:size]); err != nil {
			size /= 2
		}
	}
	_, err = f.Seek(0, io.SeekEnd)
	must(t, err)
}

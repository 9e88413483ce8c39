package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// namespaces are two network namespaces with one wire between them.
type namespaces struct {
	t     *testing.T
	names [2]string
	wires [2]string
}

// newNamespaces needs root and iproute2. A test that cannot have them fails: a promise that was not tried is not kept.
func newNamespaces(t *testing.T) *namespaces {
	t.Helper()
	if _, err := exec.LookPath("ip"); err != nil || os.Geteuid() != 0 {
		t.Fatalf("this test cuts a wire between two network namespaces: it needs root and iproute2 (apt-get install iproute2), uid is %d, %v", os.Geteuid(), err)
	}
	ns := &namespaces{t: t}
	for i := range 2 {
		ns.names[i] = fmt.Sprintf("aster-%d-%d", os.Getpid(), i)
		ns.wires[i] = fmt.Sprintf("as%d%c", os.Getpid()%1_000_000, 'a'+i)
	}
	t.Cleanup(func() {
		for _, n := range ns.names {
			_ = exec.Command("ip", "netns", "del", n).Run() // not made, or gone with its last process
		}
	})
	for _, n := range ns.names {
		ns.ip("netns", "add", n)
		ns.ip("-n", n, "link", "set", "lo", "up")
	}
	ns.ip("link", "add", ns.wires[0], "netns", ns.names[0], "type", "veth", "peer", "name", ns.wires[1], "netns", ns.names[1])
	for i, n := range ns.names {
		ns.ip("-n", n, "addr", "add", fmt.Sprintf("10.83.19.%d/24", i+1), "dev", ns.wires[i])
		ns.ip("-n", n, "link", "set", ns.wires[i], "up")
	}
	return ns
}

func (ns *namespaces) ip(args ...string) {
	ns.t.Helper()
	if r := command(ns.t, "", append([]string{"ip"}, args...)...); r.code != 0 {
		ns.t.Fatalf("ip %s: %s", strings.Join(args, " "), r)
	}
}

func (ns *namespaces) wire(state string) {
	ns.t.Helper()
	ns.ip("-n", ns.names[0], "link", "set", ns.wires[0], state)
}

// statusBy asks by the command line: the API of a node in a namespace cannot be reached from outside.
func (n *node) statusBy() (st api.Status) {
	n.t.Helper()
	must(n.t, json.Unmarshal([]byte(n.ok("status", "--json")), &st))
	return st
}

func (n *node) sendBy(from, to, words string) protocol.MsgID {
	n.t.Helper()
	var got api.SendResult
	must(n.t, json.Unmarshal([]byte(n.ok("send", "--json", "--from", from, "--to", to, words)), &got))
	return got.MsgID
}

// TestLinkCut is the first third of acceptance 5: two machines, the wire between them down for a minute.
func TestLinkCut(t *testing.T) {
	cut := 14 * time.Second // longer than a dead link takes to be noticed
	if long {
		cut = 60 * time.Second
	}
	ns := newNamespaces(t)
	west, east := newNode(t, "west", ""), newNode(t, "east", "")
	west.prefix = []string{"ip", "netns", "exec", ns.names[0]}
	east.prefix = []string{"ip", "netns", "exec", ns.names[1]}
	west.up("")
	token := west.invite("--lan")
	east.up(token)
	west.declare("anna")
	east.declare("bert")
	both := func(what string, fits func(api.Status) bool) time.Duration {
		t.Helper()
		return eventually(t, 2*patience, what, func() (bool, string) {
			a, b := west.statusBy(), east.statusBy()
			return fits(a) && fits(b) && a.Journal == b.Journal && a.BoardDigest == b.BoardDigest,
				fmt.Sprintf("west %d linked, %d behind, %.8s; east %d linked, %d behind, %.8s", a.Linked, a.Behind, a.Journal, b.Linked, b.Behind, b.Journal)
		})
	}
	linked := func(st api.Status) bool { return st.Linked == 1 && st.Behind == 0 }
	both("linked", linked)

	ns.wire("down")
	began := time.Now()
	var there, back []protocol.MsgID
	for i := 0; time.Since(began) < cut; i++ {
		there = append(there, west.sendBy("anna", "bert", fmt.Sprintf("to the east %d", i)))
		back = append(back, east.sendBy("bert", "anna", fmt.Sprintf("to the west %d", i)))
		instant(200 * time.Millisecond)
	}
	for _, st := range []api.Status{west.statusBy(), east.statusBy()} {
		if st.Linked != 0 {
			t.Errorf("%s calls itself linked %s after the cut", st.Name, time.Since(began))
		}
	}
	if n := len(inboxOf(east, "bert")); n != 0 {
		t.Errorf("%d messages came through a cut wire", n)
	}
	ns.wire("up")
	took := both("caught up after the cut", linked)
	for _, c := range []struct {
		n     *node
		agent protocol.AgentID
		ids   []protocol.MsgID
	}{{east, "bert", there}, {west, "anna", back}} {
		inbox := inboxOf(c.n, c.agent)
		for _, id := range c.ids {
			if len(inbox[id]) != 1 {
				t.Errorf("%s is in the inbox of %s %d times", id, c.agent, len(inbox[id]))
			}
		}
	}
	t.Logf("cut for %s, %d messages each way accepted meanwhile; caught up %s after the wire was back", cut, len(there), took.Round(time.Millisecond))
	if took > promised(30*time.Second) { // redials are at most 30 s apart
		t.Errorf("they took %s to find each other", took)
	}
}

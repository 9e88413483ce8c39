package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol/api"
)

// TestAllKilledTogether is the second third of acceptance 5: all nodes end at once, strangers take two of their ports.
func TestAllKilledTogether(t *testing.T) {
	nodes := meshOf(t, nil, "n0", "n1", "n2")
	for _, n := range nodes {
		n.kill()
	}
	taken := map[int]bool{}
	for _, n := range nodes[:2] {
		port := meshPort(t, n)
		tcp, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		must(t, err)
		defer tcp.Close()
		udp, err := net.ListenPacket("udp", fmt.Sprintf("127.0.0.1:%d", port))
		must(t, err)
		defer udp.Close()
		taken[port] = true
	}
	kept := meshPort(t, nodes[2])
	began := time.Now()
	for i, n := range nodes {
		ready := n.up("")
		said := strings.Contains(strings.Join(ready.Warnings, " "), "port")
		if said != (i < 2) {
			t.Errorf("%s says of its port: %v", n.name, ready.Warnings)
		}
		if port := meshPort(t, n); taken[port] || i == 2 && port != kept {
			t.Errorf("%s is at port %d", n.name, port)
		}
	}
	for _, n := range nodes {
		n.linked(2)
	}
	took := time.Since(began)
	t.Logf("found each other in %s", took.Round(time.Millisecond))
	if took > promised(10*time.Second) {
		t.Errorf("it took %s, want at most 10 s", took)
	}
}

func meshPort(t *testing.T, n *node) int {
	t.Helper()
	var f struct{ Port int }
	raw, err := os.ReadFile(filepath.Join(n.home, "mesh.json"))
	must(t, err)
	must(t, json.Unmarshal(raw, &f))
	if f.Port == 0 {
		t.Fatalf("%s: no port in mesh.json: %s", n.name, raw)
	}
	return f.Port
}

// TestFounderGone is the last third of acceptance 5: no single disk matters, not even the founder's.
func TestFounderGone(t *testing.T) {
	nodes := meshOf(t, nil, "founder", "second", "third")
	founder, second, third := nodes[0], nodes[1], nodes[2]
	founder.kill()
	must(t, os.RemoveAll(founder.home))

	newcomer := newNode(t, "newcomer", "")
	newcomer.up(second.invite())
	newcomer.linked(2)

	// A certificate is renewed from its 30th day on (package roles/member moves a clock there). Any inside member answers
	// for it; none of them needs the founder.
	for _, n := range []*node{second, newcomer} {
		if r := n.run("member", "renew", "third"); r.code != 4 || !strings.Contains(r.stderr, "renewed from") {
			t.Errorf("renew a new certificate: want exit 4 and the day from which it can be: %s", r)
		}
	}
	third.kill()
	third.up("")
	third.linked(2)
	if r := second.run("member", "revoke", "founder", "--reason", "its disk is gone"); r.code != 0 {
		t.Errorf("revoke the founder: %s", r)
	}
	if r := newcomer.run("member", "revoke", "third"); r.code != 0 {
		t.Errorf("revoke by the newcomer: %s", r)
	}
	eventually(t, patience, "third is out", func() (bool, string) {
		st, err := second.status()
		return err == nil && memberRow(t, second, "third").Revoked && memberRow(t, second, "founder").Revoked && st.Linked == 1, fmt.Sprintf("%+v %v", st, err)
	})
	another := newNode(t, "another", "")
	another.up(newcomer.invite())
	another.linked(2)
	another.declare("late")
	second.knows("late")
	id := second.ok("send", "--json", "--from", "early", "--to", "late", "hello")
	var got api.SendResult
	must(t, json.Unmarshal([]byte(id), &got))
	eventually(t, patience, "mail flows", func() (bool, string) {
		return len(inboxOf(another, "late")[got.MsgID]) == 1, ""
	})
}

// memberRow is the row of a node's name.
func memberRow(t *testing.T, n *node, name string) api.Peer {
	t.Helper()
	all, err := n.api().Peers(t.Context())
	must(t, err)
	for _, p := range all {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("%s knows no member %q: %+v", n.name, name, all)
	return api.Peer{}
}

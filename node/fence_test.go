package node

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/protocol/meshwire"
)

// copyHome copies a node's folder file by file, while the node may write to it: what it gets need not fit together.
func copyHome(t testing.TB, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			return os.Mkdir(filepath.Join(to, rel), 0o700)
		case d.Type().IsRegular():
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(to, rel), raw, 0o600)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// told waits until a node's status says so of a copy, and fails after the 10 s that are promised.
func (r *running) told(t testing.TB, n *Node, what string, ok func(api.Status) bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		st, err := n.Status(t.Context())
		if err == nil && ok(st) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s: %+v %q %v", what, st.Copies, st.Warnings, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func says(st api.Status, words string) bool {
	return strings.Contains(strings.Join(st.Warnings, "\n"), words)
}

// TestOlderOfTwoStartsStopsWriting: a home is copied and started beside the original. The older start writes nothing more
// and says why, all three persons are told, and what the older one had taken meanwhile arrives.
func TestOlderOfTwoStartsStopsWriting(t *testing.T) {
	a, b, na, nb := pair(t, protocol.RoleLocal)
	agent := b.attach(t, "worker")
	board := b.watch(t)
	copied := copyHome(t, b.home)
	// The original takes words that it cannot pass on before the copy runs.
	var nc *Node
	c := start(t, func(cfg *Config) { cfg.Home, cfg.Name = copied, ""; cfg.probe = func(n *Node) { nc = n } })
	if c.Peer != b.Peer {
		t.Fatalf("the copy is %s", c.Peer)
	}
	said, err := nb.Send(t.Context(), api.SendRequest{From: "worker", To: "worker", Intent: protocol.Request, Value: []byte(`{"text":"before"}`)})
	var no *protocol.Refusal
	if err != nil && !errors.As(err, &no) {
		t.Fatal(err)
	}
	b.told(t, nb, "the older start stops", func(st api.Status) bool {
		return len(st.Copies) == 1 && st.Copies[0].This && st.Fenced && st.Main.Fenced && says(st, "--reclaim")
	})
	c.told(t, nc, "the newer start's person", func(st api.Status) bool { return !st.Fenced && says(st, "a copy of this node's home was running") })
	a.told(t, na, "the third's person", func(st api.Status) bool { return says(st, "runs from two homes") })
	if got := board.next(t, "ServerNotice"); !strings.Contains(string(got.Value), `"fenced"`) {
		t.Errorf("the board was told %s", got.Value)
	}
	_ = agent.next(t, "ServerNotice")
	if _, err := nb.Send(t.Context(), api.SendRequest{From: "worker", To: "worker", Intent: protocol.Request, Value: []byte(`{"text":"after"}`)}); !errors.As(err, &no) || no.Code != protocol.CodeFenced {
		t.Errorf("the older start took a message: %v", err)
	}
	if _, err := nc.Send(t.Context(), api.SendRequest{From: "worker", To: "worker", Intent: protocol.Request, Value: []byte(`{"text":"new"}`)}); err != nil {
		t.Errorf("the newer start refuses: %v", err)
	}
	if said.MsgID != "" {
		for _, n := range []*Node{na, nc} {
			deadline := time.Now().Add(10 * time.Second)
			for {
				if m, err := n.Message(t.Context(), string(said.MsgID)); err == nil && m.Envelope.ID == said.MsgID {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("what the older start had taken did not arrive")
				}
				time.Sleep(20 * time.Millisecond)
			}
		}
	} else {
		t.Log("the older start was fenced before it was asked")
	}

	// A restart of the fenced home does not fence the other: it stays as it is until a person says so.
	b.stop()
	var nd *Node
	d := start(t, func(cfg *Config) { cfg.Home, cfg.Name = b.home, ""; cfg.probe = func(n *Node) { nd = n } })
	if !strings.Contains(strings.Join(d.Warnings, "\n"), "--reclaim") {
		t.Errorf("started again it warns of %q", d.Warnings)
	}
	if st, err := nd.Status(t.Context()); err != nil || !st.Fenced || !st.Main.Fenced {
		t.Errorf("started again it says fenced %v, %v: %v", st.Fenced, st.Main.Fenced, err)
	}
	if _, err := nd.Send(t.Context(), api.SendRequest{From: "worker", To: "worker", Intent: protocol.Request, Value: []byte(`{"text":"again"}`)}); !errors.As(err, &no) || no.Code != protocol.CodeFenced {
		t.Errorf("started again it took a message: %v", err)
	}
	if st, err := nc.Status(t.Context()); err != nil || len(st.Copies) == 1 && st.Copies[0].This {
		t.Errorf("the other was fenced by it: %+v %v", st.Copies, err)
	}
	d.stop()
	var ne *Node
	e := start(t, func(cfg *Config) {
		cfg.Home, cfg.Name, cfg.Reclaim = b.home, "", true
		cfg.probe = func(n *Node) { ne = n }
	})
	c.told(t, nc, "the reclaimed home is newer", func(st api.Status) bool { return len(st.Copies) == 1 && st.Copies[0].This })
	e.told(t, ne, "and told", func(st api.Status) bool { return says(st, "a copy of this node's home was running") })
}

// TestTwoStartsAloneMeet: a mesh of one node whose home is copied on the same machine has nobody through whom the two could
// meet. The one that finds its port taken asks who holds it.
func TestTwoStartsAloneMeet(t *testing.T) {
	var na, nb *Node
	a := start(t, func(c *Config) { c.probe = func(n *Node) { na = n } })
	copied := copyHome(t, a.home)
	b := start(t, func(c *Config) { c.Home, c.Name = copied, ""; c.probe = func(n *Node) { nb = n } })
	a.told(t, na, "the older start", func(st api.Status) bool { return len(st.Copies) == 1 && st.Copies[0].This })
	b.told(t, nb, "the newer start", func(st api.Status) bool { return says(st, "a copy of this node's home was running") })

	// The other way round: the one that runs already is the newer one.
	a.stop()
	c := start(t, func(c *Config) { c.Home, c.Name = a.home, ""; c.probe = func(n *Node) { na = n } })
	if !strings.Contains(strings.Join(c.Warnings, "\n"), "--reclaim") {
		t.Errorf("a fenced home that starts again warns of %q", c.Warnings)
	}
	if st, err := nb.Status(t.Context()); err != nil || len(st.Copies) != 1 || st.Copies[0].This {
		t.Errorf("the newer start says %+v %v", st.Copies, err)
	}
}

// TestForkIsToldOnEveryBoard: a node is shown another record under a number that it holds, signed with the author's key. It
// takes nothing more of that log, keeps what it has, and every node's person is told.
func TestForkIsToldOnEveryBoard(t *testing.T) {
	a, b, na, nb := pair(t, protocol.RoleLocal)
	log := protocol.LogID{Peer: na.home.peer, Start: na.startID, Scope: protocol.ScopeInside}
	recs, err := nb.store.Range(log, 1, 1<<20)
	if err != nil || len(recs) == 0 {
		t.Fatalf("nothing of the founder's log is here: %v", err)
	}
	last := recs[len(recs)-1]
	held := last.Hash()
	last.Body = []byte(`{"another":"branch"}`)
	last.Sign(na.home.key)
	if err := nb.onRecords(na.home.peer, meshwire.FromRecords([]protocol.Record{last})); err != nil {
		t.Fatal(err)
	}
	const words = "two records under one number"
	b.told(t, nb, "who saw it", func(st api.Status) bool { return says(st, words) })
	a.told(t, na, "the other", func(st api.Status) bool { return says(st, words) })
	if kept, ok, err := nb.store.At(log, last.Seq); err != nil || !ok || kept.Record.Hash() != held {
		t.Errorf("the record that was held is gone: %v %v", ok, err)
	}
}

// TestAStartThatWroteNothingIsStillOlderThanTheNext: a start under a clock that is ahead, killed before its first record, has told
// others its name; were the next one's smaller, they would fence it.
func TestAStartThatWroteNothingIsStillOlderThanTheNext(t *testing.T) {
	var n *Node
	start(t, func(c *Config) { c.probe = func(o *Node) { n = o } })
	ahead, err := n.newStart(protocol.HLCAt(time.Now().Add(10 * time.Minute)))
	if err != nil {
		t.Fatal(err)
	}
	next, err := n.newStart(protocol.HLCAt(time.Now()))
	if err != nil || next.Compare(ahead) <= 0 {
		t.Errorf("after %s comes %s, %v", ahead, next, err)
	}
}

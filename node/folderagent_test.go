package node

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestAFolderThatSomebodyMadeIsAnAgent: from the start of the node on, before it says anything. One that was forgotten does not
// come back for the folder that is left of it.
func TestAFolderThatSomebodyMadeIsAnAgent(t *testing.T) {
	r := start(t, nil)
	r.stop()
	if err := os.MkdirAll(filepath.Join(r.home, "agents", "carla"), 0o700); err != nil {
		t.Fatal(err)
	}
	var n *Node
	again := func() *running {
		return start(t, func(c *Config) { c.Home, c.probe = r.home, func(x *Node) { n = x } })
	}
	second := again()
	if !known(t, n, "carla") {
		t.Error("no agent for its folder")
	}
	for end := time.Now().Add(10 * time.Second); !isThere(filepath.Join(r.home, "agents", "carla", "inbox.jsonl")); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("its folder is not served")
		}
	}
	if err := n.ForgetAgent(t.Context(), "carla"); err != nil {
		t.Fatal(err)
	}
	second.stop()
	third := again()
	if known(t, n, "carla") {
		t.Error("a forgotten agent came back")
	}
	third.stop()
}

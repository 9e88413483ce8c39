package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNamingLoopbackTakesTheNetworkBack: a home that invite --lan opened is closed again by a start that names loopback
// alone, and stays closed.
func TestNamingLoopbackTakesTheNetworkBack(t *testing.T) {
	r := start(t, nil)
	r.stop()
	file := filepath.Join(r.home, "mesh.json")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	opened := strings.Replace(string(raw), "{", "{\"lan\":true,", 1)
	if err := os.WriteFile(file, []byte(opened), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, listen := range [][]string{{"/ip4/127.0.0.1/tcp/0"}, nil} {
		var n *Node
		r := start(t, func(c *Config) { c.Home, c.Mesh, c.probe = r.home, listen, func(x *Node) { n = x } })
		if st, err := n.Status(t.Context()); err != nil || !st.Loopback {
			t.Errorf("with mesh %q it listens on %q, %v", listen, st.Listen, err)
		}
		r.stop()
	}
}

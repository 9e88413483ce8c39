package node

import (
	"os"
	"testing"
)

// TestANodeFileThatIsRemovedComesBack: commands find the node again.
func TestANodeFileThatIsRemovedComesBack(t *testing.T) {
	r := start(t, func(*Config) {})
	was, err := ReadNodeFile(r.home)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(r.home + "/node.json"); err != nil {
		t.Fatal(err)
	}
	until(t, "node.json is back", func() bool {
		got, err := ReadNodeFile(r.home)
		return err == nil && got == was
	})
}

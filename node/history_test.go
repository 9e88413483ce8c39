package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// TestAPastOfLargeMessagesIsReadOnlyAsFarAsItIsShown: whoever joins must not cost the node many times its History frame;
// of small messages all historyMessages are read.
func TestAPastOfLargeMessagesIsReadOnlyAsFarAsItIsShown(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.probe = func(in *Node) { n = in } })
	main, other := r.attach(t, "main-agent"), r.attach(t, "other")
	say := func(count int, words string) {
		for i := range count {
			main.send(t, report("other", fmt.Sprint(len(words), "-", i), words))
		}
		for range count {
			other.next(t, "Report")
		}
	}
	const small = 300
	say(small, "x")
	if found, _, err := n.newest(""); err != nil || len(found) < small || found[0].Envelope.ID != protocol.MsgID(fmt.Sprint("1-", small-1)) {
		t.Fatalf("%d messages are read of %d small ones, %v", len(found), small, err)
	}
	const size = 32 << 10
	say(historyBytes/size+60, strings.Repeat("y", size))
	found, _, err := n.newest("")
	if most := historyBytes/size + historyFirst; err != nil || len(found) > most || len(found) < most/2 {
		t.Errorf("%d large messages are read, %v; want about %d", len(found), err, historyBytes/size)
	}
	seen := map[protocol.MsgID]bool{}
	for i := range found {
		if id := found[i].Envelope.ID; seen[id] {
			t.Errorf("%s is there twice", id)
		} else {
			seen[id] = true
		}
	}
}

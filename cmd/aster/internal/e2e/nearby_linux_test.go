package e2e

import (
	"fmt"
	"testing"
	"time"
)

// TestMembersOnOneNetworkFindEachOtherAfterBothMoved: no address that either knows of the other is right any more.
func TestMembersOnOneNetworkFindEachOtherAfterBothMoved(t *testing.T) {
	ns := newNamespaces(t)
	west, east := newNode(t, "west", ""), newNode(t, "east", "")
	west.prefix = []string{"ip", "netns", "exec", ns.names[0]}
	east.prefix = []string{"ip", "netns", "exec", ns.names[1]}
	west.up("")
	east.up(west.invite("--lan"))
	east.invite("--lan")
	linked := func(what string) time.Duration {
		t.Helper()
		return eventually(t, patience, what, func() (bool, string) {
			a, b := west.statusBy(), east.statusBy()
			return a.Linked == 1 && b.Linked == 1, fmt.Sprintf("west linked %d, east linked %d", a.Linked, b.Linked)
		})
	}
	linked("linked by the invite")
	west.kill()
	east.kill()
	for i, n := range ns.names {
		ns.ip("-n", n, "addr", "flush", "dev", ns.wires[i])
		ns.ip("-n", n, "addr", "add", fmt.Sprintf("10.83.20.%d/24", i+7), "dev", ns.wires[i])
	}
	west.up("")
	east.up("")
	took := linked("linked where both are new")
	t.Logf("found each other %s after the second was up", took.Round(time.Millisecond))
	if took > promised(15*time.Second) {
		t.Errorf("it took %s", took)
	}
}

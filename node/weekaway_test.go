package node

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// write makes records of the node's own, many at once so that they share commits.
func (n *Node) write(t *testing.T, records int) {
	t.Helper()
	body := protocol.EncodeBody(strings.Repeat("x", 300))
	const writers = 64
	var wait sync.WaitGroup
	for range writers {
		wait.Go(func() {
			for range records / writers {
				if _, err := n.loop.ask(t.Context(), func(token hub.Token) hub.Input {
					return hub.Author{Scope: protocol.ScopeInside, Kind: "filler", Body: body, Token: token}
				}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
}

// TestAMemberFarBehindCatchesUpBesideTheTalk: what it missed comes, while those who are there go on talking: the backlog has
// half of a link's window at most, and waits for nobody's answer. Where a third node talks the backlog is on credit, since that one
// holds it too, and not held to its author's share.
func TestAMemberFarBehindCatchesUpBesideTheTalk(t *testing.T) {
	for _, nodes := range []int{2, 3} {
		t.Run(fmt.Sprint("of ", nodes), func(t *testing.T) { farBehind(t, nodes) })
	}
}

func farBehind(t *testing.T, nodes int) {
	records, within, words := 6_400, 2*time.Minute, 50
	if os.Getenv("ASTER_LONG") != "" {
		records, within, words = 100_000, 5*time.Minute, 500
	}
	a, b, na, nb := pair(t, protocol.RoleLocal)
	talks, all := a, []*Node{na, nb}
	if nodes == 3 {
		inv, err := na.Invite(t.Context(), api.InviteRequest{Role: protocol.RoleLocal})
		if err != nil {
			t.Fatal(err)
		}
		talks = start(t, func(c *Config) { c.Name, c.Join, c.probe = "linux", inv.Token, func(n *Node) { all = append(all, n) } })
	}
	asker, here := talks.attach(t, "asker"), talks.attach(t, "here")
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	talk := func(name string, until func() bool) (took []time.Duration) {
		for i := 0; !until(); i++ {
			began := time.Now()
			asker.send(t, map[string]any{"type": "CUSTOM", "name": "Report", "msgId": fmt.Sprint(name, i), "targetAgentId": "here", "value": map[string]any{"text": "still here"}})
			here.next(t, "Report")
			took = append(took, time.Since(began))
			here.send(t, map[string]any{"type": "CUSTOM", "name": "AckProcessed", "value": map[string]any{"ackFor": fmt.Sprint(name, i)}})
			<-pace.C
		}
		slices.Sort(took)
		return took
	}
	alike(t, all...)
	b.stop()
	na.write(t, records)
	others := append([]*Node{na}, all[2:]...)
	alike(t, others...) // who stayed has it all
	turns := 0
	alone := talk("alone", func() bool { turns++; return turns > words })
	want := na.store.Records()
	var had uint64
	var began time.Time
	start(t, func(c *Config) {
		c.Home, c.Name = b.home, "mac-mini"
		c.probe = func(n *Node) { nb, had, began = n, n.store.Records(), time.Now() }
	})
	beside := talk("beside", func() bool { return nb.store.Records() >= want || time.Since(began) > within })
	seconds := time.Since(began).Seconds()
	if got := nb.store.Records(); got < want {
		t.Fatalf("%d of %d records after %.0f s", got, want, seconds)
	}
	alike(t, append(others, nb)...)
	if len(beside) == 0 {
		beside = alone // it was faster than one word
	}
	rate := float64(want-min(had, want)) / max(seconds, 0.001)
	t.Logf("%d records behind at the start, %.0f a second; a word takes %s alone, %s beside (the slowest of 100: %s, %s)", want-min(had, want), rate,
		alone[len(alone)/2], beside[len(beside)/2], alone[len(alone)*99/100], beside[len(beside)*99/100])
}

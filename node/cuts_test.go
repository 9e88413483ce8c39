package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
)

// TestAReaderThatIsCutFiftyTimesMissesAndRepeatsNothing: it goes on behind the last message that it had, while others speak.
func TestAReaderThatIsCutFiftyTimesMissesAndRepeatsNothing(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.probe = func(x *Node) { n = x } })
	r.attach(t, "main-agent")
	speaker := r.attach(t, "speaker")
	const cuts, atMost = 50, 6
	rng := rand.New(rand.NewPCG(22, 50))
	said, last := 0, uint64(0)
	var seen []uint64
	late := time.After(60 * time.Second)
	for cut := range cuts {
		for range 1 + rng.IntN(atMost) {
			said++
			speaker.send(t, report("main-agent", fmt.Sprint("w", said), fmt.Sprint("word ", said)))
		}
		read := rng.IntN(said - len(seen) + 1)
		if cut == cuts-1 {
			read = said - len(seen)
		}
		ctx, end := context.WithCancel(t.Context())
		events := n.Subscribe(ctx, last)
		for range read {
			for got := false; !got; {
				select {
				case e, open := <-events:
					if !open {
						t.Fatalf("cut %d: the stream ended after %d of %d", cut, len(seen), said)
					}
					if got = e.Type == "message" && e.Message.Envelope.Intent == protocol.Report; got {
						last = e.Pos
						seen = append(seen, e.Pos)
					}
				case <-late:
					t.Fatalf("cut %d: %d of %d came", cut, len(seen), said)
				}
			}
		}
		end()
	}
	stored, err := n.store.Messages(journal.Query{Intent: protocol.Report, Limit: 2 * said})
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range stored {
		if i >= len(seen) || m.Pos != seen[i] {
			t.Fatalf("message %d of %d is at %d; the reader saw %v", i, len(stored), m.Pos, seen)
		}
	}
	if len(stored) != said || len(seen) != said {
		t.Errorf("%d said, %d stored, %d seen", said, len(stored), len(seen))
	}
}

package hub

import (
	"fmt"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// TestManyJoinsCostAFewRosters: 2,000 agents come within 5 s. Each has its own list at once; the others have theirs at most
// once in 100 ms and at most at 50 MB/s, the last one with everybody in it, and all together stay below 500 MB. Guards: KD1.
func TestManyJoinsCostAFewRosters(t *testing.T) {
	const (
		agents   = 2000
		rowBytes = len(`{"agentId":"agent-0001","agentName":"agent-0001","role":"local"},`)
	)
	s := newStage()
	var own, bytes int
	var last time.Time
	latest := 0 // agents when the last roster for all went out
	look := func(joined int) {
		rd := s.core.Ready(s.now)
		for _, o := range rd.Out {
			r, ok := o.(Roster)
			switch {
			case !ok:
			case r.Conn != 0:
				own++
				bytes += joined * rowBytes
			default:
				cost := time.Duration(joined*joined*rowBytes) * time.Second / 50_000_000
				if gap := s.now.Sub(last); !last.IsZero() && gap < 100*time.Millisecond {
					t.Fatalf("with %d agents a roster for all came %s after the one before", joined, gap)
				} else if !last.IsZero() && gap < cost/2 { // what joined meanwhile makes the next one dearer, not this gap longer
					t.Fatalf("with %d agents a roster for all of %s came %s after the one before", joined, cost, gap)
				}
				last, latest = s.now, joined
				bytes += joined * joined * rowBytes
			}
		}
	}
	for i := range agents {
		s.now = s.now.Add(5 * time.Second / agents)
		id := protocol.AgentID(fmt.Sprintf("agent-%04d", i))
		s.core.Step(s.now, Attach{Conn: ConnID(i + 1), Agent: id, Name: string(id), Role: protocol.RoleLocal, Client: "ws"})
		look(i + 1)
	}
	for range 100 { // what is still owed
		at := s.core.Next()
		if at.IsZero() || latest == agents {
			break
		}
		s.now = at
		s.core.Step(s.now, Tick{})
		look(agents)
	}
	if latest != agents {
		t.Errorf("the last roster for all has %d agents", latest)
	}
	if bytes > 500_000_000 || own != agents {
		t.Errorf("%d MB of rosters, %d of them for one alone", bytes/1_000_000, own)
	}
}

package hub

import (
	"fmt"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// TestOutsiderListsFewAgents: neither bindings nor presence of one member outside fill the list that everybody is sent.
func TestOutsiderListsFewAgents(t *testing.T) {
	s := newStage()
	guest := s.peer("guest")
	s.do(t, []string{"attach", "m", "main"})
	s.do(t, []string{"member", "guest", "collab"})
	s.do(t, []string{"member", "there", "local"})
	var said []Presence
	for i := range 2 * protocol.GuestAgentsMax {
		s.do(t, []string{"from", "guest", "bind", fmt.Sprint("v", i)})
		said = append(said, Presence{Agent: protocol.AgentID(fmt.Sprint("w", i)), Home: guest, State: protocol.StateIdle})
	}
	s.core.Step(s.now, PeerPresence{Peer: guest, Agents: said})
	s.do(t, []string{"from", "there", "bind", "late"})
	if n := len(s.core.Agents(s.now)); n != protocol.GuestAgentsMax+2 {
		t.Errorf("%d agents, want main, late and %d of the guest", n, protocol.GuestAgentsMax)
	}
}

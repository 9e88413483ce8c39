package hub

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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
	if n := len(s.core.Agents(s.now)); n != protocol.GuestNamesMax+2 {
		t.Errorf("%d agents, want main, late and %d of the guest", n, protocol.GuestNamesMax)
	}
}

// TestWhichNamesOfAnOutsiderStayIsTheSameInEveryOrder: three logs of one member outside name far more agents than anybody
// keeps, and take some back; hubs that get them in different orders list the same, and so does one that starts anew in between.
func TestWhichNamesOfAnOutsiderStayIsTheSameInEveryOrder(t *testing.T) {
	var want []protocol.AgentID
	for seed := range uint64(12) {
		dice := rand.New(rand.NewPCG(seed, 3))
		s := newStage()
		guest := s.peer("guest")
		s.do(t, []string{"member", "guest", "collab"})
		var logs [3][]protocol.Record
		plan := rand.New(rand.NewPCG(9, 9))
		for i := range 4 * protocol.GuestNamesMax {
			k := plan.IntN(3)
			log := protocol.LogID{Peer: guest, Start: protocol.Start{At: protocol.HLC(1 + k)}, Scope: protocol.ScopeOutside(guest)}
			body := protocol.BindBody{Agent: protocol.AgentID(fmt.Sprint("v", plan.IntN(3*protocol.GuestNamesMax/2))), Home: guest, Since: 1, Role: protocol.RoleCollab}
			body.Forgotten = plan.IntN(4) == 0
			at := protocol.HLC(10*i + plan.IntN(3000)) // clocks of starts are anyone's guess
			logs[k] = append(logs[k], protocol.Record{Log: log, Seq: uint64(len(logs[k]) + 1), At: at, Kind: protocol.KindBind, Body: protocol.EncodeBody(body)})
		}
		for len(logs[0])+len(logs[1])+len(logs[2]) > 0 {
			k := dice.IntN(3)
			for n := dice.IntN(200); n > 0 && len(logs[k]) > 0; n-- {
				s.core.Step(s.now, Applied{Record: &logs[k][0]})
				logs[k] = logs[k][1:]
			}
		}
		var got []protocol.AgentID
		for _, a := range s.core.Agents(s.now) {
			got = append(got, a.Agent)
		}
		if len(got) == 0 || len(got) > protocol.GuestNamesMax || len(s.core.bound)+len(s.core.ended) > protocol.GuestNamesMax {
			t.Fatalf("%d agents, %d and %d names kept", len(got), len(s.core.bound), len(s.core.ended))
		}
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Fatalf("order %d lists others: %d, want %d", seed, len(got), len(want))
		}
	}
}

// TestAMemberOutsideIsRefusedOneAgentTooMany: by its own node, in words that name the limit; what it has stays its, however
// often it makes and forgets others.
func TestAMemberOutsideIsRefusedOneAgentTooMany(t *testing.T) {
	s := newStage()
	self := s.peer("here")
	s.core.Step(s.now, Members{All: map[protocol.PeerID]Member{self: {Name: "here", Role: protocol.RoleCollab}}})
	declare := func(name string) *protocol.Refusal {
		s.core.Step(s.now, Declare{Agent: protocol.AgentID(name), Client: "cli", Token: 7})
		rd := s.core.Ready(s.now)
		for _, o := range rd.Out {
			if told, ok := o.(Told); ok {
				return told.Refusal
			}
		}
		t.Fatal("no answer")
		return nil
	}
	for i := range protocol.GuestAgentsMax {
		if r := declare(fmt.Sprint("v", i)); r != nil {
			t.Fatal(r)
		}
	}
	if r := declare("one-more"); r == nil || r.Code != protocol.CodeTooMany || !strings.Contains(r.Reason, "256") || !strings.Contains(r.Hint, "aster agent forget") {
		t.Errorf("one more: %v", r)
	}
	s.core.Step(s.now, Forget{Agent: "v0"})
	for i := range 2 * protocol.GuestNamesMax {
		name := fmt.Sprint("t", i)
		if r := declare(name); r != nil {
			t.Fatalf("%s: %v", name, r)
		}
		s.core.Step(s.now, Forget{Agent: protocol.AgentID(name)})
	}
	if n := len(s.core.Agents(s.now)); n != protocol.GuestAgentsMax-1 {
		t.Errorf("%d agents left, want %d", n, protocol.GuestAgentsMax-1)
	}
	if n := len(s.core.bound) + len(s.core.ended); n > protocol.GuestNamesMax {
		t.Errorf("%d names kept", n)
	}
}

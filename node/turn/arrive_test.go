package turn

import (
	"testing"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/member"
)

// noPast is a store that lost everything.
type noPast struct{}

func (noPast) Identity(protocol.Digest) (journal.IdentityRow, bool, error) {
	return journal.IdentityRow{}, false, nil
}
func (noPast) MessageByID(protocol.AgentID, protocol.MsgID) (journal.Message, bool, error) {
	return journal.Message{}, false, nil
}
func (noPast) Tiers(protocol.LogID, uint64) ([]journal.TierPut, error) { return nil, nil }

// In the turn in which a home that lost its store learns of its agent again, mail for the agent waits for what was passed
// over before; from the next turn on it is taken as it comes.
func TestMailWaitsForWhatWasPassedOver(t *testing.T) {
	const self, other = protocol.PeerID("self"), protocol.PeerID("other")
	now := time.UnixMilli(1_790_000_000_000)
	core := hub.New(hub.Boot{Self: self, Start: protocol.Start{At: 9}, Now: now, Members: map[protocol.PeerID]hub.Member{
		self: {Role: protocol.RoleLocal, Inside: true}, other: {Role: protocol.RoleLocal, Inside: true}}})
	a := Arrival{Hub: core, Board: board.New(member.MeshID("m")), Past: noPast{}, Belief: &Belief{}, Older: true}
	seqs := map[protocol.PeerID]uint64{}
	at := protocol.HLC(1 << 20)
	take := func(peer protocol.PeerID, kind protocol.Kind, body any, env *protocol.Envelope) {
		seqs[peer]++
		at++
		rec := protocol.Record{Log: protocol.LogID{Peer: peer, Start: protocol.Start{At: 1}, Scope: protocol.ScopeInside}, Seq: seqs[peer], At: at,
			Wall: now.UnixMilli(), Kind: kind, Body: protocol.EncodeBody(body)}
		a.Take(now, &replica.Offer{Verdict: replica.Take, Take: []protocol.Record{rec}}, []*protocol.Envelope{env})
	}
	say := func(id protocol.MsgID) {
		env := protocol.Envelope{ID: id, From: "bob", To: "anna", Intent: "Inform", FromRole: protocol.RoleLocal, Source: protocol.SourceAgent, Value: []byte(`{}`)}
		take(other, protocol.KindMessage, env, &env)
	}
	bind := func(agent protocol.AgentID, home protocol.PeerID) {
		take(home, protocol.KindBind, protocol.BindBody{Agent: agent, Home: home, Since: 1 << 20, Role: protocol.RoleLocal}, nil)
	}
	inbox := func() int { rd := core.Ready(now); return len(rd.Inbox) }

	bind("bob", other)
	say("m1")
	bind("anna", self)
	say("m2")
	if n := inbox(); n != 0 {
		t.Errorf("%d messages overtake what was passed over", n)
	}
	a.Belief.note(protocol.LogID{Peer: other, Start: protocol.Start{At: 1}, Scope: protocol.ScopeInside}, "bob", true)
	bind("anna", self) // she is known already
	say("m3")
	if n := inbox(); n != 0 {
		t.Errorf("%d messages of the same turn", n)
	}
	a.Belief.Forget()
	a.Belief.note(protocol.LogID{Peer: other, Start: protocol.Start{At: 1}, Scope: protocol.ScopeInside}, "bob", true)
	say("m4")
	if n := inbox(); n != 1 {
		t.Errorf("%d messages a turn later, want one", n)
	}
}

// keeps is a store that has one message.
type keeps struct {
	noPast
	m journal.Message
}

func (k keeps) MessageByID(_ protocol.AgentID, id protocol.MsgID) (journal.Message, bool, error) {
	return k.m, id == k.m.Envelope.ID, nil
}

// A report comes with the Delegate that it is on: by that its recipient's home knows that it was asked for.
func TestAReportComesWithItsDelegate(t *testing.T) {
	past := keeps{m: journal.Message{Envelope: protocol.Envelope{ID: "t1", From: "anna", To: "bob", Intent: protocol.Delegate}}}
	for _, tt := range []struct {
		env  protocol.Envelope
		want bool
	}{
		{protocol.Envelope{Intent: protocol.WorkerReport, Re: "t1"}, true},
		{protocol.Envelope{Intent: protocol.WorkerReport, Re: "t2"}, false},
		{protocol.Envelope{Intent: protocol.WorkerReport}, false},
		{protocol.Envelope{Intent: "Report", Re: "t1"}, false},
	} {
		if got := Reported(past, &tt.env); (got != nil) != tt.want || got != nil && got.From != "anna" {
			t.Errorf("%s on %q: %v", tt.env.Intent, tt.env.Re, got)
		}
	}
}

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

package member

import (
	"bytes"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// A main's decisions count as far as whoever followed it held its log, however the records come.
func TestDecisionsOfAFormerMainCountAsFarAsItsFollowersHoldThem(t *testing.T) {
	dev := founder(t)
	mini, third := newParty(2, "mac-mini"), newParty(3, "third")
	dev.admits(t, mini, protocol.RoleLocal, 0, day0)
	dev.admits(t, third, protocol.RoleLocal, 0, day0)
	d, m, th := dev.pen(1), mini.pen(2), third.pen(3)
	other := dev.pen(9)
	first := protocol.Term{Number: 1, Peer: dev.peer}
	forced := func(p *pen, at, number, cut uint64) *protocol.Record {
		return p.write(at, protocol.KindTerm, protocol.TermBody{Number: number, Peer: p.log.Peer, Prev: first, Forced: true,
			Cuts: map[string]uint64{d.log.String(): cut, m.log.String(): 5}})
	}
	records := []*protocol.Record{
		d.admits(10, dev), d.admits(11, mini), d.admits(12, third),
		d.write(13, protocol.KindTerm, protocol.TermBody{Number: 1, Peer: dev.peer}),
	}
	a, b := forced(m, 20, 2, 40), forced(th, 20, 2, 30) // two halves take the office
	stranger := newParty(7, "stranger").pen(7)
	records = append(records, a, b, stranger.write(30, protocol.KindTerm, protocol.TermBody{Number: 9, Peer: stranger.log.Peer, Prev: first}),
		th.write(31, protocol.KindTerm, protocol.TermBody{Number: 8, Peer: mini.peer}), // nobody makes another main
		m.write(32, protocol.KindVoters, protocol.VotersBody{Stamp: protocol.Stamp{Term: protocol.Term{Number: 2, Peer: mini.peer}, Number: 4}, Voters: []protocol.PeerID{mini.peer}}),
		th.write(33, protocol.KindVoters, protocol.VotersBody{Stamp: protocol.Stamp{Term: protocol.Term{Number: 2, Peer: mini.peer}, Number: 9}, Voters: []protocol.PeerID{third.peer}}))
	winner := protocol.Term{Number: 2, Peer: max(mini.peer, third.peer)}
	loser := protocol.Term{Number: 2, Peer: min(mini.peer, third.peer)}
	want := rosterOf(records...).Canonical()
	for seed := range uint64(100) {
		r := rosterOf(shuffled(records, seed)...)
		if got := r.Canonical(); !bytes.Equal(got, want) {
			t.Fatalf("seed %d: got %s, want %s", seed, got, want)
		}
		if got := r.Term().Term(); got != winner {
			t.Fatalf("in office %v, want %v", got, winner)
		}
		if got := r.DecisionBound(first, d.log); got != 40 {
			t.Errorf("the first main's log counts to %d, want the higher of two cuts, 40", got)
		}
		if got := r.DecisionBound(first, other.log); got != 0 {
			t.Errorf("a log that nobody names counts to %d", got)
		}
		if got := r.DecisionBound(winner, protocol.LogID{Peer: winner.Peer, Scope: protocol.ScopeInside}); got != NoBound {
			t.Errorf("the main's own log is bound at %d", got)
		}
		if got := r.DecisionBound(loser, protocol.LogID{Peer: loser.Peer, Scope: protocol.ScopeInside}); got != 0 {
			t.Errorf("decisions of the overruled count to %d", got)
		}
		if got := r.Voters(); len(got.Voters) != 1 || got.Voters[0] != mini.peer {
			t.Errorf("voters %+v", got)
		}
	}
}

func TestAMainsLastWordOfItsTermStands(t *testing.T) {
	dev := founder(t)
	d := dev.pen(1)
	body := protocol.TermBody{Number: 1, Peer: dev.peer, Agent: "a"}
	ended := body
	ended.Ended, ended.To, ended.ToAgent = true, "p", "b"
	after := body
	after.Agent = "c"
	records := []*protocol.Record{d.admits(10, dev), d.write(11, protocol.KindTerm, body), d.write(12, protocol.KindTerm, ended), d.write(13, protocol.KindTerm, after)}
	for seed := range uint64(20) {
		if got := rosterOf(shuffled(records, seed)...).Term(); !got.Ended || got.Agent != "a" {
			t.Fatalf("got %+v", got)
		}
	}
}

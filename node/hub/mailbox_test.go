package hub

import (
	"slices"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// What a node logged earlier stands before what it logged later, whenever it comes; between nodes it is who came first.
func TestALateLetterStandsBeforeItsWritersLaterOnes(t *testing.T) {
	ref := func(peer string, start, seq uint64) Ref {
		return Ref{protocol.LogID{Peer: protocol.PeerID(peer), Start: protocol.Start{At: protocol.HLC(start)}, Scope: protocol.ScopeInside}, seq}
	}
	m := newMailbox("here")
	for _, r := range []Ref{ref("a", 2, 1), ref("b", 1, 9), ref("a", 2, 3), ref("a", 2, 2), ref("a", 1, 7), ref("b", 1, 10), ref("a", 3, 1)} {
		m.put(Letter{Ref: r})
	}
	var got []Ref
	for _, l := range m.items {
		got = append(got, l.Ref)
	}
	want := []Ref{ref("a", 1, 7), ref("a", 2, 1), ref("b", 1, 9), ref("a", 2, 2), ref("a", 2, 3), ref("b", 1, 10), ref("a", 3, 1)}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

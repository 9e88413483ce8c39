package node

import (
	"testing"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
)

func TestOwnMessagesAreKnownWithoutTheStore(t *testing.T) {
	var o ownMessages
	a, b := protocol.LogID{Peer: "a", Scope: protocol.ScopeInside}, protocol.LogID{Peer: "b", Scope: protocol.ScopeInside}
	for seq := uint64(1); seq < 500; seq += 3 {
		o.note(hub.Ref{Log: a, Seq: seq})
	}
	for seq := uint64(0); seq < 1000; seq++ {
		if want := seq < 500 && seq%3 == 1; o.has(hub.Ref{Log: a, Seq: seq}) != want || o.has(hub.Ref{Log: b, Seq: seq}) {
			t.Errorf("record %d: known as a message %v, want %v", seq, !want, want)
		}
	}
}

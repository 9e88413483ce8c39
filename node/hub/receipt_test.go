package hub

import (
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// TestReceiptsSpeakOfWhatThereIsAndOnce: a record of 200 bytes names a thousand places. Of those an outside member's names
// only messages count, and a thousand such records in one turn say no more than one.
func TestReceiptsSpeakOfWhatThereIsAndOnce(t *testing.T) {
	s := newStage()
	guest := s.peer("guest")
	s.do(t, []string{"member", "guest", "collab"})
	s.do(t, []string{"from", "guest", "bind", "visitor"})
	s.core.Ready(s.now)
	scope := protocol.ScopeOutside(guest)
	own := protocol.LogID{Peer: s.core.self, Start: protocol.Start{At: 1, Rand: 1}, Scope: scope}
	body := protocol.EncodeBody(protocol.ReceiptsBody{Tier: protocol.Processed, Agent: "visitor",
		Of: []protocol.LogRange{{Log: own.String(), Ranges: []uint64{1, rangeRefsMax}}}})
	for i := range 100 {
		rec := protocol.Record{Log: protocol.LogID{Peer: guest, Start: protocol.Start{At: 2, Rand: 2}, Scope: scope}, Seq: uint64(i + 2),
			At: protocol.HLCAt(s.now), Kind: protocol.KindReceipts, Body: body}
		s.core.Step(s.now, Applied{Record: &rec, Held: func(protocol.LogID) uint64 { return 3 }})
	}
	if rd := s.core.Ready(s.now); len(rd.Tiers) != 3 {
		t.Errorf("%d tiers to write, want 3", len(rd.Tiers))
	}
}

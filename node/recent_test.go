package node

import (
	"encoding/json"
	"testing"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
)

// TestRecentMessagesAreBounded by number and by bytes, oldest first.
func TestRecentMessagesAreBounded(t *testing.T) {
	var m recentMessages
	put := func(seq uint64, bytes int) {
		m.put(hub.Ref{Seq: seq}, seq, &protocol.Record{}, &protocol.Envelope{Value: make(json.RawMessage, bytes)})
	}
	for seq := range uint64(3 * recentMax) {
		put(seq, 10)
	}
	if len(m.byRef) != recentMax || m.get(hub.Ref{Seq: 2*recentMax - 1}) != nil || m.get(hub.Ref{Seq: 2 * recentMax}) == nil {
		t.Errorf("small ones: %d are held", len(m.byRef))
	}
	for seq := range uint64(1000) {
		put(100_000+seq, protocol.ValueBytesInline)
		if m.bytes > recentBytesMax {
			t.Fatalf("%d bytes are held, at most %d", m.bytes, recentBytesMax)
		}
	}
	if want := recentBytesMax / protocol.ValueBytesInline; len(m.byRef) != want || m.get(hub.Ref{Seq: 100_999}) == nil {
		t.Errorf("large ones: %d are held, want %d with the newest", len(m.byRef), want)
	}
}

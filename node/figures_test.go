package node

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// TestEveryNodeShowsWhatTheOthersMeasured: over the mesh, and of one that is gone what it said last, with the time.
func TestEveryNodeShowsWhatTheOthersMeasured(t *testing.T) {
	_, b, na, nb := pair(t, protocol.RoleLocal)
	of := func() (row api.NodeFigures) {
		t.Helper()
		until(t, "it shows both nodes", func() bool { // a node measures beside its start
			got, err := na.Figures(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Nodes) == 0 || !got.Nodes[0].Self || got.Nodes[0].Peer != na.home.peer {
				t.Fatalf("of itself: %+v", got.Nodes)
			}
			if len(got.Nodes) != 2 || len(got.Nodes[0].Samples) == 0 {
				return false
			}
			row = got.Nodes[1]
			return true
		})
		return row
	}
	row := of()
	until(t, "the other has measured", func() bool { // it may answer before
		if row.OK && len(row.Samples) > 0 {
			return true
		}
		na.figures.mu.Lock()
		clear(na.figures.heard)
		na.figures.mu.Unlock()
		row = of()
		return false
	})
	if row.Peer != nb.home.peer || row.Name != "mac-mini" || row.At == 0 || row.EveryMillis != 60_000 || len(row.Samples) == 0 || row.Samples[0].Links != nil {
		t.Errorf("of the other: %+v", row)
	}
	b.stop()
	until(t, "the other is gone", func() bool {
		if !row.OK {
			return true
		}
		na.figures.mu.Lock() // as if the quarter of a minute were over
		clear(na.figures.heard)
		na.figures.heard[nb.home.peer] = heardFigures{at: na.began, ok: true, health: row.Health}
		na.figures.mu.Unlock()
		row = of()
		return false
	})
	if row.At != na.began.UnixMilli() || len(row.Samples) == 0 {
		t.Errorf("of one that is gone: %+v", row)
	}
}

// TestMinutesSumWhatWasMeasured: counts add up, delays are means over receipts, and what was waiting is shown at its most.
func TestMinutesSumWhatWasMeasured(t *testing.T) {
	var in []api.Sample
	for i := range 13 { // the first is of a minute that is not whole
		in = append(in, api.Sample{At: int64(i), Messages: 2, Receipts: int64(i % 2), ReceiptMillis: int64(10 * i), ReceiptMax: int64(i), Redelivered: 1, Jobs: i, Queued: 100 - i, Disk: int64(i), Links: map[protocol.PeerID]uint32{"p": 1}})
	}
	got := byMinute(in)
	if len(got) != 2 {
		t.Fatalf("%d minutes", len(got))
	}
	m := got[1]
	if m.At != 12 || m.Messages != 12 || m.Receipts != 3 || m.ReceiptMillis != 90 || m.ReceiptMax != 12 || m.Redelivered != 6 || m.Jobs != 12 || m.Queued != 93 || m.Disk != 12 || m.Links != nil {
		t.Errorf("%+v", m)
	}
	if one := byMinute(in[:1]); len(one) != 1 || byMinute(nil) != nil {
		t.Errorf("of one that has just begun: %+v", one)
	}
}

func FuzzFigures(f *testing.F) {
	for _, s := range []string{
		`{"everyMillis":60000,"samples":[{"at":1,"messages":2,"links":{"p":3}},{"at":2}]}`,
		`{"everyMillis":0,"samples":[]}`, `{"everyMillis":60000,"samples":[{"at":2},{"at":1}]}`, `{"everyMillis":60000,"samples":[{"disk":-1}]}`,
		`{"everyMillis":60000,"samples":[` + strings.Repeat(`{"at":1},`, 60) + `{"at":1}]}`, `null`, `[]`, ``,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, err := decodeFigures(raw)
		if err != nil {
			if len(h.Samples) > 0 && json.Valid(raw) && h.EveryMillis > 0 {
				t.Errorf("refused and given: %+v", h)
			}
			return
		}
		if len(h.Samples) > 60 {
			t.Errorf("%d samples", len(h.Samples))
		}
		for _, s := range h.Samples {
			if s.Links != nil || min(s.At, s.Messages, s.Disk, int64(s.Jobs)) < 0 {
				t.Errorf("kept %+v", s)
			}
		}
	})
}

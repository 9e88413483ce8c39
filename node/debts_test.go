package node

import (
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// A peer that takes the loop's time without end waits while anybody else uses the loop, for what is above its half; alone it
// never waits, and what it had is forgiven with time.
func TestAPeerThatWritesWithoutEndHasHalfOfTheLoop(t *testing.T) {
	var d debts
	const flooder, other = protocol.PeerID("flooder"), protocol.PeerID("other")
	now := time.Unix(1_800_000_000, 0)
	began := now
	var had time.Duration
	for range 1000 {
		d.clientSpoke(now)
		wait, _ := d.due(flooder, now)
		now = now.Add(wait + 10*time.Millisecond) // the turn itself
		d.charge(flooder, 10*time.Millisecond, now)
		had += 10 * time.Millisecond
	}
	if share := float64(had) / float64(now.Sub(began)); share < 0.4 || share > 0.6 {
		t.Errorf("it had %.2f of the loop's time", share)
	}
	if _, small := d.due(flooder, now); !small {
		t.Error("a peer in debt is not taken in pieces")
	}
	if wait, small := d.due(other, now); wait != 0 || small {
		t.Errorf("another waits %s for it, %v", wait, small)
	}
	now = now.Add(othersSpoke)
	d.charge(flooder, time.Second, now)
	if wait, small := d.due(flooder, now); wait != 0 || small {
		t.Errorf("alone it waits %s, %v", wait, small)
	}
	d.charge(other, time.Millisecond, now)
	if wait, _ := d.due(flooder, now); wait <= 0 || wait > debtShare*debtMost {
		t.Errorf("beside another peer it waits %s", wait)
	}
	if wait, small := d.due(flooder, now.Add(time.Minute)); wait != 0 || small {
		t.Errorf("a minute later it waits %s, %v", wait, small)
	}
}

// A long range is cut behind commits alone, and every record is in one piece.
func TestPiecesEndBehindCommits(t *testing.T) {
	recs := make([]protocol.Record, 200)
	for _, i := range []int{0, 40, 41, 42, 90, 199} {
		recs[i].Sig = []byte{1}
	}
	var ends []int
	for begin := 0; begin < len(recs); {
		end := pieceEnd(recs, begin)
		if len(recs[end-1].Sig) == 0 {
			t.Errorf("a piece from %d ends at %d, in the middle of a commit", begin, end)
		}
		ends = append(ends, end)
		begin = end
	}
	if len(ends) != 3 || ends[0] != 41 || ends[1] != 91 || ends[2] != 200 {
		t.Errorf("pieces end at %v", ends)
	}
}

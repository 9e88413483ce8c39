package node

import (
	"context"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
)

// While others use a node, a peer's records have as much of it as they have and debtPerSecond; alone it never waits, and what it
// had is forgiven with time.
func TestAPeerThatWritesWithoutEndHasAShare(t *testing.T) {
	flooder, other := source{"flooder", "flooder"}, source{"other", "other"}
	now := time.Unix(1_800_000_000, 0)
	const step = 10 * time.Millisecond
	// had is what the flooder gets in ten seconds beside clients that say so much in each step.
	had := func(d *debts, says int) (units float64) {
		for began := now; now.Sub(began) < 10*time.Second; now = now.Add(step) {
			for range says {
				d.charge(source{author: "a client"}, 1, now)
			}
			for d.due(flooder, now) == 0 {
				d.charge(flooder, 100, now)
				if units += 100; units > 1e6 {
					t.Fatal("it gets all there is")
				}
			}
		}
		return units
	}
	var d debts
	if got, want := had(&d, 1), 10*(debtPerSecond+100.0)+debtBurst; got < want-200 || got > want+200 {
		t.Errorf("beside little it had %.0f in ten seconds, want %.0f", got, want)
	}
	if got, want := had(&d, 50), 10*(debtPerSecond+5_000.0); got < want-200 || got > want+200 {
		t.Errorf("beside much it had %.0f in ten seconds, want %.0f", got, want)
	}
	if d.due(flooder, now) == 0 {
		t.Error("a peer in debt waits for nothing")
	}
	if wait := d.due(other, now); wait != 0 {
		t.Errorf("another waits %s for it", wait)
	}
	if wait := d.due(source{"honest", "flooder"}, now); wait != 0 {
		t.Errorf("who passes its records on waits %s for what it said itself", wait)
	}
	now = now.Add(othersSpoke)
	d.charge(flooder, 1e6, now)
	if wait := d.due(flooder, now); wait != 0 {
		t.Errorf("alone it waits %s", wait)
	}
	d.charge(other, 1, now)
	if wait := d.due(flooder, now); wait != 0 {
		t.Errorf("what it had alone makes it wait %s", wait)
	}
	d.charge(flooder, 500, now)
	if wait, most := d.due(flooder, now), 500*time.Second/debtPerSecond; wait < most*8/10 || wait > most {
		t.Errorf("beside another peer it waits %s", wait)
	}
}

// TestAClientThatSaysMuchAtOnceHasASmallerShareThanItsNode: so that its node's log is not in debt elsewhere for it. Who has gone is
// forgotten.
func TestAClientThatSaysMuchAtOnceHasASmallerShareThanItsNode(t *testing.T) {
	var d debts
	now := time.Unix(1_800_000_000, 0)
	client, other := source{author: "flooder"}, source{author: "other"}
	said := 0.0
	for began := now; now.Sub(began) < 10*time.Second; now = now.Add(10 * time.Millisecond) {
		d.charge(other, 1, now)
		for ; d.due(client, now) == 0; said++ {
			d.charge(client, 1, now)
		}
	}
	if want := 10.0*(clientPerSecond+100) + clientBurst; said < want-50 || said > want+50 || said > 10*debtPerSecond {
		t.Errorf("beside little it said %.0f in ten seconds, want %.0f", said, want)
	}
	if wait := d.due(other, now); wait != 0 {
		t.Errorf("another waits %s for it", wait)
	}
	now = now.Add(othersSpoke)
	d.charge(client, 1e6, now)
	if wait := d.due(client, now); wait != 0 {
		t.Errorf("alone it waits %s", wait)
	}
	d.forget(client)
	d.forget(other)
	if len(d.of) != 0 {
		t.Errorf("%d are remembered", len(d.of))
	}
}

// TestReceiptsDoNotSlowWhoTheyAnswer: whose words another node only acknowledges is alone on its own, however often that is.
func TestReceiptsDoNotSlowWhoTheyAnswer(t *testing.T) {
	var d debts
	client, far := source{author: "sender"}, source{"far", "far"}
	for range 1000 {
		d.pauseRange(t.Context(), far, []meshwire.Rec{{Kind: protocol.KindReceipts}})
		d.charge(client, 100, time.Now())
	}
	if wait := d.due(client, time.Now()); wait != 0 {
		t.Errorf("it waits %s", wait)
	}
	d.pauseRange(t.Context(), far, []meshwire.Rec{{Kind: protocol.KindReceipts}, {Kind: protocol.KindMessage}})
	d.charge(client, 1e6, time.Now())
	if wait := d.due(client, time.Now()); wait == 0 {
		t.Error("beside what another says it waits for nothing")
	}
}

// TestARecordCountsByWhatItCosts: by its size, and more if everybody is told of it.
func TestARecordCountsByWhatItCosts(t *testing.T) {
	for _, c := range []struct {
		rec  meshwire.Rec
		want float64
	}{
		{meshwire.Rec{Kind: protocol.KindMessage, Body: make([]byte, 600)}, 1},
		{meshwire.Rec{Kind: protocol.KindReceipts}, 1},
		{meshwire.Rec{Kind: protocol.KindMessage, Body: make([]byte, 64*debtBytes)}, 65},
		{meshwire.Rec{Kind: protocol.KindBind, Body: make([]byte, 200)}, debtNews},
		{meshwire.Rec{Kind: "of a later version", Body: make([]byte, debtBytes)}, debtNews + 1},
	} {
		if got := unitsOf([]meshwire.Rec{c.rec}); got != c.want {
			t.Errorf("%s of %d bytes counts %.0f, want %.0f", c.rec.Kind, len(c.rec.Body), got, c.want)
		}
	}
}

// TestWhatIsPassedOnWaitsBesideItsReader: of a member that has had its share, in order and so much at most; what its own peer says waits
// for nothing.
func TestWhatIsPassedOnWaitsBesideItsReader(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nothing is taken
	n := &Node{ctx: ctx}
	passed := source{"relay", "flooder"}
	f := ranged{Records: meshwire.Records{Records: make([]meshwire.Rec, 100)}}
	for i := range f.Records.Records {
		f.Records.Records[i].Body = make([]byte, 1<<10)
	}
	if n.aside.put(n, passed, f) {
		t.Error("it waits before it has had anything")
	}
	n.debts.charge(source{author: "a client"}, 1, time.Now())
	n.debts.charge(passed, 1e6, time.Now())
	n.aside.of, n.aside.bytes = map[source][]ranged{passed: nil}, map[protocol.PeerID]int{} // somebody takes them
	for range 100 {
		if !n.aside.put(n, passed, f) {
			t.Fatal("it does not wait")
		}
	}
	if got := n.aside.bytes["relay"]; got > asideMost || got < asideMost-bytesOf(&f.Records) {
		t.Errorf("%d bytes wait, at most %d", got, asideMost)
	}
	if got := len(n.aside.of[passed]); got != asideMost/bytesOf(&f.Records) {
		t.Errorf("%d ranges wait", got)
	}
	if n.aside.put(n, source{"relay", "another"}, f) {
		t.Error("another's records wait for it")
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

package node

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
)

var (
	authorsLog = protocol.LogID{Peer: "author", Start: protocol.Start{At: 7}, Scope: protocol.ScopeInside}
	fewRecords = 100
)

// rangeOf is a range of few records of a log.
func rangeOf(log protocol.LogID, first uint64) *meshwire.Records {
	return &meshwire.Records{Log: log, First: first, Records: make([]meshwire.Rec, fewRecords)}
}

// onCredit counts the records of a log that come on credit, sent again and again up to far beyond what may.
func onCredit(c *credit, log protocol.LogID) (records int) {
	for round := 0; round < 5; round++ {
		for first := uint64(1); first < 20_000; first += uint64(fewRecords) {
			if c.spend(rangeOf(log, first)) {
				records += fewRecords
			}
		}
	}
	return records
}

// TestWhatOthersHoldIsOnCredit: as much as a peer that is linked says it has of another's log beyond what is here, and no more, however
// often it is sent.
func TestWhatOthersHoldIsOnCredit(t *testing.T) {
	var c credit
	c.vouch("holder", authorsLog, 0, 5_000)
	if c.spend(rangeOf(authorsLog, 1)) {
		t.Error("who has no link vouches")
	}
	c.linked("holder", time.Now())
	c.vouch("holder", authorsLog, 1_000, 5_000)
	if c.spend(rangeOf(authorsLog, 4_950)) {
		t.Error("more comes on credit than it vouched for")
	}
	other := authorsLog
	other.Start.At++
	if c.spend(rangeOf(other, 1)) {
		t.Error("another log comes on credit")
	}
	if got := onCredit(&c, authorsLog); got < 4_000 || got > creditAgain*4_000 {
		t.Errorf("%d records came on credit, 4,000 were missing", got)
	}
	c.linked("holder", time.Now())
	c.vouch("holder", authorsLog, 0, 5_000)
	c.ended("holder", time.Now())
	if c.spend(rangeOf(authorsLog, 1)) {
		t.Error("it vouches after its link")
	}
}

// TestNobodyVouchesForItself: what a peer has of its own, and nobody else, has its share.
func TestNobodyVouchesForItself(t *testing.T) {
	var c credit
	c.linked("author", time.Now())
	c.vouch("author", authorsLog, 0, 5_000)
	if c.spend(rangeOf(authorsLog, 1)) {
		t.Error("an author's own word brings it credit")
	}
}

// TestALinkMadeAnewBringsNoMoreThanAShare: two members that vouch for each other's floods and come again and again get what they could
// have sent meanwhile.
func TestALinkMadeAnewBringsNoMoreThanAShare(t *testing.T) {
	var c credit
	now := time.Unix(1_800_000_000, 0)
	c.linked("holder", now)
	had, to := uint64(0), uint64(creditMost)
	c.vouch("holder", authorsLog, had, to) // all it may at first
	for i := range 100 {
		c.ended("holder", now)
		now = now.Add(100 * time.Millisecond)
		c.linked("holder", now)
		c.linked("holder", now.Add(time.Hour)) // in the place of the one before
		had = to
		to += 1_000_000
		c.vouch("holder", authorsLog, had, to)
		m := c.of["holder"][authorsLog]
		if want := had + debtPerSecond/10; m == nil || m.to != want {
			t.Fatalf("link %d: %+v, want up to %d", i, m, want)
		}
		to = m.to
	}
}

// TestCreditHasAPaceOfItsOwn: more than five thousand a second, whoever it comes from, and no more than that at once.
func TestCreditHasAPaceOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c credit
		began, records := time.Now(), 0
		for ; time.Since(began) < 10*time.Second; records += longRecords {
			c.wait(t.Context(), longRecords)
		}
		t.Logf("%d a second", records/10)
		if records < 50_000 || records > 10*creditPerSecond+creditBurst+2*longRecords {
			t.Errorf("%d records in ten seconds", records)
		}
	})
}

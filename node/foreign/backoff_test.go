package foreign

import (
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// TestWhatNoWaitingMendsStops: such ends stop a client for good, and say what a person can do. Guards: B5, KF8.
func TestWhatNoWaitingMendsStops(t *testing.T) {
	for what, e := range map[string]End{
		"revoked":           {Code: 4003, Reason: "key revoked", Rejected: &Rejected{Code: protocol.CodeKeyRevoked}},
		"expired":           {Code: 4003, Rejected: &Rejected{Code: protocol.CodeKeyExpired, Reason: "it ended"}},
		"4003 without word": {Code: 4003},
		"4001":              {Code: 4001},
		"another's key":     {Code: 4403, Rejected: &Rejected{Code: protocol.CodeIdentityMismatch}},
		"own mesh":          {Code: 4403, Rejected: &Rejected{Code: CodeSameMesh}},
		"unauthorised":      {Status: 401},
		"forbidden":         {Status: 403},
	} {
		if got := new(Backoff).After(e, 0.5); !got.Stop || !strings.Contains(got.Why, ": ") {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

// TestWaitsGrowAreSpreadAndAreReset: no connection that was not accepted for a while makes them short again. Guards: B5.
func TestWaitsGrowAreSpreadAndAreReset(t *testing.T) {
	var b Backoff
	lost := End{Reason: "connection refused"}
	last := time.Duration(0)
	for range 12 {
		low, high := b.After(lost, 0), time.Duration(0)
		b.tries--
		high = b.After(lost, 1).Wait
		if low.Stop || high < low.Wait*2 || high < last || high > 45*time.Second {
			t.Fatalf("after %v: %v to %v", last, low.Wait, high)
		}
		last = high
	}
	if b.After(End{Reason: "lost", Accepted: true, Stayed: time.Second}, 1).Wait != last {
		t.Error("one second of connection made the wait short")
	}
	if got := b.After(End{Reason: "lost", Accepted: true, Stayed: time.Minute}, 1); got.Wait > time.Second {
		t.Errorf("after a good connection %v", got.Wait)
	}
}

func TestABoardIsObeyedWhenItNamesATime(t *testing.T) {
	for what, e := range map[string]End{"busy": {Status: 503, RetryAfter: time.Hour}, "too many": {Status: 429, RetryAfter: time.Hour}, "gone": {Status: 404, RetryAfter: time.Hour}} {
		if got := new(Backoff).After(e, 0.5); got.Stop || got.Wait != time.Hour {
			t.Errorf("%s: %+v", what, got)
		}
	}
	if got := new(Backoff).After(End{Status: 503, RetryAfter: 1 << 60}, 0.5); got.Wait > 24*time.Hour {
		t.Errorf("for ever: %v", got.Wait)
	}
	for what, e := range map[string]End{"not invited": {Code: 4403, Rejected: &Rejected{Code: "ip-not-allowlisted"}}, "flap": {Code: 4403, Rejected: &Rejected{Code: protocol.CodeFlap}}, "unknown": {Code: 4403}, "no hub": {Status: 404}} {
		if got := new(Backoff).After(e, 0.5); got.Stop || got.Wait < time.Minute {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

// TestAnotherHolderOfTheIDIsNotFought: who is replaced again and again gives way. Guards: B1, KF9.
func TestAnotherHolderOfTheIDIsNotFought(t *testing.T) {
	var b Backoff
	replaced := End{Code: 1005, Accepted: true, Stayed: time.Second}
	for range 2 {
		if got := b.After(replaced, 0.5); got.Stop || got.Wait < 10*time.Second {
			t.Fatalf("%+v", got)
		}
	}
	if got := b.After(replaced, 0.5); !got.Stop || !strings.Contains(got.Why, "--as") {
		t.Errorf("%+v", got)
	}
	if got := b.After(End{Code: 1005, Accepted: true, Stayed: time.Hour}, 0.5); got.Stop {
		t.Errorf("a hub that ends after an hour: %+v", got)
	}
}

package node

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// TestAnOffenderIsHeardAgainLater: who was cut off is heard under its name after a while, one at a time, and nobody else waits for it.
func TestAnOffenderIsHeardAgainLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("192.0.2.7")
		babbler := (&socket{from: here}).offender("Babbler")
		var o offenders
		o.cutOff(babbler, time.Now())
		heard, began := make(chan bool), time.Now()
		go func() { heard <- o.wait(t.Context(), (&socket{from: here}).offender("babbler")) }()
		synctest.Wait()
		if o.wait(t.Context(), babbler) {
			t.Error("two wait under one name")
		}
		for _, other := range []offender{(&socket{from: there}).offender("babbler"), (&socket{from: here}).offender("worker"), (&socket{from: here, keyed: true}).offender("babbler")} {
			if !o.wait(t.Context(), other) || time.Since(began) > 0 {
				t.Errorf("%+v waits for it", other)
			}
		}
		if !<-heard || time.Since(began) != offenderOut {
			t.Errorf("it was heard after %s", time.Since(began))
		}
		if !o.wait(t.Context(), babbler) || time.Since(began) != offenderOut {
			t.Error("it waits again")
		}
		o.cutOff(babbler, time.Now())
		ctx, stop := context.WithCancel(t.Context())
		go func() { heard <- o.wait(ctx, babbler) }()
		synctest.Wait()
		stop()
		if <-heard || time.Since(began) != offenderOut {
			t.Error("it waits on when the node has ended")
		}
		if len(o.until) != 1 || len(o.waits) != 0 {
			t.Errorf("%d are remembered, %d wait", len(o.until), len(o.waits))
		}
	})
}

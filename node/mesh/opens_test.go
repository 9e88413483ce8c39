package mesh

import (
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// A member that opens streams without end has so many a second, and costs another member none.
func TestStreamsOfOneMemberArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o opens
		began := time.Now()
		for range opensBurst + 5*opensPerSec {
			if !o.wait(t.Context(), "greedy") {
				t.Fatal("a stream was refused")
			}
		}
		if took := time.Since(began); took < 4900*time.Millisecond || took > 5100*time.Millisecond {
			t.Errorf("%d streams in %s", opensBurst+5*opensPerSec, took)
		}
		began = time.Now()
		if !o.wait(t.Context(), "other") || time.Since(began) != 0 {
			t.Errorf("another member waited %s", time.Since(began))
		}
	})
}

// TestTheRightToAStreamIsThatBehindTheWait: a member may be let out while its stream waits for a place.
func TestTheRightToAStreamIsThatBehindTheWait(t *testing.T) {
	r := &roster{}
	var armed, once atomic.Bool
	var of atomic.Value // whose stream it is
	a, b := pair(t, r, func(c *Config) {
		c.Standing = func(p protocol.PeerID) Standing {
			if armed.Load() && p == of.Load() && !once.CompareAndSwap(false, true) {
				return Outside // from the second look on
			}
			return r.standing(p)
		}
	})
	a.Handle(Gossip, true, func(_ protocol.PeerID, s Stream) { _, _ = io.Copy(s, s) })
	of.Store(b.Self())
	armed.Store(true)
	s, err := openOn(t.Context(), b.link(a.Self()).stream.Conn(), gossipID)
	if err == nil {
		_ = s.CloseWrite()
		_, err = io.ReadAll(s)
		_ = s.Reset()
	}
	if !errors.Is(explain(err), ErrNotMember) {
		t.Errorf("the stream ended with %v, want %v", explain(err), ErrNotMember)
	}
}

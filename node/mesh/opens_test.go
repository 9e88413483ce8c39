package mesh

import (
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

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

// TestWhoGoesOnOffendingIsOut: for its time, after so many; others are not, nor is who offends seldom.
func TestWhoGoesOnOffendingIsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o offences
		cuts := 0
		for range 10 * offencesBurst {
			if o.more("greedy", streamOffence, time.Now()) {
				cuts++
			}
		}
		if cuts != 1 || !o.isOut("greedy") {
			t.Errorf("cut off %d times, out %v", cuts, o.isOut("greedy"))
		}
		for range 100 {
			if o.more("clumsy", linkOffence, time.Now()) {
				t.Fatal("who offends seldom is cut off")
			}
			time.Sleep(linkOffence * time.Second / offencesPerSec)
		}
		if o.isOut("greedy") || o.isOut("other") {
			t.Error("somebody is out for ever")
		}
		links := 0
		for ; !o.more("babbler", linkOffence, time.Now()); links++ {
		}
		if links != offencesBurst/linkOffence {
			t.Errorf("%d links ended for what came on them before it was cut off", links)
		}
	})
}

// TestAMemberThatOpensStreamsWithoutEndIsCutOff: it loses its connection, is not let in and not dialled; another member's link stays.
func TestAMemberThatOpensStreamsWithoutEndIsCutOff(t *testing.T) {
	r := &roster{}
	a, b := pair(t, r, nil)
	c := startHost(t, r, nil)
	r.set(c.Self(), Inside)
	a.SetPeers([]Peer{{ID: b.Self(), Addrs: b.addr}, {ID: c.Self(), Addrs: c.addr}})
	c.SetPeers([]Peer{{ID: a.Self(), Addrs: a.addr}})
	until(t, "the third linked", func() bool { return a.linked(c) && c.linked(a) })
	l := c.link(a.Self())
	conn := b.link(a.Self()).stream.Conn()
	// However slow this machine: what waits goes on waiting, and nothing is forgiven.
	a.opens.mu.Lock()
	a.opens.of = map[protocol.PeerID]*rate.Limiter{b.Self(): rate.NewLimiter(rate.Every(24*time.Hour), 1)}
	a.opens.of[b.Self()].Allow()
	a.opens.mu.Unlock()
	a.offences.mu.Lock()
	a.offences.of, a.offences.out = map[protocol.PeerID]*rate.Limiter{b.Self(): rate.NewLimiter(0, offencesBurst)}, map[protocol.PeerID]time.Time{}
	a.offences.mu.Unlock()
	for i := 0; i < 100*offencesBurst && !conn.IsClosed(); i++ {
		if s, err := conn.NewStream(t.Context()); err == nil {
			_ = s.Reset() // it keeps none itself
		}
	}
	until(t, "the flooder cut off", func() bool { return a.offences.isOut(b.Self()) && !a.linked(b) })
	if conn, err := b.dial(t.Context(), a.Self(), a.addr); err == nil {
		until(t, "its new connection closed", conn.IsClosed)
	}
	if err := a.open(t.Context(), b.Self()); err == nil {
		t.Error("it is dialled while it is out")
	}
	if c.link(a.Self()) != l || l.ended() {
		t.Error("another member lost its link")
	}
}

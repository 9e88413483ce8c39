package mesh

import (
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// A frame there and one back, over TCP on loopback.
func BenchmarkRoundTrip(b *testing.B) {
	back := make(chan struct{}, 1)
	var x, y *testHost
	r := &roster{}
	y = startHost(b, r, func(c *Config) {
		c.OnFrame = func(from protocol.PeerID, f []byte) error { y.Send(from, f); return nil }
	})
	x = startHost(b, r, func(c *Config) {
		c.OnFrame = func(protocol.PeerID, []byte) error { back <- struct{}{}; return nil }
	})
	r.set(x.Self(), Inside)
	r.set(y.Self(), Inside)
	x.SetPeers([]Peer{{ID: y.Self(), Addrs: y.addr}})
	until(b, "linked", func() bool { return x.linked(y) && y.linked(x) })
	frame := make([]byte, 600)
	for b.Loop() {
		if !x.Send(y.Self(), frame) {
			b.Fatal("frame was not taken")
		}
		<-back
	}
}

// Frames of 600 bytes one way, as fast as the queue lets them.
func BenchmarkOneWay(b *testing.B) {
	arrived := make(chan struct{}, 1<<16)
	r := &roster{}
	x := startHost(b, r, nil)
	y := startHost(b, r, func(c *Config) {
		c.OnFrame = func(protocol.PeerID, []byte) error { arrived <- struct{}{}; return nil }
	})
	r.set(x.Self(), Inside)
	r.set(y.Self(), Inside)
	x.SetPeers([]Peer{{ID: y.Self(), Addrs: y.addr}})
	until(b, "linked", func() bool { return x.linked(y) && y.linked(x) })
	frame := make([]byte, 600)
	b.SetBytes(int64(len(frame)))
	flying := 0
	for b.Loop() {
		for flying >= 4096 {
			<-arrived
			flying--
		}
		if !x.Send(y.Self(), frame) {
			b.Fatal("frame was not taken")
		}
		flying++
	}
	for ; flying > 0; flying-- {
		<-arrived
	}
}

package roles

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

func peerID(n byte) protocol.PeerID {
	return protocol.PeerIDOf(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, 32)).Public().(ed25519.PublicKey))
}

var (
	outP, outQ = peerID(1), peerID(2)
	in1, in2   = peerID(3), peerID(4)
	room1      = protocol.ScopeRoom("plan", 1)
	room2      = protocol.ScopeRoom("plan", 2)
)

func TestEveryCellOfMaySee(t *testing.T) {
	viewers := map[string]Viewer{
		"inside": {Inside: true},
		"P":      {Peer: outP, Rooms: map[protocol.Scope]bool{room2: true}},
		"client": {Agent: "guest", Rooms: map[protocol.Scope]bool{room1: true}},
		"nobody": {Rooms: map[protocol.Scope]bool{room1: true}},
	}
	scopes := []struct {
		scope protocol.Scope
		sees  map[string]bool
	}{
		{protocol.ScopeInside, map[string]bool{"inside": true}},
		{protocol.ScopeOutside(outP), map[string]bool{"inside": true, "P": true}},
		{protocol.ScopeOutside(outQ), map[string]bool{"inside": true}},
		{room1, map[string]bool{"inside": true, "client": true}},
		{room2, map[string]bool{"inside": true, "P": true}},
		{"out:", nil}, {"out:nobody", nil}, {"", nil}, {"everyone", nil},
	}
	for _, s := range scopes {
		for name, v := range viewers {
			if got := MaySee(v, s.scope); got != s.sees[name] {
				t.Errorf("MaySee(%s, %q) = %v, want %v", name, s.scope, got, s.sees[name])
			}
		}
	}
}

func TestAClientSeesItsOwnMessagesAndNoOthers(t *testing.T) {
	rec := &protocol.Record{Log: protocol.LogID{Peer: in1, Scope: protocol.ScopeInside}, Kind: protocol.KindMessage}
	client := Viewer{Agent: "Guest"}
	for _, c := range []struct {
		env  protocol.Envelope
		want bool
	}{
		{protocol.Envelope{From: "guest", To: "a"}, true},
		{protocol.Envelope{From: "a", To: "guest"}, true},
		{protocol.Envelope{From: "a", To: "b"}, false},
		{protocol.Envelope{From: "a"}, false},
		{protocol.Envelope{From: "guest", Room: "plan"}, false},
	} {
		if got := MaySeeRecord(client, rec, &c.env); got != c.want {
			t.Errorf("%+v: %v, want %v", c.env, got, c.want)
		}
	}
	if MaySeeRecord(client, rec, nil) {
		t.Error("a client sees a record without an envelope")
	}
	bind := *rec
	bind.Kind = protocol.KindBind
	if MaySeeRecord(client, &bind, &protocol.Envelope{From: "guest"}) {
		t.Error("a client sees a record that is not a message")
	}
	if MaySeeRecord(Viewer{Peer: outP}, rec, &protocol.Envelope{To: "x"}) || MaySeeRecord(Viewer{}, rec, &protocol.Envelope{}) {
		t.Error("an outside member or nobody sees a record of the inside")
	}
}

func TestWhatANodeWritesIsSeenByItsTargetAndByNoOtherOutsider(t *testing.T) {
	nodes := map[protocol.PeerID]bool{in1: true, in2: true, outP: false, outQ: false}
	viewer := func(p protocol.PeerID) Viewer {
		if nodes[p] {
			return Viewer{Inside: true}
		}
		return Viewer{Peer: p}
	}
	for self, selfInside := range nodes {
		for target, targetInside := range nodes {
			scope := ScopeFor(selfInside, self, target, targetInside)
			name := fmt.Sprintf("%s to %s in %s", self.Short(), target.Short(), scope)
			if r := MayWrite(viewer(self), scope); r != nil {
				t.Errorf("%s: the author may not write it: %v", name, r)
			}
			reach := MayReach(self, selfInside, target, targetInside)
			if got, want := MaySee(viewer(target), scope), reach == nil; got != want {
				t.Errorf("%s: target sees it %v, may be reached %v", name, got, want)
			}
			for other, inside := range nodes {
				if !inside && other != self && other != target && MaySee(viewer(other), scope) {
					t.Errorf("%s: outsider %s sees it", name, other.Short())
				}
			}
		}
	}
	if got := ScopeFor(true, in1, "", false); got != protocol.ScopeInside {
		t.Errorf("a message to nobody known is logged in %s, want in", got)
	}
}

func TestAnOutsiderWritesOnlyInItsOwnScope(t *testing.T) {
	author := Viewer{Peer: outP, Rooms: map[protocol.Scope]bool{room2: true}}
	for scope, want := range map[protocol.Scope]bool{
		protocol.ScopeInside: false, protocol.ScopeOutside(outP): true, protocol.ScopeOutside(outQ): false,
		room1: false, room2: true, "junk": false,
	} {
		if got := MayWrite(author, scope) == nil; got != want {
			t.Errorf("MayWrite(P, %q) = %v, want %v", scope, got, want)
		}
	}
	if MayWrite(Viewer{Inside: true}, "junk") == nil || MayWrite(Viewer{}, protocol.ScopeInside) == nil || MayWrite(Viewer{Agent: "a", Rooms: author.Rooms}, room2) == nil {
		t.Error("a malformed scope, nobody, or a client authored a log")
	}
}

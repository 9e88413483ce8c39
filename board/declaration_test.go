package board

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// TestAMemberOutsideDeclaresItsShareAlone: whatever one writes within its quota, so many declarations of it are kept, the
// newest; which ones is the same in every order, and those of the inside are not among what gives way.
func TestAMemberOutsideDeclaresItsShareAlone(t *testing.T) {
	j := newJournal(t)
	l := j.founded()
	j.bind(l, "m")
	was := j.open(1, protocol.ScopeInside) // it was inside once
	j.bind(was, "g")
	seat := func(l *journalLog, from protocol.AgentID, i int) {
		j.write(l, protocol.KindMessage, protocol.Envelope{ID: protocol.MsgID(fmt.Sprint(from, i)), From: from, Intent: "SeatTelemetry",
			Value: protocol.EncodeBody(map[string]string{"seat": fmt.Sprint("s", i)})})
	}
	var out []*journalLog
	for range 2 {
		log := j.open(1, protocol.ScopeOutside(j.peers[1]))
		j.bind(log, "g")
		out = append(out, log)
	}
	for i := range 3 * declaredOutside {
		seat(out[i%2], "g", i)
		if i%2 == 0 {
			seat(l, "m", i)
		}
		if i%7 == 0 {
			seat(was, "g", i)
			seat(out[(i+1)%2], "g", i/2)
		}
	}
	count := func(s *State, of protocol.LogID) (n int) {
		for _, d := range s.Declarations() {
			if d.Log.Peer == of.Peer && guests(d.Log) == guests(of) {
				n++
			}
		}
		return n
	}
	var want string
	for seed := range uint64(40) {
		s := fold(t, emptyState(j, 10), j.merged(rand.New(rand.NewPCG(seed, 2))))
		if got := count(s, out[0].id); got != declaredOutside {
			t.Fatalf("%d declarations of outside, at most %d", got, declaredOutside)
		}
		if got := count(s, l.id); got != 3*declaredOutside/2 {
			t.Fatalf("%d declarations of the inside, want all %d", got, 3*declaredOutside/2)
		}
		if want == "" {
			want = s.Digest()
		}
		if s.Digest() != want {
			t.Fatal("another order, another board")
		}
		again, err := Decode(s.Encode())
		if err != nil || again.Digest() != want {
			t.Fatalf("after a checkpoint another board: %v", err)
		}
	}
}

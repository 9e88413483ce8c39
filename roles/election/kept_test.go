package election

import (
	"errors"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

func FuzzDecodeKept(f *testing.F) {
	f.Add([]byte(`{"voted":3,"for":"P1","voters":{"term":{"number":1,"peer":"P0"},"number":4,"set":["P0","P1"]},"old":["P0"]}`))
	f.Add([]byte(`{"voters":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := New(Boot{Self: "P0", Kept: text, Now: protocol.Moment{Boot: "b"}, Term: protocol.TermBody{Number: 1, Peer: "P0"}})
		if err != nil {
			if len(text) > 0 && !errors.Is(err, ErrBadKept) {
				t.Fatal(err)
			}
			return
		}
		c.Step(protocol.Moment{Boot: "b"}, 1, Tick{})
	})
}

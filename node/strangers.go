package node

import (
	"sync/atomic"

	"github.com/aster-mesh/aster/protocol"
)

// strangers counts the sockets that have not yet said who they are, by whether their address holds a valid key: who has none
// cannot take the places of those who have.
type strangers struct{ plain, keyed atomic.Int32 }

// enter takes a place; nil: there is none. leave gives it back, once, however often it is called.
func (s *strangers) enter(keyed bool) (leave func()) {
	count := &s.plain
	if keyed {
		count = &s.keyed
	}
	if count.Add(1) > protocol.StrangersMax {
		count.Add(-1)
		return nil
	}
	var left atomic.Bool
	return func() {
		if left.CompareAndSwap(false, true) {
			count.Add(-1)
		}
	}
}

package node

import (
	"sync"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/keys"
)

// strangersKeyMax is how many places one key may take: a client opens one socket, and some more while its network is bad.
const strangersKeyMax = 16

// strangers counts the sockets that have not yet said who they are, by whether their address holds a valid key: who has none
// cannot take the places of those who have, nor can who has one take those of other keys. The zero value is ready. Safe for
// concurrent use.
type strangers struct {
	mu    sync.Mutex
	plain int
	keyed int
	of    map[keys.Hash]int
}

// enter takes a place, for the holder of a valid key that key's; nil: there is none. leave gives it back, once, however
// often it is called.
func (s *strangers) enter(keyed bool, key keys.Hash) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !keyed {
		if s.plain >= protocol.StrangersMax {
			return nil
		}
		s.plain++
		return sync.OnceFunc(func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.plain--
		})
	}
	if s.keyed >= protocol.StrangersMax || s.of[key] >= strangersKeyMax {
		return nil
	}
	if s.of == nil {
		s.of = map[keys.Hash]int{}
	}
	s.keyed++
	s.of[key]++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.keyed--
		if s.of[key]--; s.of[key] == 0 {
			delete(s.of, key)
		}
	})
}

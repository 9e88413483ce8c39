package journal

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/aster-mesh/aster/protocol"
)

// A sieve spares the question to the database that the loop would else ask for each message: is this a repeat? Nearly none
// is. It is a Bloom filter over the identities that the database has, so "no" is certain, and "perhaps" is asked.

const (
	// sieveProbes and sieveBits give one "perhaps" in a hundred for what is not there.
	sieveProbes = 7
	sieveBits   = 10 // for each identity
	// sieveLeast and sieveMost bound it: 80 KB and 5 MB. A store with more identities asks the database.
	sieveLeast = 1 << 16
	sieveMost  = 1 << 22 // of identities, with room for as many again
	// sievePage is how many identities are read at a time while it is made, sieveRest how long between: a million take some
	// ten seconds and a third of a core.
	sievePage = 512
	sieveRest = 3 * time.Millisecond
)

type sieve struct {
	mu    sync.RWMutex
	state sieveState
	words []uint64
	room  int             // how many more it is made for
	last  protocol.Digest // while it is made: up to here it has them
}

type sieveState uint8

const (
	sieveNone  sieveState = iota // the database is asked; it is to be made
	sieveBegun                   // new identities are put in, not all former ones are
	sieveReady
	sieveNever // there are too many
)

// perhaps says whether an identity may be in the store.
func (s *sieve) perhaps(id *protocol.Digest) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.state != sieveReady {
		return true
	}
	a, b, size := s.split(id)
	for range sieveProbes {
		at, _ := bits.Mul64(a, size)
		if s.words[at>>6]&(1<<(at&63)) == 0 {
			return false
		}
		a += b
	}
	return true
}

func (s *sieve) split(id *protocol.Digest) (a, b, size uint64) {
	return binary.LittleEndian.Uint64(id[:]), binary.LittleEndian.Uint64(id[8:]) | 1, uint64(len(s.words)) * 64
}

// add puts an identity in. A full one is begun anew.
func (s *sieve) add(id *protocol.Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != sieveBegun && s.state != sieveReady {
		return
	}
	if s.room--; s.room < 0 {
		s.state, s.words = sieveNone, nil
		return
	}
	a, b, size := s.split(id)
	for range sieveProbes {
		at, _ := bits.Mul64(a, size)
		s.words[at>>6] |= 1 << (at & 63)
		a += b
	}
}

func (s *sieve) missing() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.state == sieveNone || s.state == sieveBegun
}

// makeSieve reads one page of the identities that the database has, and says whether there are more: soon after a start
// nothing is asked any more, and nobody waits for it.
func (j *Journal) makeSieve() (more bool, err error) {
	s := &j.sieve
	j.fmu.Lock() // no transaction is under way whose identities would be missed
	s.mu.Lock()
	if s.state == sieveNone {
		n := int(j.Records())
		if s.state = sieveBegun; n > sieveMost/2 {
			s.state = sieveNever
		}
		s.room, s.last = max(2*n, sieveLeast), protocol.Digest{}
		s.words = make([]uint64, (s.room*sieveBits+63)/64)
	}
	last, begun := s.last, s.state == sieveBegun
	s.mu.Unlock()
	j.fmu.Unlock()
	if !begun {
		return false, nil
	}
	var page []protocol.Digest
	if err := j.read(func(c *conn) error {
		return c.each("SELECT id FROM identities WHERE id>? ORDER BY id LIMIT ?", []any{last[:], sievePage}, func(st *sqlite3.Stmt) bool {
			var id protocol.Digest
			if fill(id[:], st.ColumnRawBlob(0)) {
				page = append(page, id)
			}
			return true
		})
	}); err != nil {
		return false, fmt.Errorf("read the identities: %w", err)
	}
	for i := range page {
		s.add(&page[i])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.state != sieveBegun:
	case len(page) < sievePage:
		s.state = sieveReady
	default:
		s.last = page[len(page)-1]
	}
	return s.state == sieveNone || s.state == sieveBegun, nil
}

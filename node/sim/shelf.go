package sim

// shelf is what a Disk keeps in an order, by number from 0: in pages, so that a long run can let go of what is over
// together with its place. Nil is empty; make one with newShelf.
type shelf struct {
	pages map[int]*page // by number; absent: nothing of it is left
	size  int
}

const pageSize = 64

type page [pageSize]*diskRecord

func newShelf() *shelf { return &shelf{pages: map[int]*page{}} }

func (s *shelf) len() int {
	if s == nil {
		return 0
	}
	return s.size
}

// at is nil for what was dropped.
func (s *shelf) at(i int) *diskRecord {
	if p := s.pages[i/pageSize]; p != nil {
		return p[i%pageSize]
	}
	return nil
}

func (s *shelf) last() *diskRecord { return s.at(s.size - 1) }

func (s *shelf) push(r *diskRecord) {
	p := s.pages[s.size/pageSize]
	if p == nil {
		p = new(page)
		s.pages[s.size/pageSize] = p
	}
	p[s.size%pageSize] = r
	s.size++
}

func (s *shelf) pop() {
	s.size--
	if s.size%pageSize == 0 {
		delete(s.pages, s.size/pageSize)
	} else if p := s.pages[s.size/pageSize]; p != nil {
		p[s.size%pageSize] = nil
	}
}

// drop lets go of one, and of its page once that is full and holds nothing more.
func (s *shelf) drop(i int) {
	p := s.pages[i/pageSize]
	if p == nil {
		return
	}
	if p[i%pageSize] = nil; *p == (page{}) && (i/pageSize+1)*pageSize <= s.size {
		delete(s.pages, i/pageSize)
	}
}

// from yields those from a number on, in order; not what was dropped.
func (s *shelf) from(i int) func(func(*diskRecord) bool) {
	return func(yield func(*diskRecord) bool) {
		for ; i < s.len(); i++ {
			if r := s.at(i); r != nil && !yield(r) {
				return
			}
		}
	}
}

// skip has it end at a number at least, as if all before that had been dropped.
func (s *shelf) skip(size int) { s.size = max(s.size, size) }

func (s *shelf) copy() *shelf {
	c := &shelf{pages: make(map[int]*page, len(s.pages)), size: s.size}
	for i, p := range s.pages {
		own := *p
		c.pages[i] = &own
	}
	return c
}

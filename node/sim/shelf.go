package sim

// shelf is what a Disk keeps in an order, by number from 0: in pages, so that a long run can let go of what is over
// together with its place. The zero value, and nil, are empty.
type shelf struct {
	pages []*page // from that of number gone on
	gone  int
	size  int
}

const pageSize = 64

type page [pageSize]*diskRecord

func (s *shelf) len() int {
	if s == nil {
		return 0
	}
	return s.size
}

// at is nil for what was dropped.
func (s *shelf) at(i int) *diskRecord {
	if n := i/pageSize - s.gone; n >= 0 && s.pages[n] != nil {
		return s.pages[n][i%pageSize]
	}
	return nil
}

func (s *shelf) last() *diskRecord { return s.at(s.size - 1) }

func (s *shelf) push(r *diskRecord) {
	if s.size%pageSize == 0 {
		s.pages = append(s.pages, new(page))
	}
	s.pages[s.size/pageSize-s.gone][s.size%pageSize] = r
	s.size++
}

func (s *shelf) pop() {
	s.size--
	n := s.size/pageSize - s.gone
	if s.pages[n][s.size%pageSize] = nil; s.size%pageSize == 0 {
		s.pages = s.pages[:n]
	}
}

// drop lets go of one, and of its page once that is full and holds nothing more.
func (s *shelf) drop(i int) {
	n := i/pageSize - s.gone
	if n < 0 || s.pages[n] == nil {
		return
	}
	p := s.pages[n]
	if p[i%pageSize] = nil; *p != (page{}) || (i/pageSize+1)*pageSize > s.size {
		return
	}
	s.pages[n] = nil
	for len(s.pages) > 0 && s.pages[0] == nil {
		s.pages = s.pages[1:]
		s.gone++
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

func (s *shelf) copy() *shelf {
	c := &shelf{pages: make([]*page, len(s.pages)), gone: s.gone, size: s.size}
	for i, p := range s.pages {
		if p != nil {
			own := *p
			c.pages[i] = &own
		}
	}
	return c
}

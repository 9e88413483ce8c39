package journal

// place is where a message is and what its receipts need of it, so that no query is asked for what was just written.
type place struct {
	pos    uint64 // 0: it is not here
	bytes  int64  // of its body
	target string // folded
}

// placesKept is how many of the newest messages are remembered: receipts mostly follow within a second.
const placesKept = 4096

// places remembers the newest messages. Guarded by the journal's fmu.
type places struct {
	at    map[msgRef]place
	order []msgRef // as a ring, once it is full
	next  int
}

func (p *places) get(ref msgRef) (place, bool) {
	at, ok := p.at[ref]
	return at, ok
}

func (p *places) put(ref msgRef, at place) {
	if p.at == nil {
		p.at = map[msgRef]place{}
	}
	if len(p.order) < placesKept {
		p.order = append(p.order, ref)
	} else {
		delete(p.at, p.order[p.next])
		p.order[p.next] = ref
		p.next = (p.next + 1) % placesKept
	}
	p.at[ref] = at
}

// placed notes a message of this transaction; the journal learns of it when it is committed.
func (t *transaction) placed(ref msgRef, at place) {
	if t.fresh == nil {
		t.fresh = map[msgRef]place{}
	}
	t.fresh[ref] = at
}

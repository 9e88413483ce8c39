package hub

import (
	"cmp"
	"slices"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// mailbox holds what waits for one agent: references and sizes, no bodies.
type mailbox struct {
	self    protocol.PeerID
	items   []*letter
	byRef   map[Ref]*letter
	byID    map[protocol.MsgID][]*letter
	bytes   int
	of      map[sender]tally
	reports map[protocol.MsgID]int // unread ones on a Delegate
	gone    int                    // processed letters still in items
	last    map[writer]Ref
}

// writer is who writes one log after another: a node in one scope.
type writer struct {
	peer  protocol.PeerID
	scope protocol.Scope
}

type letter struct {
	Letter
	done      bool
	tries     int       // on the current connection
	lastTry   time.Time // zero: not given on this connection
	announced time.Time // to a wait or hook; zero: never
	announces int
	calm      time.Time // it wakes nobody before: see talks
}

// newMailbox makes one of an agent of the node self.
func newMailbox(self protocol.PeerID) *mailbox {
	return &mailbox{self: self, byRef: map[Ref]*letter{}, byID: map[protocol.MsgID][]*letter{}, last: map[writer]Ref{}, of: map[sender]tally{}, reports: map[protocol.MsgID]int{}}
}

// put adds a letter behind all others, but before those that the same node logged later: a home that lost its store takes
// up what was passed over when it is known again.
func (m *mailbox) put(l Letter) *letter {
	it := &letter{Letter: l}
	by := writer{l.Ref.Log.Peer, l.Ref.Log.Scope}
	at := len(m.items)
	if last, ok := m.last[by]; ok && compareRefs(l.Ref, last) < 0 {
		later := func(o *letter) bool {
			return writer{o.Ref.Log.Peer, o.Ref.Log.Scope} == by && compareRefs(l.Ref, o.Ref) < 0
		}
		if first := slices.IndexFunc(m.items, later); first >= 0 {
			at = first
		}
	} else {
		m.last[by] = l.Ref
	}
	m.items = slices.Insert(m.items, at, it)
	m.byRef[l.Ref] = it
	m.byID[l.ID] = append(m.byID[l.ID], it)
	m.count(&it.Letter, 1)
	return it
}

func (m *mailbox) unread() int { return len(m.items) - m.gone }

// letter finds an unread message by id and, if several senders used the id, by sender: as it is shown, else as it was said.
func (m *mailbox) letter(id protocol.MsgID, from protocol.AgentID, names Aliases) *letter {
	found := m.byID[id]
	for _, l := range found {
		if from == "" || protocol.FoldAgentID(names.Name(l.Ref.Log.Peer, l.From)) == protocol.FoldAgentID(from) {
			return l
		}
	}
	for _, l := range found {
		if protocol.FoldAgentID(l.From) == protocol.FoldAgentID(from) {
			return l
		}
	}
	return nil
}

func (m *mailbox) take(l *letter) {
	if l.done {
		return
	}
	l.done = true
	m.gone++
	m.count(&l.Letter, -1)
	delete(m.byRef, l.Ref)
	rest := m.byID[l.ID][:0]
	for _, o := range m.byID[l.ID] {
		if o != l {
			rest = append(rest, o)
		}
	}
	if len(rest) == 0 {
		delete(m.byID, l.ID)
	} else {
		m.byID[l.ID] = rest
	}
	if m.gone > 64 && m.gone > len(m.items)/2 {
		live := make([]*letter, 0, m.unread())
		for _, o := range m.items {
			if !o.done {
				live = append(live, o)
			}
		}
		m.items, m.gone = live, 0
	}
}

// compareRefs orders records of one writer.
func compareRefs(a, b Ref) int {
	return cmp.Or(a.Log.Start.Compare(b.Log.Start), cmp.Compare(a.Seq, b.Seq))
}

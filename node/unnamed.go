package node

import (
	"sync"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// unnamed are the sockets that are boards until they say HELLO, by whether a person's credential opened them: the node's own
// user opens others with none, and what a program of that user opens without end takes no place of a person's. How long one
// may say nothing has no bound, since a board need not speak; the one that has been silent for longest gives way when there
// are too many, so that whoever comes is let in. The zero value is ready. Safe for concurrent use.
type unnamed struct {
	mu   sync.Mutex
	open [2]map[*socket]bool
}

// closeGivesWay is the status by which a WebSocket says that its peer may come again.
const closeGivesWay = 1013

// enter takes a place, for a socket that a person's credential opened. leave gives it back, once, however often it is called.
func (u *unnamed) enter(s *socket, person bool) (leave func()) {
	kind := 0
	if person {
		kind = 1
	}
	u.mu.Lock()
	if u.open[kind] == nil {
		u.open[kind] = map[*socket]bool{}
	}
	var over *socket
	if len(u.open[kind]) >= protocol.UnnamedMax {
		for o := range u.open[kind] {
			if over == nil || o.before(over) {
				over = o
			}
		}
		delete(u.open[kind], over)
	}
	u.open[kind][s] = true
	u.mu.Unlock()
	if over != nil {
		s.n.log.Warn("socket closed: too many that say no HELLO", "at most", protocol.UnnamedMax, "from", over.from)
		over.conn.Close(closeGivesWay, "too many sockets that say no HELLO: the one that was silent for longest gave way")
	}
	return sync.OnceFunc(func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.open[kind], s)
	})
}

// before says whether s has been silent for longer than o: one that never spoke before one that did.
func (s *socket) before(o *socket) bool {
	a, b := s.spoke.Load(), o.spoke.Load()
	return a < b || a == b && s.id < o.id
}

// heard notes that a socket said something, by a clock that only says what was later.
func (s *socket) heard() {
	if s.board {
		s.spoke.Store(s.n.heardAt.Add(1))
	}
}

// boardPast is what boards are shown of the past. It is read for all who come at once, one reading at a time: however many
// connect, it costs no more than one that connects again and again, and nobody is shown what is older than its coming. The
// zero value is ready. Safe for concurrent use.
type boardPast struct {
	mu      sync.Mutex
	next    *boardRead // nobody has begun it
	reading sync.Mutex
}

// boardRead is one reading. What it holds is not changed once done is closed.
type boardRead struct {
	done    chan struct{}
	joined  int             // how many wait for it, guarded by boardPast.mu
	as      *board.Channels // what was put away or deleted then
	history asterism.History
}

// get waits for a reading that began after the call.
func (p *boardPast) get(read func(*boardRead)) *boardRead {
	p.mu.Lock()
	r := p.next
	if r != nil {
		r.joined++
		p.mu.Unlock()
		<-r.done
		return r
	}
	r = &boardRead{done: make(chan struct{})}
	p.next = r
	p.mu.Unlock()
	p.reading.Lock()
	defer p.reading.Unlock()
	p.mu.Lock()
	p.next = nil
	p.mu.Unlock()
	defer close(r.done)
	read(r)
	return r
}

func (n *Node) pastOfBoards() *boardRead {
	return n.boardPast.get(func(r *boardRead) {
		r.as = n.hidden()
		var whole bool
		r.history, whole = n.historyOf("")
		r.history.Cold = n.cold(r.history.Channels, whole)
	})
}

// beginBoard shows a socket what boards see, until it says that it is none.
func (s *socket) beginBoard(first asterism.Outcome) {
	l := s.n.loop
	for shown := false; !shown; {
		past := s.n.pastOfBoards()
		err := l.call(s.n.ctx, func() {
			if shown = s.n.hidden() == past.as; !shown { // somebody deleted meanwhile
				return
			}
			history := past.history
			history.Archived = l.archivedStubs()
			l.sockets[s.id] = s
			if l.bar(s) {
				return
			}
			l.core.Step(l.now, hub.OpenBoard{Conn: s.id})
			l.say(s, first, history)
			s.undecided = true
		})
		if err != nil {
			return
		}
	}
	s.n.later(helloWait, func() { _ = l.post(s.n.ctx, func() { l.decided(s) }) })
}

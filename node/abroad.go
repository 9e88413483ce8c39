package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/aster-mesh/aster/node/foreign"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// abroad is this node's part at boards that are not its own. Seats begin and end in its run alone. Its agents there are seats, one connection each; the agents of
// those boards are agents of this node in an outside role, called NAME@BOARD, whose inboxes are what waits to be sent.
type abroad struct {
	n    *Node
	wake chan struct{} // capacity 1: agents came or went, or names are to be written down

	saving sync.Mutex // held while boards.json is written: the last word is the last file

	// Guarded by mu.
	mu     sync.Mutex
	ctx    context.Context // of the run group; nil before it runs
	boards []*farBoard
	saved  int // names that boards.json holds, of all boards
}

// farBoard is one of them.
type farBoard struct {
	n    *Node
	lane lane // of all its connections

	// Owned by the loop.
	conns map[protocol.AgentID]hub.ConnID // its agents that are present, by what they are called here

	// Guarded by mu.
	mu    sync.Mutex
	conf  joinedBoard
	round int // of conf: seats of an earlier one end
	names *foreign.Names
	seats map[protocol.AgentID]*seat // by our agent's folded id
	rooms map[string]*farRoom        // in which agents of ours are, by what they are called there
	dirty bool                       // boards.json does not say so yet
	left  chan struct{}              // closed when it was given up; nil: it is not to be

	// Guarded by buying, under which mu may be taken.
	buying sync.Mutex
	bought map[string]bool // large values that were booked, by their SHA-256
}

// joinedBoard is a board as boards.json keeps it. The file holds keys, and is its owner's alone like all of the home.
type joinedBoard struct {
	URL    string                                `json:"url"`
	Name   string                                `json:"name"`
	Key    string                                `json:"key,omitempty"`
	Agents []protocol.AgentID                    `json:"agents,omitempty"`
	All    bool                                  `json:"all,omitempty"`
	As     protocol.AgentID                      `json:"as,omitempty"`
	Names  map[protocol.AgentID]protocol.AgentID `json:"names,omitempty"` // as called there → here
	Rooms  map[string]joinedRoom                 `json:"rooms,omitempty"` // as called there
}

type boardsFile struct {
	Boards []joinedBoard `json:"boards"`
}

const boardsFileName = "boards.json"

// farNamesMax bounds how many agents of one board are given names here, and farPresentMax how many are listed.
const (
	farNamesMax   = 4 * protocol.GuestAgentsMax
	farPresentMax = protocol.GuestAgentsMax
)

// openAbroad reads which boards this home has joined.
func (n *Node) openAbroad() error {
	n.abroad = &abroad{n: n, wake: make(chan struct{}, 1)}
	raw, err := os.ReadFile(n.home.path(boardsFileName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var f boardsFile
	if err == nil {
		err = json.Unmarshal(raw, &f)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w. Put a backup of this file back, or remove it and join the boards again", n.home.path(boardsFileName), err)
	}
	for _, conf := range f.Boards {
		n.abroad.boards = append(n.abroad.boards, n.newFarBoard(conf))
		n.abroad.saved += len(conf.Names)
	}
	return nil
}

func (n *Node) newFarBoard(conf joinedBoard) *farBoard {
	b := &farBoard{n: n, lane: make(lane, peerLane), conns: map[protocol.AgentID]hub.ConnID{}, conf: conf, names: foreign.NewNames(conf.Name, conf.Names), seats: map[protocol.AgentID]*seat{}}
	b.rooms = roomsOf(conf.Rooms, b.names)
	return b
}

// run keeps the seats of all boards until ctx ends.
func (a *abroad) run(ctx context.Context) error {
	a.mu.Lock()
	a.ctx = ctx
	a.mu.Unlock()
	for {
		a.leave(ctx)
		if err := a.seat(ctx); err == nil {
			a.keepNames()
		}
		select {
		case <-a.wake:
		case <-ctx.Done():
			a.each(func(b *farBoard) { b.unseat(nil, nil) })
			return nil
		}
	}
}

func (a *abroad) each(f func(*farBoard)) {
	a.mu.Lock()
	all := slices.Clone(a.boards)
	a.mu.Unlock()
	for _, b := range all {
		f(b)
	}
}

// byName finds a board by what it is called here; nil: no such board.
func (a *abroad) byName(name string) (found *farBoard) {
	a.each(func(b *farBoard) {
		if strings.EqualFold(b.name(), name) {
			found = b
		}
	})
	return found
}

// of finds the board whose agent is called so here.
func (a *abroad) of(id protocol.AgentID) *farBoard {
	at := strings.LastIndexByte(string(id), '@')
	if at < 0 {
		return nil
	}
	return a.byName(string(id)[at+1:])
}

// seat gives every board the seats that it is to have: of named agents, or of all that live here now.
func (a *abroad) seat(ctx context.Context) error {
	a.mu.Lock()
	none := len(a.boards) == 0
	a.mu.Unlock()
	if none {
		return nil
	}
	var here []protocol.AgentID
	err := a.n.loop.call(ctx, func() {
		for _, p := range a.n.loop.core.Presences(a.n.loop.now) {
			if !foreign.Guest(p.Agent) && (p.Role.Inside() || !a.n.loop.inside()) {
				here = append(here, p.Agent)
			}
		}
	})
	if err != nil {
		return err
	}
	guests, err := a.n.guests() // after who is here: whoever was seen has been written down as what it came as
	if err != nil {
		a.n.log.Error("guests not readable", "part", "board", "err", err)
		return err
	}
	here = slices.DeleteFunc(here, func(id protocol.AgentID) bool { return guests[protocol.FoldAgentID(id)] })
	a.each(func(b *farBoard) { b.seatAll(ctx, here) })
	return nil
}

// keepNames writes boards.json if agents were given names since.
func (a *abroad) keepNames() {
	given, dirty := 0, false
	a.each(func(b *farBoard) {
		b.mu.Lock()
		defer b.mu.Unlock()
		given += b.names.Count()
		dirty = dirty || b.dirty
	})
	a.mu.Lock()
	same := given == a.saved && !dirty
	a.mu.Unlock()
	if same {
		return
	}
	if err := a.save(); err != nil {
		a.n.log.Error("names of agents of other boards not kept", "err", err)
	}
}

func (a *abroad) save() error {
	a.saving.Lock()
	defer a.saving.Unlock()
	f, given := boardsFile{Boards: []joinedBoard{}}, 0
	a.each(func(b *farBoard) {
		b.mu.Lock()
		defer b.mu.Unlock()
		conf := b.conf
		conf.Names, conf.Rooms = b.names.All(), keptRooms(b.rooms)
		b.dirty = false
		given += len(conf.Names)
		f.Boards = append(f.Boards, conf)
	})
	if err := writeFile(a.n.home.path(boardsFileName), f); err != nil {
		return err
	}
	a.mu.Lock()
	a.saved = given
	a.mu.Unlock()
	return nil
}

// mail tells the seats of a board that there is something to send to one of its agents.
func (a *abroad) mail(agent protocol.AgentID) {
	if b := a.of(agent); b != nil {
		b.eachSeat(func(s *seat) { s.look(agent) })
	}
}

// heard lets boards know what became of what they sent here. Call it in the loop, with each consequence.
func (a *abroad) heard(l *loop, o hub.Out) {
	switch o := o.(type) {
	case hub.PresenceChanged:
		notify(a.wake)
	case hub.TierReached:
		if o.Tier == protocol.Processed && o.Agent != "" && !o.Delivered && !o.Kept && a.seated(o.Agent) {
			l.processedAbroad(o)
		}
		if (o.Tier == protocol.Persisted || o.Tier == protocol.Refused) && !o.Delivered && !o.Kept {
			a.spoken(o.Agent)
		}
	case hub.FarAsked:
		l.farAsked(o)
	}
}

// seated says whether an agent of ours is at any board.
func (a *abroad) seated(agent protocol.AgentID) (is bool) {
	a.each(func(b *farBoard) { is = is || b.seatOf(agent) != nil })
	return is
}

func (b *farBoard) name() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.conf.Name
}

func (b *farBoard) seatOf(agent protocol.AgentID) *seat {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seats[protocol.FoldAgentID(agent)]
}

func (b *farBoard) eachSeat(f func(*seat)) {
	b.mu.Lock()
	all := make([]*seat, 0, len(b.seats))
	for _, s := range b.seats {
		all = append(all, s)
	}
	b.mu.Unlock()
	for _, s := range all {
		f(s)
	}
}

// here is what an agent of the board is called here; false: it has shown too many.
func (b *farBoard) here(there protocol.AgentID) (protocol.AgentID, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.named(there)
}

// named is here under the lock.
func (b *farBoard) named(there protocol.AgentID) (protocol.AgentID, bool) {
	if _, known := b.names.Known(there); !known && b.names.Count() >= farNamesMax {
		return "", false
	}
	here, fresh := b.names.Here(there)
	if fresh {
		notify(b.n.abroad.wake)
	}
	return here, true
}

func (b *farBoard) there(here protocol.AgentID) (protocol.AgentID, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.names.There(here)
}

// seatAll begins seats that are missing and ends those that are not to be any more.
func (b *farBoard) seatAll(ctx context.Context, here []protocol.AgentID) {
	b.mu.Lock()
	want := map[protocol.AgentID]protocol.AgentID{}
	agents := b.conf.Agents
	if b.conf.All {
		agents = here
	}
	for _, id := range agents {
		want[protocol.FoldAgentID(id)] = id
	}
	round := b.round
	b.mu.Unlock()
	goes := func(s *seat) bool { return want[protocol.FoldAgentID(s.agent)] == "" }
	b.unseat(func(s *seat) bool { return !goes(s) && s.round == round }, goes)
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, id := range want {
		if b.seats[key] == nil && b.round == round {
			b.seats[key] = newSeat(ctx, b, id)
		}
	}
}

// unseat ends seats that are not to stay, waits for their end and withdraws what was warned of them. A nil stay ends all;
// those whose agents go for good leave their rooms there.
func (b *farBoard) unseat(stay, goes func(*seat) bool) {
	b.mu.Lock()
	var gone []*seat
	for key, s := range b.seats {
		if stay == nil || !stay(s) {
			gone = append(gone, s)
			delete(b.seats, key)
		}
	}
	b.mu.Unlock()
	for _, s := range gone {
		if goes != nil && goes(s) {
			s.leaveRooms()
		}
		s.cancel()
		<-s.done
		b.n.warnings.clear(s.warning())
	}
}

// row is the board as the API shows it.
func (b *farBoard) row(ctx context.Context) (api.Board, error) {
	var there []protocol.AgentID
	if err := b.n.loop.call(ctx, func() {
		for id := range b.conns {
			there = append(there, id)
		}
	}); err != nil {
		return api.Board{}, err
	}
	slices.Sort(there)
	b.mu.Lock()
	out := api.Board{URL: b.conf.URL, Name: b.conf.Name, Keyed: b.conf.Key != "", All: b.conf.All, There: there, Seats: []api.Seat{}}
	out.Rooms = b.roomRows()
	b.mu.Unlock()
	b.eachSeat(func(s *seat) { out.Seats = append(out.Seats, s.row()) })
	slices.SortFunc(out.Seats, func(x, y api.Seat) int { return strings.Compare(string(x.Agent), string(y.Agent)) })
	return out, nil
}

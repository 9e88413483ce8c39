package hub

import (
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/room"
)

// Core is the hub's whole state. Make one with New.
type Core struct {
	self    protocol.PeerID
	members map[protocol.PeerID]Member
	term    protocol.TermBody
	author  author

	agents   map[protocol.AgentID]*agent // by folded id, as it is called
	bound    map[identity]*agent         // those whose binding is known
	ended    map[identity]ending         // bindings taken back
	arrivals map[identity]bool           // agents that moved here and whose mail is yet to be taken over
	came     map[identity]bool           // agents of this node that lived on another before
	former   map[protocol.AgentID]Former // by folded id; names given up for others
	aliases  Aliases
	conns    map[ConnID]*conn
	boards   map[ConnID]bool
	waits    map[Token]protocol.AgentID // folded id

	prompts      map[promptKey]*prompt
	promptsEnded []promptKey // oldest first, promptsKeptMax at most
	declared     map[declaredKey]*lastDeclared
	rooms        map[protocol.RoomID]*room.Room
	copies       map[Ref]Ref                   // of messages of rooms, written for members outside
	parked       map[protocol.RoomID][]*Parked // of agents here, oldest first
	notes        bool                          // presence makes records

	limits  Limits
	paces   map[paceKey]bucket // of senders here; absent: full
	talking map[talkKey]*talk  // between agents of which one is here

	pending  map[Ref]*sent             // our agents' messages that nobody has taken yet
	absentAt time.Time                 // when to look at them again; zero: never
	fresh    map[protocol.Digest]Seen  // said since the last Ready
	said     map[saidOf]bool           // receipts of other homes since the last Ready
	marks    map[protocol.LogID]uint64 // of our logs: what another inside node has

	early     map[string]*early // by the value's name
	heldEarly map[string]uint64 // how far the logs are held that they speak of

	ready    Ready
	receipts receiptBatch

	rosterDirty   bool
	rosterSent    time.Time
	presenceDirty bool
	presenceSent  time.Time
	closed        *protocol.Refusal // why nothing is written any more; nil: it is
	closing       bool              // since the last Ready
	next          time.Time         // earliest moment at which a Tick is due; zero: none
}

// agent is a party of the mesh, wherever it lives.
type agent struct {
	bind      protocol.BindBody // Agent as it is called
	own       protocol.AgentID  // as its first home bound it; it may be called otherwise after a clash
	word      word              // that holds
	homes     []protocol.PeerID // all that it had
	guest     bool              // a member outside bound it
	inner     bool              // that has also said it as a member inside
	hearsay   bool              // known by a peer's word only, no binding seen yet
	remote    *Presence
	elsewhere *Presence          // what a node says that is not known as its home: it may be about to
	arrives   *protocol.MoveBody // it lives here now, and its mail has not been taken over yet

	// Of agents at home here.
	box       *mailbox
	conns     []ConnID
	client    string // that bound it
	wakes     string
	state     protocol.AgentState
	doing     string
	since     time.Time
	noted     Noted
	acks      bool        // has acknowledged something once, so silence means something
	replaced  []time.Time // of its sockets, within flapWindow
	coolUntil time.Time
}

type conn struct {
	id       ConnID
	agent    protocol.AgentID // as bound
	client   string
	tiers    bool
	ackLayer bool
	queue    []Ref // to deliver, in order
	inflight map[Ref]int
	bytes    int
}

// Boot is what a start reads from the store.
type Boot struct {
	Self    protocol.PeerID
	Start   protocol.Start
	Clock   protocol.HLC // greatest time ever merged
	Members map[protocol.PeerID]Member
	Term    protocol.TermBody
	Agents  []Bound
	Ended   []Former // bindings taken back
	Former  []Former // of these, those of names given up that nobody bears now
	// Presence of agents at home here as their last records say, and the time of this start. Nil: presence makes no records.
	Presence map[protocol.AgentID]Noted
	Now      time.Time
	Unread   map[protocol.AgentID][]Letter // of agents at home here, oldest first
	Pending  []Pending
	// Selections are the questions to people and their ends, oldest first: clocks go on where they were.
	Selections []Selected
	Rooms      map[protocol.RoomID]*room.Room
	Shared     map[protocol.PeerID]map[protocol.RoomID]*room.Room // at a member outside its own are the rooms
	Parked     map[string][]byte                                  // stored values under ParkedPrefix
	Seqs       map[protocol.Scope]uint64                          // of this start's own logs, when the hub is made anew in mid-life
	Limits     Limits
	Early      map[string][]byte         // stored values under EarlyPrefix
	Held       map[protocol.LogID]uint64 // how far each log is held
}

// Bound is one agent whose binding is in force.
type Bound struct {
	Bind  protocol.BindBody // Agent as its first home bound it
	At    protocol.HLC      // of the word that holds
	Homes []protocol.PeerID
	Guest bool               // a member outside bound it
	Move  *protocol.MoveBody // its home has yet to take its mail over
}

// Letter is one unread message of an inbox.
type Letter struct {
	Ref  Ref
	ID   protocol.MsgID
	From protocol.AgentID
	// Report is the Delegate that it reports on; empty: it is no report.
	Report protocol.MsgID
	At     time.Time
	Bytes  int
	Wakes  bool
	Given  bool // once given to a client that does not acknowledge
	Kept   bool // an adapter said that it has it on its disk: no connection is given it again
}

// Pending is one message of ours that was not yet persisted anywhere when the process ended.
type Pending struct {
	Ref      Ref
	From, To protocol.AgentID
	ID       protocol.MsgID
	At       time.Time
}

// New makes a hub from what was stored.
func New(b Boot) *Core {
	c := &Core{
		self:     b.Self,
		members:  b.Members,
		term:     b.Term,
		agents:   map[protocol.AgentID]*agent{},
		bound:    map[identity]*agent{},
		ended:    map[identity]ending{},
		arrivals: map[identity]bool{},
		came:     map[identity]bool{},
		former:   map[protocol.AgentID]Former{},
		conns:    map[ConnID]*conn{},
		boards:   map[ConnID]bool{},
		waits:    map[Token]protocol.AgentID{},
		pending:  map[Ref]*sent{},
		prompts:  map[promptKey]*prompt{},
		declared: map[declaredKey]*lastDeclared{},
		copies:   map[Ref]Ref{},
		parked:   map[protocol.RoomID][]*Parked{},
		fresh:    map[protocol.Digest]Seen{},
		said:     map[saidOf]bool{},
		marks:    map[protocol.LogID]uint64{},
		author:   newAuthor(b.Self, b.Start, b.Clock),
		limits:   b.Limits.orDefault(),
		paces:    map[paceKey]bucket{},
		talking:  map[talkKey]*talk{},

		early: map[string]*early{}, heldEarly: map[string]uint64{},
	}
	c.bootEarly(b.Early, b.Held)
	for scope, seq := range b.Seqs {
		c.author.seqs[scope] = seq
	}
	if c.members == nil {
		c.members = map[protocol.PeerID]Member{}
	}
	for _, f := range b.Former {
		c.former[protocol.FoldAgentID(f.Bind.Agent)] = f
	}
	for _, f := range b.Ended {
		c.ended[identityOf(&f.Bind)] = ending{wordOf(&f.Bind, f.At), f.Guest}
	}
	for _, a := range b.Agents {
		c.bootAgent(a)
	}
	c.callAll(b.Now)
	for id, letters := range b.Unread {
		a := c.agents[protocol.FoldAgentID(id)]
		if a == nil || a.box == nil {
			continue
		}
		for _, l := range letters {
			a.box.put(l)
			a.acks = a.acks || !l.Given || l.Kept
		}
	}
	c.restorePresence(b)
	for _, p := range b.Pending {
		c.pend(p.Ref, &sent{from: p.From, to: p.To, id: p.ID, at: p.At})
	}
	c.setRooms(b.Rooms, b.Shared)
	c.bootParked(b.Parked)
	for _, s := range b.Selections {
		c.selectionSeen(s.Ref, s.Env, s.At)
	}
	return c
}

// Step takes one input. What follows from it is added to the next Ready.
func (c *Core) Step(now time.Time, input Input) {
	if c.closed != nil && c.fence(input) {
		return
	}
	switch in := input.(type) {
	case Say:
		c.say(now, in)
	case SayLive:
		c.sayLive(in)
	case Acked:
		c.acked(now, in)
	case Taken:
		c.taken(now, in)
	case Abroad, Heard:
		c.ofBoards(now, in)
	case Applied:
		c.applied(now, in)
	case DeliveredElsewhere:
		c.deliveredElsewhere(in)
	case Replicated:
		c.replicated(in)
	case Attach:
		c.attach(now, in)
	case Detach:
		c.detach(now, in)
	case OpenBoard:
		c.boards[in.Conn] = true
		//lint:ignore S1016 an input and an output that happen to look alike
		c.out(Roster{Conn: in.Conn})
	case Declare:
		c.declare(now, in)
	case Forget:
		c.forget(now, in)
	case Rename:
		c.rename(now, in)
	case Move:
		c.move(now, in)
	case Arrive:
		c.arrive(now, in)
	case Doing:
		c.setDoing(now, in)
	case PeerPresence:
		c.peerPresence(in)
	case PeerGone:
		c.peerGone(in)
	case Members:
		c.members = in.All
		c.callAll(now) // who was admitted first is called by its own name
		c.rosterDirty = true
	case Term:
		c.setTerm(in)
	case Wait:
		c.wait(now, in)
	case Unwait:
		c.unwait(now, in.Token)
	case Author:
		ref := c.author.add(&c.ready, now, in.Scope, in.Kind, in.Body, nil)
		c.tell(Told{Token: in.Token, Ref: ref})
	case Announce:
		c.tellAgent(now, in.Env)
	case Rooms:
		c.setRooms(in.All, in.Shared)
	case Missed:
		c.missed(now, in)
	case Fence:
		c.closing, c.closed = c.closed == nil, in.Refusal
	case Tick:
		c.tick(now)
	}
}

// Ready returns what the Steps since the last Ready owe, and begins anew.
func (c *Core) Ready(now time.Time) Ready {
	c.receipts.flush(c, now)
	if c.rosterDirty {
		if at := c.rosterSent.Add(c.rosterPace()); now.Before(at) {
			c.due(at)
		} else {
			c.rosterDirty, c.rosterSent = false, now
			c.out(Roster{})
		}
	}
	if c.presenceDirty {
		if at := c.presenceSent.Add(protocol.LiveEvery); now.Before(at) {
			c.due(at)
		} else {
			c.presenceDirty, c.presenceSent = false, now
			c.out(PresenceChanged{})
		}
	}
	rd := c.ready
	c.ready = Ready{}
	if c.closed != nil && !c.closing {
		rd = fenced(rd)
	}
	c.closing = false
	clear(c.fresh)
	if len(c.said) > 0 {
		c.said = map[saidOf]bool{} // a great turn leaves nothing behind
	}
	return rd
}

// Next is when a Tick is due at the latest; zero means that nothing waits for time.
func (c *Core) Next() time.Time { return c.next }

func (c *Core) due(at time.Time) {
	if c.next.IsZero() || at.Before(c.next) {
		c.next = at
	}
}

func (c *Core) out(o Out) { c.ready.Out = append(c.ready.Out, o) }

func (c *Core) tell(t Told) {
	if t.Token != 0 {
		c.out(t)
	}
}

// Clock is the greatest hybrid time made or merged.
func (c *Core) Clock() protocol.HLC { return c.author.clock.Last() }

func (c *Core) find(id protocol.AgentID) *agent { return c.agents[protocol.FoldAgentID(id)] }

// home returns an agent of this node, or nil: also while its mail is on the way here.
func (c *Core) home(id protocol.AgentID) *agent {
	if a := c.find(id); a != nil && c.serves(a) {
		return a
	}
	return nil
}

// serves says whether an agent's inbox is this node's.
func (c *Core) serves(a *agent) bool { return a.bind.Home == c.self && a.arrives == nil }

// Self's place: an outside node writes everything in its one scope. Who is not known to be inside is not, self too.
func (c *Core) inside() bool { return c.members[c.self].Inside }

// Inside says whether this node is a member of the inside.
func (c *Core) Inside() bool { return c.inside() }

// alone: no other inside member exists that could hold a copy.
func (c *Core) Alone() bool {
	for p, m := range c.members {
		if p != c.self && m.Inside && !m.Gone {
			return false
		}
	}
	return true
}

package election

import (
	"slices"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// Core is what one node knows of the office. Make one with New.
type Core struct {
	self   protocol.PeerID
	inside []protocol.PeerID        // members in office that are inside, this node among them; sorted
	gone   map[protocol.PeerID]bool // revoked, or left

	term  protocol.Term
	ended bool            // its main has resigned
	heir  protocol.PeerID // to whom

	kept  kept           // on disk before anything that follows from it leaves
	noted protocol.Stamp // of the voters in the last record of them

	// As a voter. Times are Moment.Up of this boot.
	heard    time.Duration // the main's last word that forbids a vote for another
	silent   bool          // nothing forbids it
	deadline time.Duration // when this node asks for the office itself
	seen     uint64        // highest number that anybody spoke of
	run      *run          // nil: no candidate
	vain     int           // rounds in a row that led to nothing

	office *office // nil: not main

	ready Ready
	told  Status // as of the last Ready
}

// Boot is what a start reads from the store.
type Boot struct {
	Self protocol.PeerID
	Kept []byte            // as Ready.Keep gave it; nil: nothing yet
	Term protocol.TermBody // in office, as the records say
	// Lost says that this node has kept something before, and that it is gone, or may be older than it was: until
	// VoterAbsence has passed it gives no vote, asks for none and does not act as main, since it may have voted for another.
	Lost bool
	Now  protocol.Moment
	Dice uint64
}

// New makes a core. A voter that starts does not know whom it heard a moment before, so it behaves as if it had just
// heard the main.
func New(b Boot) (*Core, error) {
	c := &Core{self: b.Self, inside: []protocol.PeerID{b.Self}, gone: map[protocol.PeerID]bool{}}
	if len(b.Kept) > 0 {
		var err error
		if c.kept, err = decodeKept(b.Kept); err != nil {
			return nil, err
		}
	}
	if b.Lost {
		c.kept.Lost = &b.Now
		c.keep()
	}
	c.heard = b.Now.Up
	c.wait(b.Now, b.Dice)
	c.termSeen(b.Now, b.Dice, b.Term)
	return c, nil
}

// Input is anything that can happen to the office. The set is closed.
type Input interface{ isInput() }

// Tick says that time passed.
type Tick struct{}

// Members replaces what is known of the mesh's members. Gone are those whom a record ended.
type Members struct{ Inside, Gone []protocol.PeerID }

// TermSeen is a record of a term that counts.
type TermSeen struct{ protocol.TermBody }

// VotersSeen is a record of voters that counts.
type VotersSeen struct{ protocol.VotersBody }

// Received is a message of a linked inside member.
type Received struct {
	From protocol.PeerID
	Message
}

func (Tick) isInput()       {}
func (Members) isInput()    {}
func (TermSeen) isInput()   {}
func (VotersSeen) isInput() {}
func (Received) isInput()   {}

// Ready is what the node owes after a batch of Steps: Keep and the records of Elected, Resigned and Voters in one commit,
// then Send.
type Ready struct {
	Keep     []byte // to store; nil: as before
	Elected  *Elected
	Resigned *Resigned
	Voters   *protocol.VotersBody
	Send     []Send
	// Asked: the main agent is to be told that it is to hand over.
	Asked *Asked
	// Changed: Status differs from that at the last Ready.
	Changed bool
}

// Elected says that this node is main from now on. The node adds the agent and the cuts to the term's record.
type Elected struct {
	Term, Prev protocol.Term
	Forced     bool
}

// Resigned says that this node writes the last record of its term.
type Resigned struct {
	Term    protocol.Term
	To      protocol.PeerID
	ToAgent protocol.AgentID
}

// Asked says to whom the main agent is to hand over, and why.
type Asked struct {
	To     protocol.AgentID
	Reason string
}

// Send is a message to one node.
type Send struct {
	To protocol.PeerID
	Message
}

// Empty says that nothing is owed.
func (r *Ready) Empty() bool {
	return r.Keep == nil && r.Elected == nil && r.Resigned == nil && r.Voters == nil && len(r.Send) == 0 && r.Asked == nil && !r.Changed
}

// Step takes one input; dice is a fresh random number. What follows from it is added to the next Ready.
func (c *Core) Step(now protocol.Moment, dice uint64, in Input) {
	switch in := in.(type) {
	case Members:
		c.members(now, dice, in)
	case TermSeen:
		c.termSeen(now, dice, in.TermBody)
	case VotersSeen:
		if in.Stamp.Compare(c.noted) > 0 {
			c.noted = in.Stamp
		}
		c.adopt(Voters{in.Stamp, in.Voters})
	case Received:
		c.received(now, dice, in)
	}
	c.tick(now, dice)
}

// Ready returns what the Steps since the last Ready owe, and begins anew.
func (c *Core) Ready(now protocol.Moment) Ready {
	rd := c.ready
	c.ready = Ready{}
	if st := c.Status(now); !st.equal(&c.told) {
		c.told, rd.Changed = st, true
	}
	return rd
}

func (c *Core) received(now protocol.Moment, dice uint64, in Received) {
	if c.gone[in.From] || in.From == c.self {
		return
	}
	c.seen = max(c.seen, in.Seen)
	switch in.Kind {
	case Beat:
		c.beat(now, dice, in)
	case BeatAck:
		c.acked(now, dice, in)
	case Ask:
		c.asked(now, dice, in)
	case Vote:
		c.vote(now, dice, in)
	}
}

// tick does what time alone brings about.
func (c *Core) tick(now protocol.Moment, dice uint64) {
	if c.office != nil {
		c.govern(now)
	}
	if c.run != nil && now.Up >= c.run.until {
		c.run, c.deadline = nil, now.Up
		c.vain++
	}
	if c.run == nil && now.Up >= c.deadline && c.mayRun(now) {
		c.stand(now, dice)
	}
}

// Wait is how long until a Tick is due.
func (c *Core) Wait(now protocol.Moment) time.Duration {
	next := now.Up + protocol.Forever/2
	if c.office != nil {
		next = c.office.next(now)
	}
	switch {
	case c.run != nil:
		next = min(next, c.run.until)
	case c.mayRun(now):
		next = min(next, c.deadline)
	}
	if left := c.muteFor(now); left > 0 {
		next = min(next, now.Up+left)
	}
	return max(next-now.Up, 0)
}

// wait puts this node's own candidacy off: until the main has been silent for so long that others would agree.
func (c *Core) wait(now protocol.Moment, dice uint64) {
	c.deadline = now.Up + protocol.MainSilence + spread(dice, protocol.ElectionSpread)
}

// spread is a part of d, by chance.
func spread(dice uint64, d time.Duration) time.Duration { return time.Duration(dice % uint64(d)) }

func (c *Core) members(now protocol.Moment, dice uint64, in Members) {
	c.inside, c.gone = slices.Sorted(slices.Values(in.Inside)), map[protocol.PeerID]bool{}
	for _, p := range in.Gone {
		c.gone[p] = true
	}
	if c.gone[c.term.Peer] && !c.silent { // nobody waits for its word
		c.silent = true
		c.deadline = now.Up + spread(dice, protocol.ElectionSpread)
	}
}

// termSeen takes a term that a record or its own main speaks of.
func (c *Core) termSeen(now protocol.Moment, dice uint64, b protocol.TermBody) {
	t := b.Term()
	if t.IsZero() || t.Compare(c.term) < 0 {
		return
	}
	if t != c.term {
		c.enter(now, t)
		if t.Peer != c.self {
			c.heard, c.silent = now.Up, false
			c.wait(now, dice)
		}
	}
	if b.Ended && c.heir == "" {
		c.resigned(now, dice, b.To)
		if c.heir == c.self {
			c.deadline = now.Up
		}
	}
}

// enter makes t the term in office.
func (c *Core) enter(now protocol.Moment, t protocol.Term) {
	c.term, c.ended, c.heir, c.run, c.office, c.vain = t, false, "", nil, nil, 0
	c.seen = max(c.seen, t.Number)
	if t.Peer == c.self {
		c.office = newOffice(now)
		c.claimVoters()
	}
}

// resigned notes that the main has given the office up.
func (c *Core) resigned(now protocol.Moment, dice uint64, to protocol.PeerID) {
	c.ended, c.heir, c.silent = true, to, true
	c.wait(now, dice) // the heir first
}

// Status is what can be said of the office at a moment.
type Status struct {
	Term protocol.Term
	Main bool // this node is it, as far as it knows
	// Sure: no other node can have been elected meanwhile, so claims may be granted and plan work started.
	Sure    bool
	Ended   bool
	Handing bool // it was asked to hand over and is not ready yet
	Stamp   protocol.Stamp
	Voters  []protocol.PeerID
	Missing []protocol.PeerID // voters that the main does not reach
	Running bool              // this node asks for the office
	Mute    time.Duration     // that this node has no say yet, since it has forgotten its votes
}

func (s *Status) equal(o *Status) bool {
	return s.Term == o.Term && s.Main == o.Main && s.Sure == o.Sure && s.Ended == o.Ended && s.Handing == o.Handing && s.Stamp == o.Stamp &&
		s.Running == o.Running && (s.Mute > 0) == (o.Mute > 0) && slices.Equal(s.Missing, o.Missing)
}

// Status says who is main as far as this node knows, and what it may do if it is.
func (c *Core) Status(now protocol.Moment) Status {
	s := Status{Term: c.term, Main: c.office != nil, Sure: c.sure(now), Ended: c.ended, Stamp: c.kept.Voters.Stamp,
		Voters: slices.Clone(c.kept.Voters.Set), Running: c.run != nil, Mute: c.muteFor(now)}
	if c.office != nil {
		s.Handing = c.office.handing != nil
		s.Missing = c.missing(now)
	}
	return s
}

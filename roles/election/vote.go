package election

import (
	"slices"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// run is one round of questions.
type run struct {
	pre    bool
	number uint64
	yes    map[protocol.PeerID]bool
	until  time.Duration
}

// mayRun says whether this node is one to ask for the office: a voter that misses the main, or the main itself when
// somebody has voted for a later term and so no longer takes its word.
func (c *Core) mayRun(now protocol.Moment) bool {
	if c.mute(now) || !slices.Contains(c.electors(), c.self) {
		return false
	}
	return c.office == nil || c.ended || c.office.refused > c.term.Number
}

// stand begins a round: would I be elected?
func (c *Core) stand(now protocol.Moment, dice uint64) {
	c.round(now, dice, true, max(c.term.Number, c.kept.Voted, c.seen)+1)
}

func (c *Core) round(now protocol.Moment, dice uint64, pre bool, number uint64) {
	wait := (protocol.RoundWait + spread(dice, protocol.RoundWait)) * time.Duration(1+min(c.vain/8, 3)) // alone for long: less often
	if c.heir == c.self && c.vain < 8 {
		wait /= 4 // everybody hears of it at this moment
	}
	c.run = &run{pre: pre, number: number, yes: map[protocol.PeerID]bool{c.self: true}, until: now.Up + wait}
	if !pre {
		c.kept.Voted, c.kept.For = number, c.self
		c.keep()
	}
	for _, p := range c.electors() {
		if p != c.self {
			c.send(p, Message{Kind: Ask, Pre: pre, Number: number, Stamp: c.kept.Voters.Stamp})
		}
	}
	c.count(now, dice)
}

func (c *Core) send(to protocol.PeerID, m Message) {
	if m.Kind != Beat {
		m.Term = c.term
	}
	m.Seen = max(c.kept.Voted, c.term.Number)
	c.ready.Send = append(c.ready.Send, Send{to, m})
}

// count ends a round that has its majority.
func (c *Core) count(now protocol.Moment, dice uint64) {
	yes := 0
	for _, p := range c.electors() {
		if c.run.yes[p] {
			yes++
		}
	}
	if yes < c.quorum() {
		return
	}
	if c.run.pre {
		c.round(now, dice, false, c.run.number)
		return
	}
	c.elected(now, c.run.number, false)
}

func (c *Core) elected(now protocol.Moment, number uint64, forced bool) {
	prev := c.term
	c.enter(now, protocol.Term{Number: number, Peer: c.self})
	c.ready.Elected = &Elected{Term: c.term, Prev: prev, Forced: forced}
}

// asked answers a candidate. A vote is kept before it is answered, one a number.
func (c *Core) asked(now protocol.Moment, dice uint64, in Received) {
	ok := c.wouldVote(now, &in)
	if ok && !in.Pre && c.kept.Voted != in.Number {
		c.kept.Voted, c.kept.For = in.Number, in.From
		c.keep()
		c.run = nil
		c.deadline = now.Up + 2*protocol.RoundWait + spread(dice, protocol.ElectionSpread) // let it win first
	}
	c.send(in.From, Message{Kind: Vote, Pre: in.Pre, Number: in.Number, OK: ok, Stamp: c.kept.Voters.Stamp})
}

func (c *Core) wouldVote(now protocol.Moment, in *Received) bool {
	repeat := !in.Pre && in.Number == c.kept.Voted && c.kept.For == in.From
	switch {
	case c.mute(now), in.Number <= c.term.Number, in.Number <= c.kept.Voted && !repeat:
		return false
	case in.Stamp.Compare(c.kept.Voters.Stamp) < 0:
		return false // it slept while others decided who elects
	case in.From == c.term.Peer:
		return true // the main itself, whom somebody has stopped believing
	case c.sure(now):
		return false // this node is main, and others count on it
	}
	return c.silent || now.Up-c.heard >= protocol.MainSilence
}

// vote takes an answer.
func (c *Core) vote(now protocol.Moment, dice uint64, in Received) {
	if c.run == nil || c.run.pre != in.Pre || c.run.number != in.Number || !in.OK {
		return
	}
	c.run.yes[in.From] = true
	c.count(now, dice)
}

// Force makes this node main without an election: a person says so. reach are the inside members that it is linked to:
// with them it goes on. It is refused to who is main already and has no reason to doubt it.
func (c *Core) Force(now protocol.Moment, reach []protocol.PeerID) *protocol.Refusal {
	if c.sure(now) {
		return protocol.Refuse(protocol.CodeNotAllowed, "this node is main already", "")
	}
	number := max(c.term.Number, c.kept.Voted, c.seen) + 1
	c.kept.Voted, c.kept.For, c.kept.Lost = number, c.self, nil // a person has said so
	v := Voters{protocol.Stamp{Term: protocol.Term{Number: number, Peer: c.self}, Number: c.kept.Voters.Number + 1}, []protocol.PeerID{c.self}}
	for _, p := range reach {
		if slices.Contains(c.inside, p) && !c.gone[p] {
			v.Set = append(v.Set, p)
		}
	}
	c.adopt(v)
	c.kept.Old = []protocol.PeerID{c.self}
	c.elected(now, number, true)
	return nil
}

package election

import (
	"slices"

	"github.com/aster-mesh/aster/protocol"
)

// claimVoters begins a term: the main puts its own stamp on the voters that it knows, before it changes them. So what
// a former main proposed to few is overruled, and changes follow one another (Ongaro's correction to single-server
// membership changes in Raft, 2015). The first main of a mesh is its only voter.
func (c *Core) claimVoters() {
	v := c.kept.Voters
	if len(v.Set) == 0 {
		v.Set = []protocol.PeerID{c.self}
	}
	if v.Term != c.term {
		v.Stamp = protocol.Stamp{Term: c.term, Number: v.Number + 1}
		c.change(v)
	}
	c.decide()
}

// change puts voters in force here; they are decided when a majority of those before has them on disk.
func (c *Core) change(v Voters) {
	old := c.kept.Voters.Set
	if len(old) == 0 {
		old = v.Set
	}
	c.adopt(v)
	c.kept.Old = old
	c.keep()
	c.office.decided = false
	c.office.beatAt = 0 // everybody at once
}

func (c *Core) decide() {
	o := c.office
	if o == nil || o.decided || c.kept.Voters.Term != c.term {
		return
	}
	lacking := c.lacking(c.kept.Old, func(f *follower) bool { return f.stamp == c.kept.Voters.Stamp })
	if n := len(c.still(c.kept.Old)); n > 0 && n-len(lacking) < majority(n) {
		return
	}
	o.decided = true
	if len(c.kept.Old) > 0 {
		c.kept.Old = nil
		c.keep()
	}
	if c.kept.Voters.Stamp != c.noted {
		c.noted = c.kept.Voters.Stamp
		c.ready.Voters = &protocol.VotersBody{Stamp: c.kept.Voters.Stamp, Voters: c.kept.Voters.Set}
	}
}

// reviseVoters proposes one change at a time: who is gone or was silent for VoterAbsence leaves, who answers comes in.
func (c *Core) reviseVoters(now protocol.Moment) {
	o := c.office
	if !o.decided || c.kept.Voted > c.term.Number {
		return
	}
	set := c.kept.Voters.Set
	for i, p := range set {
		if p != c.self && (c.gone[p] || c.absent(now, p)) {
			c.propose(slices.Delete(slices.Clone(set), i, i+1))
			return
		}
	}
	for _, p := range c.inside {
		f := o.peers[p]
		here := p == c.self || f != nil && f.ever && now.AtMost(f.answered) <= protocol.MainSilence
		if here && !c.gone[p] && !slices.Contains(set, p) {
			c.propose(append(slices.Clone(set), p))
			return
		}
	}
}

func (c *Core) absent(now protocol.Moment, p protocol.PeerID) bool {
	last := c.office.since
	if f := c.office.peers[p]; f != nil && f.ever {
		last = f.answered
	}
	return now.AtLeast(last) >= protocol.VoterAbsence
}

// propose changes the voters by one.
func (c *Core) propose(set []protocol.PeerID) {
	c.change(Voters{protocol.Stamp{Term: c.term, Number: c.kept.Voters.Number + 1}, set})
	c.decide()
}

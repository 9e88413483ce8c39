package election

import (
	"slices"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// office is what a main knows.
type office struct {
	since   protocol.Moment
	seq     uint64
	beats   [beatsKept]sentBeat // by seq
	beatAt  time.Duration       // of the next
	peers   map[protocol.PeerID]*follower
	refused uint64 // highest number that a voter holds against this term
	decided bool   // a majority of the voters before agrees to those in force
	handing *handing
}

// beatsKept: older answers than this prove nothing any more.
const beatsKept = 16

type sentBeat struct {
	seq    uint64
	at     protocol.Moment
	strong bool
}

// follower is what the main knows of another node.
type follower struct {
	answered protocol.Moment // its last answer, whatever it said
	ever     bool
	reach    protocol.Moment // when the last word was sent that it took
	reached  bool
	lease    protocol.Moment // the same, of words that forbid it to vote
	leased   bool
	stamp    protocol.Stamp // of its voters
}

func newOffice(now protocol.Moment) *office {
	return &office{since: now, beatAt: now.Up, peers: map[protocol.PeerID]*follower{}}
}

func (o *office) follower(p protocol.PeerID) *follower {
	f := o.peers[p]
	if f == nil {
		f = &follower{}
		o.peers[p] = f
	}
	return f
}

func (o *office) next(now protocol.Moment) time.Duration {
	next := o.beatAt
	if o.handing != nil {
		next = min(next, o.handing.until)
	}
	for _, f := range o.peers { // who stops counting on whom is to be said at once
		if f.leased && now.AtMost(f.lease) <= protocol.MainLease {
			next = min(next, now.Up+protocol.MainLease-now.AtMost(f.lease)+time.Millisecond)
		}
	}
	return next
}

// govern does what a main does as time passes: its word to everybody, the voters, a hand-over that takes too long.
func (c *Core) govern(now protocol.Moment) {
	o := c.office
	if o.handing != nil && now.Up >= o.handing.until {
		c.resign(now)
	}
	if !c.ended {
		c.reviseVoters(now)
	}
	if now.Up < o.beatAt {
		return
	}
	o.beatAt = now.Up + protocol.BeatEvery
	o.seq++
	strong := !c.ended && !c.mute(now) && c.kept.Voted <= c.term.Number &&
		(now.AtMost(o.since) < protocol.MainSilence || c.few(c.kept.Voters.Set, func(f *follower) bool { return f.reached && fresh(now, f.reach) }))
	o.beats[o.seq%beatsKept] = sentBeat{o.seq, now, strong}
	for _, p := range c.inside {
		if p == c.self || c.gone[p] {
			continue
		}
		m := Message{Kind: Beat, Term: c.term, Seq: o.seq, Strong: strong, Resigned: c.ended, Stamp: c.kept.Voters.Stamp}
		if o.follower(p).stamp != m.Stamp {
			m.Voters = c.kept.Voters.Set
		}
		c.send(p, m)
	}
}

// beat takes the main's word. Who speaks for a term is its main alone.
func (c *Core) beat(now protocol.Moment, dice uint64, in Received) {
	if in.Term.Peer != in.From || in.Term.IsZero() {
		return
	}
	ok := in.Term.Compare(c.term) >= 0 && in.Term.Number >= c.kept.Voted
	if ok {
		c.termSeen(now, dice, protocol.TermBody{Number: in.Term.Number, Peer: in.Term.Peer})
		c.adopt(Voters{in.Stamp, in.Voters})
		switch {
		case in.Resigned && !c.ended:
			c.resigned(now, dice, "")
		case in.Strong && !c.ended:
			c.heard, c.silent, c.run = now.Up, false, nil
			c.wait(now, dice)
		}
	}
	answer := Message{Kind: BeatAck, Seq: in.Seq, OK: ok, Stamp: c.kept.Voters.Stamp}
	if c.mute(now) { // it is here, and nobody is to count on it
		answer.OK, answer.Stamp = false, protocol.Stamp{}
	}
	c.send(in.From, answer)
}

// acked takes the answer to a beat.
func (c *Core) acked(now protocol.Moment, dice uint64, in Received) {
	o := c.office
	if o == nil {
		return
	}
	f := o.follower(in.From)
	f.answered, f.ever, f.stamp = now, true, in.Stamp
	sent := o.beats[in.Seq%beatsKept]
	switch {
	case !in.OK:
		if in.Seen > c.term.Number && in.Seen > o.refused && slices.Contains(c.electors(), in.From) {
			o.refused = in.Seen
			c.deadline = now.Up + spread(dice, protocol.ElectionSpread)
		}
	case in.Seq == 0 || sent.seq != in.Seq: // too old to prove anything
	default:
		f.reach, f.reached = sent.at, true
		if sent.strong {
			f.lease, f.leased = sent.at, true
		}
	}
	c.decide()
}

func fresh(now, sent protocol.Moment) bool { return now.AtMost(sent) <= protocol.MainLease }

// bound says that a voter can vote for nobody else yet.
func (f *follower) bound(now protocol.Moment) bool { return f.leased && fresh(now, f.lease) }

// missing are the electors that may vote for another by now.
func (c *Core) missing(now protocol.Moment) []protocol.PeerID {
	return c.lacking(c.kept.Voters.Set, func(f *follower) bool { return f.bound(now) })
}

// lacking are those of a set, this node aside, of whom has does not hold.
func (c *Core) lacking(set []protocol.PeerID, has func(*follower) bool) (out []protocol.PeerID) {
	for _, p := range c.still(set) {
		if f := c.office.peers[p]; p != c.self && (f == nil || !has(f)) {
			out = append(out, p)
		}
	}
	return out
}

// few says that those of whom has does not hold are too few to elect anybody. Whom a record has ended is one of them: who has
// not seen that record takes its vote.
func (c *Core) few(set []protocol.PeerID, has func(*follower) bool) bool {
	ended := len(set) - len(c.still(set))
	return len(c.lacking(set, has))+ended < majority(len(set))
}

// sure says whether this node is main and nobody else can be: fewer than a majority of the electors are free to vote. Until
// a change of voters is decided that must hold of both sets, since either may elect.
func (c *Core) sure(now protocol.Moment) bool {
	if c.office == nil || c.ended || c.mute(now) || c.kept.Voted > c.term.Number || c.gone[c.self] {
		return false
	}
	bound := func(f *follower) bool { return f.bound(now) }
	return c.few(c.kept.Voters.Set, bound) && (c.office.decided || c.few(c.kept.Old, bound))
}

package election

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// ErrBadKept says that bytes are not what Ready.Keep gave.
var ErrBadKept = errors.New("bad record of votes")

// Voters is a decision on who elects.
type Voters struct {
	protocol.Stamp
	Set []protocol.PeerID `json:"set"` // sorted
}

// kept is what must outlive a crash: a node that forgot its vote could give a second one.
type kept struct {
	Voted  uint64          `json:"voted"` // highest number in which it gave its vote
	For    protocol.PeerID `json:"for"`
	Voters Voters          `json:"voters"`
	// Old are the voters before, while this main has not heard that a majority of them agrees to Voters.
	Old []protocol.PeerID `json:"old,omitempty"`
	// Lost is when this node found that it had lost what it kept before. What it promised may hold for VoterAbsence.
	Lost *protocol.Moment `json:"lost,omitempty"`
}

func decodeKept(text []byte) (kept, error) {
	var k kept
	if err := json.Unmarshal(text, &k); err != nil {
		return kept{}, fmt.Errorf("%w: %w", ErrBadKept, err)
	}
	return k, nil
}

// keep has what is to outlive a crash in the next Ready.
func (c *Core) keep() { c.ready.Keep = protocol.EncodeBody(c.kept) }

// mute says that this node may have promised something that it has forgotten, and so promises nothing.
func (c *Core) mute(now protocol.Moment) bool { return c.muteFor(now) > 0 }

func (c *Core) muteFor(now protocol.Moment) time.Duration {
	if c.kept.Lost == nil {
		return 0
	}
	return max(protocol.VoterAbsence-now.AtLeast(*c.kept.Lost), 0)
}

// adopt takes a later decision on who elects.
func (c *Core) adopt(v Voters) {
	if len(v.Set) == 0 || v.Stamp.Compare(c.kept.Voters.Stamp) <= 0 {
		return
	}
	set := slices.Clone(v.Set)
	slices.Sort(set)
	c.kept.Voters, c.kept.Old = Voters{v.Stamp, slices.Compact(set)}, nil
	c.keep()
}

// quorum is how many votes elect. Whom a record has ended votes no more and counts all the same until the main has taken it
// off the voters: a main that has not seen that record counts on it, and must not lose the office to fewer than a majority
// of the set that both know. Of two voters the other follows a main that was ended.
func (c *Core) quorum() int {
	set := c.kept.Voters.Set
	if len(set) == 2 && c.gone[c.term.Peer] && slices.Contains(set, c.term.Peer) {
		return 1
	}
	return majority(len(set))
}

// electors are the voters but those whom a record has ended: they vote no more, so nobody asks them.
func (c *Core) electors() []protocol.PeerID { return c.still(c.kept.Voters.Set) }

func (c *Core) still(set []protocol.PeerID) []protocol.PeerID {
	out := make([]protocol.PeerID, 0, len(set))
	for _, p := range set {
		if !c.gone[p] {
			out = append(out, p)
		}
	}
	return out
}

func majority(n int) int { return n/2 + 1 }

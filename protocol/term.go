package protocol

import (
	"cmp"
	"fmt"
	"strings"
)

// Term names one main's time in office. Terms are ordered by number, then peer, so that two nodes that take the office
// by force under one number still have two terms, and everybody agrees which is the later (DESIGN 5).
type Term struct {
	Number uint64 `json:"number"` // from 1
	Peer   PeerID `json:"peer"`   // the main's node
}

// Compare orders terms.
func (t Term) Compare(o Term) int {
	return cmp.Or(cmp.Compare(t.Number, o.Number), strings.Compare(string(t.Peer), string(o.Peer)))
}

// IsZero says that t is no term: none is known.
func (t Term) IsZero() bool { return t.Number == 0 }

func (t Term) String() string { return fmt.Sprintf("%d of %s", t.Number, t.Peer.Short()) }

// Stamp numbers the decisions on who has a vote. A later main's decision is later whatever its number.
type Stamp struct {
	Term   Term   `json:"term"`   // of the main that decided
	Number uint64 `json:"number"` // rises by one with every decision
}

// Compare orders stamps.
func (s Stamp) Compare(o Stamp) int {
	return cmp.Or(s.Term.Compare(o.Term), cmp.Compare(s.Number, o.Number))
}

package roles

import "github.com/aster-mesh/aster/protocol"

// Claim is one word on where an agent lives now. Words of one agent are compared by it alone, never by their dates or
// the order in which they came, so that all nodes agree.
type Claim struct {
	Moves  uint64
	Forced bool
	Home   protocol.PeerID
}

// ClaimOf is what a binding claims.
func ClaimOf(b *protocol.BindBody) Claim { return Claim{b.Moves, b.Forced, b.Home} }

// Beats says whether c holds against o: the agent that has moved oftener, of two equals the one that main moved, since its
// person knew that the other home was gone, then the smaller home.
func (c Claim) Beats(o Claim) bool {
	if c.Moves != o.Moves {
		return c.Moves > o.Moves
	}
	if c.Forced != o.Forced {
		return c.Forced
	}
	return c.Home < o.Home
}

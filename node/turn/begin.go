package turn

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
	"github.com/aster-mesh/aster/roles/member"
)

// Beginning is what a node knows that lacks what others do not hold any more.
type Beginning struct {
	Told    map[protocol.PeerID]meshwire.Base // by members of the inside that are linked
	Inviter protocol.PeerID                   // of this node; empty: it founded the mesh
	Linked  bool                              // that one is
	Others  int                               // how many other members of the inside are known
	House   func(protocol.PeerID) protocol.PeerID
	Stalled func(protocol.PeerID) bool // gave nothing of late: its word counts, and it is not asked
}

// Whose is the member whose snapshot is taken. It is whoever invited the node, whatever others say: they may have let go less, or of
// late more. An inviter that is linked and told of none has all that is lacking. While it is away no member's word alone is taken: those
// of two houses must say the same, and no other base may have as many. How many members a house has counts nothing, since it makes
// as many as it likes; its word is taken where nobody else is left, the inviter included.
// What the inviter told of is taken of whoever has the same; if none gives it, the inviter counts as away.
func (b *Beginning) Whose() (protocol.PeerID, bool) {
	peers := slices.Sorted(maps.Keys(b.Told))
	f, told := b.Told[b.Inviter]
	if told && !b.Stalled(b.Inviter) {
		return b.Inviter, true
	}
	if told {
		if i := slices.IndexFunc(peers, func(p protocol.PeerID) bool { return b.Told[p] == f && !b.Stalled(p) }); i >= 0 {
			return peers[i], true
		}
	} else if b.Linked {
		return "", false
	}
	type voices struct {
		first  protocol.PeerID
		told   int
		houses map[protocol.PeerID]bool
	}
	by := map[meshwire.Base]*voices{}
	for _, p := range peers {
		v := by[b.Told[p]]
		if v == nil {
			v = &voices{houses: map[protocol.PeerID]bool{}}
			by[b.Told[p]] = v
		}
		if v.first == "" && !b.Stalled(p) {
			v.first = p
		}
		v.told++
		v.houses[b.House(p)] = true
	}
	most, second := (*voices)(nil), 0
	for _, v := range by {
		if most == nil || len(v.houses) > len(most.houses) {
			if most != nil {
				second = len(most.houses)
			}
			most = v
			continue
		}
		second = max(second, len(v.houses))
	}
	if most == nil || len(most.houses) == second || len(most.houses) < 2 && most.told < b.Others {
		return "", false
	}
	return most.first, most.first != ""
}

// HouseOf is whom a member's certificate comes from, of those who are not in a node's own chain: itself, or who let in who let it in.
// Members of one house may all be one member's invention. Who is in a node's own chain could invent houses as well: its own certificate rests on that one, too.
func HouseOf(chain, own member.Chain) protocol.PeerID {
	for i := len(chain) - 1; i >= 0; i-- {
		p := chain[i].Cert.Peer
		if !slices.ContainsFunc(own, func(l member.Link) bool { return l.Cert.Peer == p }) {
			return p
		}
	}
	return ""
}

// TakesYoung says whether to begin at a snapshot would take a record from a node that is young there. Members agree on no such
// base, whatever their settings and with a day to spare for their clocks, so it is another's word alone.
func TakesYoung(store interface {
	At(log protocol.LogID, seq uint64) (journal.Stored, bool, error)
}, head func(protocol.LogID) uint64, snap *board.Snapshot, now time.Time) (bool, error) {
	for _, b := range snap.Bases() {
		st, found, err := store.At(b.Log, min(b.Seq, head(b.Log)))
		var left *journal.BelowError
		if err != nil && !errors.As(err, &left) {
			return false, err
		}
		if err == nil && found && !st.Damaged && now.UnixMilli()-st.Record.Wall < protocol.MessageLife.Milliseconds() {
			return true, nil
		}
	}
	return false, nil
}

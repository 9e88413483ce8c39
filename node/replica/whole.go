package replica

import "github.com/aster-mesh/aster/protocol"

// Whole says whether a linked peer was compared with, and nothing that it holds of an author's logs is lacking here.
func (r *Replica) Whole(peer, author protocol.PeerID) bool {
	k := r.link(peer)
	if k == nil || !k.compared || k.vague[author] {
		return false
	}
	for _, l := range r.lacks {
		if l.id.Peer == author && min(l.known, l.end) > l.takenSeq {
			return false
		}
	}
	return true
}

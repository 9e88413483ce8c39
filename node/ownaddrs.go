package node

import (
	"crypto/ed25519"
	"slices"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
)

// ownAddrs is this node's signed address list. A list that says something new is later than the one before, which is kept
// over restarts, also where the clock was set back: members hold on to the latest. Each start says it anew, for a copy of
// this home may have spoken meanwhile.
func (l *loop) ownAddrs(addrs []string) meshwire.Addrs {
	self := l.n.home.peer
	next, fresh := followingAddrs(l.n.home.key, l.addrs[self], addrs, l.now.UnixMilli())
	if fresh || !l.ownSigned {
		l.ownSigned = true
		l.addrs[self] = next
		l.value(keyAddrs+string(self), protocol.EncodeBody(next))
	}
	return l.addrs[self]
}

// followingAddrs is the list after last, and whether it says anything that last does not.
func followingAddrs(key ed25519.PrivateKey, last meshwire.Addrs, addrs []string, now int64) (next meshwire.Addrs, fresh bool) {
	next = meshwire.SignAddrs(key, addrs, max(now, last.At+1))
	return next, last.Sig == nil || !slices.Equal(last.Addrs, next.Addrs)
}

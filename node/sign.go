package node

import (
	"crypto/ed25519"
	"path/filepath"

	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
)

// signer signs what the node of a key wrote, and nothing else.
func signer(key ed25519.PrivateKey) journal.Signer {
	self := protocol.PeerIDOf(key.Public().(ed25519.PublicKey))
	return func(r *protocol.Record, h protocol.Hash) {
		if r.Log.Peer == self {
			r.SignHash(key, h)
		}
	}
}

// signerIn is the signer of a home that no node runs in, whose store a crash may have left; nil: the home has no key.
func signerIn(dir string) journal.Signer {
	key, err := keyFile(filepath.Join(dir, "node.key"), false)
	if err != nil {
		return nil
	}
	return signer(key)
}

package node

import (
	"crypto/ed25519"
	"errors"
	"io/fs"
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

// signerIn is the signer of a home that no node runs in, whose store a crash may have left; nil: the home has no key, or a
// broken one. An error: its key could not be read now. What the store owes a signature would be filed without one for good.
func signerIn(dir string) (journal.Signer, error) {
	key, err := keyFile(filepath.Join(dir, "node.key"), false)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoKey):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return signer(key), nil
}

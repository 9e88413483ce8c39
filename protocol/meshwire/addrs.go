package meshwire

import (
	"crypto/ed25519"
	"encoding/binary"
	"fmt"

	"github.com/aster-mesh/aster/protocol"
)

const (
	addrsTag = "aster.addrs.1\x00"
	addrsMax = 32 // per node
	addrMax  = 512
)

// SignAddrs makes a signed address list of the node whose key it is, of the first addresses where there are too many. at
// is ms since 1970, and greater than that of every list that the node signed before.
func SignAddrs(key ed25519.PrivateKey, addrs []string, at int64) Addrs {
	addrs = addrs[:min(len(addrs), addrsMax)]
	a := Addrs{Peer: protocol.PeerIDOf(key.Public().(ed25519.PublicKey)), Addrs: addrs, At: at}
	a.Sig = ed25519.Sign(key, a.signed())
	return a
}

// Verify says why a is not what Peer itself signed, or nil.
func (a Addrs) Verify() error {
	pub, err := a.Peer.PublicKey()
	if err != nil {
		return fmt.Errorf("address list: %w", err)
	}
	if !ed25519.Verify(pub, a.signed(), a.Sig) {
		return fmt.Errorf("address list of %s: %w", a.Peer.Short(), protocol.ErrBadSignature)
	}
	return nil
}

// signed is what the signature covers: tag, peer, time and each address with its length before it.
func (a Addrs) signed() []byte {
	out := []byte(addrsTag)
	text := func(s string) {
		out = binary.BigEndian.AppendUint32(out, uint32(len(s)))
		out = append(out, s...)
	}
	text(string(a.Peer))
	out = binary.BigEndian.AppendUint64(out, uint64(a.At))
	out = binary.BigEndian.AppendUint32(out, uint32(len(a.Addrs)))
	for _, addr := range a.Addrs {
		text(addr)
	}
	return out
}

func (a Addrs) check() error {
	if len(a.Addrs) > addrsMax {
		return fmt.Errorf("%w: %d addresses, at most %d", ErrBadFrame, len(a.Addrs), addrsMax)
	}
	for _, addr := range a.Addrs {
		if err := checkTexts(field{"address", addr, addrMax}); err != nil {
			return err
		}
	}
	if len(a.Sig) != ed25519.SignatureSize {
		return fmt.Errorf("%w: a signature of %d bytes", ErrBadFrame, len(a.Sig))
	}
	return nil
}

package meshwire

import (
	"crypto/ed25519"
	"fmt"

	"github.com/aster-mesh/aster/protocol"
)

const startedTag = "aster.started.1\x00"

// SignStarted says that a start of the node whose key it is runs. Only a start itself may sign it.
func SignStarted(key ed25519.PrivateKey, start protocol.Start) Started {
	s := Started{Peer: protocol.PeerIDOf(key.Public().(ed25519.PublicKey)), Start: start}
	s.Sig = ed25519.Sign(key, s.signed())
	return s
}

// Verify says why s is not what Peer itself signed, or nil.
func (s Started) Verify() error {
	pub, err := s.Peer.PublicKey()
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if !ed25519.Verify(pub, s.signed(), s.Sig) {
		return fmt.Errorf("start of %s: %w", s.Peer.Short(), protocol.ErrBadSignature)
	}
	return nil
}

// signed is what the signature covers: tag, start and peer, which alone has no fixed length.
func (s Started) signed() []byte {
	return append(appendStart([]byte(startedTag), s.Start), s.Peer...)
}

type wStarted struct {
	Peer  []byte `msgpack:"p"`
	Start []byte `msgpack:"s"`
	Sig   []byte `msgpack:"g"`
}

func (w *wStarted) frame() (Frame, error) {
	var c ids
	peer, err := c.peerOf(w.Peer)
	if err != nil {
		return nil, err
	}
	start, err := startOf(w.Start)
	if err != nil {
		return nil, err
	}
	if len(w.Sig) != ed25519.SignatureSize {
		return nil, fmt.Errorf("%w: a signature of %d bytes", ErrBadFrame, len(w.Sig))
	}
	return Started{peer, start, w.Sig}, nil
}

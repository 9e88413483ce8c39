package member

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
)

// MeshID names a mesh: its public key in base64url, 43 characters.
type MeshID string

// ErrBadMeshID says that a text is not the id of a mesh.
var ErrBadMeshID = errors.New("not a mesh id")

// NewKey makes an Ed25519 key, of a mesh or of a node, from 32 bytes of random.
func NewKey(random io.Reader) (ed25519.PrivateKey, error) {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(random, seed); err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// MeshIDOf is the id of the mesh of a key.
func MeshIDOf(pub ed25519.PublicKey) MeshID {
	return MeshID(base64.RawURLEncoding.EncodeToString(pub))
}

// PublicKey is the key that m holds, or ErrBadMeshID.
func (m MeshID) PublicKey() (ed25519.PublicKey, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(string(m))
	if err != nil || len(raw) != ed25519.PublicKeySize || len(m) != base64.RawURLEncoding.EncodedLen(ed25519.PublicKeySize) {
		return nil, ErrBadMeshID
	}
	return ed25519.PublicKey(raw), nil
}

// Short is the first eight characters, for people; it proves nothing.
func (m MeshID) Short() string {
	if len(m) <= 8 {
		return string(m)
	}
	return string(m[:8])
}

package keys

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/aster-mesh/aster/protocol"
)

// Kind is one of the contract's four kinds of key. There is no other: an unknown one is refused, never taken for
// upstream (fault B32).
type Kind string

const (
	Upstream Kind = "upstream"
	Collab   Kind = "collab"
	Peer     Kind = "peer"
	Local    Kind = "local"
)

var prefixes = map[Kind]string{Upstream: "uk-", Collab: "ck-", Peer: "pk-", Local: "lk-"}

// Known says whether k is one of the four.
func (k Kind) Known() bool { return prefixes[k] != "" }

// Role is what an agent that comes with a key of the kind is.
func (k Kind) Role() protocol.Role {
	switch k {
	case Upstream:
		return protocol.RoleUpstream
	case Collab:
		return protocol.RoleCollab
	case Peer:
		return protocol.RolePeer
	}
	return protocol.RoleLocal
}

// KindOf is the kind that a key string claims by its prefix; only the ring knows whether there is such a key.
func KindOf(secret string) (Kind, bool) {
	for k, prefix := range prefixes {
		if strings.HasPrefix(secret, prefix) {
			return k, true
		}
	}
	return "", false
}

// Param is the name under which the contract puts a key of the kind into a URL.
func (k Kind) Param() string {
	switch k {
	case Upstream:
		return "upstreamKey"
	case Peer:
		return "peerKey"
	}
	return "key"
}

// SecretBytes is how many random bytes make a key.
const SecretBytes = 12

// Secret is the key string of a kind made from random bytes: the prefix and 24 hex digits.
func Secret(k Kind, random [SecretBytes]byte) string {
	return prefixes[k] + hex.EncodeToString(random[:])
}

// Hash is the SHA-256 of a key string. It is what is stored and compared: a key has 96 random bits, so its hash gives
// nothing away, and looking it up says nothing about other keys by the time it takes.
type Hash [32]byte

// HashOf is the hash of a key string.
func HashOf(secret string) Hash { return sha256.Sum256([]byte(secret)) }

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Ref is the name by which people and verbs speak of a key: kr- and 12 hex digits of its hash.
func (h Hash) Ref() string { return "kr-" + hex.EncodeToString(h[:6]) }

// Fingerprint is what logs show.
func (h Hash) Fingerprint() string { return "fp:" + hex.EncodeToString(h[:4]) }

func parseHash(text string) (h Hash, ok bool) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(h) || strings.ToLower(text) != text {
		return h, false
	}
	copy(h[:], raw)
	return h, true
}

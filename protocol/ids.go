package protocol

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// PeerID names a node: the text form of a libp2p peer id of an Ed25519 key (it holds the public key whole).
type PeerID string

// AgentID names a party that speaks through a node.
type AgentID string

// MsgID names a message for its sender: (AgentID, MsgID) is unique in a mesh (DESIGN 4).
type MsgID string

// RoomID names a room of several agents.
type RoomID string

// TaskID is the MsgID of the Delegate that began a task.
type TaskID = MsgID

var (
	// ErrBadPeerID says that a text is not the id of an Ed25519 key.
	ErrBadPeerID = errors.New("not an Ed25519 peer id")
	// ErrBadAgentID says that a text cannot name an agent.
	ErrBadAgentID = errors.New("not an agent id")
)

// CheckAgentID says why id cannot name an agent: empty, longer than AgentIDBytesMax, not UTF-8, or holding spaces at
// its ends, control, zero-width or direction characters.
func CheckAgentID(id AgentID) error {
	s := string(id)
	switch {
	case s == "":
		return fmt.Errorf("%w: it is empty", ErrBadAgentID)
	case len(s) > AgentIDBytesMax:
		return fmt.Errorf("%w: %d bytes, at most %d", ErrBadAgentID, len(s), AgentIDBytesMax)
	case !utf8.ValidString(s):
		return fmt.Errorf("%w: not UTF-8", ErrBadAgentID)
	case strings.TrimSpace(s) != s:
		return fmt.Errorf("%w: %q begins or ends with a space", ErrBadAgentID, s)
	}
	for _, r := range s {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '/' || r == '\\' {
			return fmt.Errorf("%w: %q holds %U", ErrBadAgentID, s, r)
		}
	}
	return nil
}

// FoldAgentID is the form under which two ids count as the same name: lower case. Two agents whose ids fold alike
// cannot be bound at once (fault kind "ids equal after folding").
func FoldAgentID(id AgentID) AgentID { return AgentID(strings.ToLower(string(id))) }

// CheckMsgID says why id cannot name a message: empty, too long, not UTF-8, or with control characters.
func CheckMsgID(id MsgID) error {
	s := string(id)
	switch {
	case s == "":
		return errors.New("not a message id: it is empty")
	case len(s) > MsgIDBytesMax:
		return fmt.Errorf("not a message id: %d bytes, at most %d", len(s), MsgIDBytesMax)
	case !utf8.ValidString(s):
		return errors.New("not a message id: not UTF-8")
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return fmt.Errorf("not a message id: it holds %U", r)
		}
	}
	return nil
}

// A libp2p peer id of an Ed25519 key is base58btc over: identity multihash (0x00), length 36 (0x24), then the protobuf
// of the key: type Ed25519 (0x08 0x01), 32 bytes of data (0x12 0x20), the key.
var peerIDPrefix = []byte{0x00, 0x24, 0x08, 0x01, 0x12, 0x20}

// PeerIDOf returns the id of an Ed25519 public key.
func PeerIDOf(pub ed25519.PublicKey) PeerID {
	return PeerID(base58Encode(append(append([]byte{}, peerIDPrefix...), pub...)))
}

// PublicKey returns the key that p holds, or ErrBadPeerID.
func (p PeerID) PublicKey() (ed25519.PublicKey, error) {
	if len(p) > 64 {
		return nil, ErrBadPeerID
	}
	raw, ok := base58Decode(string(p))
	if !ok || len(raw) != len(peerIDPrefix)+ed25519.PublicKeySize || string(raw[:len(peerIDPrefix)]) != string(peerIDPrefix) {
		return nil, ErrBadPeerID
	}
	return ed25519.PublicKey(raw[len(peerIDPrefix):]), nil
}

// Short is the last six characters of p, for people; it proves nothing.
func (p PeerID) Short() string {
	if len(p) <= 6 {
		return string(p)
	}
	return string(p[len(p)-6:])
}

const base58Alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

// base58Limb is 58^5: five digits are worked off at once.
const base58Limb = 58 * 58 * 58 * 58 * 58

func base58Encode(in []byte) string {
	zeros := 0
	for zeros < len(in) && in[zeros] == 0 {
		zeros++
	}
	var room [16]uint32
	limbs := room[:0] // of five digits each, the lowest first
	for rest := in[zeros:]; len(rest) > 0; {
		n := min(len(rest), 4)
		var carry uint64
		for _, b := range rest[:n] {
			carry = carry<<8 | uint64(b)
		}
		rest = rest[n:]
		for i := range limbs {
			carry += uint64(limbs[i]) << (8 * n)
			limbs[i] = uint32(carry % base58Limb)
			carry /= base58Limb
		}
		for ; carry > 0; carry /= base58Limb {
			limbs = append(limbs, uint32(carry%base58Limb))
		}
	}
	out := make([]byte, 0, zeros+5*len(limbs))
	for range zeros {
		out = append(out, base58Alphabet[0])
	}
	for i := len(limbs) - 1; i >= 0; i-- {
		v := limbs[i]
		for unit := uint32(base58Limb / 58); unit > 0; unit /= 58 {
			if d := v / unit; d > 0 || len(out) > zeros { // not the zeros before the first digit
				out = append(out, base58Alphabet[d])
			}
			v %= unit
		}
	}
	return string(out)
}

// base58Digits is what each character stands for, 255 for none.
var base58Digits = func() (of [256]byte) {
	for i := range of {
		of[i] = 255
	}
	for i := range base58Alphabet {
		of[base58Alphabet[i]] = byte(i)
	}
	return of
}()

func base58Decode(s string) ([]byte, bool) {
	zeros := 0
	for zeros < len(s) && s[zeros] == '1' {
		zeros++
	}
	var room [16]uint32
	limbs := room[:0] // of four bytes each, the lowest first
	for rest := s[zeros:]; len(rest) > 0; {
		n := min(len(rest), 5)
		var carry, unit uint64 = 0, 1
		for i := range n {
			d := base58Digits[rest[i]]
			if d == 255 {
				return nil, false
			}
			carry, unit = carry*58+uint64(d), unit*58
		}
		rest = rest[n:]
		for i := range limbs {
			carry += uint64(limbs[i]) * unit
			limbs[i] = uint32(carry)
			carry >>= 32
		}
		if carry > 0 {
			limbs = append(limbs, uint32(carry))
		}
	}
	out := make([]byte, zeros, zeros+4*len(limbs))
	for i := len(limbs) - 1; i >= 0; i-- {
		for shift := 24; shift >= 0; shift -= 8 {
			if b := byte(limbs[i] >> shift); b > 0 || len(out) > zeros {
				out = append(out, b)
			}
		}
	}
	return out, true
}

// crockford is Douglas Crockford's base 32 alphabet, lower case: no i, l, o, u.
var crockford = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// ShortID is what people see and type for a message: five Crockford characters (BOARD 3). Of a UUID (hyphenated, as
// aster makes them) they are its last 25 bits, of any other id the last 25 bits of its SHA-256.
func ShortID(id MsgID) string { return ShortIDOf(id, 5) }

// ShortIDOf is ShortID with n characters (5 to 12), for a clash.
func ShortIDOf(id MsgID, n int) string {
	raw, err := hex.DecodeString(strings.ReplaceAll(string(id), "-", ""))
	if err != nil || len(raw) != 16 {
		sum := sha256.Sum256([]byte(id))
		raw = sum[:16]
	}
	text := crockford.EncodeToString(lastBits(raw))
	return text[len(text)-n:]
}

// lastBits shifts 16 bytes so that the lowest 80 bits fill ten whole bytes: base 32 then aligns to the end.
func lastBits(raw []byte) []byte { return raw[len(raw)-10:] }

// Digest is the first half of a SHA-256: enough to recognise, kept by the million.
type Digest [16]byte

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

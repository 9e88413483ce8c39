package meshwire

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/aster-mesh/aster/protocol"
)

// Ids travel as bytes, not as text: a peer as its 32 key bytes, a start as 16, a log as both and its scope, which is
// nothing for the inside, 'o' and a key for an outside member, 'r' and "ROOM:GENERATION" for a room. A log id so takes
// 48 bytes instead of 88 or more; there is no table of log ids to keep in step on a link.
const (
	keyBytes   = 32
	startBytes = 16
	scopeOut   = 'o'
	scopeRoom  = 'r'
	roomPrefix = "room:"
	// seqMax leaves every sum of seqs within range: 2^53, a hundred thousand a second for 2,800 years.
	seqMax = 1 << 53
)

// ids converts ids of one frame; it remembers the last peer, since marks of one author stand together.
type ids struct {
	peer protocol.PeerID
	key  [keyBytes]byte
}

func (c *ids) keyOf(p protocol.PeerID) ([]byte, error) {
	if p == "" || p != c.peer {
		pub, err := p.PublicKey()
		if err != nil {
			return nil, fmt.Errorf("%w: %w: %q", ErrBadFrame, err, protocol.CutText(string(p), 64))
		}
		c.peer = p
		copy(c.key[:], pub)
	}
	return c.key[:], nil
}

func (c *ids) peerOf(key []byte) (protocol.PeerID, error) {
	if len(key) != keyBytes {
		return "", fmt.Errorf("%w: a peer of %d bytes, not %d", ErrBadFrame, len(key), keyBytes)
	}
	if c.peer == "" || string(key) != string(c.key[:]) {
		c.peer = protocol.PeerIDOf(key)
		copy(c.key[:], key)
	}
	return c.peer, nil
}

func appendStart(dst []byte, s protocol.Start) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(s.At))
	return binary.BigEndian.AppendUint64(dst, s.Rand)
}

func startOf(b []byte) (protocol.Start, error) {
	if len(b) != startBytes {
		return protocol.Start{}, fmt.Errorf("%w: a start of %d bytes, not %d", ErrBadFrame, len(b), startBytes)
	}
	return protocol.Start{At: protocol.HLC(binary.BigEndian.Uint64(b)), Rand: binary.BigEndian.Uint64(b[8:])}, nil
}

func (c *ids) fromLog(l protocol.LogID) ([]byte, error) {
	key, err := c.keyOf(l.Peer)
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, keyBytes+startBytes+1+keyBytes), key...)
	out = appendStart(out, l.Start)
	if l.Scope == protocol.ScopeInside {
		return out, nil
	}
	if !l.Scope.Valid() {
		return nil, fmt.Errorf("%w: no such scope: %q", ErrBadFrame, protocol.CutText(string(l.Scope), 80))
	}
	if p, ok := l.Scope.Outsider(); ok {
		key, err := p.PublicKey()
		return append(append(out, scopeOut), key...), err
	}
	return append(append(out, scopeRoom), strings.TrimPrefix(string(l.Scope), roomPrefix)...), nil
}

func (c *ids) toLog(b []byte) (protocol.LogID, error) {
	var l protocol.LogID
	if len(b) < keyBytes+startBytes {
		return l, fmt.Errorf("%w: a log id of %d bytes, at least %d", ErrBadFrame, len(b), keyBytes+startBytes)
	}
	var err error
	if l.Peer, err = c.peerOf(b[:keyBytes]); err != nil {
		return l, err
	}
	if l.Start, err = startOf(b[keyBytes : keyBytes+startBytes]); err != nil {
		return l, err
	}
	switch scope := b[keyBytes+startBytes:]; {
	case len(scope) == 0:
		l.Scope = protocol.ScopeInside
		return l, nil
	case scope[0] == scopeOut && len(scope) == 1+keyBytes:
		l.Scope = protocol.ScopeOutside(protocol.PeerIDOf(scope[1:]))
		return l, nil
	case scope[0] == scopeRoom && len(scope) < 128 && utf8.Valid(scope):
		l.Scope = protocol.Scope(roomPrefix + string(scope[1:]))
		if l.Scope.Valid() {
			return l, nil
		}
	}
	return l, fmt.Errorf("%w: a log id with no such scope", ErrBadFrame)
}

func toHash(b []byte) (h protocol.Hash, err error) {
	if len(b) != 0 && len(b) != len(h) {
		return h, fmt.Errorf("%w: a hash of %d bytes, not %d", ErrBadFrame, len(b), len(h))
	}
	copy(h[:], b)
	return h, nil
}

func fromSHA(text string) ([]byte, error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != 32 || hex.EncodeToString(b) != text {
		return nil, fmt.Errorf("%w: a sha256 that is not 64 lower-case hex digits", ErrBadFrame)
	}
	return b, nil
}

func toSHA(b []byte) (string, error) {
	if len(b) != 32 {
		return "", fmt.Errorf("%w: a sha256 of %d bytes", ErrBadFrame, len(b))
	}
	return hex.EncodeToString(b), nil
}

// field is a text with what it may be: bin is taken for text by the decoder, so UTF-8 is checked here again.
type field struct {
	name string
	text string
	most int
}

func checkTexts(fields ...field) error {
	for _, f := range fields {
		if len(f.text) > f.most {
			return fmt.Errorf("%w: %s of %d bytes, at most %d", ErrBadFrame, f.name, len(f.text), f.most)
		}
		if !utf8.ValidString(f.text) {
			return fmt.Errorf("%w: %s is not UTF-8", ErrBadFrame, f.name)
		}
	}
	return nil
}

func checkRange(name string, v, least, most int64) error {
	if v < least || v > most {
		return fmt.Errorf("%w: %s is %d, not within %d to %d", ErrBadFrame, name, v, least, most)
	}
	return nil
}

func checkSeq(name string, v, least uint64) error {
	if v < least || v > seqMax {
		return fmt.Errorf("%w: %s is %d, not within %d to 2^53", ErrBadFrame, name, v, least)
	}
	return nil
}

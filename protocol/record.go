package protocol

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Start names one start of a node's process: its hybrid time beside 64 random bits, so that a restored or cloned home
// can never continue a log (DESIGN 4).
type Start struct {
	At   HLC
	Rand uint64
}

// String is 32 hex digits; later starts sort after earlier ones.
func (s Start) String() string { return string(s.append(make([]byte, 0, 32))) }

func (s Start) append(out []byte) []byte {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:], uint64(s.At))
	binary.BigEndian.PutUint64(raw[8:], s.Rand)
	return hex.AppendEncode(out, raw[:])
}

// ParseStart reads what String wrote.
func ParseStart(text string) (Start, error) {
	if len(text) != 32 {
		return Start{}, fmt.Errorf("not a start: %q", text)
	}
	at, err1 := strconv.ParseUint(text[:16], 16, 64)
	rnd, err2 := strconv.ParseUint(text[16:], 16, 64)
	if err := errors.Join(err1, err2); err != nil {
		return Start{}, fmt.Errorf("not a start: %q", text)
	}
	return Start{HLC(at), rnd}, nil
}

// Scope says whom a log is for (DESIGN 4 Scopes): "in", "out:PEER" or "room:ROOM:GENERATION".
type Scope string

// ScopeInside is for inside members alone.
const ScopeInside Scope = "in"

// ScopeOutside is for the inside and one outside member.
func ScopeOutside(p PeerID) Scope { return Scope("out:" + p) }

// ScopeRoom is for the inside and the outsiders of one generation of a room.
func ScopeRoom(r RoomID, generation uint64) Scope {
	return Scope(fmt.Sprintf("room:%s:%d", r, generation))
}

// Outsider is the one outside member that may see the scope, if it is of that kind.
func (s Scope) Outsider() (PeerID, bool) {
	rest, ok := strings.CutPrefix(string(s), "out:")
	return PeerID(rest), ok
}

// Room is the room and generation of the scope, if it is of that kind.
func (s Scope) Room() (RoomID, uint64, bool) {
	rest, ok := strings.CutPrefix(string(s), "room:")
	at := strings.LastIndexByte(rest, ':')
	if !ok || at < 0 {
		return "", 0, false
	}
	generation, err := strconv.ParseUint(rest[at+1:], 10, 64)
	return RoomID(rest[:at]), generation, err == nil
}

// Valid says whether s has one of the three forms.
func (s Scope) Valid() bool {
	if s == ScopeInside {
		return true
	}
	if p, ok := s.Outsider(); ok {
		_, err := p.PublicKey()
		return err == nil
	}
	r, _, ok := s.Room()
	return ok && r != "" && len(r) <= 64 && utf8.ValidString(string(r))
}

// LogID names a log: what one start of one node wrote in one scope. Comparable.
type LogID struct {
	Peer  PeerID
	Start Start
	Scope Scope
}

// String is "PEER/START/SCOPE".
func (l LogID) String() string {
	var room [192]byte
	return string(l.append(room[:0]))
}

func (l LogID) append(out []byte) []byte {
	out = append(append(out, l.Peer...), '/')
	out = append(l.Start.append(out), '/')
	return append(out, l.Scope...)
}

// ParseLogID reads what String wrote and checks each part.
func ParseLogID(text string) (LogID, error) {
	parts := strings.SplitN(text, "/", 3)
	if len(parts) != 3 || len(text) > 256 {
		return LogID{}, fmt.Errorf("not a log id: %q", CutText(text, 80))
	}
	l := LogID{Peer: PeerID(parts[0]), Scope: Scope(parts[2])}
	if _, err := l.Peer.PublicKey(); err != nil {
		return LogID{}, fmt.Errorf("log id: %w", err)
	}
	start, err := ParseStart(parts[1])
	if err != nil {
		return LogID{}, fmt.Errorf("log id: %w", err)
	}
	if l.Start = start; !l.Scope.Valid() {
		return LogID{}, fmt.Errorf("log id: no such scope: %q", parts[2])
	}
	return l, nil
}

// Hash is SHA-256 over a record's canonical bytes; it covers its predecessor's.
type Hash [32]byte

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Kind says what a record's body is.
type Kind string

// The kinds of record and the Go type of their body (JSON), in body.go.
const (
	KindMessage    Kind = "msg"         // Envelope
	KindReceipts   Kind = "receipts"    // ReceiptsBody
	KindBind       Kind = "bind"        // BindBody
	KindMove       Kind = "move"        // MoveBody
	KindMember     Kind = "member"      // MemberBody
	KindRevoke     Kind = "revoke"      // RevokeBody
	KindInviteUsed Kind = "invite-used" // InviteUsedBody
	KindTerm       Kind = "term"        // TermBody
	KindPresence   Kind = "presence"    // PresenceBody
	KindRoom       Kind = "room"        // RoomBody
	KindState      Kind = "state"       // StateBody
	KindKey        Kind = "key"         // KeyBody
	KindVoters     Kind = "voters"      // VotersBody
	KindClaim      Kind = "claim"       // ClaimBody
	KindFence      Kind = "fence"       // FenceBody
	KindFork       Kind = "fork"        // ForkBody
	KindChannel    Kind = "channel"     // ChannelBody
	KindCut        Kind = "cut"         // CutBody
)

// Record is one entry of a log. Bodies are opaque bytes here; kinds that a node does not know are kept and passed on.
type Record struct {
	Log  LogID
	Seq  uint64 // from 1, without a gap
	Prev Hash   // of the predecessor; zero for Seq 1
	At   HLC    // orders
	Wall int64  // the author's wall clock, ms since 1970; for people only
	Kind Kind
	Body []byte
	// Sig is set on the last record that a commit added to the log: Ed25519 by Log.Peer over the record's hash.
	Sig []byte
}

var (
	// ErrBadRecord says that a record's own fields are impossible.
	ErrBadRecord = errors.New("bad record")
	// ErrBadChain says that a record does not follow its predecessor.
	ErrBadChain = errors.New("record does not follow its predecessor")
	// ErrBadSignature says that a commit is not signed by its author.
	ErrBadSignature = errors.New("commit is not signed by its author")
)

// Hash is SHA-256 over: the tag, then log, seq, prev, at, wall, kind and body, each text with its length before it
// (big endian, 4 bytes).
func (r *Record) Hash() Hash {
	var room [2048]byte // a record is mostly smaller, and hashed several times on its way
	out := room[:0]
	if need := len(r.Log.Peer) + len(r.Log.Scope) + len(r.Kind) + len(r.Body) + 192; need > len(room) {
		out = make([]byte, 0, need)
	}
	size := func(n int) { out = binary.BigEndian.AppendUint32(out, uint32(n)) }
	size(len(recordTag))
	out = append(out, recordTag...)
	at := len(out)
	size(0)
	out = r.Log.append(out)
	binary.BigEndian.PutUint32(out[at:], uint32(len(out)-at-4))
	out = binary.BigEndian.AppendUint64(out, r.Seq)
	out = append(out, r.Prev[:]...)
	out = binary.BigEndian.AppendUint64(out, uint64(r.At))
	out = binary.BigEndian.AppendUint64(out, uint64(r.Wall))
	size(len(r.Kind))
	out = append(out, r.Kind...)
	size(len(r.Body))
	return sha256.Sum256(append(out, r.Body...))
}

const recordTag = "aster.record.1"

const signTag = "aster.commit.1\x00"

// Sign sets Sig; it belongs on the last record of a commit.
func (r *Record) Sign(key ed25519.PrivateKey) { r.SignHash(key, r.Hash()) }

// SignHash is Sign for whoever has r.Hash() already.
func (r *Record) SignHash(key ed25519.PrivateKey, h Hash) {
	r.Sig = ed25519.Sign(key, append([]byte(signTag), h[:]...))
}

// Check says what is impossible about r alone.
func (r *Record) Check() error {
	switch {
	case r.Seq == 0:
		return fmt.Errorf("%w: seq 0", ErrBadRecord)
	case len(r.Body) > RecordBytesMax:
		return fmt.Errorf("%w: body of %d bytes, at most %d", ErrBadRecord, len(r.Body), RecordBytesMax)
	case r.At == 0 || r.At >= HLCMax:
		return fmt.Errorf("%w: time %s is not before the year 2200", ErrBadRecord, r.At)
	case r.Kind == "" || len(r.Kind) > 32:
		return fmt.Errorf("%w: kind of %d bytes", ErrBadRecord, len(r.Kind))
	case !r.Log.Scope.Valid():
		return fmt.Errorf("%w: no such scope", ErrBadRecord)
	case (r.Seq == 1) != (r.Prev == Hash{}):
		return fmt.Errorf("%w: only the first record has no predecessor", ErrBadRecord)
	}
	return nil
}

// VerifyCommits checks that rs continue one log without a gap, that each follows the one before, that the last is
// signed and that every signature among them holds. prev is the hash before the first. It returns the hash after the
// last. It costs one SHA-256 a record and one Ed25519 a commit (about 40 µs), so it is done once, on arrival.
func VerifyCommits(rs []Record, prev Hash) (Hash, error) {
	if len(rs) == 0 {
		return prev, nil
	}
	pub, err := rs[0].Log.Peer.PublicKey()
	if err != nil {
		return prev, fmt.Errorf("%w: %w", ErrBadRecord, err)
	}
	for i := range rs {
		r := &rs[i]
		if err := r.Check(); err != nil {
			return prev, err
		}
		if r.Log != rs[0].Log || r.Seq != rs[0].Seq+uint64(i) || r.Prev != prev {
			return prev, fmt.Errorf("%w: %s seq %d", ErrBadChain, r.Log, r.Seq)
		}
		prev = r.Hash()
		if len(r.Sig) > 0 && !ed25519.Verify(pub, append([]byte(signTag), prev[:]...), r.Sig) {
			return prev, fmt.Errorf("%w: %s seq %d", ErrBadSignature, r.Log, r.Seq)
		}
	}
	if len(rs[len(rs)-1].Sig) == 0 {
		return prev, fmt.Errorf("%w: %s ends with seq %d unsigned", ErrBadSignature, rs[0].Log, rs[len(rs)-1].Seq)
	}
	return prev, nil
}

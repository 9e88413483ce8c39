package protocol

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"testing"
)

// someKey is the key of the nth node of the tests.
func someKey(n byte) ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = n
	return ed25519.NewKeyFromSeed(seed)
}

// commitOf is a signed commit of one log with a record for each body.
func commitOf(key ed25519.PrivateKey, bodies ...string) []Record {
	log := LogID{Peer: PeerIDOf(key.Public().(ed25519.PublicKey)), Start: Start{At: 7 << 16, Rand: 9}, Scope: ScopeInside}
	var out []Record
	var prev Hash
	for i, body := range bodies {
		r := Record{Log: log, Seq: uint64(i + 1), Prev: prev, At: HLC(8<<16) + HLC(i), Wall: 8, Kind: KindMessage, Body: []byte(body)}
		prev = r.Hash()
		out = append(out, r)
	}
	out[len(out)-1].Sign(key)
	return out
}

func TestCommitHoldsOnlyAsItsAuthorSignedIt(t *testing.T) {
	fresh := func() []Record { return commitOf(someKey(1), `{"a":1}`, `{"b":2}`, `{"c":3}`) }
	if got, err := VerifyCommits(fresh(), Hash{}); err != nil || got == (Hash{}) {
		t.Fatalf("an untouched commit: hash %s, error %v", got, err)
	}
	for _, c := range []struct {
		name string
		want error
		do   func(rs []Record) []Record
	}{
		{"a body is changed", ErrBadChain, func(rs []Record) []Record { rs[1].Body[2] ^= 1; return rs }},
		{"the last body is changed", ErrBadSignature, func(rs []Record) []Record { rs[2].Body[2] ^= 1; return rs }},
		{"a time is changed", ErrBadChain, func(rs []Record) []Record { rs[0].At++; return rs }},
		{"the wall clock is changed", ErrBadChain, func(rs []Record) []Record { rs[0].Wall++; return rs }},
		{"a kind is changed", ErrBadSignature, func(rs []Record) []Record { rs[2].Kind = KindBind; return rs }},
		{"one is missing", ErrBadChain, func(rs []Record) []Record { return append(rs[:1:1], rs[2]) }},
		{"two are exchanged", ErrBadChain, func(rs []Record) []Record { rs[0], rs[1] = rs[1], rs[0]; return rs }},
		{"the end is missing", ErrBadSignature, func(rs []Record) []Record { return rs[:2] }},
		{"another node signed", ErrBadSignature, func(rs []Record) []Record { rs[2].Sign(someKey(2)); return rs }},
		{"it is said to be another node's", ErrBadChain, func(rs []Record) []Record {
			rs[2].Log.Peer = PeerIDOf(someKey(2).Public().(ed25519.PublicKey))
			return rs
		}},
		{"seq 0", ErrBadRecord, func(rs []Record) []Record { rs[0].Seq = 0; return rs }},
		{"a time beyond 2200", ErrBadRecord, func(rs []Record) []Record { rs[0].At = HLCMax; return rs }},
		{"no scope", ErrBadRecord, func(rs []Record) []Record { rs[0].Log.Scope = "everybody"; return rs }},
		{"a predecessor before the first", ErrBadRecord, func(rs []Record) []Record { rs[0].Prev[0] = 1; return rs }},
	} {
		if _, err := VerifyCommits(c.do(fresh()), Hash{}); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
}

func FuzzParseLogID(f *testing.F) {
	f.Add(commitOf(someKey(1), "{}")[0].Log.String())
	f.Add(LogID{Peer: PeerIDOf(someKey(2).Public().(ed25519.PublicKey)), Scope: ScopeRoom("r:1", 3)}.String())
	f.Add("a/b/out:c")
	f.Add("//")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseLogID(text)
		if err != nil {
			return
		}
		if again, err := ParseLogID(l.String()); err != nil || again != l {
			t.Errorf("%q is read as %q, and that as %q, %v", text, l, again, err)
		}
	})
}

// FuzzVerifyCommits changes a signed commit in one place: unless nothing changed, it is refused.
func FuzzVerifyCommits(f *testing.F) {
	f.Add(uint8(0), uint8(0), []byte(nil))
	f.Add(uint8(1), uint8(0), []byte(`{"b":3}`))
	f.Add(uint8(2), uint8(1), []byte{0, 0, 0, 0, 0, 0, 0, 3})
	f.Add(uint8(0), uint8(5), []byte("bind"))
	f.Add(uint8(2), uint8(6), make([]byte, 64))
	f.Fuzz(func(t *testing.T, which, field uint8, to []byte) {
		rs := commitOf(someKey(1), `{"a":1}`, `{"b":2}`, `{"c":3}`)
		old := rs[which%3]
		r := &rs[which%3]
		number := binary.BigEndian.Uint64(append(make([]byte, 8), to...)[len(to):])
		switch field % 7 {
		case 0:
			r.Body = to
		case 1:
			r.Seq = number
		case 2:
			copy(r.Prev[:], to)
		case 3:
			r.At = HLC(number)
		case 4:
			r.Wall = int64(number)
		case 5:
			r.Kind = Kind(to)
		case 6:
			r.Sig = to
		}
		same := bytes.Equal(r.Body, old.Body) && r.Seq == old.Seq && r.Prev == old.Prev && r.At == old.At && r.Wall == old.Wall && r.Kind == old.Kind &&
			(bytes.Equal(r.Sig, old.Sig) || len(r.Sig) == 0 && which%3 < 2) // only the last must be signed
		if _, err := VerifyCommits(rs, Hash{}); (err == nil) != same {
			t.Errorf("record %d, field %d changed to %q: %v", which%3, field%7, to, err)
		}
	})
}

// What is signed must never change: the sum is made here as the comment of Hash says it.
func TestHashCoversEveryPartWithItsLength(t *testing.T) {
	for _, body := range []int{0, 1, 600, 1800, 2048, 70_000} {
		r := Record{Log: LogID{Peer: "p", Start: Start{At: 0xabc, Rand: 1}, Scope: "in"}, Seq: 3, Prev: Hash{9}, At: 77, Wall: -1, Kind: KindMessage, Body: bytes.Repeat([]byte{7}, body)}
		want := sha256.New()
		text := func(s string) {
			want.Write([]byte{byte(len(s) >> 24), byte(len(s) >> 16), byte(len(s) >> 8), byte(len(s))})
			want.Write([]byte(s))
		}
		number := func(v uint64) { want.Write(binary.BigEndian.AppendUint64(nil, v)) }
		text("aster.record.1")
		text("p/0000000000000abc0000000000000001/in")
		number(3)
		want.Write(r.Prev[:])
		number(77)
		number(math.MaxUint64)
		text("msg")
		text(string(r.Body))
		if got := r.Hash(); !bytes.Equal(got[:], want.Sum(nil)) {
			t.Errorf("a record with %d bytes hashes to %s, want %x", body, got, want.Sum(nil))
		}
	}
}

package protocol

import (
	"bytes"
	"crypto/ed25519"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestPeerIDHoldsItsKey(t *testing.T) {
	for seed := range 200 {
		s := make([]byte, ed25519.SeedSize)
		s[0], s[31] = byte(seed), byte(seed/3)
		pub := ed25519.NewKeyFromSeed(s).Public().(ed25519.PublicKey)
		id := PeerIDOf(pub)
		if !strings.HasPrefix(string(id), "12D3KooW") {
			t.Fatalf("peer id %q does not look like libp2p's for Ed25519", id)
		}
		got, err := id.PublicKey()
		if err != nil || !got.Equal(pub) {
			t.Fatalf("key of %s: got %x, %v, want %x", id, got, err, pub)
		}
	}
	for _, bad := range []PeerID{"", "1", "12D3KooW", "0OIl", "12D3KooWé", PeerID(strings.Repeat("1", 100)), "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"} {
		if _, err := bad.PublicKey(); err == nil {
			t.Errorf("%q counts as a peer id", bad)
		}
	}
}

func TestAgentIDsAreRefusedByName(t *testing.T) {
	for _, bad := range []AgentID{"", " a", "a ", "a/b", `a\b`, "a\x00", "a\u200bb", "a\u202eb", "\xff", AgentID(strings.Repeat("x", AgentIDBytesMax+1))} {
		if CheckAgentID(bad) == nil {
			t.Errorf("%q counts as an agent id", bad)
		}
	}
	for _, good := range []AgentID{"a", "claude-shop", "Agent 7", "작업자", "w.1_x@host:2"} {
		if err := CheckAgentID(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
}

func TestShortIDIsTheEndOfAUUID(t *testing.T) {
	a, b := MsgID("01a22de6-3548-71a2-afea-9828ce25d5ca"), MsgID("01a22de6-3548-71a2-afea-9828ce25d5cb")
	if ShortID(a) == ShortID(b) || len(ShortID(a)) != 5 {
		t.Errorf("short ids %q and %q", ShortID(a), ShortID(b))
	}
	if got := ShortIDOf(a, 8); !strings.HasSuffix(got, ShortID(a)) || len(got) != 8 {
		t.Errorf("longer short id %q does not end with %q", got, ShortID(a))
	}
	if len(ShortID("m-mabc-1")) != 5 {
		t.Error("a foreign id has no short form")
	}
}

func FuzzPeerID(f *testing.F) {
	f.Add("12D3KooWHXNHbQSVd5CE8738apPchQZ6W2p5GxYpT8YYpsuc9oJG")
	f.Fuzz(func(t *testing.T, s string) {
		if pub, err := PeerID(s).PublicKey(); err == nil && PeerIDOf(pub) != PeerID(s) {
			t.Errorf("%q holds a key whose id is %q", s, PeerIDOf(pub))
		}
	})
}

func TestBase58IsTheNumberInThatBase(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 8))
	for range 2000 {
		raw := make([]byte, rng.IntN(48))
		for i := range raw {
			raw[i] = byte(rng.Uint32())
		}
		for i := range raw[:rng.IntN(len(raw)+1)] {
			raw[i] = 0
		}
		want := ""
		for n, base := new(big.Int).SetBytes(raw), big.NewInt(58); n.Sign() > 0; {
			var digit big.Int
			n.DivMod(n, base, &digit)
			want = string(base58Alphabet[digit.Int64()]) + want
		}
		for i := 0; i < len(raw) && raw[i] == 0; i++ {
			want = "1" + want
		}
		if got := base58Encode(raw); got != want {
			t.Fatalf("%x is %q, got %q", raw, want, got)
		}
		if back, ok := base58Decode(want); !ok || !bytes.Equal(back, raw) {
			t.Fatalf("%q is %x, got %x", want, raw, back)
		}
	}
}

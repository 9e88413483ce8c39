package meshwire

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/aster-mesh/aster/protocol"
)

var update = flag.Bool("update", false, "write testdata/frames.golden anew")

func sorted(m map[string]Frame) []string {
	names := []string{}
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestEveryFrameComesBackAsItWent(t *testing.T) {
	for _, set := range []map[string]Frame{samples(), bigFrames()} {
		var stream []byte
		for _, name := range sorted(set) {
			next, err := AppendFrame(stream, set[name])
			if err != nil {
				t.Fatalf("encode %s: %v", name, err)
			}
			stream = next
		}
		r := bufio.NewReader(bytes.NewReader(stream))
		total := 0
		for _, name := range sorted(set) {
			got, n, err := ReadFrame(r, protocol.MeshFrameBytesMax)
			if err != nil {
				t.Fatalf("read %s: %v", name, err)
			}
			total += n
			if diff := cmp.Diff(got, set[name]); diff != "" {
				t.Errorf("%s: got (-), want (+):\n%s", name, diff)
			}
		}
		if _, n, err := ReadFrame(r, protocol.MeshFrameBytesMax); err != io.EOF || n != 0 || total != len(stream) {
			t.Errorf("after the last frame: %d bytes, %v; %d counted of %d", n, err, total, len(stream))
		}
	}
}

// The bytes of every frame are held here, so that the format cannot change unseen. A new key may be added with -update;
// any other difference breaks the mesh between versions.
func TestFramesHaveTheirGoldenBytes(t *testing.T) {
	const path = "testdata/frames.golden"
	var got strings.Builder
	all := samples()
	for _, name := range sorted(all) {
		b, err := Encode(all[name])
		if err != nil {
			t.Fatalf("encode %s: %v", name, err)
		}
		fmt.Fprintf(&got, "%s %s\n", name, hex.EncodeToString(b))
	}
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got.String(), string(want)); diff != "" {
		t.Errorf("the wire changed: got (-), want (+):\n%s", diff)
	}
}

func TestMarksOfAnyKindComeBack(t *testing.T) {
	peers := []protocol.PeerID{peerFor("ada"), peerFor("bob"), peerFor("olaf")}
	rapid.Check(t, func(t *rapid.T) {
		v := Vector{}
		for range rapid.IntRange(0, 40).Draw(t, "marks") {
			m := Mark{Seq: rapid.Uint64Range(0, seqMax).Draw(t, "seq")}
			m.Log.Peer = rapid.SampledFrom(peers).Draw(t, "peer")
			m.Log.Start = protocol.Start{At: protocol.HLC(rapid.Uint64().Draw(t, "at")), Rand: rapid.Uint64().Draw(t, "rand")}
			m.Log.Scope = rapid.SampledFrom([]protocol.Scope{protocol.ScopeInside, protocol.ScopeOutside(peers[2]),
				protocol.ScopeRoom("r", 1), "room:a:b:007"}).Draw(t, "scope")
			copy(m.Hash[:], rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "hash"))
			v.Marks = append(v.Marks, m)
		}
		b, err := Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(b[4], b[5:])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, Frame(v)); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestOurOwnMistakesAreNotSent(t *testing.T) {
	log := logFor("ada", protocol.ScopeInside)
	whole := rangeFor("ada", 1, 2, 10, 2)
	for name, f := range map[string]Frame{
		"no such peer":      Have{[]Mark{{Log: protocol.LogID{Peer: "nobody", Scope: "in"}}}},
		"no such scope":     Have{[]Mark{{Log: protocol.LogID{Peer: log.Peer, Scope: "elsewhere"}}}},
		"seq too large":     Have{[]Mark{{Log: log, Seq: seqMax + 1}}},
		"need from nothing": Need{Log: log},
		"within a commit":   FromRecords(whole[:1]),
		"no records":        Records{Log: log, First: 1},
		"unsigned list":     Addrs{Peer: log.Peer},
		"not hex":           BlobGet{SHA256: "xyz", Length: 1},
		"upper-case hex":    BlobGet{SHA256: strings.Repeat("AB", 32), Length: 1},
		"too large":         Live{Kind: "k", Frame: make([]byte, protocol.MeshFrameBytesMax)},
		"unknown":           Unknown{99},
	} {
		dst := []byte("kept")
		got, err := AppendFrame(dst, f)
		if !errors.Is(err, ErrBadFrame) && !errors.Is(err, ErrFrameTooLarge) {
			t.Errorf("%s: got error %v", name, err)
		}
		if string(got) != "kept" {
			t.Errorf("%s: dst became %q", name, got)
		}
	}
}

func TestRecordsAreRestoredWithTheirChain(t *testing.T) {
	for _, first := range []uint64{1, 41} {
		want := rangeFor("ada", first, 9, 50, 4)
		b, err := Encode(FromRecords(want))
		if err != nil {
			t.Fatal(err)
		}
		f, err := Decode(b[4], b[5:])
		if err != nil {
			t.Fatal(err)
		}
		got := f.(Records).ToRecords()
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("got (-), want (+):\n%s", diff)
		}
		if _, err := protocol.VerifyCommits(got, f.(Records).Prev); err != nil {
			t.Errorf("verify: %v", err)
		}
	}
}

func TestRangesAreSplitAtCommitsOnly(t *testing.T) {
	rs := rangeFor("ada", 1, 700, 1000, 7)
	frames, err := SplitRecords(rs)
	if err != nil {
		t.Fatal(err)
	}
	if len(frames) < 5 {
		t.Errorf("%d frames of about %d bytes for 700 KB", len(frames), RecordsFrameBytes)
	}
	var got []protocol.Record
	for _, f := range frames {
		b, err := Encode(f)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > RecordsFrameBytes+7*1200 {
			t.Errorf("a frame of %d bytes", len(b))
		}
		got = append(got, f.ToRecords()...)
	}
	if diff := cmp.Diff(got, rs); diff != "" {
		t.Error(diff)
	}
	if _, err := SplitRecords(rs[:6]); !errors.Is(err, ErrBadFrame) {
		t.Errorf("a range within a commit: %v", err)
	}
	if _, err := SplitRecords(rangeFor("ada", 1, 3, protocol.RecordBytesMax, 3)); !errors.Is(err, ErrFrameTooLarge) {
		t.Errorf("a commit of 1.5 MiB: %v", err)
	}
	one, err := SplitRecords(rangeFor("ada", 1, 2, protocol.RecordBytesMax, 1))
	if err != nil || len(one) != 2 {
		t.Errorf("two commits of 512 KiB: %d frames, %v", len(one), err)
	}
}

func TestVectorsAreSplitAndJoined(t *testing.T) {
	v := bigFrames()["vector"].(Vector)
	v.Marks = append(v.Marks, v.Marks...)
	v.Marks = append(v.Marks, v.Marks[:5]...)
	v.Past = []Past{{Author: peerFor("ada")}}
	frames := Split(v)
	if len(frames) != 3 {
		t.Fatalf("%d frames for %d marks", len(frames), len(v.Marks))
	}
	var got Vector
	for i, f := range frames {
		if f.(Vector).More != (i < 2) {
			t.Errorf("frame %d: More is %v", i, f.(Vector).More)
		}
		var err error
		if got, err = got.Join(f.(Vector)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(got, v); diff != "" {
		t.Error(diff)
	}
	for err := error(nil); err == nil; {
		if got, err = got.Join(v); err != nil && !errors.Is(err, ErrFrameTooLarge) {
			t.Fatal(err)
		}
	}
	agents := make([]AgentPresence, 600)
	if n := len(Split(Presence{Agents: agents})); n != 5 {
		t.Errorf("600 agents in %d frames", n)
	}
}

// A node with more addresses than a list may have signs one that its peers take: they would close the link for another.
func TestAnAddressListIsNeverTooLong(t *testing.T) {
	raw, err := Encode(SignAddrs(keyFor("ada"), slices.Repeat([]string{"/ip4/10.0.0.1/tcp/1"}, 2*addrsMax), 5))
	if err != nil {
		t.Fatal(err)
	}
	if f, err := Decode(raw[4], raw[5:]); err != nil || f.(Addrs).Verify() != nil {
		t.Errorf("%v, %v", f, err)
	}
}

func TestAddressListsAreSignedByTheirNode(t *testing.T) {
	a := SignAddrs(keyFor("ada"), []string{"/ip4/10.0.0.1/tcp/1", "x"}, 5)
	if err := a.Verify(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Addrs){
		"time":   func(a *Addrs) { a.At++ },
		"peer":   func(a *Addrs) { a.Peer = peerFor("bob") },
		"addrs":  func(a *Addrs) { a.Addrs = a.Addrs[:1] },
		"joined": func(a *Addrs) { a.Addrs = []string{a.Addrs[0] + a.Addrs[1]} },
		"sig":    func(a *Addrs) { a.Sig = nil },
	} {
		b := a
		b.Addrs = slices.Clone(a.Addrs)
		change(&b)
		if err := b.Verify(); !errors.Is(err, protocol.ErrBadSignature) {
			t.Errorf("%s changed: %v", name, err)
		}
	}
}

// What a record costs on all links together must stay below four times its body (issue of the relay's figures).
func TestARecordTravelsInFewBytes(t *testing.T) {
	b, err := Encode(FromRecords(rangeFor("ada", 1000, 16, 950, 16)))
	if err != nil {
		t.Fatal(err)
	}
	if per := len(b)/16 - 950; per > 50 {
		t.Errorf("%d bytes a record beside its body, in a commit of 16", per)
	}
	if b, err = Encode(Have{[]Mark{{Log: logFor("ada", protocol.ScopeInside), Seq: 100_000}}}); err != nil || len(b) > 80 {
		t.Errorf("a Have of one log takes %d bytes, %v", len(b), err)
	}
}

func BenchmarkEncodeRecords(b *testing.B) {
	f := FromRecords(rangeFor("ada", 1000, 16, 950, 16))
	var dst []byte
	for b.Loop() {
		dst, _ = AppendFrame(dst[:0], f)
	}
	b.SetBytes(int64(len(dst)))
}

func BenchmarkDecodeRecords(b *testing.B) {
	raw, _ := Encode(FromRecords(rangeFor("ada", 1000, 16, 950, 16)))
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		_, _ = Decode(raw[4], raw[5:])
	}
}

func BenchmarkWalkRecords(b *testing.B) {
	raw, _ := Encode(FromRecords(rangeFor("ada", 1000, 16, 950, 16)))
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		_ = walk(raw[5:])
	}
}

func BenchmarkHave(b *testing.B) {
	f := Have{[]Mark{{Log: logFor("ada", protocol.ScopeInside), Seq: 100_000}}}
	for b.Loop() {
		raw, _ := Encode(f)
		_, _ = Decode(raw[4], raw[5:])
	}
}

func ExampleAppendFrame() {
	stream, err := AppendFrame(nil, Ping{ID: 7, Wall: 1_700_000_000_000})
	if err != nil {
		fmt.Println(err)
		return
	}
	f, n, err := ReadFrame(bufio.NewReader(bytes.NewReader(stream)), protocol.MeshFrameBytesMax)
	fmt.Println(f, n, err)
	// Output: {7 1700000000000} 20 <nil>
}

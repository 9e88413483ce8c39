package board

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// ends draws a base for each log, at or above the one before.
func (j *journal) ends(dice *rand.Rand, before []Base) (out []Base, at protocol.HLC) {
	for _, l := range j.logs {
		low := 0
		for _, b := range before {
			if b.Log == l.id {
				low = int(b.Seq)
			}
		}
		seq := low + dice.IntN(len(l.records)-low+1)
		if seq == 0 {
			continue
		}
		for _, r := range l.records[:seq] {
			at = max(at, r.At)
		}
		out = append(out, Base{Log: l.id, Seq: uint64(seq), Hash: l.records[seq-1].Hash()})
	}
	return out, at
}

func below(records []*protocol.Record, ends []Base) (out []*protocol.Record) {
	for _, r := range records {
		if slices.ContainsFunc(ends, func(b Base) bool { return b.Log == r.Log && r.Seq <= b.Seq }) {
			out = append(out, r)
		}
	}
	return out
}

// TestABaseIsTheSameInEveryOrder, and whoever goes on from it shows what those show that hold everything: whenever they took it,
// by whichever bases they came there, and whatever is revoked later.
func TestABaseIsTheSameInEveryOrder(t *testing.T) {
	taken, whole, hold, lies, seeds := 0, 0, 0, 0, uint64(25)
	if testing.Short() {
		seeds = 8
	}
	for seed := range seeds {
		j := withBases(t, seed)
		dice := rand.New(rand.NewPCG(seed, 0xBA5E))
		ends1, at1 := j.ends(dice, nil)
		ends2, at2 := j.ends(dice, ends1)
		order := func(n uint64) []*protocol.Record { return j.merged(rand.New(rand.NewPCG(seed, n))) }
		var one, two *Snapshot
		for n := range uint64(3) {
			a := fold(t, emptyState(j, KeptTasks), below(order(n), ends1)).Snapshot(ends1, at1, 1)
			a, err := DecodeSnapshot(a.Encode())
			if err != nil {
				t.Fatal(err)
			}
			b := fold(t, a.State(), below(order(n+9), ends2)).Snapshot(ends2, at2, 2)
			if one == nil {
				one, two = a, b
			}
			if !bytes.Equal(a.Encode(), one.Encode()) || !bytes.Equal(b.Encode(), two.Encode()) {
				t.Fatalf("seed %d: another order makes another base\n%s\n%s", seed, two.Encode(), b.Encode())
			}
		}
		if two, _ = DecodeSnapshot(two.Encode()); two.Digest() != hex.EncodeToString(func() []byte { s := sha256.Sum256(two.Encode()); return s[:] }()) {
			t.Fatal("the digest is another")
		}
		newcomer := fold(t, two.State(), above(order(1), two)) // holds nothing else
		want := newcomer.Canonical()
		if held, _ := newcomer.BaseHeld(); held != nil {
			hold++
		}
		lies += len(newcomer.BaseFalse())
		for n := range uint64(4) {
			records := order(n)
			s := emptyState(j, KeptTasks)
			for i, r := range records {
				if err := s.Apply(r, nil); err != nil {
					t.Fatal(err)
				}
				if i >= len(records)/2 && s.From() == nil && n%2 == 0 && holds(s, ends1) {
					s.Settle(one)
				}
			}
			s.Settle(two)
			if s.Stale() {
				taken++
				s = fold(t, s.Restart(), records) // also where they are still here
			}
			if got := s.Canonical(); !bytes.Equal(got, want) {
				t.Fatalf("seed %d: order %d shows another board\n%s\n%s", seed, n, want, got)
			}
		}
		if untouched := fold(t, emptyState(j, KeptTasks), order(0)); bytes.Equal(untouched.Canonical(), want) {
			whole++
		}
	}
	if hold < int(seeds)/6 || lies < int(seeds)/3 {
		t.Errorf("words on bases hold in %d journals, and %d are false", hold, lies)
	}
	if taken < int(seeds)/5 || whole == 0 {
		t.Errorf("%d boards were folded anew for a base, and %d showed what no base shows", taken, whole)
	}
}

func above(records []*protocol.Record, s *Snapshot) (out []*protocol.Record) {
	for _, r := range records {
		if r.Seq > s.Base(r.Log).Seq {
			out = append(out, r)
		}
	}
	return out
}

func holds(s *State, ends []Base) bool {
	return !slices.ContainsFunc(ends, func(b Base) bool { return s.Mark(b.Log) < b.Seq })
}

// TestARevocationTakesBackNothingBelowABase: with a cut below it, what lies above leaves and what lies below stays.
func TestARevocationTakesBackNothingBelowABase(t *testing.T) {
	j := newJournal(t)
	in, other := j.founded(), j.open(1, protocol.ScopeInside)
	j.bind(other, "a")
	for n := range 6 {
		j.write(other, protocol.KindMessage, protocol.Envelope{ID: protocol.MsgID(fmt.Sprint("d", n)), From: "a", To: "b", Intent: protocol.Delegate})
	}
	ends := []Base{{Log: in.id, Seq: uint64(len(in.records)), Hash: in.records[len(in.records)-1].Hash()}, {Log: other.id, Seq: 4, Hash: other.records[3].Hash()}}
	s := fold(t, New(j.id), below(j.all(), ends))
	snap := s.Snapshot(ends, j.clock, 1)
	s = fold(t, s, j.all())
	s.Settle(snap)
	if s.Stale() || len(s.Tasks()) != 6 {
		t.Fatalf("%d tasks, stale %v", len(s.Tasks()), s.Stale())
	}
	j.write(in, protocol.KindRevoke, protocol.RevokeBody{Peer: j.peers[1], Cuts: map[string]uint64{other.id.String(): 2}})
	s = fold(t, s, j.all())
	if n := len(s.Tasks()); n != 3 {
		t.Errorf("%d tasks after the revocation, want the 3 below the base", n)
	}
	if m, _ := s.Roster().Member(j.peers[1]); !m.Revoked {
		t.Error("it is no revoked member")
	}
	if bound := s.Roster().Bound(other.id); bound != 4 {
		t.Errorf("its log counts to %d, want to the base", bound)
	}
}

// TestReceiptsThatWaitInAnEarlierProgramsSnapshot are taken over: it wrote one range each.
func TestReceiptsThatWaitInAnEarlierProgramsSnapshot(t *testing.T) {
	var m markImage
	if err := json.Unmarshal([]byte(`{"log":"l","mark":3,"waiting":[{"from":4,"to":6,"tier":"persisted"},{"ranges":[1,2,8,9],"tier":"persisted"}]}`), &m); err != nil {
		t.Fatal(err)
	}
	ls := &logState{mark: m.Mark}
	ls.restoreWaiting(m.Waiting)
	if len(ls.waiting) != 2 || !ls.waiting[0].of(6) || ls.waiting[0].of(7) || !ls.waiting[1].of(8) {
		t.Errorf("%+v", ls.waiting)
	}
	if text := protocol.EncodeBody(ls.waitingInOrder()); bytes.Contains(text, []byte("from")) {
		t.Errorf("it is written as it was: %s", text)
	}
}

func TestADamagedSnapshotIsRefused(t *testing.T) {
	j := randomJournal(t, 1, 40)
	ends, at := j.ends(rand.New(rand.NewPCG(1, 1)), nil)
	raw := fold(t, New(j.id), below(j.all(), ends)).Snapshot(ends, at, 1).Encode()
	for i := 0; i < len(raw); i += 1 + len(raw)/200 {
		bad := bytes.Clone(raw)
		bad[i] ^= 1
		if _, err := DecodeSnapshot(bad); !errors.Is(err, ErrBadCheckpoint) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
		if _, err := DecodeSnapshot(raw[:i]); !errors.Is(err, ErrBadCheckpoint) {
			t.Fatalf("cut to %d bytes: %v", i, err)
		}
	}
}

// A snapshot whose hash is right and whose content nobody made: it is refused, or a board goes on from it.
func FuzzDecodeSnapshot(f *testing.F) {
	j := randomJournal(f, 2, 12)
	ends, at := j.ends(rand.New(rand.NewPCG(2, 1)), nil)
	_, body, _ := bytes.Cut(fold(f, New(j.id), below(j.all(), ends)).Snapshot(ends, at, 1).Encode(), []byte("\n"))
	f.Add(body)
	f.Add([]byte(`{"bases":[{"log":"x","seq":1,"hash":""}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		sum := sha256.Sum256(body)
		s, err := DecodeSnapshot(slices.Concat([]byte(snapshotTag+hex.EncodeToString(sum[:])+"\n"), body))
		if err != nil {
			if !errors.Is(err, ErrBadCheckpoint) {
				t.Fatal(err)
			}
			return
		}
		st := s.State()
		st.Digest()
		st.Restart().Encode()
		s.ID()
	})
}

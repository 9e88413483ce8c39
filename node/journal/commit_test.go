package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aster-mesh/aster/protocol"
)

// checkHolds compares every record of a log with what the author wrote, up to seq.
func checkHolds(t testing.TB, j *Journal, want []Entry) {
	t.Helper()
	for _, w := range want {
		st, ok, err := j.At(w.Record.Log, w.Record.Seq)
		if err != nil || !ok {
			t.Fatalf("record %d: found %v, err %v", w.Record.Seq, ok, err)
		}
		if st.Damaged || st.Hash != w.Hash || st.Record.Hash() != w.Hash || !bytes.Equal(st.Record.Sig, w.Record.Sig) {
			t.Fatalf("record %d differs: got %+v", w.Record.Seq, st)
		}
	}
}

func TestWhatWasCommittedComesBackAfterReopening(t *testing.T) {
	dir := tempDir(t)
	j := open(t, dir, Options{})
	a, b := newAuthor(1, 1), newAuthor(2, 1)
	var all []Entry
	for i := range 10 {
		batch := Batch{Entries: []Entry{a.add("odd", []byte("body"), false), a.say(note(i)), b.add(protocol.KindBind, nil, true)}}
		if first, want := commit(t, j, batch), uint64(3*i+1); first != want {
			t.Fatalf("first position: got %d, want %d", first, want)
		}
		all = append(all, batch.Entries...)
	}
	digest, _ := j.Digest()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Commit(Batch{Values: map[string][]byte{"a": nil}}); !errors.Is(err, ErrClosed) {
		t.Errorf("Commit after Close: got %v, want ErrClosed", err)
	}
	if _, err := j.Since(0, 1); !errors.Is(err, ErrClosed) {
		t.Errorf("Since after Close: got %v, want ErrClosed", err)
	}

	j = open(t, dir, Options{})
	if diff := cmp.Diff(Recovery{}, j.Recovery()); diff != "" {
		t.Errorf("recovery of a clean store (-want +got):\n%s", diff)
	}
	checkHolds(t, j, all)
	if got, _ := j.Digest(); got != digest {
		t.Errorf("digest after reopening: got %s, want %s", got, digest)
	}
	heads, _ := j.Heads()
	slices.SortFunc(heads, func(x, y Head) int { return int(y.Seq) - int(x.Seq) })
	if want := []Head{{a.log, 20, a.prev}, {b.log, 10, b.prev}}; !cmp.Equal(heads, want) {
		t.Errorf("heads: got %v, want %v", heads, want)
	}
	since, err := j.Since(28, 10)
	if err != nil || len(since) != 2 || since[0].Pos != 29 || since[1].Record.Kind != protocol.KindBind {
		t.Errorf("since 28: got %v, err %v", since, err)
	}
	if j.Records() != 30 || j.Position() != 30 {
		t.Errorf("records %d, position %d, want 30 both", j.Records(), j.Position())
	}
}

func TestDigestIsThatOfTheSortedHeads(t *testing.T) {
	j := open(t, tempDir(t), Options{})
	logs := []*author{newAuthor(1, 1), newAuthor(1, 2), newAuthor(2, 1)}
	var texts []string
	for _, a := range logs {
		commit(t, j, Batch{Entries: []Entry{a.say(note(1))}})
		texts = append(texts, a.log.String())
	}
	// A log that only a receipt speaks of is not held.
	commit(t, j, Batch{Tiers: []TierPut{{Log: newAuthor(9, 9).log, Seq: 4, Tier: protocol.Processed, Agent: "ben", At: 5}}})
	slices.Sort(texts)
	h := sha256.New()
	for _, text := range texts {
		for _, a := range logs {
			if a.log.String() == text {
				h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
				h.Write([]byte(text))
				h.Write(binary.BigEndian.AppendUint64(nil, a.seq))
				h.Write(a.prev[:])
			}
		}
	}
	if got, _ := j.Digest(); got != hex.EncodeToString(h.Sum(nil)) {
		t.Errorf("digest: got %s, want %x", got, h.Sum(nil))
	}
}

func TestAGapIsRefusedAndNothingOfItsBatchIsWritten(t *testing.T) {
	j := open(t, tempDir(t), Options{})
	a, b := newAuthor(1, 1), newAuthor(2, 1)
	first := a.say(note(1))
	commit(t, j, Batch{Entries: []Entry{first}})
	a.say(note(2)) // never arrives
	late := a.say(note(3))
	again := first
	forked := late
	forked.Record.Seq = 2
	for name, e := range map[string]Entry{"above a gap": late, "repeated": again, "of another chain": forked} {
		good := b.say(note(10))
		b.seq, b.prev = 0, protocol.Hash{}
		_, err := j.Commit(Batch{Entries: []Entry{good, e}, Values: map[string][]byte{"k": []byte("v")}})
		if !errors.Is(err, ErrGap) {
			t.Errorf("%s: got %v, want ErrGap", name, err)
		}
	}
	if _, found, _ := j.Value("k"); found || j.Records() != 1 {
		t.Errorf("something of a refused batch was written: value %v, %d records", found, j.Records())
	}
	if _, err := j.Commit(Batch{Inbox: []InboxPut{{"ben", b.log, 1}}}); !errors.Is(err, ErrUnknownMessage) {
		t.Errorf("inbox of a message that is not here: got %v, want ErrUnknownMessage", err)
	}
	if pos := commit(t, j, Batch{Entries: []Entry{b.say(note(11))}}); pos != 2 {
		t.Errorf("position after refusals: got %d, want 2", pos)
	}
}

func TestRangeHandsOnWholeCommits(t *testing.T) {
	j := open(t, tempDir(t), Options{})
	a := newAuthor(1, 1)
	body := bytes.Repeat([]byte("x"), 1000)
	for range 10 { // commits of three records
		commit(t, j, Batch{Entries: []Entry{a.add("odd", body, false), a.add("odd", body, false), a.add("odd", body, true)}})
	}
	for _, tc := range []struct {
		from     uint64
		maxBytes int
		want     int
	}{
		{1, 1 << 20, 30}, {0, 1 << 20, 30}, {1, 1, 3}, {2, 1, 2}, {3, 1, 1}, {1, 8 * (1000 + recordOverhead), 6}, {30, 1, 1}, {31, 1, 0},
	} {
		rs, err := j.Range(a.log, tc.from, tc.maxBytes)
		if err != nil || len(rs) != tc.want {
			t.Errorf("Range(%d, %d bytes): got %d records, err %v, want %d", tc.from, tc.maxBytes, len(rs), err, tc.want)
			continue
		}
		if tc.from <= 1 {
			if _, err := protocol.VerifyCommits(rs, protocol.Hash{}); err != nil {
				t.Errorf("Range(%d, %d bytes): %v", tc.from, tc.maxBytes, err)
			}
		}
	}
	if rs, err := j.Range(newAuthor(3, 3).log, 1, 100); err != nil || rs != nil {
		t.Errorf("range of an unknown log: got %v, %v", rs, err)
	}
}

// TestARangeWaitsForNoFilling: what was just committed is handed on from memory, what the database has from there, and nothing
// is filed for it.
func TestARangeWaitsForNoFilling(t *testing.T) {
	j := open(t, tempDir(t), Options{})
	a, b := newAuthor(1, 1), newAuthor(2, 2)
	three := func(x *author) Batch {
		return Batch{Entries: []Entry{x.add("odd", []byte("1"), false), x.add("odd", []byte("2"), false), x.add("odd", []byte("3"), true)}}
	}
	for range 4 {
		commit(t, j, three(a))
		commit(t, j, three(b))
	}
	if err := j.fill(true); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		commit(t, j, three(b))
		commit(t, j, three(a))
	}
	for _, tc := range []struct {
		from     uint64
		maxBytes int
		want     []uint64 // first and last
	}{
		{13, 1 << 20, []uint64{13, 24}}, {14, 1 << 20, []uint64{14, 24}}, {15, 1, []uint64{15, 15}}, {16, 1, []uint64{16, 18}}, {24, 1, []uint64{24, 24}}, {25, 1, nil},
		{1, 1 << 20, []uint64{1, 24}}, {12, 1 << 20, []uint64{12, 24}}, {11, 1, []uint64{11, 12}}, {12, 3 * recordOverhead, []uint64{12, 12}}, {12, 6 * recordOverhead, []uint64{12, 15}},
	} {
		rs, err := j.Range(a.log, tc.from, tc.maxBytes)
		if err != nil || (len(rs) > 0) != (tc.want != nil) || len(rs) > 0 && (rs[0].Seq != tc.want[0] || rs[len(rs)-1].Seq != tc.want[1]) {
			t.Errorf("Range(%d, %d bytes): %d records, %v; want %v", tc.from, tc.maxBytes, len(rs), err, tc.want)
			continue
		}
		for i := range rs {
			if rs[i].Seq != tc.want[0]+uint64(i) || rs[i].Log != a.log {
				t.Errorf("Range(%d, %d bytes): record %d is %s %d", tc.from, tc.maxBytes, i, rs[i].Log, rs[i].Seq)
			}
		}
	}
	if n := len(j.waiting()); n != 8 {
		t.Errorf("%d commits wait, want 8: a range had them filed", n)
	}
}

func TestIdentityKeepsTheFirst(t *testing.T) {
	j := open(t, tempDir(t), Options{})
	a := newAuthor(1, 1)
	first := note(7)
	second := first
	second.Value = []byte(`{"text":"other"}`)
	commit(t, j, Batch{Entries: []Entry{a.say(first)}})
	commit(t, j, Batch{Entries: []Entry{a.say(second)}})
	row, found, err := j.Identity(first.Identity())
	if want := (IdentityRow{first.Content(), a.log, 1, 1}); err != nil || !found || row != want {
		t.Errorf("identity: got %v, %v, %v, want %v", row, found, err, want)
	}
	if _, found, err := j.Identity(protocol.IdentityOf("anna", "other")); err != nil || found {
		t.Errorf("unknown identity: found %v, err %v", found, err)
	}
}

func TestValues(t *testing.T) {
	j := open(t, tempDir(t), Options{})
	commit(t, j, Batch{Values: map[string][]byte{"a/1": []byte("x"), "a/2": {}, "b": []byte("y")}})
	commit(t, j, Batch{Values: map[string][]byte{"a/1": []byte("z"), "b": nil}})
	got, err := j.ValuesWithPrefix("a/")
	if want := map[string][]byte{"a/1": []byte("z"), "a/2": {}}; err != nil || !cmp.Equal(got, want) {
		t.Errorf("values: got %q, %v, want %q", got, err, want)
	}
	if _, found, _ := j.Value("b"); found {
		t.Error("a deleted value is there")
	}
	if v, found, _ := j.Value("a/1"); !found || string(v) != "z" {
		t.Errorf("value: got %q, %v", v, found)
	}
}

func TestAFullJournalRefusesMessagesAndTakesReceipts(t *testing.T) {
	dir := tempDir(t)
	const limit = 2 << 20
	j := open(t, dir, Options{BytesMax: limit})
	a, home := newAuthor(1, 1), newAuthor(2, 1)
	var all []Entry
	var err error
	for i := 0; ; i++ {
		e := a.say(message("anna", "ben", string(note(i).ID), string(bytes.Repeat([]byte("w "), 4000))))
		if _, err = j.Commit(Batch{Entries: []Entry{e}}); err != nil {
			break
		}
		all = append(all, e)
	}
	if !errors.Is(err, ErrFull) {
		t.Fatalf("a commit above BytesMax: got %v, want ErrFull", err)
	}
	if used, free := j.Size(); used > limit || free == limit || len(all) < 20 {
		t.Errorf("used %d, free %d after %d records, want at most %d", used, free, len(all), limit)
	}
	checkHolds(t, j, all)
	receipt := Batch{
		Entries: []Entry{home.add(protocol.KindReceipts, []byte("{}"), true)},
		Tiers:   []TierPut{{Log: a.log, Seq: 1, Tier: protocol.Processed, Agent: "ben", At: 9}},
	}
	if _, err := j.Commit(receipt); err != nil {
		t.Errorf("a receipt in the reserve: %v", err)
	}
	digest, _ := j.Digest()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = open(t, dir, Options{BytesMax: 2 * limit})
	if got, _ := j.Digest(); got != digest {
		t.Error("a refused commit left something")
	}
	a.seq, a.prev = all[len(all)-1].Record.Seq, all[len(all)-1].Hash
	commit(t, j, Batch{Entries: []Entry{a.say(note(1_000_000))}})
}

func TestFilesAreTheOwnersOnly(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such modes")
	}
	dir := tempDir(t)
	j := open(t, dir, Options{})
	commit(t, j, Batch{Entries: []Entry{newAuthor(1, 1).say(note(1))}})
	if _, err := j.Search("message", 0, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := j.PutBlob(t.Context(), bytes.NewReader([]byte("x")), ""); err != nil {
		t.Fatal(err)
	}
	if err := j.SaveCheckpoint("hub", 1, nil); err != nil {
		t.Fatal(err)
	}
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			t.Fatal(err)
		}
		fi, err := d.Info()
		if err != nil {
			t.Fatal(err)
		}
		if fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, fi.Mode())
		}
		return nil
	})
}

func TestANewerStoreIsRefusedByName(t *testing.T) {
	dir := tempDir(t)
	j := open(t, dir, Options{})
	if err := j.writer.db.Exec(fmt.Sprintf("PRAGMA user_version=%d", schemaVersion+1)); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrNewer) {
		t.Errorf("got %v, want ErrNewer", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*damaged*")); left != nil {
		t.Errorf("a newer store was set aside: %v", left)
	}
}

func TestOddDirectoriesWork(t *testing.T) {
	for _, name := range []string{"with space", "quer?y=1&x", "hash#tag", "per%20cent", "빌드 [x]*", "colon:it"} {
		if runtime.GOOS == "windows" && name != "with space" {
			continue
		}
		dir := filepath.Join(t.TempDir(), name)
		j := open(t, dir, Options{})
		commit(t, j, Batch{Entries: []Entry{newAuthor(1, 1).say(note(1))}})
		if _, err := os.Stat(filepath.Join(dir, storeName)); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if fi, err := os.Stat(filepath.Join(dir, storeName+"-wal")); err != nil || fi.Size() == 0 {
			t.Errorf("%q: no write-ahead log beside the database: %v", name, err)
		}
		j.Close()
	}
}

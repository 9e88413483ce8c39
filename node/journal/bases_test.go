package journal

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// storeBytes is what the files of a store take, once the write-ahead log is moved.
func storeBytes(t testing.TB, j *Journal, dir string) (sum int64) {
	t.Helper()
	if err := j.shrinkWAL(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{storeName, storeName + "-wal"} {
		n, err := fileSize(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

func sweepAll(t testing.TB, j *Journal) {
	t.Helper()
	for more, turns := true, 0; more; turns++ {
		var err error
		if more, err = j.Sweep(64); err != nil {
			t.Fatal(err)
		}
		if turns > 10_000 {
			t.Fatal("the sweep does not end")
		}
	}
}

func indexAll(t testing.TB, j *Journal) {
	t.Helper()
	for more := true; more; {
		var err error
		if more, err = j.indexSome(); err != nil {
			t.Fatal(err)
		}
	}
}

func baseAt(t testing.TB, j *Journal, log protocol.LogID, seq uint64) Base {
	t.Helper()
	st, ok, err := j.At(log, seq)
	if err != nil || !ok {
		t.Fatalf("record %d: %v, %v", seq, ok, err)
	}
	return Base{log, seq, st.Hash}
}

// fillSteps commits steps of a in which all but the last message are processed.
func fillSteps(t testing.TB, j *Journal, a *author, from, to int) {
	t.Helper()
	for n := from; n <= to; n++ {
		commit(t, j, step(a, n))
	}
}

func TestRecordsLeaveAndTheirLogGoesOn(t *testing.T) {
	dir := tempDir(t)
	j := open(t, dir, Options{})
	a, b := newAuthor(1, 1), newAuthor(2, 2)
	for n := 1; n <= 200; n++ {
		commit(t, j, step(a, n))
		if n <= 50 {
			commit(t, j, Batch{Entries: []Entry{b.add("odd", fmt.Appendf(nil, "b%d", n), true)}})
		}
	}
	indexAll(t, j) // a search waits for no more than it has time for
	if found, err := j.Search("message number", 0, 500); err != nil || len(found) != 200 {
		t.Fatalf("search before: %d, %v", len(found), err)
	}
	digest, heads := must(j.Digest()), must(j.Heads())
	was := storeBytes(t, j, dir)
	base := baseAt(t, j, a.log, 450)
	if err := j.Leave([]Base{base}, []byte("what it came to")); err != nil {
		t.Fatal(err)
	}
	check := func(when string, j *Journal) {
		t.Helper()
		if got := must(j.Digest()); got != digest || len(must(j.Heads())) != len(heads) {
			t.Errorf("%s: the digest is %s, want %s", when, got, digest)
		}
		if got := j.Records(); got != 150+50 {
			t.Errorf("%s: %d records, want 200", when, got)
		}
		if all := j.Bases(); len(all) != 1 || all[0] != base {
			t.Errorf("%s: bases %v", when, all)
		}
		if got, found, err := j.Snapshot(); err != nil || !found || string(got) != "what it came to" {
			t.Errorf("%s: snapshot %q %v %v", when, got, found, err)
		}
		var below *BelowError
		if _, err := j.Range(a.log, 450, 1<<20); !errors.As(err, &below) || below.Base != base {
			t.Errorf("%s: a range below: %v", when, err)
		}
		if _, _, err := j.At(a.log, 3); !errors.As(err, &below) {
			t.Errorf("%s: a record below: %v", when, err)
		}
		if rs, err := j.Range(a.log, 451, 1<<20); err != nil || len(rs) != 150 || rs[0].Prev != base.Hash {
			t.Errorf("%s: %d records above, %v", when, len(rs), err)
		}
		if all, err := j.Since(0, 1000); err != nil || len(all) != 200 {
			t.Errorf("%s: %d records since, %v", when, len(all), err)
		}
		if found, err := j.Search("message number", 0, 500); err != nil || len(found) != 50 {
			t.Errorf("%s: search finds %d, %v", when, len(found), err)
		}
		if _, found, err := j.Identity(identity(150)); err != nil || found {
			t.Errorf("%s: an identity below: %v %v", when, found, err)
		}
		if row, found, err := j.Identity(identity(151)); err != nil || !found || row.Seq != 453 {
			t.Errorf("%s: an identity above: %v %v %v", when, row, found, err)
		}
		if all, err := j.Messages(Query{Agent: "ben", Limit: 1000}); err != nil || len(all) != 50 {
			t.Errorf("%s: %d messages, %v", when, len(all), err)
		}
		if all, err := j.Inbox("ben", InboxQuery{All: true}); err != nil || len(all) != 50 {
			t.Errorf("%s: %d inbox rows, %v", when, len(all), err)
		}
		if all, err := j.Tiers(a.log, 3); err != nil || len(all) != 0 {
			t.Errorf("%s: tiers below: %v, %v", when, all, err)
		}
	}
	check("at once", j)
	sweepAll(t, j)
	check("swept", j)
	if now := storeBytes(t, j, dir); now > was*2/3 {
		t.Errorf("the store has %d bytes, had %d", now, was)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if faults, err := Examine(t.Context(), dir); err != nil || len(faults) > 0 {
		t.Errorf("faults %v, %v", faults, err)
	}
	j = open(t, dir, Options{})
	check("opened again", j)
	next := j.Position() + 1
	if pos := commit(t, j, step(a, 201)); pos != next {
		t.Errorf("the next record is at %d, want %d", pos, next)
	}
	if _, err := os.Stat(baseFile(dir)); err != nil {
		t.Error(err)
	}
}

func FuzzReadBases(f *testing.F) {
	a, b := newAuthor(1, 1), newAuthor(2, 2)
	bases := []Base{{a.log, 3, protocol.Hash{1}}, {b.log, 700, protocol.Hash{2}}}
	if a.log.String() > b.log.String() {
		bases[0], bases[1] = bases[1], bases[0]
	}
	k := keptBases{cut{number: 4, position: 9, bytes: 5, snapshot: sha256.Sum256([]byte("board")), bases: basesSum(bases)}, bases, []byte("board")}
	whole := appendBases(nil, &k)
	if got, ok := readBases(whole); !ok || !reflect.DeepEqual(got, k) {
		f.Fatalf("it reads otherwise than it was written: %v %+v", ok, got)
	}
	f.Add(whole[len(baseTag)+sha256.Size:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, ok := readBases(body); ok && !bytes.HasPrefix(body, []byte(baseTag)) {
			t.Error("no bases are read")
		}
		sum := sha256.Sum256(body) // as a disk that returns what somebody else wrote
		got, ok := readBases(append(append([]byte(baseTag), sum[:]...), body...))
		if !ok {
			return
		}
		if again, ok := readBases(appendBases(nil, &got)); !ok || !slices.Equal(again.bases, got.bases) || !bytes.Equal(again.snapshot, got.snapshot) {
			t.Error("written again it reads otherwise")
		}
	})
}

package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/aster-mesh/aster/protocol"
)

// filled makes a closed store of n steps and returns what was written.
func filled(t testing.TB, dir string, n int) (*author, []Entry) {
	t.Helper()
	j, err := Open(dir, Options{VFS: newDisk(t, &disk{})})
	if err != nil {
		t.Fatal(err)
	}
	a := newAuthor(1, 1)
	var all []Entry
	for i := 1; i <= n; i++ {
		b := step(a, i)
		all = append(all, b.Entries...)
		commit(t, j, b)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return a, all
}

// overwrite changes the database file where it holds what, which must be there.
func overwrite(t testing.TB, path string, what []byte, change func([]byte)) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(raw, what)
	if at < 0 {
		t.Fatalf("%s does not hold %q", path, what)
	}
	change(raw[at : at+len(what)])
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// reopenUntilMended opens the store as a node would: when a read finds damage the process ends and starts again.
func reopenUntilMended(t testing.TB, dir string) *Journal {
	t.Helper()
	for range 3 {
		j, err := Open(dir, Options{VFS: newDisk(t, &disk{})})
		if err != nil {
			t.Fatalf("open a damaged store: %v", err)
		}
		if _, err := j.Scrub(t.Context()); err == nil {
			t.Cleanup(func() { j.Close() })
			return j
		} else if !errors.Is(err, ErrDamaged) {
			t.Fatalf("scrub: %v", err)
		}
		j.Close()
	}
	t.Fatal("the store stays damaged")
	return nil
}

func TestADamagedRecordIsNotServedAndIsRepaired(t *testing.T) {
	dir := tempDir(t)
	a, all := filled(t, dir, 30)
	overwrite(t, filepath.Join(dir, storeName), []byte("message number 12"), func(b []byte) { b[0] ^= 1 })

	j := reopenUntilMended(t, dir)
	r := j.Recovery()
	if len(r.SetAside) == 0 || r.Salvaged != 89 || len(r.Lost) != 1 || r.Lost[0] != (Lost{a.log, 36, 36, true}) {
		t.Fatalf("recovery: got %+v", r)
	}
	if bad, err := j.Damaged(); err != nil || len(bad) != 1 || bad[0] != r.Lost[0] {
		t.Errorf("damaged: got %v, %v", bad, err)
	}
	if st, found, err := j.At(a.log, 36); err != nil || !found || !st.Damaged || st.Hash != all[35].Hash || st.Record.Body != nil {
		t.Errorf("the damaged record: got %+v, %v, %v", st, found, err)
	}
	if rs, err := j.Range(a.log, 34, 1<<20); err != nil || len(rs) != 0 {
		t.Errorf("a range over it: got %d records, %v", len(rs), err)
	}
	if rs, err := j.Range(a.log, 37, 1<<20); err != nil || len(rs) != 54 {
		t.Errorf("a range behind it: got %d records, %v", len(rs), err)
	}
	forged := all[35].Record
	forged.Body = []byte("{}")
	if n, err := j.Repair([]protocol.Record{forged, all[34].Record}); err != nil || n != 0 {
		t.Errorf("repair with what was not there: took %d, %v", n, err)
	}
	if n, err := j.Repair([]protocol.Record{all[35].Record}); err != nil || n != 1 {
		t.Errorf("repair: took %d, %v", n, err)
	}
	if bad, err := j.Damaged(); err != nil || len(bad) != 0 {
		t.Errorf("damaged after repair: got %v, %v", bad, err)
	}
	checkHolds(t, j, all)
	if _, found, err := j.MessageByID("anna", note(12).ID); err != nil || !found {
		t.Errorf("the repaired message: found %v, %v", found, err)
	}
	commit(t, j, step(a, 31))
}

func TestRepairFillsARangeFromBehind(t *testing.T) {
	dir := tempDir(t)
	a, all := filled(t, dir, 10)
	old := open(t, dir, Options{})
	if err := old.writer.exec("DELETE FROM records WHERE seq BETWEEN 4 AND 6"); err != nil {
		t.Fatal(err)
	}
	old.suspect(fmt.Errorf("found by hand: %w", sqlite3.CORRUPT))
	old.Close()
	j := open(t, dir, Options{})
	if r := j.Recovery(); len(r.Lost) != 1 || r.Lost[0] != (Lost{a.log, 4, 6, true}) {
		t.Fatalf("recovery: got %+v", r)
	}
	var rs []protocol.Record
	for _, e := range all[3:6] {
		rs = append(rs, e.Record)
	}
	if n, err := j.Repair(rs); err != nil || n != 3 {
		t.Fatalf("repair: took %d, %v", n, err)
	}
	checkHolds(t, j, all)
}

// TestNoFlippedBitIsServed: after any change of one bit every answer is either right or an error, and after reopening
// all but the hurt records are there.
func TestNoFlippedBitIsServed(t *testing.T) {
	t.Parallel() // it waits for the disk
	rounds := thorough(500, 25)
	whole := tempDir(t)
	a, all := filled(t, whole, 30)
	rng := rand.New(rand.NewPCG(7, 7))
	raw, err := os.ReadFile(filepath.Join(whole, storeName))
	if err != nil {
		t.Fatal(err)
	}
	missing := 0
	for range rounds {
		dir := filepath.Join(t.TempDir(), "j")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		bad := bytes.Clone(raw)
		at := rng.IntN(len(bad))
		bad[at] ^= 1 << rng.IntN(8)
		if err := os.WriteFile(filepath.Join(dir, storeName), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		j := reopenUntilMended(t, dir)
		served := 0
		for _, e := range all {
			st, found, err := j.At(a.log, e.Record.Seq)
			if err != nil {
				t.Fatalf("byte %d, record %d: %v", at, e.Record.Seq, err)
			}
			if found && !st.Damaged {
				served++
				if st.Record.Hash() != e.Hash || !bytes.Equal(st.Record.Sig, e.Record.Sig) {
					t.Fatalf("byte %d: record %d was served changed", at, e.Record.Seq)
				}
			}
		}
		missing += len(all) - served
		if served < len(all)-12 && at >= pageBytes { // a page holds about that many; the first one holds the schema
			t.Errorf("byte %d of %d: only %d of %d records are left: %+v", at, len(bad), served, len(all), j.Recovery())
		}
		// What is gone comes back from another node: as a repair, then as the log's end.
		var rest []protocol.Record
		for _, e := range all {
			rest = append(rest, e.Record)
		}
		if _, err := j.Repair(rest); err != nil {
			t.Fatalf("byte %d: repair: %v", at, err)
		}
		var tail Batch
		heads, _ := j.Heads()
		from := 0
		if len(heads) > 0 {
			from = int(heads[0].Seq)
		}
		tail.Entries = append(tail.Entries, all[from:]...)
		commit(t, j, tail)
		checkHolds(t, j, all)
		j.Close()
	}
	t.Logf("%d bits flipped, %d records had to come back from elsewhere", rounds, missing)
}

func TestAStoreThatIsNoneIsSetAside(t *testing.T) {
	dir := tempDir(t)
	filled(t, dir, 3)
	junk := bytes.Repeat([]byte("junk"), 5000)
	for n := 1; n <= 2; n++ {
		if err := os.WriteFile(filepath.Join(dir, storeName), junk, 0o600); err != nil {
			t.Fatal(err)
		}
		j := open(t, dir, Options{})
		want := asideName(filepath.Join(dir, storeName), n)
		if r := j.Recovery(); len(r.SetAside) != 1 || r.SetAside[0] != want || r.Reason == "" || r.Salvaged != 0 {
			t.Errorf("recovery: got %+v, want %s set aside", r, want)
		}
		if kept, err := os.ReadFile(want); err != nil || !bytes.Equal(kept, junk) {
			t.Errorf("the set-aside file was changed: %v", err)
		}
		commit(t, j, step(newAuthor(1, 1), 1))
		j.Close()
	}
	if r := open(t, dir, Options{}).Recovery(); r.SetAside != nil || r.Reason != "" {
		t.Errorf("recovery of the fresh store: got %+v", r)
	}
}

// TestPowerLossWhileRebuilding: the rebuilding of a damaged store may be cut off anywhere and is then done again.
func TestPowerLossWhileRebuilding(t *testing.T) {
	stride := thorough(1, 20)
	for failAt := 1; ; failAt += stride {
		dir := filepath.Join(t.TempDir(), "j")
		a, all := filled(t, dir, 5)
		os.WriteFile(filepath.Join(dir, "damaged.note"), []byte("a test says so"), 0o600)
		d := &disk{failAt: failAt}
		if j, err := Open(dir, Options{VFS: newDisk(t, d)}); err == nil {
			j.Close()
		}
		j := reopenUntilMended(t, dir)
		checkHolds(t, j, all)
		checkSteps(t, j, a.log, 5)
		j.Close()
		if !d.crashed {
			break
		}
	}
}

func TestADamagedSearchIndexIsBegunAnew(t *testing.T) {
	dir := tempDir(t)
	filled(t, dir, 20)
	j := open(t, dir, Options{})
	if got, err := j.Search("number", 0, 50); err != nil || len(got) != 20 {
		t.Fatalf("search: got %d, %v", len(got), err)
	}
	j.Close()
	path := filepath.Join(dir, "search.db")
	for name, hurt := range map[string]func() error{
		"junk":      func() error { return os.WriteFile(path, []byte("junk junk junk junk"), 0o600) },
		"truncated": func() error { return os.Truncate(path, 5000) },
		"absent":    func() error { return os.Remove(path) },
	} {
		if err := hurt(); err != nil {
			t.Fatal(err)
		}
		j := open(t, dir, Options{})
		var found int
		for range 2 { // the first search may be the one that meets the damage
			got, err := j.Search("number", 0, 50)
			if err == nil {
				found = len(got)
			}
		}
		if found != 20 {
			t.Errorf("%s: search found %d of 20", name, found)
		}
		j.Close()
	}
}

func TestADamagedCheckpointCountsAsAbsent(t *testing.T) {
	dir := tempDir(t)
	filled(t, dir, 5)
	j := open(t, dir, Options{})
	state := []byte("the state of a fold")
	if _, _, ok, err := j.Checkpoint("hub"); ok || err != nil {
		t.Errorf("no checkpoint: got %v, %v", ok, err)
	}
	if err := errors.Join(j.SaveCheckpoint("hub", 7, []byte("older")), j.SaveCheckpoint("hub", 9, state), j.SaveCheckpoint("../x", 1, nil)); err != nil {
		t.Fatal(err)
	}
	check := func(name string, want bool) {
		t.Helper()
		pos, data, ok, err := j.Checkpoint("hub")
		if err != nil || ok != want || (ok && (pos != 9 || !bytes.Equal(data, state))) {
			t.Errorf("%s: got %d %q %v %v, want ok %v", name, pos, data, ok, err, want)
		}
	}
	check("whole", true)
	path := j.checkpointPath("hub")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		bad := bytes.Clone(raw)
		bad[i] ^= 4
		os.WriteFile(path, bad, 0o600)
		check(fmt.Sprintf("byte %d changed", i), false)
		os.WriteFile(path, raw[:i], 0o600)
		check(fmt.Sprintf("cut at %d", i), false)
	}
	os.WriteFile(path, raw, 0o600)
	check("whole again", true)
	j.Close()
	for _, name := range []string{storeName, storeName + "-wal"} {
		os.Remove(filepath.Join(dir, name))
	}
	j = open(t, dir, Options{})
	check("of another store", false)
}

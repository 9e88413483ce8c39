package journal

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// image is a store's folder as it lies on the disk.
type image struct {
	name  string
	files map[string][]byte
	log   protocol.LogID
	all   []Entry
	blob  string
	base  Base // the zero one: it begins at its first record
}

// images are a store that was closed, one whose process was killed with commits that the database did not have yet, one of which
// records have left, and one that was killed while their rows went.
func images(t *testing.T) []image {
	t.Helper()
	var out []image
	for _, name := range []string{"closed", "killed", "left", "leaving"} {
		dir := tempDir(t)
		j, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		a := newAuthor(1, 1)
		im := image{name: name, files: map[string][]byte{}, log: a.log}
		ref, err := j.PutBlob(t.Context(), strings.NewReader("an attachment"), "")
		if err != nil {
			t.Fatal(err)
		}
		im.blob = ref.SHA256
		for i := 1; i <= 40; i++ {
			b := step(a, i)
			im.all = append(im.all, b.Entries...)
			commit(t, j, b)
			if i == 25 && name == "killed" {
				if err := j.fill(true); err != nil {
					t.Fatal(err)
				}
			}
		}
		if name == "left" || name == "leaving" {
			im.base = im.leave(t, j)
		}
		if name == "closed" || name == "left" {
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		}
		err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, "-shm") || strings.HasPrefix(d.Name(), "search.db") {
				return err
			}
			rel, _ := filepath.Rel(dir, path)
			im.files[rel], err = os.ReadFile(path)
			return err
		})
		if err = errors.Join(err, j.Close()); err != nil {
			t.Fatal(err)
		}
		out = append(out, im)
	}
	return out
}

// leave has half of the records leave, and removes some of their rows or all.
func (im *image) leave(t *testing.T, j *Journal) Base {
	t.Helper()
	base := baseAt(t, j, im.log, 60)
	if err := j.Leave([]Base{base}, []byte(imageBoard)); err != nil {
		t.Fatal(err)
	}
	if im.name == "left" {
		sweepAll(t, j)
	}
	for range 6 {
		if _, err := j.Sweep(8); err != nil {
			t.Fatal(err)
		}
	}
	return base
}

var imageBoard = strings.Repeat("what they came to ", 700)

func (im *image) write(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "j")
	for name, raw := range im.files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, raw, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// damage hurts one file of a store and says what it did. gone: the file.
func damage(rng *rand.Rand, raw []byte) (bad []byte, how string, gone bool) {
	bad = bytes.Clone(raw)
	page := func() []byte {
		n := max(len(bad)/pageBytes, 1)
		at := rng.IntN(n) * pageBytes
		return bad[at:min(at+pageBytes, len(bad))]
	}
	switch rng.IntN(6) {
	case 0, 1:
		for range 1 + rng.IntN(4) {
			bad[rng.IntN(len(bad))] ^= 1 << rng.IntN(8)
		}
		return bad, "flipped bits", false
	case 2:
		clear(page())
		return bad, "a page of zeros", false
	case 3:
		p := page()
		for i := len(p) / 2; i < len(p); i++ {
			p[i] = byte(rng.Uint32())
		}
		return bad, "a torn page", false
	case 4:
		return bad[:rng.IntN(len(bad))], "cut short", false
	}
	return nil, "missing", true
}

// TestSeededDamagesAreFoundAndMended: whatever one damage does to a store, what is served afterwards is right, what is not
// served is found by looking and named by what opens it, nothing that was set aside is deleted, and with what others hold the
// store is whole again. The one damage that cannot be told from an ordinary crash is that of the last commits of a process
// that was killed.
func TestSeededDamagesAreFoundAndMended(t *testing.T) {
	t.Parallel() // it waits for the disk
	seeds := thorough(400, 56)
	all := images(t)
	for i := range all {
		if faults, err := Examine(t.Context(), all[i].write(t)); err != nil || len(faults) > 0 {
			t.Fatalf("%s, and nothing is wrong: %v, %v", all[i].name, faults, err)
		}
	}
	found, lost := 0, 0
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(uint64(seed), 11))
		im := &all[seed%len(all)]
		var names []string
		for name, raw := range im.files {
			if len(raw) > 0 && (strings.HasPrefix(name, "journal.") || strings.HasPrefix(name, "blobs")) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		name := names[rng.IntN(len(names))]
		if rng.IntN(2) == 0 {
			name = storeName
		}
		dir := im.write(t)
		bad, how, gone := damage(rng, im.files[name])
		path := filepath.Join(dir, name)
		err := os.WriteFile(path, bad, 0o600)
		if gone {
			err = os.Remove(path)
		}
		if err != nil {
			t.Fatal(err)
		}
		before := snapshotOf(t, dir)
		faults, err := Examine(t.Context(), dir)
		if err != nil {
			t.Fatalf("seed %d, %s, %s of %s: examine: %v", seed, im.name, how, name, err)
		}
		if what := before.changed(snapshotOf(t, dir)); what != "" {
			t.Fatalf("seed %d, %s, %s of %s: looking changed %s", seed, im.name, how, name, what)
		}
		if len(faults) > 0 {
			found++
		}
		lost += im.mended(t, dir, seed, name, how, faults)
		if t.Failed() {
			t.Fatalf("seed %d: %s, %s of %s", seed, im.name, how, name)
		}
	}
	t.Logf("%d damages, %d found, %d records had to come back from elsewhere", seeds, found, lost)
	if found < seeds/2 {
		t.Errorf("only %d of %d damages were found", found, seeds)
	}
}

// mended opens a damaged store until it stays as it is, judges it, and gives back what is missing.
func (im *image) mended(t *testing.T, dir string, seed int, name, how string, faults []Fault) (missing int) {
	t.Helper()
	if err := NoteDamage(dir, faults); err != nil {
		t.Fatal(err)
	}
	j, reasons := openMended(t, dir)
	defer j.Close()
	base, _ := j.Base(im.log)
	if board, _, err := j.Snapshot(); base != im.base || err != nil || base.Seq > 0 && string(board) != imageBoard {
		t.Errorf("it begins behind %d, snapshot of %d bytes, %v", base.Seq, len(board), err)
	}
	for _, e := range im.all[base.Seq:] {
		st, ok, err := j.At(im.log, e.Record.Seq)
		if err != nil {
			t.Errorf("record %d: %v", e.Record.Seq, err)
			return 0
		}
		if !ok || st.Damaged {
			missing++
		} else if st.Record.Hash() != e.Hash || !bytes.Equal(st.Record.Sig, e.Record.Sig) {
			t.Errorf("record %d is served changed", e.Record.Seq)
		}
	}
	tail := im.name == "killed" && strings.HasPrefix(name, "journal.ahead") || strings.HasSuffix(name, "-wal")
	if missing > 0 && len(faults) == 0 && !tail {
		t.Errorf("%d records are missing and looking found nothing", missing)
	}
	if missing > 0 && reasons == "" && !tail {
		t.Errorf("%d records are missing and opening said nothing", missing)
	}
	if !strings.HasPrefix(name, "blobs") && !j.HasBlob(im.blob) {
		t.Error("the attachment is gone")
	}
	var rest []protocol.Record
	for _, e := range im.all {
		rest = append(rest, e.Record)
	}
	if _, err := j.Repair(rest); err != nil {
		t.Errorf("repair: %v", err)
	}
	from := uint64(0)
	if heads, _ := j.Heads(); len(heads) > 0 {
		from = heads[0].Seq
	}
	commit(t, j, Batch{Entries: im.all[from:]})
	if strings.HasPrefix(name, "blobs") {
		if _, err := j.PutBlob(t.Context(), strings.NewReader("an attachment"), im.blob); err != nil {
			t.Error(err)
		}
	}
	checkHolds(t, j, im.all[base.Seq:])
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	if l, is := LossIn(dir); is && missing < len(im.all)-int(base.Seq) {
		t.Errorf("%d of %d records were missing, and said: %s", missing, len(im.all), l)
	}
	if err := AcceptLoss(dir); err != nil {
		t.Error(err)
	}
	if again, err := Examine(t.Context(), dir); err != nil || len(again) > 0 {
		t.Errorf("mended, and still: %v, %v", again, err)
	}
	return missing
}

// openMended opens a store as aster doctor --repair does, and returns what opening it said.
func openMended(t *testing.T, dir string) (*Journal, string) {
	t.Helper()
	var reasons []string
	for range 4 {
		j, err := Open(dir, Options{})
		if err != nil {
			t.Fatalf("open a damaged store: %v", err)
		}
		r := j.Recovery()
		if r.Reason != "" {
			reasons = append(reasons, r.Reason)
		}
		for _, path := range r.SetAside {
			if !there(path) {
				t.Errorf("%s was said to be set aside and is not there", path)
			}
		}
		bad, err := j.Scrub(t.Context())
		if err == nil {
			if len(bad) > 0 {
				reasons = append(reasons, "damaged records")
			}
			return j, strings.Join(reasons, "; ")
		}
		if !errors.Is(err, ErrDamaged) {
			t.Fatalf("scrub: %v", err)
		}
		j.Close()
	}
	t.Fatal("the store stays damaged")
	return nil, ""
}

type onDisk map[string]string

func snapshotOf(t *testing.T, dir string) onDisk {
	t.Helper()
	out := onDisk{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		out[path] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (a onDisk) changed(b onDisk) string {
	for name, raw := range a {
		if now, ok := b[name]; !ok || now != raw {
			return name
		}
		delete(b, name)
	}
	for name := range b {
		return name
	}
	return ""
}

// TestWhatIsDamagedIsKnownAfterARestart, so that it is asked for again.
func TestWhatIsDamagedIsKnownAfterARestart(t *testing.T) {
	dir := tempDir(t)
	a, all := filled(t, dir, 30)
	overwrite(t, filepath.Join(dir, storeName), []byte("message number 12"), func(b []byte) { b[0] ^= 1 })
	j, _ := openMended(t, dir)
	before, err := j.Damaged()
	if err != nil || len(before) != 1 {
		t.Fatalf("damaged: %v, %v", before, err)
	}
	j.Close()
	j = open(t, dir, Options{})
	if after, err := j.Damaged(); err != nil || len(after) != 1 || after[0] != before[0] {
		t.Errorf("after a restart: %v, %v", after, err)
	}
	if n, err := j.Repair([]protocol.Record{all[before[0].From-1].Record}); err != nil || n != 1 {
		t.Fatalf("repair: %d, %v", n, err)
	}
	j.Close()
	j = open(t, dir, Options{})
	if after, err := j.Damaged(); err != nil || len(after) != 0 || there(j.badPath()) {
		t.Errorf("mended: %v, %v", after, err)
	}
	commit(t, j, step(a, 31))
}

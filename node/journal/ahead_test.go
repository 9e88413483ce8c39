package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aster-mesh/aster/protocol"
)

func aheadPaths(dir string) (out []string) {
	for i := range 2 {
		out = append(out, filepath.Join(dir, fmt.Sprintf(aheadName, i)))
	}
	return out
}

func identity(n int) protocol.Digest {
	env := note(n)
	return env.Identity()
}

// killed copies a store as a killed process leaves it.
func killed(t testing.TB, dir string) string {
	t.Helper()
	to := tempDir(t)
	if err := os.MkdirAll(to, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range append(aheadPaths(dir), filepath.Join(dir, storeName), filepath.Join(dir, storeName+"-wal")) {
		if raw, err := os.ReadFile(path); err == nil {
			if err := os.WriteFile(filepath.Join(to, filepath.Base(path)), raw, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return to
}

// threeAhead is a store that was killed behind three steps that only the files ahead have, with where each frame ends.
func threeAhead(t testing.TB) (a *author, dir string, ends []int64) {
	t.Helper()
	from := tempDir(t)
	j := open(t, from, Options{VFS: newDisk(t, &disk{})})
	a = newAuthor(1, 1)
	for n := 1; n <= 3; n++ {
		commit(t, j, step(a, n))
		ends = append(ends, j.ahead.files[0].end)
	}
	if n := len(j.waiting()); n != 3 {
		t.Fatalf("%d commits wait, want 3", n)
	}
	return a, killed(t, from), ends
}

// TestATornCommitIsLeftOut cuts the file at every byte of its last commit, with the rest missing, zero, or noise.
// Guards: B16, KC1.
func TestATornCommitIsLeftOut(t *testing.T) {
	t.Parallel() // it waits for the disk
	a, dir, ends := threeAhead(t)
	path := aheadPaths(dir)[0]
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	db := map[string][]byte{}
	for _, name := range []string{storeName, storeName + "-wal"} {
		db[name], _ = os.ReadFile(filepath.Join(dir, name))
	}
	rng, torn := rand.New(rand.NewPCG(3, 3)), 0
	// Only zeros that align the next commit follow the batch.
	last := len(bytes.TrimRight(whole[:ends[2]], "\x00"))
	for cut := int(ends[1]); cut < last; cut += thorough(1, 13) {
		for _, kind := range []string{"missing", "zero", "noise"} {
			hurt := bytes.Clone(whole)
			switch kind {
			case "missing":
				hurt = hurt[:cut]
			case "zero":
				clear(hurt[cut:])
			case "noise":
				for i := cut; i < int(ends[2]); i++ {
					hurt[i] ^= byte(1 + rng.IntN(255))
				}
			}
			for name, raw := range db {
				if err := os.WriteFile(filepath.Join(dir, name), raw, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(path, hurt, 0o600); err != nil {
				t.Fatal(err)
			}
			j := open(t, dir, Options{VFS: newDisk(t, &disk{})})
			if steps := checkSteps(t, j, a.log, 2); steps != 2 {
				t.Errorf("cut at %d, rest %s: %d steps, want 2", cut, kind, steps)
			}
			r := j.Recovery()
			if r.TornBytes > 0 {
				torn++
			}
			if r.SetAside != nil || r.Lost != nil {
				t.Errorf("cut at %d, rest %s: %+v", cut, kind, r)
			}
			again := *a
			again.seq, again.prev = 6, headOf(t, j, a.log)
			commit(t, j, step(&again, 3))
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if torn == 0 {
		t.Error("no torn commit was reported")
	}
}

func headOf(t testing.TB, j *Journal, log protocol.LogID) protocol.Hash {
	t.Helper()
	heads, err := j.Heads()
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range heads {
		if h.Log == log {
			return h.Hash
		}
	}
	return protocol.Hash{}
}

// TestADamagedCommitIsNamed flips bits of a commit that others follow: it is said, the file is kept, what is before it stands,
// nothing changed is served, and the rest of the log can come back from elsewhere.
func TestADamagedCommitIsNamed(t *testing.T) {
	t.Parallel() // it waits for the disk
	a, dir, ends := threeAhead(t)
	raw, err := os.ReadFile(aheadPaths(dir)[0])
	if err != nil {
		t.Fatal(err)
	}
	used := len(bytes.TrimRight(raw[:ends[1]], "\x00"))
	for at := int(ends[0]); at < used; at += thorough(1, 29) {
		hurt := killed(t, dir)
		bad := bytes.Clone(raw)
		bad[at] ^= 1 << (at % 8)
		if err := os.WriteFile(aheadPaths(hurt)[0], bad, 0o600); err != nil {
			t.Fatal(err)
		}
		j := open(t, hurt, Options{VFS: newDisk(t, &disk{})})
		r := j.Recovery()
		if r.Reason == "" || len(r.SetAside) != 2 || len(r.Lost) != 1 || r.Lost[0] != (Lost{a.log, 4, 9, false}) {
			t.Fatalf("byte %d: %+v", at, r)
		}
		if kept, err := os.ReadFile(r.SetAside[0]); err != nil || !bytes.Equal(kept, bad) {
			t.Fatalf("byte %d: the damaged file was not kept: %v", at, err)
		}
		if rs, err := j.Range(a.log, 1, 1<<20); err != nil || len(rs) != 3 {
			t.Fatalf("byte %d: %d records, %v, want the first 3", at, len(rs), err)
		}
		again := newAuthor(1, 1)
		step(again, 1)
		commit(t, j, step(again, 2))
		commit(t, j, step(again, 3))
		checkSteps(t, j, a.log, 3)
		j.Close()
		k := open(t, hurt, Options{})
		if diff := cmp.Diff(Recovery{}, k.Recovery()); diff != "" {
			t.Fatalf("byte %d: at the start after (-want +got):\n%s", at, diff)
		}
		checkSteps(t, k, a.log, 3)
	}
}

// TestCatchingUpTwiceIsTheSame: a process that is killed again before the files ahead begin anew finds the same.
func TestCatchingUpTwiceIsTheSame(t *testing.T) {
	a, dir, _ := threeAhead(t)
	ahead, err := os.ReadFile(aheadPaths(dir)[0])
	if err != nil {
		t.Fatal(err)
	}
	var digest string
	for round := range 3 {
		if err := os.WriteFile(aheadPaths(dir)[0], ahead, 0o600); err != nil {
			t.Fatal(err)
		}
		j := open(t, dir, Options{})
		if diff := cmp.Diff(Recovery{}, j.Recovery()); diff != "" {
			t.Errorf("round %d (-want +got):\n%s", round, diff)
		}
		checkSteps(t, j, a.log, 3)
		if unread, err := j.Unread(); err != nil || unread["ben"].Items != 1 {
			t.Errorf("round %d: unread %v, %v", round, unread, err)
		}
		got, _ := j.Digest()
		if digest == "" {
			digest = got
		}
		if got != digest || j.Position() != 9 {
			t.Errorf("round %d: digest %s at %d, want %s at 9", round, got, j.Position(), digest)
		}
		j.Close()
	}
}

// TestFullDiskAtTheStart: what only the files ahead have is answered from while the database cannot be written, and is not
// lost by starting so.
func TestFullDiskAtTheStart(t *testing.T) {
	a, dir, _ := threeAhead(t)
	d := &disk{fullAt: 1}
	j := open(t, dir, Options{VFS: newDisk(t, d)})
	for range 2 {
		checkSteps(t, j, a.log, 3)
		if unread, err := j.Unread(); err != nil || unread["ben"].Items != 1 {
			t.Errorf("unread %v, %v", unread, err)
		}
	}
	if _, err := j.Commit(step(a, 4)); !errors.Is(err, ErrFull) {
		t.Fatalf("commit on a full disk: got %v, want ErrFull", err)
	}
	j.Close()
	k := open(t, dir, Options{})
	if steps := checkSteps(t, k, a.log, 3); steps != 3 {
		t.Errorf("%d steps, want 3", steps)
	}
}

// TestManyCommitsTurnTheFilesOver: with and without somebody who looks, more than both files hold stays whole.
func TestManyCommitsTurnTheFilesOver(t *testing.T) {
	t.Parallel() // it waits for the disk
	dir := tempDir(t)
	j := open(t, dir, Options{VFS: newDisk(t, &disk{})})
	a := newAuthor(1, 1)
	var all []Entry
	text := strings.Repeat("x", 20_000)
	used := [2]bool{}
	for i := range 3 * 2 * aheadMax / 20_000 {
		e := a.say(message("anna", "ben", string(note(i).ID), text))
		all = append(all, e)
		commit(t, j, Batch{Entries: []Entry{e}, Inbox: []InboxPut{{"ben", a.log, e.Record.Seq}}})
		used[j.ahead.active] = true
		if i%197 == 0 {
			if rows, err := j.Inbox("ben", InboxQuery{All: true, Limit: 1, After: uint64(i)}); err != nil || len(rows) != 1 {
				t.Fatalf("message %d: %d rows, %v", i, len(rows), err)
			}
		}
	}
	if !used[0] || !used[1] || j.ahead.bytes() > 2*aheadMax {
		t.Errorf("files used %v, %d bytes", used, j.ahead.bytes())
	}
	k := open(t, killed(t, dir), Options{VFS: newDisk(t, &disk{})})
	checkHolds(t, k, all)
	checkHolds(t, j, all)
	if r := k.Recovery(); !reflect.DeepEqual(r, Recovery{}) {
		t.Errorf("recovery: %+v", r)
	}
}

// TestALargeCommitGoesToTheDatabase: behind what waits, and before what follows.
func TestALargeCommitGoesToTheDatabase(t *testing.T) {
	t.Parallel() // it waits for the disk
	dir := tempDir(t)
	j := open(t, dir, Options{VFS: newDisk(t, &disk{})})
	a := newAuthor(1, 1)
	commit(t, j, step(a, 1))
	var b Batch
	for range 5 {
		b.Entries = append(b.Entries, a.add("odd", make([]byte, 400_000), true))
	}
	all := append(slices.Clone(b.Entries), step(newAuthor(2, 1), 1).Entries...)
	b.Entries = all
	commit(t, j, b)
	if n := len(j.waiting()); n != 0 {
		t.Errorf("%d commits wait", n)
	}
	e := a.add("odd", nil, true)
	commit(t, j, Batch{Entries: []Entry{e}})
	k := open(t, killed(t, dir), Options{VFS: newDisk(t, &disk{})})
	checkHolds(t, k, append(all, e))
	if r := k.Recovery(); !reflect.DeepEqual(r, Recovery{}) {
		t.Errorf("recovery: %+v", r)
	}
}

// TestAStoreOfTheFormerFormatIsTakenOn: it has messages that were not filed, and nothing ahead of the database.
func TestAStoreOfTheFormerFormatIsTakenOn(t *testing.T) {
	dir := tempDir(t)
	a, all := filled(t, dir, 3)
	old := open(t, dir, Options{})
	for _, sql := range []string{"DELETE FROM msgs WHERE pos>3", "DELETE FROM identities WHERE pos>3", "DELETE FROM meta WHERE key='filled'", "PRAGMA user_version=1"} {
		if err := old.writer.exec(sql); err != nil {
			t.Fatal(err)
		}
	}
	old.Close()
	for _, path := range aheadPaths(dir) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	j := open(t, dir, Options{})
	if diff := cmp.Diff(Recovery{}, j.Recovery()); diff != "" {
		t.Errorf("recovery (-want +got):\n%s", diff)
	}
	checkHolds(t, j, all)
	checkSteps(t, j, a.log, 3)
	got, err := j.Messages(Query{})
	if err != nil || len(got) != 3 {
		t.Fatalf("messages: got %d, %v, want 3", len(got), err)
	}
	if out, err := j.Outbox("anna", false, 0); err != nil || len(out) != 1 {
		t.Errorf("outbox: got %d, %v, want the one that is not processed", len(out), err)
	}
	commit(t, j, step(a, 4))
	if v, err := j.writer.number("PRAGMA user_version"); err != nil || v != schemaVersion {
		t.Errorf("version %d, %v: an earlier program would open it and not see the last commit", v, err)
	}
}

// TestAQuerySeesEveryCommitThatReturned: whoever commits, looks and fills at once.
func TestAQuerySeesEveryCommitThatReturned(t *testing.T) {
	j := open(t, tempDir(t), Options{VFS: newDisk(t, &disk{})})
	ctx := t.Context()
	ran := make(chan error, 1)
	go func() { ran <- j.Run(ctx) }()
	a := newAuthor(1, 1)
	done := make(chan struct{})
	said := make(chan int, 1000)
	go func() {
		defer close(done)
		for n := range said {
			m, found, err := j.Message(a.log, uint64(3*n))
			if err != nil || !found {
				t.Errorf("step %d: found %v, %v", n, found, err)
			}
			if _, found, err := j.Identity(identity(n)); err != nil || !found {
				t.Errorf("identity of step %d: found %v, %v", n, found, err)
			}
			_ = m
		}
	}()
	for n := 1; n <= 400; n++ {
		if _, err := j.Commit(step(a, n)); err != nil {
			t.Fatal(err)
		}
		if n%3 == 0 {
			if _, found, err := j.Identity(identity(1_000_000 + n)); err != nil || found {
				t.Fatalf("an identity that nobody has used: found %v, %v", found, err)
			}
		}
		select {
		case said <- n:
		default:
		}
	}
	close(said)
	<-done
	checkSteps(t, j, a.log, 400)
	j.Close()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}

// TestTheSieveForgetsNoIdentity: what is in the store is never said to be absent, also when it is made while commits go on.
func TestTheSieveForgetsNoIdentity(t *testing.T) {
	j := open(t, tempDir(t), Options{VFS: newDisk(t, &disk{})})
	a := newAuthor(1, 1)
	n := 0
	more := func(count int) {
		var b Batch
		for range count {
			n++
			b.Entries = append(b.Entries, a.say(note(n)))
		}
		commit(t, j, b)
	}
	more(700)
	for round := 0; ; round++ {
		again, err := j.makeSieve()
		if err != nil {
			t.Fatal(err)
		}
		if !again {
			break
		}
		more(50)
		if round > 1000 {
			t.Fatal("the sieve is never made")
		}
	}
	more(100)
	absent := 0
	for i := 1; i <= n; i++ {
		if _, found, err := j.Identity(identity(i)); err != nil || !found {
			t.Fatalf("message %d of %d: found %v, %v", i, n, found, err)
		}
		if id := identity(1_000_000 + i); !j.sieve.perhaps(&id) {
			absent++
		}
	}
	if absent < n*9/10 {
		t.Errorf("of %d unknown identities the sieve knew %d to be absent", n, absent)
	}
	j.sieve.mu.Lock()
	j.sieve.room = 3
	j.sieve.mu.Unlock()
	more(10)
	if _, err := j.Messages(Query{Limit: 1}); err != nil {
		t.Fatal(err)
	}
	if !j.sieve.missing() {
		t.Error("a full sieve goes on")
	}
}

func FuzzReadBatch(f *testing.F) {
	a := newAuthor(1, 1)
	step(a, 1)
	b := step(a, 2)
	b.Renames, b.Left = []InboxRename{{"ben", "Bert"}}, []protocol.AgentID{"carl"}
	b.Values["gone"] = nil
	f.Add(appendBatch(nil, &b, protocol.LogID.String))
	f.Add(appendBatch(nil, &Batch{}, protocol.LogID.String))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := readBatch(raw)
		if err != nil {
			return
		}
		again, err := readBatch(appendBatch(nil, &got, protocol.LogID.String))
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("written again it reads otherwise: %v\n%s", err, cmp.Diff(got, again))
		}
	})
}

func TestABatchIsReadAsItWasWritten(t *testing.T) {
	a := newAuthor(1, 1)
	step(a, 1)
	b := step(a, 2)
	b.Entries[2].Void = true
	b.Renames, b.Left = []InboxRename{{"ben", "Bert"}}, []protocol.AgentID{"carl"}
	b.Values["gone"], b.Values["empty"] = nil, []byte{}
	raw := appendFrame(nil, tagOf("a store"), 7, &b, protocol.LogID.String)
	one, ok := readFrame(raw)
	if !ok || one.number != 7 || one.tag != tagOf("a store") || one.size != len(raw) {
		t.Fatalf("frame: %v, number %d, %d of %d bytes", ok, one.number, one.size, len(raw))
	}
	got, err := readBatch(one.batch)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b.Entries {
		b.Entries[i].Envelope = nil // it is in the body
		if len(b.Entries[i].Record.Body) == 0 {
			b.Entries[i].Record.Body = nil
		}
	}
	if !reflect.DeepEqual(got, b) {
		t.Errorf("(-want +got):\n%s", cmp.Diff(b, got))
	}
}

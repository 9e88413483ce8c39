package journal

import (
	"os"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// owed is a record whose signature is left to the store.
func (a *author) owed(env protocol.Envelope) Entry {
	e := a.add(protocol.KindMessage, protocol.EncodeBody(env), false)
	e.Envelope, e.Sign = &env, true
	return e
}

func (a *author) sign(r *protocol.Record, h protocol.Hash) {
	if r.Log.Peer == a.log.Peer {
		r.SignHash(a.key, h)
	}
}

// provenTo checks that all of a log can be handed on: whole commits, verified from the first record.
func provenTo(t *testing.T, j *Journal, a *author, seq uint64) {
	t.Helper()
	recs, err := j.Range(a.log, 1, protocol.MeshFrameBytesMax/2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := protocol.VerifyCommits(recs, protocol.Hash{}); err != nil || uint64(len(recs)) != seq {
		t.Errorf("%d records can be handed on, want %d: %v", len(recs), seq, err)
	}
}

// TestASignatureOwedIsThereAfterTheCommit, in what the caller has and in the store, also when the commit is too large to go
// ahead of the database.
func TestASignatureOwedIsThereAfterTheCommit(t *testing.T) {
	a := newAuthor(1, 1)
	j := open(t, tempDir(t), Options{VFS: newDisk(t, &disk{}), Sign: a.sign})
	small := Batch{Entries: []Entry{a.add("odd", []byte("{}"), false), a.owed(note(2))}}
	large := Batch{Entries: []Entry{a.add("odd", make([]byte, frameBytesMax/2), false), a.add("odd", make([]byte, frameBytesMax/2), false), a.owed(note(5))}}
	for _, b := range []Batch{small, large} {
		commit(t, j, b)
		if last := b.Entries[len(b.Entries)-1].Record; len(last.Sig) == 0 {
			t.Error("the caller has no signature")
		}
	}
	if recs, err := j.Range(a.log, 1, 1); err != nil || len(recs) != 2 {
		t.Errorf("the first commit is %d records (%v), want 2", len(recs), err)
	}
	if recs, _ := j.Range(a.log, 5, 1); len(recs) != 1 || len(recs[0].Sig) == 0 {
		t.Error("the large commit is not signed")
	}
}

// TestWhatACrashLeftUnsignedIsSignedAgain with the same signature, record by record, and nothing is signed for another.
func TestWhatACrashLeftUnsignedIsSignedAgain(t *testing.T) {
	a, other := newAuthor(1, 1), newAuthor(2, 1)
	d := &disk{}
	dir := tempDir(t)
	j := open(t, dir, Options{VFS: newDisk(t, d), Sign: a.sign})
	var sigs [][]byte
	for i := range 3 {
		b := Batch{Entries: []Entry{a.add("odd", []byte("{}"), false), a.owed(note(i))}}
		commit(t, j, b)
		sigs = append(sigs, b.Entries[1].Record.Sig)
	}
	commit(t, j, Batch{Entries: []Entry{other.say(note(9))}})
	d.mu.Lock()
	d.failAt, d.keep = d.steps+1, 0
	d.mu.Unlock()
	if _, err := j.Commit(Batch{Entries: []Entry{a.owed(note(4))}}); err == nil {
		t.Fatal("a commit without power")
	}
	j.Close()
	j = open(t, dir, Options{VFS: newDisk(t, &disk{}), Sign: a.sign})
	provenTo(t, j, a, 6)
	provenTo(t, j, other, 1)
	for i, want := range sigs {
		if st, ok, err := j.At(a.log, uint64(2*i+2)); err != nil || !ok || string(st.Record.Sig) != string(want) {
			t.Errorf("record %d has signature %x, had %x (%v)", 2*i+2, st.Record.Sig, want, err)
		}
	}
}

// TestWithoutTheKeyNothingUnsignedIsHandedOn: what a crash left stays, readable here, and is not taken for a whole commit.
func TestWithoutTheKeyNothingUnsignedIsHandedOn(t *testing.T) {
	a := newAuthor(1, 1)
	d := &disk{}
	dir := tempDir(t)
	j := open(t, dir, Options{VFS: newDisk(t, d), Sign: a.sign})
	commit(t, j, Batch{Entries: []Entry{a.say(note(1))}})
	commit(t, j, Batch{Entries: []Entry{a.owed(note(2))}})
	d.mu.Lock()
	d.failAt, d.keep = d.steps+1, 0
	d.mu.Unlock()
	if _, err := j.Commit(Batch{Entries: []Entry{a.owed(note(3))}}); err == nil {
		t.Fatal("a commit without power")
	}
	j.Close()
	j = open(t, dir, Options{VFS: newDisk(t, &disk{})})
	if j.Records() != 2 {
		t.Errorf("%d records, want 2", j.Records())
	}
	provenTo(t, j, a, 1)
	a.seq, a.prev = 2, a.prevOf(t, j, 2)
	if _, err := j.Commit(Batch{Entries: []Entry{a.owed(note(3))}}); err == nil {
		t.Error("a store without a signer takes a record to be signed")
	}
}

func (a *author) prevOf(t *testing.T, j *Journal, seq uint64) protocol.Hash {
	st, ok, err := j.At(a.log, seq)
	if err != nil || !ok {
		t.Fatalf("record %d: %v", seq, err)
	}
	return st.Hash
}

// TestAStoreThatFindsNoRoomForItsNumberHoldsNoMark: the earlier version, which still opens it, would take it for a signature.
func TestAStoreThatFindsNoRoomForItsNumberHoldsNoMark(t *testing.T) {
	a := newAuthor(1, 1)
	dir := tempDir(t)
	j := open(t, dir, Options{Sign: a.sign})
	commit(t, j, Batch{Entries: []Entry{a.owed(note(1))}})
	if err := j.fill(true); err != nil {
		t.Fatal(err)
	}
	if err := j.writer.db.Exec("PRAGMA user_version=2"); err != nil {
		t.Fatal(err)
	}
	j.Close()
	// signatures are those in the files ahead of the database, as an earlier version reads them.
	signatures := func() (owed, made int) {
		t.Helper()
		for _, path := range aheadPaths(dir) {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for one, ok := readFrame(raw); ok; one, ok = readFrame(raw) {
				b, err := readBatch(one.batch)
				if err != nil {
					t.Fatal(err)
				}
				for i := range b.Entries {
					if b.Entries[i].Sign {
						owed++
					} else if len(b.Entries[i].Record.Sig) > 1 {
						made++
					}
				}
				raw = raw[one.size:]
			}
		}
		return owed, made
	}
	number := func(want int64) {
		t.Helper()
		if v, err := j.writer.number("PRAGMA user_version"); err != nil || v != want {
			t.Errorf("the store has number %d, %v, want %d", v, err, want)
		}
	}
	d := &disk{fullAt: 1}
	j = open(t, dir, Options{VFS: newDisk(t, d), Sign: a.sign})
	number(2)
	d.heal()
	b := Batch{Entries: []Entry{a.owed(note(2))}}
	commit(t, j, b)
	if owed, made := signatures(); owed != 0 || made != 1 {
		t.Errorf("%d marks and %d signatures in the frames, want 0 and 1", owed, made)
	}
	if len(b.Entries[0].Record.Sig) == 0 {
		t.Error("the caller has no signature")
	}
	number(2)
	provenTo(t, j, a, 2)
	j.Close()
	j = open(t, dir, Options{VFS: newDisk(t, &disk{}), Sign: a.sign})
	number(schemaVersion)
	commit(t, j, Batch{Entries: []Entry{a.owed(note(3))}})
	if owed, made := signatures(); owed != 1 || made != 0 {
		t.Errorf("with its own number: %d marks and %d signatures in the frames, want 1 and 0", owed, made)
	}
	provenTo(t, j, a, 3)
}

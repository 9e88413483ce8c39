package journal

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// asked is what a store answers to every kind of question, by the question.
func asked(t testing.TB, j *Journal, log protocol.LogID) map[string]string {
	t.Helper()
	out := map[string]string{}
	add := func(of string, is any, err error) {
		if err != nil {
			t.Fatalf("%s: %v", of, err)
		}
		out[of] = fmt.Sprintf("%+v", is)
	}
	for _, limit := range []int{1, 3, 100} {
		for _, newest := range []bool{true, false} {
			for _, q := range []Query{{}, {Agent: "ben"}, {From: "anna"}, {To: "ben"}, {Intent: "Note"}} {
				q.Limit, q.Newest = limit, newest
				all, err := j.Messages(q)
				add(fmt.Sprintf("messages %+v", q), placesOf(all), err)
			}
		}
		for _, q := range []InboxQuery{{All: true}, {}, {Dead: true}} {
			q.Limit = limit
			all, err := j.Inbox("ben", q)
			var at []uint64
			for _, r := range all {
				at = append(at, r.Pos)
			}
			add(fmt.Sprintf("inbox %+v", q), at, err)
		}
		for _, dead := range []bool{true, false} {
			all, err := j.Outbox("anna", dead, limit)
			add(fmt.Sprint("outbox ", dead, limit), placesOf(all), err)
		}
		found, err := j.Search("message number", 0, limit)
		add(fmt.Sprint("search ", limit), placesOf(found), err)
		rs, err := j.Since(0, limit)
		add(fmt.Sprint("since ", limit), len(rs), err)
		owed, err := j.Owed("ben", 0, limit)
		add(fmt.Sprint("owed ", limit), len(owed), err)
		n, err := j.CountOf("anna", 0, limit, nil)
		add(fmt.Sprint("count ", limit), n, err)
		times, err := j.Timeline(max(limit, 2))
		add(fmt.Sprint("timeline ", limit), times, err)
	}
	last, err := j.LastOf([]protocol.AgentID{"anna", "ben"})
	add("last", last, err)
	all, err := j.Addressed("ben", 0)
	add("addressed", all, err)
	unread, err := j.Unread()
	add("unread", unread, err)
	for n := range 60 {
		row, found, err := j.Identity(identity(n))
		add(fmt.Sprint("identity ", n), fmt.Sprint(row, found), err)
		env := note(n)
		same, err := j.Copies("anna", env.ID)
		add(fmt.Sprint("copies ", n), placesOf(same), err)
		same, err = j.Resolve(protocol.ShortIDOf(env.ID, 12))
		add(fmt.Sprint("short id ", n), placesOf(same), err)
		m, _, err := j.MessageByID("anna", env.ID)
		add(fmt.Sprint("by id ", n), m.Pos, err)
		m, _, err = j.Message(log, uint64(n))
		add(fmt.Sprint("message ", n), m.Pos, err)
		tiers, err := j.Tiers(log, uint64(n))
		add(fmt.Sprint("tiers ", n), tiers, err)
	}
	for _, at := range []protocol.HLC{1, newAuthor(1, 1).at + 50, 1 << 62} {
		prev, next, late, err := j.Beside(at)
		add(fmt.Sprint("beside ", at), []uint64{uint64(prev), uint64(next), late}, err)
	}
	return out
}

func placesOf(all []Message) (at []uint64) {
	for _, m := range all {
		at = append(at, m.Pos)
	}
	return at
}

// TestWhatLeftIsNotFoundBeforeItIsSweptEither: every answer is at once the one that is given when the rows are gone.
func TestWhatLeftIsNotFoundBeforeItIsSweptEither(t *testing.T) {
	t.Parallel()
	j := open(t, tempDir(t), Options{VFS: newDisk(t, &disk{})})
	a, b := newAuthor(1, 1), newAuthor(2, 2)
	for n := 1; n <= 40; n++ {
		commit(t, j, step(a, n))
		again := note(n)
		if n%3 == 0 { // the same message through another node
			commit(t, j, Batch{Entries: []Entry{b.say(again)}})
		} else {
			commit(t, j, Batch{Entries: []Entry{b.say(note(1000 + n))}, Inbox: []InboxPut{{"ben", b.log, b.seq}}, Tiers: []TierPut{{Log: b.log, Seq: b.seq, Tier: protocol.Refused, Agent: "ben", At: b.at, Reason: "full"}}})
		}
	}
	for more := true; more; {
		more = must(j.indexSome())
	}
	before := asked(t, j, a.log)
	if err := j.Leave([]Base{baseAt(t, j, a.log, 80), baseAt(t, j, b.log, 20)}, nil); err != nil {
		t.Fatal(err)
	}
	at := asked(t, j, a.log)
	if reflect.DeepEqual(at, before) {
		t.Fatal("nothing left")
	}
	commit(t, j, Batch{
		Inbox: []InboxPut{{"ben", a.log, 3}},
		Tiers: []TierPut{{Log: a.log, Seq: 6, Tier: protocol.Refused, Agent: "carl", At: a.at}, {Log: b.log, Seq: 2, Tier: protocol.Processed, At: a.at}},
	})
	for more := true; more; {
		if now := asked(t, j, a.log); !reflect.DeepEqual(now, at) {
			for of := range at {
				if now[of] != at[of] {
					t.Fatalf("%s: %s, was %s", of, now[of], at[of])
				}
			}
		}
		more = must(j.Sweep(30))
	}
	commit(t, j, Batch{Tiers: []TierPut{{Log: a.log, Seq: 9, Tier: protocol.Processed, Agent: "dora", At: a.at}}})
	if now := asked(t, j, a.log); !reflect.DeepEqual(now, at) {
		t.Error("the sweep changed an answer")
	}
	if n, err := j.writer.number("SELECT count(*) FROM tiers WHERE log=? AND seq<=80", j.logOf(a.log).row); err != nil || n != 0 {
		t.Errorf("%d receipts of what left are there, %v", n, err)
	}
}

// TestAStoreOfWhichAllLeftGoesOn where it was: no position is given twice, and the next record follows the base.
func TestAStoreOfWhichAllLeftGoesOn(t *testing.T) {
	dir := tempDir(t)
	j := open(t, dir, Options{})
	a := newAuthor(1, 1)
	commit(t, j, step(a, 1))
	commit(t, j, Batch{Tiers: []TierPut{{Log: a.log, Seq: 3, Tier: protocol.Processed, Agent: "ben", At: a.at}}})
	at, digest := j.Position(), must(j.Digest())
	if err := j.Leave([]Base{baseAt(t, j, a.log, 3)}, []byte("all")); err != nil {
		t.Fatal(err)
	}
	sweepAll(t, j)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = open(t, dir, Options{})
	if j.Position() != at || j.Records() != 0 || must(j.Digest()) != digest {
		t.Errorf("position %d, %d records, want %d and 0", j.Position(), j.Records(), at)
	}
	if pos := commit(t, j, step(a, 2)); pos != at+1 {
		t.Errorf("the next record is at %d, want %d", pos, at+1)
	}
	gap := newAuthor(1, 1)
	gap.seq, gap.prev = 6, protocol.Hash{1}
	if _, err := j.Commit(Batch{Entries: []Entry{gap.add("odd", nil, true)}}); !errors.Is(err, ErrGap) {
		t.Errorf("a record that does not follow: %v", err)
	}
}

func TestABaseThatDoesNotFitIsRefused(t *testing.T) {
	j := open(t, tempDir(t), Options{})
	a, b := newAuthor(1, 1), newAuthor(2, 2)
	fillSteps(t, j, a, 1, 5)
	base, before := baseAt(t, j, a.log, 9), asked(t, j, a.log)
	other := base
	other.Hash[0]++
	for name, c := range map[string]struct {
		bases []Base
		want  error
	}{
		"none":              {nil, ErrBase},
		"another record":    {[]Base{other}, ErrBase},
		"above the head":    {[]Base{{a.log, 16, base.Hash}}, ErrBase},
		"nothing":           {[]Base{{a.log, 0, protocol.Hash{}}}, ErrBase},
		"twice":             {[]Base{base, base}, ErrBase},
		"a log not here":    {[]Base{base, {b.log, 1, base.Hash}}, ErrBase},
		"a mail that waits": {[]Base{baseAt(t, j, a.log, 15)}, ErrUndelivered},
	} {
		err := j.Leave(c.bases, []byte("x"))
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		if c.want == ErrUndelivered && !strings.Contains(err.Error(), "record 15 of "+a.log.String()+" waits in the inbox of ben") {
			t.Errorf("%s is not named: %v", name, err)
		}
	}
	if _, found, err := j.Snapshot(); found || err != nil || len(j.Bases()) > 0 || !reflect.DeepEqual(asked(t, j, a.log), before) {
		t.Error("what was refused left something")
	}
	if err := j.Leave([]Base{base}, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := j.Leave([]Base{{a.log, 6, base.Hash}}, nil); !errors.Is(err, ErrBase) {
		t.Errorf("a base below the one before: %v", err)
	}
	if err := j.Leave([]Base{base}, []byte("y")); err != nil {
		t.Errorf("the same again, with another snapshot: %v", err)
	}
	if got, _, err := j.Snapshot(); err != nil || string(got) != "y" {
		t.Errorf("snapshot %q, %v", got, err)
	}
}

// TestAStoreBeginsAtASnapshotOfOthers: logs of which nothing or too little is here go on behind a base.
func TestAStoreBeginsAtASnapshotOfOthers(t *testing.T) {
	whole, dir := open(t, tempDir(t), Options{}), tempDir(t)
	j := open(t, dir, Options{})
	a, b, own := newAuthor(1, 1), newAuthor(2, 2), newAuthor(3, 3)
	for n := 1; n <= 30; n++ {
		one, two := step(a, n), step(b, n)
		commit(t, whole, one)
		commit(t, whole, two)
		if n <= 4 {
			commit(t, j, Batch{Entries: two.Entries})
		}
	}
	commit(t, j, step(own, 1))
	bases := []Base{baseAt(t, whole, a.log, 60), baseAt(t, whole, b.log, 75)}
	if err := j.Begin(bases, []byte("theirs")); err != nil {
		t.Fatal(err)
	}
	sweepAll(t, j)
	for _, base := range bases {
		rs, err := whole.Range(base.Log, base.Seq+1, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		var entries []Entry
		for i := range rs {
			entries = append(entries, Entry{Record: rs[i]})
		}
		commit(t, j, Batch{Entries: entries})
	}
	for range 2 {
		heads := map[protocol.LogID]Head{}
		for _, h := range must(j.Heads()) {
			heads[h.Log] = h
		}
		for _, h := range must(whole.Heads()) {
			if heads[h.Log] != h {
				t.Errorf("the head of %s is %d, want %d", h.Log, heads[h.Log].Seq, h.Seq)
			}
		}
		if got, found, err := j.Snapshot(); err != nil || !found || string(got) != "theirs" || j.Records() != 30+15+3 {
			t.Errorf("snapshot %q, %v, %v; %d records", got, found, err, j.Records())
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if faults, err := Examine(t.Context(), dir); err != nil || len(faults) > 0 {
			t.Errorf("faults %v, %v", faults, err)
		}
		j = open(t, dir, Options{})
	}
}

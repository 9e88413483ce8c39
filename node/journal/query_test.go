package journal

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aster-mesh/aster/protocol"
)

func ids(all []Message) (out []string) {
	for _, m := range all {
		out = append(out, string(m.Envelope.ID))
	}
	return out
}

// TestQueriesAgreeWithAPlainScan compares Messages with a filter over everything.
func TestQueriesAgreeWithAPlainScan(t *testing.T) {
	j := open(t, tempDir(t), Options{VFS: newDisk(t, &disk{})})
	rng := rand.New(rand.NewPCG(1, 2))
	agents := []protocol.AgentID{"anna", "Ben", "carl", ""}
	intents := []protocol.Intent{"Note", protocol.Delegate, protocol.WorkerReport}
	a := newAuthor(1, 1)
	var all []protocol.Envelope
	for i := range 200 {
		env := note(i)
		env.From, env.To = agents[rng.IntN(3)], agents[rng.IntN(4)]
		env.Intent = intents[rng.IntN(3)]
		if rng.IntN(3) == 0 {
			env.Re, env.Thread = protocol.MsgID(fmt.Sprint("re", rng.IntN(4))), fmt.Sprint("th", rng.IntN(4))
		}
		all = append(all, env)
		commit(t, j, Batch{Entries: []Entry{a.say(env)}})
	}
	pick := func(of []protocol.AgentID) protocol.AgentID {
		if rng.IntN(2) == 0 {
			return ""
		}
		return protocol.AgentID(strings.ToUpper(string(of[rng.IntN(3)])))
	}
	same := func(q, have protocol.AgentID) bool { return q == "" || strings.EqualFold(string(q), string(have)) }
	for range 500 {
		q := Query{From: pick(agents), To: pick(agents), Agent: pick(agents), Limit: 1 + rng.IntN(30), Newest: rng.IntN(2) == 0}
		if rng.IntN(3) == 0 {
			q.Intent = intents[rng.IntN(3)]
		}
		if rng.IntN(3) == 0 {
			q.Re = protocol.MsgID(fmt.Sprint("re", rng.IntN(5)))
		}
		if rng.IntN(4) == 0 {
			q.Thread = fmt.Sprint("th", rng.IntN(5))
		}
		if rng.IntN(2) == 0 {
			q.After = uint64(rng.IntN(150))
		}
		if rng.IntN(2) == 0 {
			q.Before = uint64(50 + rng.IntN(150))
		}
		var want []string
		for i, e := range all {
			pos := uint64(i + 1)
			if same(q.From, e.From) && same(q.To, e.To) && (q.Agent == "" || same(q.Agent, e.From) || same(q.Agent, e.To)) &&
				(q.Intent == "" || q.Intent == e.Intent) && (q.Re == "" || q.Re == e.Re) && (q.Thread == "" || q.Thread == e.Thread) &&
				pos > q.After && (q.Before == 0 || pos < q.Before) {
				want = append(want, string(e.ID))
			}
		}
		if q.Newest {
			slices.Reverse(want)
		}
		want = want[:min(len(want), q.Limit)]
		got, err := j.Messages(q)
		if err != nil {
			t.Fatalf("%+v: %v", q, err)
		}
		if diff := cmp.Diff(want, ids(got)); diff != "" {
			t.Fatalf("%+v (-want +got):\n%s", q, diff)
		}
	}
}

func TestIdsResolveWholeOrShort(t *testing.T) {
	j := open(t, tempDir(t), Options{VFS: newDisk(t, &disk{})})
	a := newAuthor(1, 1)
	odd := message("anna", "ben", "an id of a client", "x")
	for _, env := range []protocol.Envelope{note(1), note(2), odd, message("carl", "ben", "an id of a client", "y")} {
		commit(t, j, Batch{Entries: []Entry{a.say(env)}})
	}
	for text, want := range map[string][]string{
		string(note(1).ID):                                         {string(note(1).ID)},
		protocol.ShortID(note(2).ID):                               {string(note(2).ID)},
		strings.ToUpper(protocol.ShortID(note(2).ID)):              {string(note(2).ID)},
		strings.ReplaceAll(protocol.ShortID(note(2).ID), "0", "o"): {string(note(2).ID)},
		protocol.ShortIDOf(odd.ID, 12):                             {string(odd.ID), string(odd.ID)},
		"0000":                                                     nil,
		"uuuuu":                                                    nil,
		"'; DROP":                                                  nil,
		"":                                                         nil,
	} {
		got, err := j.Resolve(text)
		if err != nil || !slices.Equal(ids(got), want) {
			t.Errorf("Resolve(%q): got %q, %v, want %q", text, ids(got), err, want)
		}
	}
	for n := 5; n <= 12; n++ {
		if got, err := j.Resolve(protocol.ShortIDOf(odd.ID, n)); err != nil || len(got) != 2 || got[0].Pos < got[1].Pos {
			t.Errorf("short id of %d: got %q, %v", n, ids(got), err)
		}
	}
	m, found, err := j.MessageByID("ANNA", odd.ID)
	if err != nil || !found || m.Pos != 3 {
		t.Errorf("by sender and id: got %v at %d, %v", found, m.Pos, err)
	}
	if m, found, _ = j.MessageByID("", odd.ID); !found || m.Pos != 4 {
		t.Errorf("by id alone: got %v at %d, want the newest", found, m.Pos)
	}
	if _, found, err = j.MessageByID("ben", odd.ID); found || err != nil {
		t.Errorf("of another sender: found %v, %v", found, err)
	}
	if _, found, err = j.Message(a.log, 9); found || err != nil {
		t.Errorf("above the head: found %v, %v", found, err)
	}
}

func TestAnInboxHoldsWhatIsOwed(t *testing.T) {
	j := open(t, tempDir(t), Options{VFS: newDisk(t, &disk{})})
	a := newAuthor(1, 1)
	for i := 1; i <= 5; i++ {
		e := a.say(note(i))
		put := InboxPut{"Ben", a.log, e.Record.Seq}
		commit(t, j, Batch{Entries: []Entry{e}, Inbox: []InboxPut{put, put}})
	}
	tier := func(seq uint64, tier protocol.Tier, reason string) TierPut {
		return TierPut{Log: a.log, Seq: seq, Tier: tier, Agent: "ben", At: a.at, By: a.log.Peer, Reason: reason}
	}
	commit(t, j, Batch{Tiers: []TierPut{tier(1, protocol.Persisted, ""), tier(2, protocol.Processed, ""), tier(3, protocol.Refused, protocol.CodeExpired)}})
	commit(t, j, Batch{Tiers: []TierPut{tier(2, protocol.Refused, "late"), tier(2, protocol.Processed, "again")}})

	check := func(name string, q InboxQuery, want ...int) {
		t.Helper()
		rows, err := j.Inbox("ben", q)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, r := range rows {
			got = append(got, int(r.Seq))
			if r.Processed != (r.Seq == 2) || (r.Dead != "") != (r.Seq == 3) {
				t.Errorf("%s: seq %d: processed %v, dead %q", name, r.Seq, r.Processed, r.Dead)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	check("unread", InboxQuery{}, 1, 4, 5)
	check("all", InboxQuery{All: true}, 1, 2, 3, 4, 5)
	check("dead", InboxQuery{Dead: true}, 3)
	check("after", InboxQuery{After: 1, Limit: 1}, 4)
	unread, err := j.Unread()
	if err != nil || len(unread) != 1 || unread["Ben"].Items != 3 || unread["Ben"].Bytes == 0 {
		t.Errorf("unread: got %v, %v", unread, err)
	}
	refs, err := j.UnreadRefs("BEN")
	if err != nil || len(refs) != 3 || refs[0].ID != note(1).ID || refs[0].From != "anna" || refs[0].Bytes != unread["Ben"].Bytes/3 {
		t.Errorf("refs: got %v, %v", refs, err)
	}
	if tiers, err := j.Tiers(a.log, 2); err != nil || len(tiers) != 2 {
		t.Errorf("tiers: got %v, %v, want each once", tiers, err)
	}
	out, err := j.Outbox("Anna", false, 0)
	if want := []string{string(note(1).ID), string(note(4).ID), string(note(5).ID)}; err != nil || !slices.Equal(ids(out), want) {
		t.Errorf("outbox: got %v, %v, want %v", ids(out), err, want)
	}
	if out, err = j.Outbox("anna", true, 0); err != nil || !slices.Equal(ids(out), []string{string(note(3).ID)}) {
		t.Errorf("dead: got %v, %v", ids(out), err)
	}
}

// TestAReceiptMayComeBeforeItsMessage: they travel in different logs.
func TestAReceiptMayComeBeforeItsMessage(t *testing.T) {
	dir := tempDir(t)
	j := open(t, dir, Options{})
	a := newAuthor(1, 1)
	e := []Entry{a.say(note(1)), a.say(note(2)), a.say(note(3))}
	commit(t, j, Batch{Tiers: []TierPut{
		{Log: a.log, Seq: 1, Tier: protocol.Processed, Agent: "ben", At: 7}, {Log: a.log, Seq: 2, Tier: protocol.Refused, At: 8, Reason: "expired"},
	}})
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = open(t, dir, Options{})
	commit(t, j, Batch{Entries: e, Inbox: []InboxPut{{"ben", a.log, 1}, {"ben", a.log, 2}, {"ben", a.log, 3}}})
	rows, err := j.Inbox("ben", InboxQuery{All: true})
	if err != nil || len(rows) != 3 || !rows[0].Processed || rows[1].Dead != "expired" || rows[2].Processed {
		t.Errorf("inbox: got %+v, %v", rows, err)
	}
	open, err := j.Outbox("anna", false, 0)
	if err != nil || !slices.Equal(ids(open), []string{string(note(3).ID)}) {
		t.Errorf("outbox: got %v, %v", ids(open), err)
	}
	if dead, _ := j.Outbox("anna", true, 0); !slices.Equal(ids(dead), []string{string(note(2).ID)}) {
		t.Errorf("dead: got %v", ids(dead))
	}
}

func TestSearchTakesAnythingAsWords(t *testing.T) {
	j := open(t, tempDir(t), Options{VFS: newDisk(t, &disk{})})
	a := newAuthor(1, 1)
	for i, text := range []string{
		`The "quick" brown fox`, `fox* AND cat`, `NEAR the café, über alles`, `빌드가 실패했습니다`, `서버 API서버를 다시 시작`,
		`東京都の天気`, `e-mail: a@b.example`, "\u1107\u1175\u11af\u1103\u1173 ok", // 빌드, decomposed
	} {
		commit(t, j, Batch{Entries: []Entry{a.say(message("anna", "ben", fmt.Sprint("m", i+1), text))}})
	}
	for words, want := range map[string][]int{
		"fox":                       {2, 1},
		`"quick`:                    {1},
		`quick" brown (`:            {1},
		"FOX brown":                 {1},
		"bro":                       {1},
		"bro fox":                   {}, // only the last word may be a beginning
		"fox*":                      {2, 1},
		"fox AND":                   {2},
		"NEAR(fox cat)":             {},
		"near":                      {3},
		"cafe uber":                 {3},
		"CAFÉ":                      {3},
		"빌드":                        {8, 4},
		"실패":                        {4},
		"패했습":                       {4},
		"드가 실패":                     {4},
		"니":                         {4},
		"다":                         {5, 4},
		"서버":                        {5},
		"api서버":                     {5},
		"京都":                        {6},
		"天気 東京":                     {6},
		"b.example":                 {7},
		"text:fox":                  {},
		"-fox":                      {2, 1},
		"^the":                      {3, 1},
		"'":                         nil,
		`"" * ( ) : ^ - +`:          nil,
		"":                          nil,
		"\x00\xff":                  nil,
		"absent":                    {},
		"anna":                      {8, 7, 6, 5, 4, 3, 2, 1},
		strings.Repeat("fox ", 500): {2, 1},
	} {
		got, err := j.Search(words, 0, 50)
		if err != nil {
			t.Errorf("Search(%q): %v", words, err)
			continue
		}
		var seqs []int
		for _, m := range got {
			seqs = append(seqs, int(m.Seq))
		}
		if !slices.Equal(seqs, want) {
			t.Errorf("Search(%q): got %v, want %v", words, seqs, want)
		}
	}
	if got, _ := j.Search("fox", 2, 50); len(got) != 1 || got[0].Seq != 1 {
		t.Errorf("before 2: got %v", ids(got))
	}
	if got, _ := j.Search("anna", 0, 3); len(got) != 3 || got[0].Seq != 8 {
		t.Errorf("limit 3: got %v", ids(got))
	}
}

func FuzzSearchWords(f *testing.F) {
	for _, s := range []string{`"`, `a"b`, "NEAR(a b)", "*", "빌드 실패", "{a b}:c", "a^2", "\x00"} {
		f.Add(s)
	}
	j := open(f, f.TempDir()+"/j", Options{VFS: newDisk(f, &disk{})})
	commit(f, j, Batch{Entries: []Entry{newAuthor(1, 1).say(note(1))}})
	f.Fuzz(func(t *testing.T, words string) {
		if _, err := j.Search(words, 0, 5); err != nil {
			t.Errorf("Search(%q): %v", words, err)
		}
		// A text is found by itself, unless it is cut or holds no word.
		env := message("anna", "ben", "m", strings.ToValidUTF8(words, "?"))
		if match := matchExpression(env.Text(1 << 10)); match != "" && indexText(&env) == "" {
			t.Errorf("%q has terms %s and no text", words, match)
		}
	})
}

func TestRunIndexesScrubsAndEnds(t *testing.T) {
	dir := tempDir(t)
	synctest.Test(t, func(t *testing.T) {
		j, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- j.Run(ctx) }()
		a := newAuthor(1, 1)
		for i := range 300 {
			if _, err := j.Commit(Batch{Entries: []Entry{a.say(note(i))}}); err != nil {
				t.Fatal(err)
			}
		}
		if !j.waits.Load() {
			t.Error("nothing waits for the database although commits have not paused")
		}
		time.Sleep(2 * calmAfter)
		synctest.Wait()
		if got := j.search.done.Load(); got != 300 {
			t.Errorf("indexed up to %d, want 300", got)
		}
		if n := j.walPages.Load(); n != 0 {
			t.Errorf("%d pages are in the write-ahead log after a pause", n)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestVoidWordsAreFoundNowhere: a message that does not count is kept as a record, over a crash and a salvage too, and no
// query finds it; the next message under its identity is no repeat.
func TestVoidWordsAreFoundNowhere(t *testing.T) {
	dir := tempDir(t)
	j := open(t, dir, Options{})
	a := newAuthor(1, 1)
	before, forged := a.say(note(0)), note(1)
	e := a.say(forged)
	e.Envelope, e.Void = nil, true
	commit(t, j, Batch{Entries: []Entry{before, e, a.say(note(2))}})
	crashed := filepath.Join(t.TempDir(), "crashed")
	if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	for _, j := range []*Journal{j, open(t, crashed, Options{})} {
		all, err := j.Messages(Query{})
		if err != nil || len(all) != 2 {
			t.Errorf("messages: %v %v, want two", ids(all), err)
		}
		if page, err := j.Messages(Query{Limit: 2, Newest: true}); err != nil || len(page) != 2 {
			t.Errorf("a page of two holds %v %v", ids(page), err)
		}
		found, err := j.Search("message", 0, 0)
		if err != nil || len(found) != 2 {
			t.Errorf("search finds %v %v, want two", ids(found), err)
		}
		if _, ok, err := j.Message(e.Record.Log, e.Record.Seq); ok || err != nil {
			t.Errorf("it is found by its place: %v", err)
		}
		if _, ok, err := j.Identity(forged.Identity()); ok || err != nil {
			t.Errorf("its identity is taken: %v", err)
		}
		if recs, err := j.Range(e.Record.Log, 1, 1<<20); err != nil || len(recs) != 3 {
			t.Errorf("%d records are handed on, %v", len(recs), err)
		}
	}
}

package board

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

func (j *journal) founded() *journalLog {
	l := j.open(0, protocol.ScopeInside)
	for i := range j.mesh.peers {
		j.write(l, protocol.KindMember, j.admits(i))
	}
	return l
}

func (j *journal) all() []*protocol.Record { return j.merged(rand.New(rand.NewPCG(1, 1))) }

func TestTheDigestChangesWithAnyRecord(t *testing.T) {
	j := randomJournal(t, 3, 100)
	s := fold(t, emptyState(j, 10), j.all())
	seen := map[string]bool{s.Digest(): true}
	l := j.open(0, protocol.ScopeInside)
	for i := range 20 {
		kind, body := randomBody(rand.New(rand.NewPCG(uint64(i), 5)), j, j.logs)
		if kind == protocol.KindRevoke {
			kind = "odd"
		}
		if err := s.Apply(l.raw(j.clock, kind, body), nil); err != nil {
			t.Fatal(err)
		}
		if d := s.Digest(); seen[d] {
			t.Fatalf("record %d of kind %s left the digest as it was", i, kind)
		} else {
			seen[d] = true
		}
	}
}

func TestABodyThatDoesNotDecodeCountsAndNothingElse(t *testing.T) {
	j := newJournal(t)
	l := j.founded()
	for _, kind := range []protocol.Kind{protocol.KindMessage, protocol.KindReceipts, protocol.KindBind, protocol.KindMember, protocol.KindRevoke, protocol.KindInviteUsed, protocol.KindTerm, protocol.KindPresence, "unheard-of"} {
		for _, body := range []string{"", "{", "[]", "7", "\xff\xfe", strings.Repeat("[", 100_000)} {
			l.raw(j.clock, kind, []byte(body))
		}
	}
	s := fold(t, emptyState(j, 10), j.all())
	if got, want := s.Counts().Records, uint64(len(l.records)); got != want {
		t.Errorf("%d records counted, want %d", got, want)
	}
	if len(s.Tasks())+len(s.Agents())+len(s.Declarations()) != 0 || len(s.Members()) != 4 || s.Counts().Kinds[otherKind] != 6 {
		t.Errorf("tasks %v, agents %v, members %d", s.Tasks(), s.Agents(), len(s.Members()))
	}
}

func TestARepeatIsPassedOverAndAGapIsAnError(t *testing.T) {
	j := newJournal(t)
	l := j.founded()
	s := emptyState(j, 10)
	for _, r := range l.records[:2] {
		if err := s.Apply(r, nil); err != nil {
			t.Fatal(err)
		}
	}
	want := s.Digest()
	if err := s.Apply(l.records[0], nil); err != nil || s.Digest() != want {
		t.Errorf("a repeat: %v", err)
	}
	if err := s.Apply(l.records[3], nil); !errors.Is(err, ErrGap) || s.Digest() != want {
		t.Errorf("a gap: %v, want ErrGap", err)
	}
	if got := s.Mark(l.id); got != 2 {
		t.Errorf("mark %d, want 2", got)
	}
}

func TestAnEnvelopeInHandFoldsAsItsRecordDoes(t *testing.T) {
	j := newJournal(t)
	l := j.founded()
	big := `{ "a" : "` + strings.Repeat("<", 2000) + `" }` // small as sent, large as recorded
	env := protocol.Envelope{ID: "m-1", From: "a", Intent: "OpsState", Value: json.RawMessage(big)}
	j.write(l, protocol.KindMessage, env)
	one, other := emptyState(j, 10), emptyState(j, 10)
	for i, r := range l.records {
		var inHand *protocol.Envelope
		if i == len(l.records)-1 {
			inHand = &env
		}
		if err := errors.Join(one.Apply(r, inHand), other.Apply(r, nil)); err != nil {
			t.Fatal(err)
		}
	}
	if one.Digest() != other.Digest() {
		t.Error("author and reader see two boards")
	}
}

func TestRecordsBeyondACutLeaveTheBoard(t *testing.T) {
	j := newJournal(t)
	l := j.founded()
	bad := j.open(1, protocol.ScopeInside)
	j.bind(bad, "a")
	j.write(bad, protocol.KindMessage, protocol.Envelope{ID: "kept", From: "a", To: "b", Intent: protocol.Delegate})
	j.write(bad, protocol.KindMessage, protocol.Envelope{ID: "cut", From: "a", To: "b", Intent: protocol.Delegate})
	j.write(l, protocol.KindRevoke, protocol.RevokeBody{Peer: j.peers[1], Cuts: map[string]uint64{bad.id.String(): 2}})
	records := slices.Concat(l.records, bad.records)
	first := emptyState(j, 10)
	for _, r := range records { // the cut is known before what it cuts: nothing to take back
		if err := first.Apply(r, nil); err != nil || first.Stale() {
			t.Fatalf("%v, stale %v", err, first.Stale())
		}
	}
	late := emptyState(j, 10)
	for _, r := range slices.Concat(l.records[:4], bad.records) {
		if err := late.Apply(r, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := late.Task("cut"); !ok || late.Stale() {
		t.Fatal("without a revocation the task counts")
	}
	if err := late.Apply(l.records[4], nil); err != nil || !late.Stale() {
		t.Fatalf("a cut below what was taken did not make the board stale: %v", err)
	}
	late = fold(t, late.Restart(), records)
	if _, ok := late.Task("cut"); ok || late.Digest() != first.Digest() || len(late.Tasks()) != 1 {
		t.Errorf("after the restart: %+v", late.Tasks())
	}
}

func TestNodesThatHoldDifferentCutRecordsShowOneBoard(t *testing.T) {
	j := newJournal(t)
	l := j.founded()
	bad := j.open(1, protocol.ScopeInside)
	j.bind(bad, "a")
	for i := range 5 {
		j.write(bad, protocol.KindMessage, protocol.Envelope{ID: protocol.MsgID(fmt.Sprint(i)), From: "a", To: "b", Intent: protocol.Delegate})
	}
	j.write(bad, protocol.KindRevoke, protocol.RevokeBody{Peer: j.peers[0]})
	unheard := j.open(1, protocol.ScopeInside)
	j.write(unheard, protocol.KindPresence, protocol.PresenceBody{Agent: "a", State: "idle"})
	j.write(l, protocol.KindRevoke, protocol.RevokeBody{Peer: j.peers[1], Cuts: map[string]uint64{bad.id.String(): 4}})
	var want string
	for held := 4; held <= 7; held++ {
		s := fold(t, emptyState(j, 10), slices.Concat(l.records, bad.records[:held], unheard.records[:held%2]))
		if want == "" {
			want = s.Digest()
		}
		if s.Digest() != want || len(s.Tasks()) != 3 {
			t.Errorf("with %d records of the cut log: another board, %d tasks", held, len(s.Tasks()))
		}
	}
}

func TestATaskGoesThroughItsStates(t *testing.T) {
	j := newJournal(t)
	l := j.founded()
	w := j.open(1, protocol.ScopeInside)
	j.bind(l, "m")
	j.bind(w, "w")
	s := fold(t, emptyState(j, 10), j.all())
	step := func(l *journalLog, kind protocol.Kind, body any) api.Task {
		t.Helper()
		if err := s.Apply(j.write(l, kind, body), nil); err != nil {
			t.Fatal(err)
		}
		task, ok := s.Task("d-1")
		if !ok {
			t.Fatal("no task")
		}
		return task
	}
	report := func(value string) protocol.Envelope {
		return protocol.Envelope{ID: "r", From: "w", To: "m", Intent: protocol.WorkerReport, Re: "d-1", Value: json.RawMessage(value),
			Blobs: []protocol.BlobRef{{SHA256: strings.Repeat("a", 64), Bytes: 3, Use: "result"}, {SHA256: strings.Repeat("b", 64), Bytes: 3, Use: "output"}}}
	}
	got := step(l, protocol.KindMessage, protocol.Envelope{ID: "d-1", From: "m", To: "W", Intent: protocol.Delegate, Value: json.RawMessage(`{"task":"make ./cart pass","root":"aa","base":"bb"}`)})
	if got.State != api.TaskQueued || got.Title != "make ./cart pass" || got.Short != "t-"+protocol.ShortID("d-1") || len(got.Tiers) != 1 || got.Root != "aa" {
		t.Errorf("delegated: %+v", got)
	}
	got = step(w, protocol.KindReceipts, protocol.ReceiptsBody{Tier: protocol.Persisted, Agent: "w", Of: []protocol.LogRange{{Log: l.id.String(), Ranges: []uint64{6, 6}}}})
	if got.State != api.TaskDelivered || got.Node != j.peers[1] || got.NodeName != "node-1" || len(got.Tiers) != 2 {
		t.Errorf("persisted: %+v", got)
	}
	got = step(w, protocol.KindMessage, report(`{"status":"in_progress","summary":"reads","tail":"PASS","attempt":1}`))
	started := got.Started
	if got.State != api.TaskRunning || got.Summary != "reads" || got.Tail != "PASS" || started == 0 || got.Ended != 0 {
		t.Errorf("running: %+v", got)
	}
	if got = step(w, protocol.KindMessage, report(`{"status":"blocked","summary":"which?"}`)); got.State != api.TaskBlocked || got.Ended != 0 {
		t.Errorf("blocked without an outcome: %+v", got)
	}
	if got = step(l, protocol.KindMessage, protocol.Envelope{ID: "c", From: "m", To: "w", Intent: protocol.Cancel, Re: "d-1"}); got.State != api.TaskBlocked {
		t.Errorf("a cancel overruled its worker: %+v", got)
	}
	got = step(w, protocol.KindMessage, report(`{"status":"done","outcome":"done","summary":"passes","attempt":1,"exit":0,"commit":"3f9c2ab","diff":{"files":1,"added":2,"removed":1,"paths":["cart/total.go"]}}`))
	if got.State != api.TaskDone || got.Exit == nil || *got.Exit != 0 || got.Commit != "3f9c2ab" || got.Diff.Added != 2 || got.Ended == 0 || got.Started != started || got.Result == nil || got.Output == nil || got.Base != "bb" || got.Attempt != 1 || got.Tail != "" {
		t.Errorf("done: %+v", got)
	}
	if got = step(w, protocol.KindMessage, report(`{"status":"blocked","outcome":"failed"}`)); got.State != api.TaskDone {
		t.Errorf("a second final report changed the task: %+v", got)
	}
}

func TestOfTwoAgentsOfOneNameTheEarlierKeepsIt(t *testing.T) {
	j := newJournal(t)
	l := j.founded()
	logs := []*journalLog{l, j.open(1, protocol.ScopeInside), j.open(2, protocol.ScopeInside), j.open(3, protocol.ScopeOutside(j.peers[3]))}
	bind := func(i int, id protocol.AgentID, since protocol.HLC, role protocol.Role) {
		j.write(logs[i], protocol.KindBind, protocol.BindBody{Agent: id, Home: j.peers[i], Since: since, Role: role})
	}
	bind(0, "claude-shop", 50, protocol.RoleLocal)
	bind(1, "Claude-Shop", 40, protocol.RoleLocal)
	bind(2, "claude-shop-2", 90, protocol.RoleMain)
	bind(3, "claude-shop", 60, protocol.RoleMain)
	j.write(logs[1], protocol.KindBind, protocol.BindBody{Agent: "stolen", Home: j.peers[2], Since: 1})
	j.write(logs[0], protocol.KindTerm, protocol.TermBody{Number: 1, Peer: j.peers[0], Agent: "claude-shop"})
	j.write(logs[1], protocol.KindPresence, protocol.PresenceBody{Agent: "claude-shop", State: "working"})
	s := fold(t, emptyState(j, 10), j.all())
	var got []string
	for _, a := range s.Agents() {
		got = append(got, fmt.Sprintf("%s %s %s %s", a.NodeName, a.ID, a.Role, a.State))
	}
	want := []string{"node-0 claude-shop-3 main unknown", "node-1 Claude-Shop local working", "node-2 claude-shop-2 local unknown", "node-3 claude-shop-4 upstream unknown"}
	if !slices.Equal(got, want) {
		t.Errorf("agents\n got %q\nwant %q", got, want)
	}
	for id, node := range map[protocol.AgentID]int{"CLAUDE-shop": 1, "claude-shop-3": 0, "claude-shop-2": 2} {
		if home, ok := s.Owner(id); !ok || home != j.peers[node] {
			t.Errorf("%s is owned by %s, want node %d", id, home.Short(), node)
		}
	}
	if m := s.Main(); m.Term != 1 || m.Node != "node-0" || m.Agent != "claude-shop-3" { // as it is called
		t.Errorf("main %+v", m)
	}
	bind(1, "claude-shop", 40, protocol.RoleLocal)
	j.write(logs[1], protocol.KindBind, protocol.BindBody{Agent: "claude-shop", Home: j.peers[1], Since: 40, Forgotten: true})
	s = fold(t, emptyState(j, 10), j.all())
	if home, _ := s.Owner("claude-shop"); home != j.peers[0] {
		t.Errorf("after it was forgotten the name belongs to %s", home.Short())
	}
}

func TestOldEndedTasksKeepOnlyTheirOutcome(t *testing.T) {
	j := newJournal(t)
	l := j.founded()
	j.bind(l, "m", "w")
	for i := range 30 {
		id := protocol.MsgID(fmt.Sprintf("d-%d", i))
		j.write(l, protocol.KindMessage, protocol.Envelope{ID: id, From: "m", To: "w", Intent: protocol.Delegate})
		if i%3 > 0 {
			j.write(l, protocol.KindMessage, protocol.Envelope{ID: "r", From: "w", Intent: protocol.WorkerReport, Re: id, Value: json.RawMessage(`{"outcome":"done"}`)})
		}
	}
	s := fold(t, emptyState(j, 9), j.all())
	if open, ended := len(s.Tasks()), s.Ended()[api.TaskDone]; open != 10+6 || ended != 14 {
		t.Errorf("%d shown and %d counted, want 10 open + 6 of the last 9 ended, 14 counted", open, ended)
	}
	if first := s.Tasks()[0]; first.ID != "d-0" || first.State != api.TaskQueued {
		t.Errorf("first is %s %s, want the oldest open one", first.ID, first.State)
	}
}

func TestACheckpointGoesOnAsTheBoardDoes(t *testing.T) {
	for seed := range uint64(8) {
		j := randomJournal(t, seed, 200)
		records := j.merged(rand.New(rand.NewPCG(seed, 3)))
		half := len(records) / 2
		s := emptyState(j, 5)
		for _, r := range records[:half] {
			if err := s.Apply(r, nil); err != nil {
				t.Fatal(err)
			}
		}
		text := s.Encode()
		_, body, _ := bytes.Cut(text, []byte("\n"))
		back, err := decodeImage(body, 5)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(back.Encode(), text) {
			t.Fatalf("seed %d: the checkpoint of a checkpoint differs", seed)
		}
		for _, r := range records[half:] {
			if err := errors.Join(s.Apply(r, nil), back.Apply(r, nil)); err != nil {
				t.Fatal(err)
			}
		}
		if s.Stale() != back.Stale() || !bytes.Equal(s.Canonical(), back.Canonical()) {
			t.Fatalf("seed %d: the board went another way after its checkpoint", seed)
		}
	}
}

func TestADamagedCheckpointIsRefused(t *testing.T) {
	j := randomJournal(t, 1, 60)
	s := fold(t, New(j.id), j.all())
	text := s.Encode()
	if back, err := Decode(text); err != nil || back.Digest() != s.Digest() {
		t.Fatalf("a sound one: %v", err)
	}
	for i := 0; i < len(text); i += 1 + len(text)/300 {
		bad := bytes.Clone(text)
		bad[i] ^= 1
		if _, err := Decode(bad); !errors.Is(err, ErrBadCheckpoint) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
		if _, err := Decode(text[:i]); !errors.Is(err, ErrBadCheckpoint) {
			t.Fatalf("cut to %d bytes: %v", i, err)
		}
	}
}

// A checkpoint whose hash is right and whose content no State ever wrote: it is refused, or its views work.
func FuzzDecodeImage(f *testing.F) {
	j := randomJournal(f, 2, 12)
	_, body, _ := bytes.Cut(fold(f, New(j.id), j.all()).Encode(), []byte("\n"))
	f.Add(body)
	f.Add([]byte(`{"image":{"v":1}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		s, err := decodeImage(body, 5)
		if err != nil {
			if !errors.Is(err, ErrBadCheckpoint) {
				t.Fatal(err)
			}
			return
		}
		s.Tasks()
		s.Agents()
		s.Declarations()
		s.Digest()
		s.Encode()
	})
}

func BenchmarkApply(b *testing.B) {
	j := newJournal(b)
	l := j.founded()
	for i := range 1000 {
		j.write(l, protocol.KindMessage, protocol.Envelope{ID: protocol.MsgID(fmt.Sprint(i)), From: "a", To: "b", Intent: protocol.Request, Value: json.RawMessage(`{"text":"` + strings.Repeat("x", 600) + `"}`)})
	}
	envs := make([]*protocol.Envelope, len(l.records))
	for i, r := range l.records {
		if env, err := protocol.DecodeBody[protocol.Envelope](r); err == nil && r.Kind == protocol.KindMessage {
			envs[i] = &env
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		s := New(j.id)
		for i, r := range l.records {
			if err := s.Apply(r, envs[i]); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(l.records)), "ns/record")
}

// TestNobodyForgesWordsOnTheBoard: an outside member that names an inside task's worker as its own agent ends no task of
// the inside, nor does anybody by words of an agent that its log has not bound, nor by receipts.
func TestNobodyForgesWordsOnTheBoard(t *testing.T) {
	j := newJournal(t)
	l := j.founded()
	w := j.open(1, protocol.ScopeInside)
	out := j.open(3, protocol.ScopeOutside(j.peers[3]))
	j.bind(l, "m")
	d := j.write(l, protocol.KindMessage, protocol.Envelope{ID: "d", From: "m", To: "w", Intent: protocol.Delegate})
	done := protocol.Envelope{ID: "r", From: "w", Intent: protocol.WorkerReport, Re: "d", Value: json.RawMessage(`{"outcome":"done"}`)}
	of := []protocol.LogRange{{Log: d.Log.String(), Ranges: []uint64{d.Seq, d.Seq}}}
	j.write(w, protocol.KindMessage, done) // w is not bound there yet
	j.write(w, protocol.KindReceipts, protocol.ReceiptsBody{Tier: protocol.Refused, Agent: "w", Of: of})
	j.bind(out, "w")
	j.write(out, protocol.KindMessage, done)
	j.write(out, protocol.KindReceipts, protocol.ReceiptsBody{Tier: protocol.Refused, Agent: "w", Of: of})
	j.write(out, protocol.KindMessage, protocol.Envelope{ID: "c", To: "w", Intent: protocol.Cancel, Re: "d"})
	if got, ok := fold(t, emptyState(j, 10), j.all()).Task("d"); !ok || got.State != api.TaskQueued {
		t.Errorf("after forged words the task is %s, want queued", got.State)
	}
	j.bind(w, "w")
	j.write(w, protocol.KindMessage, done)
	if got, _ := fold(t, emptyState(j, 10), j.all()).Task("d"); got.State != api.TaskDone {
		t.Errorf("after its worker's own word the task is %s, want done", got.State)
	}
}

// TestReceiptsOfAnOutsiderStaySmall: receipts for numbers that never come are kept up to a budget of their author's log, and
// a checkpoint goes on with the same budget.
func TestReceiptsOfAnOutsiderStaySmall(t *testing.T) {
	j := newJournal(t)
	l := j.founded()
	out := j.open(3, protocol.ScopeOutside(j.peers[3]))
	mine := j.open(0, protocol.ScopeOutside(j.peers[3]))
	j.bind(out, "w")
	j.write(mine, protocol.KindPresence, protocol.PresenceBody{Agent: "a", State: "idle"})
	for i := range uint64(300) {
		var r []uint64
		for k := range uint64(100) {
			r = append(r, 1000+i*1000+k*2, 1000+i*1000+k*2)
		}
		j.write(out, protocol.KindReceipts, protocol.ReceiptsBody{Tier: protocol.Persisted, Agent: "w", Of: []protocol.LogRange{{Log: mine.id.String(), Ranges: r}}})
	}
	s := fold(t, emptyState(j, 10), slices.Concat(l.records, out.records[:150], mine.records))
	again, err := decodeState(t, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []*State{s, again} {
		for _, r := range out.records[150:] {
			if err := x.Apply(r, nil); err != nil {
				t.Fatal(err)
			}
		}
		n := 0
		for _, w := range x.logs[mine.id].waiting {
			n += len(w.Ranges) / 2
		}
		if n == 0 || n > 3000 {
			t.Errorf("%d receipts wait, want some and at most 3,000 of 30,000", n)
		}
	}
	if s.Digest() != again.Digest() {
		t.Error("a checkpoint goes on with another budget")
	}
}

func decodeState(t *testing.T, s *State) (*State, error) {
	t.Helper()
	return Decode(s.Encode())
}

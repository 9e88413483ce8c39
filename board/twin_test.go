package board

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/member"
)

// twin is the board as a beginner would make it: sort the whole journal, then look at each question anew.
type twin struct {
	records []*protocol.Record // those that count, in order
	roster  *member.Roster
}

func twinOf(j *journal) twin {
	w := twin{roster: member.NewRoster(j.id)}
	var all []*protocol.Record
	for _, l := range j.logs {
		all = append(all, l.records...)
	}
	for _, r := range all {
		w.roster.Apply(r)
	}
	for _, r := range all {
		if r.Seq <= w.roster.Bound(r.Log) {
			w.records = append(w.records, r)
		}
	}
	slices.SortFunc(w.records, func(a, b *protocol.Record) int { return position(a).compare(position(b)) })
	return w
}

func position(r *protocol.Record) pos { return pos{r.At, r.Log, r.Seq} }

type sent struct {
	*protocol.Record
	env protocol.Envelope
}

// bound says whether the author of r had bound an agent in that log before r.
func (w twin) bound(r *protocol.Record, id protocol.AgentID) (bound bool) {
	before := map[uint64]*protocol.Record{}
	for _, o := range w.records {
		if o.Log == r.Log && o.Seq < r.Seq && o.Kind == protocol.KindBind {
			before[o.Seq] = o
		}
	}
	for _, seq := range slices.Sorted(maps.Keys(before)) {
		if b, err := protocol.DecodeBody[protocol.BindBody](before[seq]); err == nil && b.Home == r.Log.Peer && protocol.FoldAgentID(b.Agent) == protocol.FoldAgentID(id) {
			bound = !b.Forgotten
		}
	}
	return bound
}

func (w twin) messages(intent protocol.Intent) (out []sent) {
	for _, r := range w.records {
		if env, err := protocol.DecodeBody[protocol.Envelope](r); r.Kind == protocol.KindMessage && err == nil && env.Intent == intent && (env.From == "" || w.bound(r, env.From)) {
			out = append(out, sent{r, env})
		}
	}
	return out
}

type twinTask struct {
	ID                     protocol.MsgID
	From, To               protocol.AgentID
	Title, Summary, Commit string
	State                  api.TaskState
	At                     int64
	Tiers                  map[protocol.Tier]int64
	Result                 string
	by                     protocol.LogID // that its Delegate lies in
}

// tasks answers for each Delegate anew; ended counts those whose words are dropped.
func (w twin) tasks(kept int) (shown map[string]twinTask, ended map[api.TaskState]uint64) {
	shown, ended = map[string]twinTask{}, map[api.TaskState]uint64{}
	delegates := slices.DeleteFunc(w.messages(protocol.Delegate), func(d sent) bool { return d.env.To == "" })
	groups := map[string][]sent{}
	old := map[string]bool{}
	for i, d := range delegates {
		key := fmt.Sprintf("%s %s %s", d.env.ID, protocol.FoldAgentID(d.env.To), d.Log.Scope)
		groups[key] = append(groups[key], d)
		old[key] = old[key] || i < len(delegates)-kept
	}
	for key, ds := range groups {
		d := ds[0]
		t := twinTask{ID: d.env.ID, From: d.env.From, To: d.env.To, Title: d.env.Text(titleBytesMax), At: d.Wall, Tiers: map[protocol.Tier]int64{}, by: d.Log}
		final, progress, cancelled := w.history(d)
		for _, g := range ds {
			for tier, r := range w.receiptsOf(g) {
				if at, ok := t.Tiers[tier]; !ok || r.Wall < at {
					t.Tiers[tier] = r.Wall
				}
			}
		}
		_, refused := t.Tiers[protocol.Refused]
		over := final != nil || refused || cancelled
		dropped := old[key] && over
		switch {
		case final != nil:
			t.State = final.final()
		case progress != nil && !dropped && progress.Status == "blocked":
			t.State = api.TaskBlocked
		case progress != nil && !dropped:
			t.State = api.TaskRunning
		case refused:
			t.State = api.TaskRefused
		case cancelled:
			t.State = api.TaskCancelled
		case len(t.Tiers) > 0:
			t.State = api.TaskDelivered
		default:
			t.State = api.TaskQueued
		}
		if dropped {
			ended[t.State]++
			continue
		}
		if progress != nil {
			t.Summary = cmp.Or(progress.Summary, progress.Stage)
			t.Commit = progress.Commit
			t.Result = progress.Result.SHA256
		}
		if final != nil {
			t.Summary, t.Commit, t.Result = cmp.Or(final.Summary, t.Summary), cmp.Or(final.Commit, t.Commit), final.Result.SHA256
		}
		shown[key] = t
	}
	return shown, ended
}

// history is the first final report, the newest other one, and whether anybody cancelled.
func (w twin) history(d sent) (final, progress *report, cancelled bool) {
	for _, m := range w.messages(protocol.WorkerReport) {
		if m.env.Re != d.env.ID || m.Log.Scope != d.Log.Scope || protocol.FoldAgentID(cmp.Or(m.env.FromWas, m.env.From)) != protocol.FoldAgentID(d.env.To) {
			continue
		}
		r := reportOf(position(m.Record), m.Wall, &m.env)
		if r.final() == "" {
			progress = r
		} else if final == nil {
			final = r
		}
	}
	for _, m := range w.messages(protocol.Cancel) {
		cancelled = cancelled || m.env.Re == d.env.ID && m.Log.Scope == d.Log.Scope && protocol.FoldAgentID(cmp.Or(m.env.ToWas, m.env.To)) == protocol.FoldAgentID(d.env.To)
	}
	return final, progress, cancelled
}

func (w twin) receiptsOf(d sent) map[protocol.Tier]*protocol.Record {
	out := map[protocol.Tier]*protocol.Record{}
	for _, r := range w.records {
		body, err := protocol.DecodeBody[protocol.ReceiptsBody](r)
		if r.Kind != protocol.KindReceipts || err != nil || body.Tier == protocol.Logged || body.Tier == "" || body.Agent == "" || !w.bound(r, body.Agent) {
			continue
		}
		for _, of := range body.Of {
			if of.Log != d.Log.String() || len(of.Ranges)%2 != 0 || r.Log.Scope != protocol.ScopeInside && r.Log.Scope != d.Log.Scope {
				continue
			}
			for i := 0; i < len(of.Ranges); i += 2 {
				if from, to := of.Ranges[i], of.Ranges[i+1]; from > 0 && from <= d.Seq && d.Seq <= to && out[body.Tier] == nil {
					out[body.Tier] = r
				}
			}
		}
	}
	return out
}

// homes is who binds what, by the latest word of each home, as "id@home".
func (w twin) homes() []string {
	last := map[string]protocol.BindBody{}
	for _, r := range w.records {
		if b, err := protocol.DecodeBody[protocol.BindBody](r); r.Kind == protocol.KindBind && err == nil && b.Home == r.Log.Peer && protocol.CheckAgentID(b.Agent) == nil {
			last[string(protocol.FoldAgentID(b.Agent))+"@"+string(b.Home)] = b
		}
	}
	maps.DeleteFunc(last, func(_ string, b protocol.BindBody) bool { return b.Forgotten || b.RenamedTo != "" })
	return slices.Sorted(maps.Keys(last))
}

func (w twin) sum() string {
	sum := new(big.Int)
	for _, r := range w.records {
		h := r.Hash()
		sum.Add(sum, new(big.Int).SetBytes(h[:]))
	}
	sum.Mod(sum, new(big.Int).Lsh(big.NewInt(1), 256))
	return hex.EncodeToString(sum.FillBytes(make([]byte, 32)))
}

func checkTwin(t *testing.T, s *State, w twin, kept int) {
	t.Helper()
	wantTasks, wantEnded := w.tasks(kept)
	var got, want []string // scopes are not shown, so two rows may look alike
	for _, x := range s.Tasks() {
		row := twinTask{ID: x.ID, From: x.From, To: x.To, Title: x.Title, Summary: x.Summary, Commit: x.Commit, State: x.State, At: x.At, Tiers: map[protocol.Tier]int64{}}
		if x.Result != nil {
			row.Result = x.Result.SHA256
		}
		for _, tier := range x.Tiers[1:] {
			row.Tiers[tier.Tier] = tier.At
		}
		got = append(got, fmt.Sprintf("%+v", row))
	}
	for _, row := range wantTasks {
		for _, a := range s.Agents() { // of a member outside the name that it has here
			if row.by.Scope == protocol.ScopeOutside(row.by.Peer) && a.Home == row.by.Peer &&
				protocol.FoldAgentID(a.Bound) == protocol.FoldAgentID(row.From) && protocol.FoldAgentID(a.ID) != protocol.FoldAgentID(row.From) {
				row.From = a.ID
				break
			}
		}
		row.by = protocol.LogID{}
		want = append(want, fmt.Sprintf("%+v", row))
	}
	slices.Sort(got)
	slices.Sort(want)
	if d := gocmp.Diff(want, got); d != "" {
		t.Fatalf("tasks (-twin +board):\n%s", d)
	}
	if d := gocmp.Diff(wantEnded, s.Ended()); d != "" {
		t.Fatalf("ended (-twin +board):\n%s", d)
	}
	var homes []string
	names := map[protocol.AgentID]bool{}
	for _, a := range s.Agents() {
		homes = append(homes, string(protocol.FoldAgentID(a.Bound))+"@"+string(a.Home))
		if names[protocol.FoldAgentID(a.ID)] {
			t.Fatalf("two agents are called %s", a.ID)
		}
		names[protocol.FoldAgentID(a.ID)] = true
	}
	slices.Sort(homes)
	if d := gocmp.Diff(w.homes(), homes); d != "" {
		t.Fatalf("agents (-twin +board):\n%s", d)
	}
	if got, want := hex.EncodeToString(s.sum[:]), w.sum(); got != want || s.Counts().Records != uint64(len(w.records)) {
		t.Fatalf("%d records summing to %s, want %d and %s", s.Counts().Records, got, len(w.records), want)
	}
}

func TestTheBoardAgreesWithItsDumbTwinInEveryOrder(t *testing.T) {
	shuffles := 40
	if testing.Short() {
		shuffles = 10
	}
	cut := 0
	for seed := range uint64(25) {
		j := randomJournal(t, seed, 220)
		w := twinOf(j)
		kept := 3 + int(seed%30)
		var want []byte
		for shuffle := range uint64(shuffles) {
			records := j.merged(rand.New(rand.NewPCG(seed, shuffle)))
			s := fold(t, emptyState(j, kept), records)
			if len(w.records) < len(records) {
				cut++
			}
			got := s.Canonical()
			if want == nil {
				want = got
				checkTwin(t, s, w, kept)
			}
			if d := gocmp.Diff(string(want), string(got)); d != "" {
				t.Fatalf("seed %d shuffle %d (-first +this):\n%s", seed, shuffle, d)
			}
		}
	}
	if cut == 0 {
		t.Error("no journal had a cut: the test does not test them")
	}
}

package board

import (
	"cmp"
	"container/heap"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// taskKey names a task: its Delegate's message id, whom it was given to, and the scope in which that was said. Reports and
// cancels name both and travel in the same scope, so they find it whichever arrives first; and what an outside member
// writes in its own scope touches no task of the inside.
type taskKey struct {
	ID     protocol.TaskID
	Worker protocol.AgentID // folded
	Scope  protocol.Scope
}

// task is a Delegate with what became of it, or what is known of one whose Delegate has not arrived.
type task struct {
	key taskKey
	// How it ends, known for ever: the first final report, else a refusal, else a cancel.
	final     *pos
	outcome   api.TaskState // of final
	refused   bool
	cancelled bool
	delegated bool // its Delegate is here
	// old says that one of its Delegates is no more among the KeptTasks newest. Neither that nor an end is ever taken
	// back, so words dropped for both are dropped on every node, in whatever order records came.
	old bool
	// words is nil once the task is old and has ended.
	words *words
}

// words are what a row and a page show of a task.
type words struct {
	Delegate *delegation                  `json:"delegate,omitempty"` // the first
	First    *moment                      `json:"first,omitempty"`    // the first report of all
	Final    *report                      `json:"final,omitempty"`    // the first final one
	Progress *report                      `json:"progress,omitempty"` // the newest that is not final
	Cancel   *moment                      `json:"cancel,omitempty"`   // the first
	Tiers    map[protocol.Tier]*tierWrite `json:"tiers,omitempty"`    // the first of each
}

// moment is a write of which only its time matters.
type moment struct {
	At   pos   `json:"at"`
	Wall int64 `json:"wall"`
}

type delegation struct {
	moment
	From  protocol.AgentID  `json:"from,omitempty"`
	To    protocol.AgentID  `json:"to"`
	Title string            `json:"title"`
	Base  string            `json:"base,omitempty"`
	Root  string            `json:"root,omitempty"`
	Blob  *protocol.BlobRef `json:"blob,omitempty"` // the base bundle
}

type tierWrite struct {
	moment
	Agent  protocol.AgentID `json:"agent,omitempty"`
	Reason string           `json:"reason,omitempty"`
}

// ended says whether the task counts as ended for the keeping of its words.
func (t *task) ended() bool { return t.delegated && (t.final != nil || t.refused || t.cancelled) }

// settle drops the words of an old task that has ended.
func (t *task) settle() {
	if t.old && t.ended() {
		t.words = nil
	}
}

// TaskOpen says whether the task that a message of that log begins or reports on has not ended. Of one that is not known
// here, and of any other message, it says no.
func (s *State) TaskOpen(log protocol.LogID, env *protocol.Envelope) bool {
	key := taskKey{env.ID, protocol.FoldAgentID(env.To), log.Scope}
	switch env.Intent {
	case protocol.Delegate:
	case protocol.WorkerReport:
		key = taskKey{env.Re, protocol.FoldAgentID(cmp.Or(env.FromWas, env.From)), log.Scope}
	default:
		return false
	}
	t := s.tasks[key]
	return t != nil && t.final == nil && !t.refused && !t.cancelled
}

func (s *State) task(id protocol.TaskID, worker protocol.AgentID, scope protocol.Scope) *task {
	key := taskKey{id, protocol.FoldAgentID(worker), scope}
	t := s.tasks[key]
	if t == nil {
		t = &task{key: key, words: &words{}}
		s.tasks[key] = t
	}
	return t
}

const titleBytesMax = 300

func (s *State) delegate(ls *logState, at pos, wall int64, env *protocol.Envelope) {
	t := s.task(env.ID, env.To, ls.id.Scope)
	t.delegated = true
	if t.words != nil && (t.words.Delegate == nil || at.before(t.words.Delegate.At)) {
		value := fieldsOf(env.Value)
		t.words.Delegate = &delegation{
			moment: moment{at, wall}, From: env.From, To: env.To, Title: env.Text(titleBytesMax),
			Base: value.text("base", refBytesMax), Root: value.text("root", refBytesMax), Blob: blobOf(env, "base"),
		}
	}
	item := &delegateItem{at, t}
	if ls.delegates == nil {
		ls.delegates = map[uint64]*delegateItem{}
	}
	ls.delegates[at.seq] = item
	s.remember(item)
	for i := range ls.waiting {
		if w := &ls.waiting[i]; w.of(at.seq) {
			t.receipt(w.Tier, w.tierWrite)
		}
	}
	t.settle()
}

func (s *State) cancel(at pos, wall int64, env *protocol.Envelope) {
	t := s.task(env.Re, cmp.Or(env.ToWas, env.To), at.log.Scope)
	t.cancelled = true
	if t.words != nil && (t.words.Cancel == nil || at.before(t.words.Cancel.At)) {
		t.words.Cancel = &moment{at, wall}
	}
	t.settle()
}

func (s *State) report(at pos, wall int64, env *protocol.Envelope) {
	t := s.task(env.Re, cmp.Or(env.FromWas, env.From), at.log.Scope)
	r := reportOf(at, wall, env)
	outcome := r.final()
	if outcome != "" && (t.final == nil || at.before(*t.final)) {
		t.final, t.outcome = &at, outcome
		if t.words != nil {
			t.words.Final = r
		}
	}
	if w := t.words; w != nil {
		if outcome == "" && (w.Progress == nil || w.Progress.At.before(at)) {
			w.Progress = r
		}
		if w.First == nil || at.before(w.First.At) {
			w.First = &moment{at, wall}
		}
	}
	t.settle()
}

// receipt takes what the recipient's home said of the Delegate; of each tier the first counts.
func (t *task) receipt(tier protocol.Tier, w tierWrite) {
	t.refused = t.refused || tier == protocol.Refused
	if t.words == nil {
		return
	}
	if old := t.words.Tiers[tier]; old != nil && !w.At.before(old.At) {
		return
	}
	if t.words.Tiers == nil {
		t.words.Tiers = map[protocol.Tier]*tierWrite{}
	}
	t.words.Tiers[tier] = &w
	t.settle()
}

// delegateItem is one Delegate record.
type delegateItem struct {
	at   pos
	task *task
}

// remember keeps the newest Delegates and makes old the task of each that falls out. Which ones those are
// depends on the set alone.
func (s *State) remember(item *delegateItem) {
	heap.Push(&s.recent, item)
	if len(s.recent) > s.kept {
		out := heap.Pop(&s.recent).(*delegateItem).task
		out.old = true
		out.settle()
	}
}

// delegateHeap has the oldest Delegate on top.
type delegateHeap []*delegateItem

func (h delegateHeap) Len() int           { return len(h) }
func (h delegateHeap) Less(i, j int) bool { return h[i].at.before(h[j].at) }
func (h delegateHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *delegateHeap) Push(x any)        { *h = append(*h, x.(*delegateItem)) }

func (h *delegateHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return x
}

package board

import (
	"cmp"
	"maps"
	"slices"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/member"
)

// Tasks lists the tasks whose words are kept: the open ones, oldest first, then the ended ones, newest first. Of the
// tiers it knows logged and what recipients' homes recorded; replicated is the node's to add, and so is Repo.
func (s *State) Tasks() []api.Task {
	var open, ended []*task
	for _, t := range s.tasks {
		switch {
		case t.words == nil || t.words.Delegate == nil:
		case t.state().Final() && t.ended():
			ended = append(ended, t)
		default:
			open = append(open, t)
		}
	}
	order := func(a, b *task) int { return a.words.Delegate.At.compare(b.words.Delegate.At) }
	slices.SortFunc(open, order)
	slices.SortFunc(ended, func(a, b *task) int { return order(b, a) })
	out := make([]api.Task, 0, len(open)+len(ended))
	names := &shownNames{nodes: s.nodeNames()}
	for _, t := range append(open, ended...) {
		out = append(out, s.show(t, names))
	}
	return out
}

// Task is the task that a Delegate of this id began; false: there is none, or its words are no longer kept. Of several
// (one id given to several agents) it is the first.
func (s *State) Task(id protocol.TaskID) (api.Task, bool) {
	var found *task
	for key, t := range s.tasks {
		if key.ID != id || t.words == nil || t.words.Delegate == nil {
			continue
		}
		if found == nil || t.words.Delegate.At.before(found.words.Delegate.At) {
			found = t
		}
	}
	if found == nil {
		return api.Task{}, false
	}
	return s.show(found, &shownNames{nodes: s.nodeNames()}), true
}

func (s *State) nodeNames() map[protocol.PeerID]string {
	names := map[protocol.PeerID]string{}
	for _, m := range s.roster.Members() {
		names[m.Peer] = m.Name
	}
	return names
}

// state is where the task stands. The worker's final word outranks all; once it has reported at all, its own word
// decides; a refusal or a cancel ends what nobody had begun.
func (t *task) state() api.TaskState {
	w := t.words
	switch {
	case t.final != nil:
		return t.outcome
	case w == nil && t.refused:
		return api.TaskRefused
	case w == nil:
		return api.TaskCancelled
	case w.Progress != nil && w.Progress.Status == "blocked":
		return api.TaskBlocked
	case w.Progress != nil:
		return api.TaskRunning
	case t.refused:
		return api.TaskRefused
	case t.cancelled:
		return api.TaskCancelled
	case w.Tiers[protocol.Persisted] != nil || w.Tiers[protocol.Processed] != nil:
		return api.TaskDelivered
	}
	return api.TaskQueued
}

// shownNames are what nodes and agents are called while rows are made.
type shownNames struct {
	nodes  map[protocol.PeerID]string
	called map[agentKey]protocol.AgentID // made when it is needed first
}

// called is what an agent is called that spoke in a log: by its word, but of a member outside, which may have bound a name
// that is another's, by the board's.
func (s *State) called(id protocol.AgentID, log protocol.LogID, names *shownNames) protocol.AgentID {
	key := agentKey{protocol.FoldAgentID(id), log.Peer}
	if !guests(log) {
		return id
	}
	if b := s.keeper(key.Agent); b == nil || b.body.Home == log.Peer {
		return id
	}
	if names.called == nil {
		names.called = s.names()
	}
	return cmp.Or(names.called[key], id)
}

func (s *State) show(t *task, names *shownNames) api.Task {
	w := t.words
	from := s.called(w.Delegate.From, w.Delegate.At.log, names)
	out := api.Task{
		ID: t.key.ID, Short: "t-" + protocol.ShortID(t.key.ID), Title: w.Delegate.Title, From: from, To: w.Delegate.To,
		State: t.state(), At: w.Delegate.Wall, Base: w.Delegate.Base, Root: w.Delegate.Root,
		Tiers: []api.TierAt{{Tier: protocol.Logged, At: w.Delegate.Wall, By: w.Delegate.At.log.Peer, Agent: from}},
	}
	for _, tier := range []protocol.Tier{protocol.Persisted, protocol.Processed, protocol.Refused} {
		if x := w.Tiers[tier]; x != nil {
			out.Tiers = append(out.Tiers, api.TierAt{Tier: tier, At: x.Wall, By: x.At.log.Peer, Agent: x.Agent, Reason: x.Reason})
		}
	}
	if w.First != nil {
		out.Started = w.First.Wall
	}
	if p := w.Progress; p != nil {
		showReport(&out, p)
		out.Tail = p.Tail
		if out.Summary == "" {
			out.Summary = p.Stage
		}
	}
	if f := w.Final; f != nil {
		showReport(&out, f)
		out.Tail = ""
		if f.Millis > 0 {
			out.Started = f.Wall - f.Millis
		}
	}
	out.Ended = t.ending()
	out.Node = s.worksAt(t)
	out.NodeName = names.nodes[out.Node]
	return out
}

// showReport lays what a report says over what was known before; what it does not say stays.
func showReport(out *api.Task, r *report) {
	out.Summary = cmp.Or(r.Summary, out.Summary)
	out.Attempt = cmp.Or(r.Attempt, out.Attempt)
	out.Millis = cmp.Or(r.Millis, out.Millis)
	out.Commit = cmp.Or(r.Commit, out.Commit)
	out.Branch = cmp.Or(r.Branch, out.Branch)
	out.Base = cmp.Or(r.Base, out.Base)
	if r.Exit != nil {
		exit := *r.Exit
		out.Exit = &exit
	}
	if r.Diff != nil {
		diff := *r.Diff
		diff.Paths = slices.Clone(diff.Paths)
		out.Diff = &diff
	}
	if r.Result != nil {
		blob := *r.Result
		out.Result = &blob
	}
	if r.Output != nil {
		blob := *r.Output
		out.Output = &blob
	}
}

// ending is the wall clock at the end, of whoever's word ended it; 0: it has not ended.
func (t *task) ending() int64 {
	switch t.state() {
	case api.TaskRefused:
		return t.words.Tiers[protocol.Refused].Wall
	case api.TaskCancelled:
		if t.final == nil {
			return t.words.Cancel.Wall
		}
	}
	if t.final != nil {
		return t.words.Final.Wall
	}
	return 0
}

// worksAt is the worker's node: whose reports these are, else who took the Delegate, else whose agent it is.
func (s *State) worksAt(t *task) protocol.PeerID {
	w := t.words
	switch {
	case w.Final != nil:
		return w.Final.At.log.Peer
	case w.Progress != nil:
		return w.Progress.At.log.Peer
	case w.Tiers[protocol.Persisted] != nil:
		return w.Tiers[protocol.Persisted].At.log.Peer
	}
	home, _ := s.Owner(w.Delegate.To)
	return home
}

// Ended says how tasks ended whose words are no longer kept.
func (s *State) Ended() map[api.TaskState]uint64 {
	out := map[api.TaskState]uint64{}
	for _, t := range s.tasks {
		if t.words == nil {
			out[t.state()]++
		}
	}
	return out
}

// Members lists the nodes that were ever admitted, by peer id.
func (s *State) Members() []member.Member { return s.roster.Members() }

// Main is the term in office, its agent by the name that it is called here. Here is the node's to add.
func (s *State) Main() api.Main {
	term := s.roster.Term()
	node, _ := s.roster.Member(term.Peer)
	out := api.Main{Term: term.Number, Peer: term.Peer, Node: node.Name, Agent: term.Agent}
	if term.Agent == "" {
		return out
	}
	for key, b := range s.bindings[protocol.FoldAgentID(term.Agent)] {
		if b.body.Home == term.Peer && b.inForce() {
			out.Agent = cmp.Or(s.names()[agentKey{protocol.FoldAgentID(term.Agent), key}], out.Agent)
		}
	}
	return out
}

// Counts are figures over all records that count.
type Counts struct {
	Records uint64
	Kinds   map[protocol.Kind]uint64   // unknown kinds under "(other)"
	Intents map[protocol.Intent]uint64 // of messages; unknown names under "(other)"
}

// Counts returns a copy of the figures.
func (s *State) Counts() Counts {
	return Counts{s.count, maps.Clone(s.kinds), maps.Clone(s.intents)}
}

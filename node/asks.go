package node

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/keys"
)

const (
	// askLooksBack is how old what nobody answered may be: later it is history.
	askLooksBack = 7 * 24 * time.Hour
	askOfAKind   = 50
	askText      = 2_000
	// endedKept is how many ends of questions pages can still be told of.
	endedKept = 32
)

// askNames are messages that ask a person without a form for the answer.
var askNames = map[protocol.Intent]api.AskKind{
	"NEEDS_HUMAN": api.AskQuestion, "DECISION_REQUEST": api.AskQuestion, "EscalationSurfaced": api.AskQuestion,
	"PRMergeRequest": api.AskReview, "PRDraftReady": api.AskReview,
}

// endedState is how questions ended a moment ago. Owned by the loop.
type endedState struct {
	endedAsks []api.AskEnded   // the newest, endedKept at most
	endedBy   []protocol.MsgID // the answer that ended each
}

// asked is what the loop knows for Asks.
type asked struct {
	now       time.Time
	until     protocol.HLC // what was said later does not count; 0: all counts
	main      protocol.PeerID
	mainAgent protocol.AgentID
	document  *board.Document
	questions []hub.Question
	tasks     []api.Task
	homes     map[protocol.AgentID]protocol.PeerID // by folded id
	asks      []api.Ask                            // keys
	ended     []api.AskEnded
	re        []protocol.MsgID // of ended
}

// Asks implements web.Page.
func (n *Node) Asks(ctx context.Context) (out api.Asks, err error) {
	var a asked
	if err := n.loop.call(ctx, func() { a = n.loop.asked() }); err != nil {
		return out, err
	}
	return n.asksOf(&a)
}

// asksOf makes the asks of what is known.
func (n *Node) asksOf(a *asked) (out api.Asks, err error) {
	out.Asks = a.asks
	for _, q := range a.questions {
		m, ok, err := n.store.Message(q.Ref.Log, q.Ref.Seq)
		if err != nil {
			return out, err
		}
		if ok {
			out.Asks = append(out.Asks, n.questionAsk(a, q, &m))
		}
	}
	for i := range a.tasks {
		ask, ok, err := n.blockedAsk(a, &a.tasks[i])
		if err != nil {
			return out, err
		}
		if ok {
			out.Asks = append(out.Asks, ask)
		}
	}
	for name, kind := range askNames {
		more, err := n.saidAsks(a, name, kind)
		if err != nil {
			return out, err
		}
		out.Asks = append(out.Asks, more...)
	}
	decisions, err := n.decisionAsks(a)
	if err != nil {
		return out, err
	}
	out.Asks = append(out.Asks, decisions...)
	for i := range out.Asks {
		k := &out.Asks[i]
		k.NodeName, k.OwnerName, k.Text = n.nameOf(k.Node), n.nameOf(k.Owner), protocol.CutText(k.Text, askText)
		if k.Until > 0 && a.main != "" && a.main != k.Owner {
			k.AlsoAt = k.At + (k.Until-k.At)/2
		}
	}
	slices.SortFunc(out.Asks, func(a, b api.Ask) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID)) })
	for i, e := range a.ended {
		if m, ok, err := n.store.MessageByID("", a.re[i]); err == nil && ok && a.re[i] != "" {
			e.By, e.NodeName = a.re[i], n.nameOf(m.Log.Peer)
		}
		out.Ended = append(out.Ended, e)
	}
	return out, nil
}

func (l *loop) asked() asked {
	a := asked{now: l.now, main: l.mainPeer(), mainAgent: l.board.Main().Agent, document: l.board.Document(), questions: l.core.Questions(), homes: map[protocol.AgentID]protocol.PeerID{}}
	for _, k := range l.core.Agents(l.now) {
		a.homes[protocol.FoldAgentID(k.Agent)] = k.Home
	}
	a.takeTasks(l.board.Tasks())
	a.keysOf(l.keys().All(), l.n.home.peer)
	a.ended, a.re = slices.Clone(l.endedAsks), slices.Clone(l.endedBy)
	return a
}

// takeTasks takes those of which somebody may be asked.
func (a *asked) takeTasks(all []api.Task) {
	since := a.now.Add(-askLooksBack).UnixMilli()
	blocked := 0
	for _, t := range all {
		if t.State == api.TaskRunning || t.State == api.TaskBlocked && max(t.Ended, t.At) > since && blocked < askOfAKind {
			if t.State == api.TaskBlocked {
				blocked++
			}
			a.tasks = append(a.tasks, t)
		}
	}
}

// keysOf adds the keys of this node that lapse soon.
func (a *asked) keysOf(all []keys.Key, self protocol.PeerID) {
	for _, k := range all {
		ends := k.ExpiresAt()
		if k.Final() || ends == 0 || k.Valid(self, a.now) != nil || time.UnixMilli(ends).Sub(a.now) > protocol.KeyWarning {
			continue
		}
		a.asks = append(a.asks, api.Ask{ID: "k:" + k.Ref(), Kind: api.AskKey, Text: k.Label, At: k.WarnFrom().UnixMilli(), Until: ends, Asker: cmp.Or(k.LastAgent, k.Bound),
			Node: self, Owner: self, Key: k.Ref()})
	}
}

// origin is the node whose person began what an agent works on: that of its running task's first delegator, else its own.
func (n *Node) origin(a *asked, asker protocol.AgentID, home protocol.PeerID) (protocol.PeerID, *api.Task) {
	for i := range a.tasks {
		t := &a.tasks[i]
		if t.State == api.TaskRunning && protocol.FoldAgentID(t.To) == protocol.FoldAgentID(asker) {
			return n.beganAt(a, t), t
		}
	}
	return home, nil
}

// beganAt is the node of whoever stands at the head of a task's chain of Delegates.
func (n *Node) beganAt(a *asked, t *api.Task) protocol.PeerID {
	m, ok, err := n.store.MessageByID(t.From, t.ID)
	if err != nil || !ok {
		return t.Node
	}
	first := m.Envelope.From
	if len(m.Envelope.Hops) > 0 {
		first = m.Envelope.Hops[0]
	}
	if home, ok := a.homes[protocol.FoldAgentID(first)]; ok && first != "" {
		return home
	}
	return m.Log.Peer // a person's own node
}

// selectionFields are what a page shows of a question.
type selectionFields struct {
	Text       string            `json:"text"`
	Question   string            `json:"question"`
	Options    []json.RawMessage `json:"options"`
	Default    json.RawMessage   `json:"default"`
	Multi      bool              `json:"multiSelect"`
	AllowsFree *bool             `json:"allowFreeText"`
}

func (n *Node) questionAsk(a *asked, q hub.Question, m *journal.Message) api.Ask {
	env := m.Envelope
	_ = n.fill(&env) // without its value the question is at least named
	var f selectionFields
	_ = json.Unmarshal(env.Value, &f)
	owner, task := n.origin(a, q.Asker, m.Log.Peer)
	ask := api.Ask{
		ID: "s:" + string(q.Asker) + "/" + q.ID, Kind: api.AskChoice, Text: cmp.Or(f.Question, f.Text, env.Text(askText)), Many: f.Multi,
		Free: f.AllowsFree == nil || *f.AllowsFree, At: m.Wall, Asker: q.Asker, Node: m.Log.Peer, Owner: owner, Prompt: q.ID, Message: env.ID,
		Default: optionOf(f.Default).Label,
	}
	if q.Kind == "approval" {
		ask.Kind = api.AskApproval
	}
	if q.Kind != "" {
		ask.Until = q.Until.UnixMilli()
	}
	for _, raw := range f.Options {
		if o := optionOf(raw); o.Label != "" && len(ask.Options) < 20 {
			ask.Options = append(ask.Options, o)
		}
	}
	if task != nil {
		ask.Task, ask.TaskShort = task.ID, task.Short
	}
	return ask
}

// optionOf reads an option as clients write them: a text, or an object with a label.
func optionOf(raw json.RawMessage) (o api.AskOption) {
	if json.Unmarshal(raw, &o.Label) == nil {
		return o
	}
	o.Label = cmp.Or(valueOf[string](raw, "label"), valueOf[string](raw, "title"), valueOf[string](raw, "text"), valueOf[string](raw, "value"))
	o.Detail = protocol.CutText(cmp.Or(valueOf[string](raw, "description"), valueOf[string](raw, "detail"), valueOf[string](raw, "effect")), 300)
	return o
}

// blockedAsk is a blocked task until a person says something on it.
func (n *Node) blockedAsk(a *asked, t *api.Task) (ask api.Ask, ok bool, err error) {
	if t.State != api.TaskBlocked {
		return ask, false, nil
	}
	since := max(t.Ended, t.At)
	if answered, err := n.answered(a, t.ID, since); answered || err != nil {
		return ask, false, err
	}
	return api.Ask{ID: "t:" + string(t.ID), Kind: api.AskBlocked, Text: cmp.Or(t.Summary, t.Title), At: since, Asker: t.To, Node: t.Node,
		Owner: n.beganAt(a, t), Free: true, Message: t.ID, Task: t.ID, TaskShort: t.Short}, true, nil
}

// answered says whether a person has answered a message since.
func (n *Node) answered(a *asked, id protocol.MsgID, since int64) (bool, error) {
	found, err := n.store.Messages(journal.Query{Re: id, Until: a.until, Limit: askOfAKind, Newest: true})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(found, func(m journal.Message) bool {
		return m.Envelope.Source == protocol.SourceBoard && m.Envelope.Intent != protocol.Cancel && m.Wall >= since
	}), nil
}

// saidAsks are the messages of a name that ask a person, and that nobody answered.
func (n *Node) saidAsks(a *asked, name protocol.Intent, kind api.AskKind) (out []api.Ask, err error) {
	found, err := n.store.Messages(journal.Query{Intent: name, Until: a.until, Limit: askOfAKind, Newest: true})
	if err != nil {
		return nil, err
	}
	for i := range found {
		m := &found[i]
		if m.Envelope.From == "" || a.now.Sub(time.UnixMilli(m.Wall)) > askLooksBack {
			continue
		}
		if answered, err := n.answered(a, m.Envelope.ID, 0); answered || err != nil {
			if err != nil {
				return nil, err
			}
			continue
		}
		owner, task := n.origin(a, m.Envelope.From, m.Log.Peer)
		ask := api.Ask{ID: "m:" + string(m.Envelope.ID), Kind: kind, Text: n.textOf(&m.Envelope), Free: true, At: m.Wall, Asker: m.Envelope.From,
			Node: m.Log.Peer, Owner: owner, Message: m.Envelope.ID}
		if task != nil {
			ask.Task, ask.TaskShort = task.ID, task.Short
		}
		out = append(out, ask)
	}
	return out, nil
}

// askSaid lets pages ask again when a message changes what waits for a person.
func (l *loop) askSaid(env *protocol.Envelope) {
	changes := env.Source == protocol.SourceBoard && env.Re != "" || askNames[env.Intent] != "" || env.Intent == protocol.WorkerReport
	switch env.Intent {
	case operatorFeedback:
		if kind := valueOf[string](env.Value, "kind"); env.From == "" && env.Source == protocol.SourceBoard && (kind == "decision" || kind == "fallback-rerender") {
			changes = true
			said := cmp.Or(valueOf[string](env.Value, "choice"), valueOf[string](env.Value, "text"))
			l.askEnds(api.AskEnded{ID: "d:" + valueOf[string](env.Value, "id"), How: "answered", Labels: nonEmpty(protocol.CutText(said, askText))}, env.ID)
		}
	case "SelectionPrompt":
		changes = true
	case "SelectionResolved", "SelectionExpired":
		changes = true
		asker := protocol.AgentID(valueOf[string](env.Value, "askedBy"))
		if env.Intent == "SelectionExpired" {
			asker = env.To
		}
		l.askEnds(api.AskEnded{ID: "s:" + string(asker) + "/" + valueOf[string](env.Value, "promptId"), How: valueOf[string](env.Value, "resolution"),
			Labels: valueOf[[]string](env.Value, "selectedLabels")}, env.Re)
	}
	if changes {
		l.asksChanged()
	}
}

// askEnds notes how a question ended, and the message that ended it.
func (l *loop) askEnds(end api.AskEnded, by protocol.MsgID) {
	end.At = l.now.UnixMilli()
	l.endedAsks, l.endedBy = append(l.endedAsks, end), append(l.endedBy, by)
	if len(l.endedAsks) > endedKept {
		l.endedAsks, l.endedBy = l.endedAsks[1:], l.endedBy[1:]
	}
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

func (l *loop) asksChanged() {
	if l.n.pages.watched() {
		l.n.pages.publish(api.Event{Type: "asks"})
	}
}

package node

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// personsWord says whether a message is what a person of the inside said about the state document.
func personsWord(m *journal.Message) bool {
	e := &m.Envelope
	return e.Intent == operatorFeedback && e.From == "" && e.Source == protocol.SourceBoard && m.Log.Scope == protocol.ScopeInside
}

// wordOf is a person's word with how far it came, as the document weighs it.
func wordOf(m *journal.Message, tiers []api.TierAt) board.Word {
	w := board.Word{At: m.At, ID: m.Envelope.ID, Value: m.Envelope.Value}
	for _, t := range tiers {
		switch t.Tier {
		case protocol.Persisted:
			w.Persisted = t.At
		case protocol.Processed:
			w.Processed = t.At
		}
	}
	return w
}

// decision is what a page shows of one that main has people make.
type decision struct {
	Status, ID, Ref, Title, Question, Kind, Recommend, RecommendChoice json.RawMessage
	Options                                                            []json.RawMessage
}

// decisionAsks are the decisions of main's document that no person has answered since it was written: main speaks for itself
// there, and the owner of its node is asked. What has no name of its own is shown, and cannot be answered.
func (n *Node) decisionAsks(a *asked) (out []api.Ask, err error) {
	d := a.document
	if d == nil {
		return nil, nil
	}
	var doc struct{ Decisions []json.RawMessage }
	if json.Unmarshal([]byte(d.Text), &doc) != nil || len(doc.Decisions) == 0 {
		return nil, nil
	}
	found, err := n.messages(journal.Query{Intent: operatorFeedback, Until: a.until, Newest: true, Limit: agendaWords})
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(m journal.Message) bool { return !personsWord(&m) })
	words := make([]board.Word, len(found))
	told := map[string]bool{} // main has a person's word on it, and its document is older
	for i := range found {
		tiers := n.tiersOf(&found[i])
		words[i] = wordOf(&found[i], tiers)
		kind := valueOf[string](words[i].Value, "kind")
		refused := slices.ContainsFunc(tiers, func(t api.TierAt) bool { return t.Tier == protocol.Refused })
		if (kind == "decision" || kind == "fallback-rerender") && !refused && !d.Took(words[i]) {
			told[valueOf[string](words[i].Value, "id")] = true
		}
	}
	for _, e := range d.Arrange(words)["decisions"] {
		var x decision
		if e.Index >= len(doc.Decisions) || json.Unmarshal(doc.Decisions[e.Index], &x) != nil {
			x = decision{Question: doc.Decisions[min(e.Index, len(doc.Decisions)-1)]} // a line alone
		}
		if board.TextOf(x.Status) == "resolved" || told[e.Key] || len(out) == askOfAKind {
			continue
		}
		ask := api.Ask{ID: "d:" + e.Key, Kind: api.AskDecision, Asker: a.mainAgent, Node: d.By, Owner: cmp.Or(a.main, d.By), Decision: e.Key,
			Text: cmp.Or(board.TextOf(x.Question), board.TextOf(x.Title), board.TextOf(x.ID), board.TextOf(x.Ref)), Recommend: cmp.Or(board.TextOf(x.RecommendChoice), board.TextOf(x.Recommend))}
		if e.Fixed {
			ask.Decision = ""
		} else {
			ask.Free, ask.Options = true, x.answers()
		}
		out = append(out, ask)
	}
	return out, nil
}

// answers are what can be picked: as board/web/static/decision.js has it.
func (x *decision) answers() (out []api.AskOption) {
	for _, raw := range x.Options {
		o := optionOf(raw)
		o.Label = cmp.Or(o.Label, valueOf[string](raw, "id"))
		if o.Label != "" && len(out) < 20 && !slices.ContainsFunc(out, func(p api.AskOption) bool { return p.Label == o.Label }) {
			out = append(out, o)
		}
	}
	kind, recommend := board.TextOf(x.Kind), board.TextOf(x.Recommend)
	switch {
	case len(out) > 0:
	case kind == "approval":
		return []api.AskOption{{Label: "approve"}, {Label: "reject"}}
	case recommend != "" && kind != "choice":
		return []api.AskOption{{Label: recommend}}
	}
	return out
}

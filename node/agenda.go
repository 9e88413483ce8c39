package node

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

const (
	operatorFeedback = protocol.Intent("OperatorFeedback")
	agendaWords      = 300  // of the newest that the page shows beside their items
	agendaText       = 2000 // bytes of a word; who wants more opens the message
)

// Document implements web.Page. What agents say by the name of feedback is no person's word and moves nothing.
func (n *Node) Document(context.Context) (out api.StateDocument, err error) {
	found, err := n.messages(journal.Query{Intent: operatorFeedback, Newest: true, Limit: agendaWords + 1})
	if err != nil {
		return out, err
	}
	if out.Older = len(found) > agendaWords; out.Older {
		found = found[:agendaWords]
	}
	found = slices.DeleteFunc(found, func(m journal.Message) bool { return !personsWord(&m) })
	slices.SortFunc(found, func(a, b journal.Message) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Envelope.ID, b.Envelope.ID))
	})
	d := n.document.Load()
	if d != nil {
		out.Doc, out.At, out.By, out.ByName = json.RawMessage(d.Text), d.Wall, d.By, n.nameOf(d.By)
	}
	words := make([]board.Word, len(found))
	for i := range found {
		m := &found[i]
		tiers := n.tiersOf(m)
		words[i] = wordOf(m, tiers)
		row := n.documentWord(m)
		row.Tier = tiers[len(tiers)-1].Tier // the last that it came to
		row.Open = !d.Took(words[i])
		out.Words = append(out.Words, row)
	}
	out.Lists = map[string][]api.DocumentItem{}
	for tab, list := range d.Arrange(words) {
		rows := make([]api.DocumentItem, len(list))
		for i, e := range list {
			rows[i] = api.DocumentItem(e)
		}
		out.Lists[tab] = rows
	}
	return out, nil
}

func (n *Node) documentWord(m *journal.Message) api.DocumentWord {
	v := m.Envelope.Value
	out := api.DocumentWord{ID: m.Envelope.ID, Short: shortOf(&m.Envelope), At: m.Wall, Node: m.Log.Peer, NodeName: n.nameOf(m.Log.Peer),
		Kind: valueOf[string](v, "kind"), Tab: valueOf[string](v, "tab"), Choice: protocol.CutText(valueOf[string](v, "choice"), agendaText),
		Text: protocol.CutText(cmp.Or(valueOf[string](v, "text"), valueOf[string](v, "label")), agendaText), Files: len(m.Envelope.Blobs)}
	switch out.Kind {
	case "mode":
		out.Standby = valueOf[*bool](v, "standby")
	case "context-feedback":
		out.Ref = valueOf[string](v, "refId")
	case "proceed":
		out.Ref = valueOf[string](v, "plannedId")
	case "reorder":
		out.Ref = valueOf[string](valueOf[json.RawMessage](v, "moved"), "id")
	default:
		out.Ref = valueOf[string](v, "id")
	}
	if v == nil { // too large for its record: it is an attachment
		out.Text = protocol.CutText(n.textOf(&m.Envelope), agendaText)
	}
	return out
}

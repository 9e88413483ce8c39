package node

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/aster-mesh/aster/board/web"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

const (
	findPage = 250
	// findLooks is how many messages one question looks at where no index helps; the answer says where to go on.
	findLooks = 5_000
)

// Find implements web.Page.
func (n *Node) Find(ctx context.Context, q web.FindQuery) (out api.Found, err error) {
	if q.Limit <= 0 || q.Limit > web.MessagesMax {
		q.Limit = web.MessagesMax
	}
	if q.Task != "" {
		m, err := n.resolve(q.Task)
		if err != nil {
			return out, err
		}
		q.Task = string(m.Envelope.ID)
	}
	up := q.Words == "" && (q.After > 0 || q.At > 0) // from old to new
	found, next, err := n.looked(&q, up)
	if err != nil {
		return out, err
	}
	if !up {
		slices.Reverse(found)
	}
	if out.Messages, err = n.rows(found, q.Until); err != nil {
		return out, err
	}
	switch {
	case up:
		out.After, out.Before = next, q.After+1
		if len(found) > 0 {
			out.Before = found[0].Pos
		}
	case q.Before > 0:
		out.Before, out.After = next, q.Before-1
		if len(found) > 0 {
			out.After = found[len(found)-1].Pos
		}
	default:
		out.Before = next
	}
	err = n.loop.call(ctx, func() {
		for _, c := range n.loop.board.Counts().Intents {
			out.Of += c
		}
	})
	if q.Words != "" {
		out.Behind = n.store.Unindexed()
	}
	return out, err
}

// rows are messages as the page shows them: as they stand, or as they stood at a time in ms.
func (n *Node) rows(found []journal.Message, until int64) (out []api.Message, err error) {
	late := uint64(0)
	if until > 0 {
		if _, _, late, err = n.store.Beside(untilMillis(until)); err != nil {
			return nil, err
		}
	}
	for i := range found {
		m := api.Message{}
		if until > 0 {
			m = n.messageAt(&found[i], untilMillis(until), late)
		} else {
			m = n.message(&found[i])
			slim(&m)
		}
		out = append(out, m)
	}
	return out, nil
}

// looked gives what q selects in one direction, and where to go on; 0: that was all.
func (n *Node) looked(q *web.FindQuery, up bool) (found []journal.Message, next uint64, err error) {
	jq := journal.Query{Agent: q.Agent, Intent: q.Intent, Thread: q.Thread, Before: q.Before, After: q.After, Newest: !up, Limit: findPage}
	if q.At > 0 && q.Before == 0 && q.After == 0 {
		jq.Since = protocol.HLCAt(time.UnixMilli(q.At))
	}
	if q.Until > 0 {
		jq.Until = untilMillis(q.Until)
	}
	for looked := 0; looked < findLooks; {
		var page []journal.Message
		if q.Words != "" {
			page, err = n.search(q.Words, jq.Before, findPage)
		} else {
			page, err = n.messages(jq)
		}
		if err != nil {
			return nil, 0, err
		}
		for i := range page {
			if !takes(q, &page[i].Envelope) || jq.Until > 0 && page[i].At > jq.Until || n.again(&page[i]) {
				continue
			}
			if found = append(found, page[i]); len(found) == q.Limit {
				if i+1 < len(page) || len(page) == findPage {
					next = page[i].Pos
				}
				return found, next, nil
			}
		}
		if len(page) < findPage {
			return found, 0, nil
		}
		looked += len(page)
		next = page[len(page)-1].Pos
		if jq.Since = 0; up {
			jq.After = next
		} else {
			jq.Before = next
		}
	}
	return found, next, nil
}

// slimText and slimValue are what a row of the page needs; who opens a message asks for all of it.
const (
	slimText  = 700
	slimValue = 300
)

func slim(m *api.Message) {
	e := &m.Envelope
	m.Text = protocol.CutText(m.Text, slimText)
	if e.Intent == protocol.ToolCall {
		e.Value = protocol.EncodeBody(map[string]string{"toolCallName": protocol.CutText(valueOf[string](e.Value, "toolCallName"), 80), "path": toolPath(e.Value)})
		return
	}
	if len(e.Value) > slimValue {
		e.Value = nil
	}
}

// toolPath is the file that a tool was called for, as far as its arguments say.
func toolPath(value json.RawMessage) string {
	args := json.RawMessage(valueOf[string](value, "args"))
	for _, name := range []string{"file_path", "path", "file", "notebook_path"} {
		if path := valueOf[string](args, name); path != "" {
			return protocol.CutText(path, 200)
		}
	}
	return ""
}

const (
	threadRoots = 50  // how far up a chain of answers
	threadMax   = 300 // messages of one thread
)

// Thread implements web.Page.
func (n *Node) Thread(_ context.Context, id string, until int64) (out api.Thread, err error) {
	m, err := n.undeleted(id)
	if err != nil {
		return out, err
	}
	all := map[uint64]journal.Message{m.Pos: m}
	root := m
	for range threadRoots {
		if root.Envelope.Re == "" {
			break
		}
		up, ok, err := n.store.MessageByID("", root.Envelope.Re)
		if err != nil {
			return out, err
		}
		if !ok || all[up.Pos].Pos != 0 || n.deleted(&up) {
			break
		}
		root, all[up.Pos] = up, up
	}
	if name := m.Envelope.Thread; name != "" {
		found, err := n.messages(journal.Query{Thread: name, Limit: threadMax, Newest: true})
		if err != nil {
			return out, err
		}
		for _, f := range found {
			all[f.Pos] = f
		}
	}
	if out.Cut, err = n.answersTo(root, all); err != nil {
		return out, err
	}
	found := slices.Collect(maps.Values(all))
	found = slices.DeleteFunc(found, func(m journal.Message) bool { return n.again(&m) })
	if until > 0 {
		found = slices.DeleteFunc(found, func(m journal.Message) bool { return m.At > untilMillis(until) })
	}
	if out.Messages, err = n.rows(found, until); err != nil {
		return out, err
	}
	slices.SortFunc(out.Messages, func(a, b api.Message) int { return int(int64(a.Pos) - int64(b.Pos)) })
	return out, nil
}

// answersTo adds what answers a message, and what answers that.
func (n *Node) answersTo(root journal.Message, all map[uint64]journal.Message) (cut bool, err error) {
	for todo := []protocol.MsgID{root.Envelope.ID}; len(todo) > 0; todo = todo[1:] {
		found, err := n.messages(journal.Query{Re: todo[0], Limit: threadMax})
		if err != nil {
			return false, err
		}
		for _, f := range found {
			if len(all) >= threadMax {
				return true, nil
			}
			if _, seen := all[f.Pos]; !seen {
				todo = append(todo, f.Envelope.ID)
			}
			all[f.Pos] = f
		}
	}
	return false, nil
}

// takes says whether a message is one of those that q selects, beyond what the journal has looked at.
func takes(q *web.FindQuery, e *protocol.Envelope) bool {
	fold := protocol.FoldAgentID
	switch {
	case q.Agent != "" && fold(e.From) != fold(q.Agent) && fold(e.To) != fold(q.Agent),
		q.Role != "" && e.FromRole != q.Role,
		q.Intent != "" && e.Intent != q.Intent,
		q.Thread != "" && e.Thread != q.Thread,
		q.Room != "" && e.Room != q.Room,
		q.Task != "" && string(e.ID) != q.Task && string(e.Re) != q.Task:
		return false
	}
	return true
}

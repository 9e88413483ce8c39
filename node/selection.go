package node

import (
	"fmt"
	"slices"
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
)

// selectionsRead bounds how many questions, and how many ends of them, a start looks back at.
const selectionsRead = 5_000

// selections are the questions to people and their ends, oldest first, as the journal holds them: what was asked before a
// restart stays asked, with the time that it had left.
func (n *Node) selections() ([]hub.Selected, error) {
	var found []journal.Message
	for _, name := range []protocol.Intent{"SelectionPrompt", "SelectionExpired", "SelectionResolved"} {
		ms, err := n.store.Messages(journal.Query{Intent: name, Limit: selectionsRead, Newest: true})
		if err != nil {
			return nil, fmt.Errorf("read questions: %w", err)
		}
		found = append(found, ms...)
	}
	slices.SortFunc(found, func(a, b journal.Message) int { return int(int64(a.Pos) - int64(b.Pos)) })
	out := make([]hub.Selected, len(found))
	for i := range found {
		m := &found[i]
		out[i] = hub.Selected{Ref: hub.Ref{Log: m.Log, Seq: m.Seq}, Env: &m.Envelope, At: time.UnixMilli(m.Wall)}
	}
	return out, nil
}

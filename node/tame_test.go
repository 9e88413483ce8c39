package node

import (
	"encoding/json"
	"testing"

	"github.com/aster-mesh/aster/board/web"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
)

// A value that an earlier version let in reaches neither a socket nor the API as it is. It is said past the checks of frames
// and bodies here, as another node's record would come.
func TestANumberThatIsInTheJournalAlreadyIsShownAsAString(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.probe = func(one *Node) { n = one } })
	main := r.attach(t, "main-agent")
	r.attach(t, "other")
	env := protocol.Envelope{ID: "wild-1", To: "main-agent", Intent: "Note", Value: json.RawMessage(`{"e":1e999999}`)}
	if _, err := n.loop.ask(t.Context(), func(token hub.Token) hub.Input { return n.loop.said(hub.Say{As: "other", Env: env, Token: token}) }); err != nil {
		t.Fatal(err)
	}
	const shown = `{"e":"1e999999"}`
	if got := string(main.next(t, "Note").Value); got != shown {
		t.Errorf("delivered: %s", got)
	}
	m, err := n.Message(t.Context(), "wild-1")
	if err != nil || string(m.Envelope.Value) != shown {
		t.Errorf("by id: %s, %v", m.Envelope.Value, err)
	}
	items, err := n.Inbox(t.Context(), web.InboxQuery{Agent: "main-agent", All: true, Limit: 10})
	if err != nil || len(items) != 1 || string(items[0].Value) != shown {
		t.Errorf("inbox: %+v, %v", items, err)
	}
}

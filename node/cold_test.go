package node

import (
	"fmt"
	"testing"

	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// coldAt connects a board and returns the channels that its History only names.
func (r *running) coldAt(t *testing.T) map[string]asterism.Stub {
	t.Helper()
	out := map[string]asterism.Stub{}
	for _, s := range into[struct{ Cold []asterism.Stub }](t, r.dial(t).next(t, "History")).Cold {
		out[s.Key] = s
	}
	return out
}

// TestChannelsThatSaidNothingLatelyAreNamedCold: how much they hold and when they last spoke, and their words by request;
// what is deleted or put away is none.
func TestChannelsThatSaidNothingLatelyAreNamedCold(t *testing.T) {
	r := start(t, nil)
	board := r.watch(t)
	main := r.attach(t, "main-agent")
	for i, id := range []string{"quiet", "gone", "kept-away"} {
		c := r.attach(t, id)
		for k := range 3 {
			c.send(t, report("main-agent", fmt.Sprint(id, k), fmt.Sprint("word of ", id, k)))
			main.next(t, "Report")
		}
		if i > 0 {
			board.send(t, verb([]string{"", "DeleteChannelHistory", "ArchiveChannel"}[i], "", map[string]any{"channelKey": id}))
		}
	}
	board.send(t, map[string]any{"type": "CUSTOM", "name": "UserPrompt", "targetAgentId": "prompted", "msgId": "p0", "value": map[string]any{"text": "x"}})
	board.next(t, "ServerNotice") // nobody is called so: no channel either
	prompted := r.attach(t, "prompted")
	board.send(t, map[string]any{"type": "CUSTOM", "name": "UserPrompt", "targetAgentId": "prompted", "msgId": "p1", "value": map[string]any{"text": "to you"}})
	prompted.next(t, "UserPrompt")
	if got := r.coldAt(t); len(got) != 0 {
		t.Errorf("all was said lately: %v", got)
	}
	for i := range historyMessages {
		main.send(t, report("quiet", fmt.Sprint("much", i), "talk"))
	}
	eventually(t, "the talk is there", func() bool { return len(r.coldAt(t)) == 2 })
	got := r.coldAt(t)
	if s := got["quiet"]; s.Count != 3 || s.LastTs == 0 || s.Role != protocol.RoleLocal {
		t.Errorf("quiet: %+v", s)
	}
	if s := got["prompted"]; s.Count != 1 || s.LastTs == 0 {
		t.Errorf("prompted: %+v", s)
	}
	page := into[struct {
		ChannelKey string
		Events     []struct{ Name string }
	}](t, func() asterism.Frame {
		board.send(t, verb("RequestChannelHistory", "", map[string]any{"channelKey": "quiet"}))
		return board.next(t, "ChannelHistory")
	}())
	if len(page.Events) != 3 {
		t.Errorf("its words by request: %+v", page)
	}
}

// TestWhatAnAgentDeclaresHidesNoneOfItsWords: an agent that said one word and then declared many times is named, with its one word.
func TestWhatAnAgentDeclaresHidesNoneOfItsWords(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.probe = func(x *Node) { n = x } })
	main, quiet := r.attach(t, "main-agent"), r.attach(t, "quiet")
	quiet.send(t, report("main-agent", "q0", "one word"))
	main.next(t, "Report")
	for i := range coldLook + 1 {
		quiet.send(t, map[string]any{"type": "CUSTOM", "name": "OpsState", "msgId": fmt.Sprint("o", i), "value": map[string]any{"state": fmt.Sprint("busy ", i)}})
	}
	eventually(t, "the declarations are kept", func() bool {
		found, err := n.store.Messages(journal.Query{Agent: "quiet", Intent: "OpsState"})
		return err == nil && len(found) == coldLook+1
	})
	for i := range historyMessages {
		main.send(t, report("quiet", fmt.Sprint("much", i), "talk"))
	}
	var got map[string]asterism.Stub
	eventually(t, "quiet is named", func() bool { got = r.coldAt(t); return got["quiet"].Count > 0 })
	if got["quiet"].Count != 1 {
		t.Errorf("quiet: %+v", got["quiet"])
	}
}

// TestWhatAPersonSaysToNobodyStandsInAChannelOfItsOwn: a prompt while there is no main is in channel _.
func TestWhatAPersonSaysToNobodyStandsInAChannelOfItsOwn(t *testing.T) {
	r := start(t, nil)
	board := r.watch(t)
	board.send(t, verb("Status", "s1", map[string]any{"text": "lost in space"}))
	eventually(t, "the word is in channel _", func() bool {
		board.send(t, verb("RequestChannelHistory", "", map[string]any{"channelKey": "_"}))
		page := into[struct {
			Events []struct{ Value struct{ Text string } }
		}](t, board.next(t, "ChannelHistory"))
		return len(page.Events) == 1 && page.Events[0].Value.Text == "lost in space"
	})
}

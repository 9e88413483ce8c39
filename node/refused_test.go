package node

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
)

// Another node's refusal comes as a code: the sender is told what to do all the same.
func TestSenderIsToldWhatToDoAboutAFullInboxElsewhere(t *testing.T) {
	var n *Node
	main := start(t, func(c *Config) { c.probe = func(one *Node) { n = one } }).attach(t, "main-agent")
	for _, code := range []string{protocol.CodeInboxFull, protocol.CodeExpired} {
		if err := n.loop.call(t.Context(), func() {
			n.loop.tellSender(hub.TierReached{Tier: protocol.Refused, Agent: "far", Reason: code},
				&recentMessage{env: &protocol.Envelope{ID: "m1", From: "main-agent", To: "far", Intent: "Note"}})
		}); err != nil {
			t.Fatal(err)
		}
		var told struct{ LastError, Reason, MsgID string }
		if err := json.Unmarshal(main.next(t, "RelayUnreachable").Value, &told); err != nil {
			t.Fatal(err)
		}
		hint := strings.Contains(told.Reason, "aster ack --from main-agent --agent far")
		if !strings.HasPrefix(told.Reason, code) || hint != (code == protocol.CodeInboxFull) || told.MsgID != "m1" {
			t.Errorf("told %+v of %s", told, code)
		}
		if !hint {
			continue
		}
		var no struct{ Kind, Code, Text, MsgID string }
		if err := json.Unmarshal(main.next(t, "ServerNotice").Value, &no); err != nil {
			t.Fatal(err)
		}
		if no.Kind != "refused" || no.Code != code || no.MsgID != "m1" || !strings.Contains(no.Text, "1000") {
			t.Errorf("told %+v", no)
		}
	}
}

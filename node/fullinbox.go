package node

import (
	"fmt"

	"github.com/aster-mesh/aster/protocol"
)

// whyRefused is what a sender reads of a refusal that another node gave: between nodes that is its code alone. The contract's own
// words have none for an inbox that is full, so that what to do stands here.
func (l *loop) whyRefused(by, from protocol.AgentID, code string) string {
	if code != protocol.CodeInboxFull {
		return code
	}
	return protocol.CodeInboxFull + ": " + l.fullElsewhere(by, from).Error()
}

// fullElsewhere is what the home of an agent whose inbox is full would say itself: all nodes have the same limits.
func (l *loop) fullElsewhere(of, from protocol.AgentID) *protocol.Refusal {
	no := protocol.Refuse(protocol.CodeInboxFull, "%s's inbox is full for you (at most %d unread of one sender, or %d MB, and less while others wait too)", "", string(of),
		protocol.InboxShare(protocol.InboxItemsMax, 0), protocol.InboxShare(protocol.InboxBytesMax, 0)>>20)
	no.Hint = "it or its owner has to deal with some first: " + protocol.AckAll(of, from)
	if k, ok := l.core.Agent(of); ok && !k.Here {
		no.Hint = "it or its owner has to deal with some first, on " + l.n.nameOf(k.Home) + ": " + protocol.AckAll(of, from)
	}
	return no
}

// inboxWarnings says which inboxes here are about to refuse somebody.
func (l *loop) inboxWarnings() (out []string) {
	for _, f := range l.core.Filling() {
		whose, from := "people's words", f.From
		switch {
		case f.Outside:
			whose, from = "what the node "+l.n.nameOf(f.Peer)+" sends", ""
		case f.From != "":
			whose = "what " + string(f.From) + " sends"
		}
		line := fmt.Sprintf("the inbox of %s is %d %% full of %s: %d unread, %d in all, and soon more of it is refused", f.Agent, f.Percent, whose, f.Unread, f.All)
		if f.Percent >= 100 {
			line = fmt.Sprintf("the inbox of %s is full of %s: %d unread, %d in all, and more of it is refused", f.Agent, whose, f.Unread, f.All)
		}
		out = append(out, line+". Read it: aster inbox --agent "+protocol.Typed(f.Agent)+"; when it is dealt with: "+protocol.AckAll(f.Agent, from))
	}
	return out
}

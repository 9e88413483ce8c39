package node

import "github.com/aster-mesh/aster/protocol"

// whyRefused is what a sender reads of a refusal that another node gave: between nodes that is its code alone. The contract's own
// words have none for an inbox that is full, so that what to do stands here.
func whyRefused(by protocol.AgentID, code string) string {
	if code != protocol.CodeInboxFull {
		return code
	}
	return protocol.CodeInboxFull + ": " + fullElsewhere(by).Error()
}

// fullElsewhere is what the home of an agent whose inbox is full would say itself: all nodes have the same limits.
func fullElsewhere(of protocol.AgentID) *protocol.Refusal {
	return protocol.Refuse(protocol.CodeInboxFull, "%s's inbox is full (at most %d unread, or %d MB)", "send again when it has read: aster agents shows how many wait",
		string(of), protocol.InboxItemsMax, protocol.InboxBytesMax>>20)
}

package roles

import "github.com/aster-mesh/aster/protocol"

// ScopeFor is the scope in which node self logs a message for an agent at home targetHome. An outside node writes all
// it says for the inside and for nobody else; an inside node writes what is for an outside member in that member's
// scope, and everything else (a target unknown or of the own node too) for the inside.
func ScopeFor(selfInside bool, self, targetHome protocol.PeerID, targetInside bool) protocol.Scope {
	switch {
	case !selfInside:
		return protocol.ScopeOutside(self)
	case targetInside || targetHome == "" || targetHome == self:
		return protocol.ScopeInside
	}
	return protocol.ScopeOutside(targetHome)
}

// MayWrite says whether a member may author logs of a scope, or refuses: an inside member any, an outside one only
// the scope that is its own and the rooms it is in. It keeps an outsider from addressing another one through us, and
// from hiding what it says from the inside.
func MayWrite(author Viewer, scope protocol.Scope) *protocol.Refusal {
	if author.Inside && scope.Valid() || author.Agent == "" && MaySee(author, scope) {
		return nil
	}
	return protocol.Refuse(protocol.CodeNotAllowed, "a member outside writes only in its own scope, not in %q", "", protocol.CutText(string(scope), 80))
}

// MayReach says whether a message between two nodes can arrive: two outside members see nothing of one another, only
// an agent inside can pass a word on between them.
func MayReach(senderHome protocol.PeerID, senderInside bool, targetHome protocol.PeerID, targetInside bool) *protocol.Refusal {
	if senderInside || targetInside || senderHome == targetHome {
		return nil
	}
	return protocol.Refuse(protocol.CodeNotAllowed, "members outside do not reach one another", "use Request to main, which may pass it on")
}

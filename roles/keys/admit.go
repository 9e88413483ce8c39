package keys

import (
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// Presented is a key with what the node knows of whoever shows it.
type Presented struct {
	Hash Hash
	// HostLocal: both ends of the connection are on this machine and nothing says that it was forwarded (wire 1.3).
	HostLocal bool
	// Agent is who the HELLO says it is; empty while there is only an upgrade.
	Agent protocol.AgentID
}

// Admit says whether a presented key may be used at now by the clock of self, in the order of wire 3.3. A key that is
// not valid is refused, never ignored (faults B17, KB5). The refusal never holds the string.
func (r *Ring) Admit(p Presented, self protocol.PeerID, now time.Time) (Key, *protocol.Refusal) {
	k, ok := r.ByHash(p.Hash)
	if !ok {
		return Key{}, protocol.Refuse(protocol.CodeBadKey, "this key is not known here", "ask the board's owner for a key, or connect without one from the same machine as its own user")
	}
	if no := k.Valid(self, now); no != nil {
		return k, no
	}
	switch {
	case k.Kind == Local && !p.HostLocal:
		return k, protocol.Refuse(protocol.CodeKeyRemote, "a local key works on the node's own machine only", "ask the board's owner for a collab, peer or upstream key")
	case p.Agent != "" && k.Bound != "" && protocol.FoldAgentID(k.Bound) != protocol.FoldAgentID(p.Agent):
		return k, Bound()
	}
	return k, nil
}

// Bound refuses a key that belongs to another agent.
func Bound() *protocol.Refusal {
	return protocol.Refuse(protocol.CodeIdentityMismatch, "this key is bound to another agent id",
		"use the agent id with which it was used first, or ask the board's owner for a key of your own: aster key issue")
}

// Valid says why the key cannot be used at now by the clock of self, or nil.
func (k *Key) Valid(self protocol.PeerID, now time.Time) *protocol.Refusal {
	switch {
	case k.Final():
		return protocol.Refuse(protocol.CodeKeyRevoked, "this key was revoked", "ask the board's owner for a new one: aster key issue")
	case k.Expired(self, now):
		return protocol.Refuse(protocol.CodeKeyExpired, "this key is past the end of its life",
			"ask the board's owner to renew it, the same string then works again: aster key renew "+k.Ref())
	}
	return nil
}

// Holds says why a session that a key opened must end at now, or nil: other than Valid it lets the sessions of a key go
// on that was revoked for their end, until the grace is over.
func (k *Key) Holds(agent protocol.AgentID, self protocol.PeerID, now time.Time) *protocol.Refusal {
	switch {
	case k.Revoked == 0 && k.Pending > 0 && now.Before(ends(k.Pending, k.pending, self)):
	default:
		if no := k.Valid(self, now); no != nil {
			return no
		}
	}
	if agent != "" && k.Bound != "" && protocol.FoldAgentID(k.Bound) != protocol.FoldAgentID(agent) {
		return Bound()
	}
	return nil
}

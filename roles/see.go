package roles

import "github.com/aster-mesh/aster/protocol"

// Viewer is whoever a record would go to: exactly one of a member inside, a member outside, or a client of an outside
// role that joined one of our nodes by key. The zero Viewer sees nothing.
type Viewer struct {
	Inside bool             // an inside member, its person at the board, or an agent attached there as main or local
	Peer   protocol.PeerID  // an outside member
	Agent  protocol.AgentID // a key-joined client of role upstream, collab or peer
	// Rooms holds the scopes of the room generations that the viewer is in; nobody sees a room's past (DESIGN 4).
	Rooms map[protocol.Scope]bool
}

// MaySee says whether viewer may have what lies in logs of scope. It is the rule of DESIGN 4 Scopes and stands before
// every way out.
//
//	scope        inside   outside P      client
//	in           yes      no             no
//	out:P        yes      yes            no
//	out:other    yes      no             no
//	room:R:g     yes      if in it       if in it
//	(malformed)  no       no             no
func MaySee(viewer Viewer, scope protocol.Scope) bool {
	if !scope.Valid() {
		return false
	}
	if viewer.Inside {
		return true
	}
	if p, ok := scope.Outsider(); ok {
		return viewer.Peer != "" && viewer.Peer == p
	}
	if _, _, ok := scope.Room(); ok {
		return (viewer.Peer != "" || viewer.Agent != "") && viewer.Rooms[scope]
	}
	return false
}

// MaySeeRecord is MaySee for one record: besides what the scope allows, a key-joined client has the messages that it
// sent or got, though they lie in a log of the inside. env is the record's envelope, nil when it is not a message.
func MaySeeRecord(viewer Viewer, rec *protocol.Record, env *protocol.Envelope) bool {
	if MaySee(viewer, rec.Log.Scope) {
		return true
	}
	if viewer.Inside || viewer.Peer != "" || viewer.Agent == "" || env == nil || rec.Kind != protocol.KindMessage {
		return false
	}
	me := protocol.FoldAgentID(viewer.Agent)
	return env.Room == "" && rec.Log.Scope == protocol.ScopeInside &&
		(protocol.FoldAgentID(env.From) == me || protocol.FoldAgentID(env.To) == me)
}

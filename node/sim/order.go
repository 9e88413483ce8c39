package sim

import (
	"cmp"
	"fmt"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
)

// writer is who writes one log after another: a node in one scope.
type writer struct {
	peer  protocol.PeerID
	scope protocol.Scope
}

// inOrder judges whether a client is given what one node wrote as that node logged it, over its starts. What was given
// before may come again, and what could not be read once comes when it can. A disk that was replaced by an older copy is
// given back what it lost when others have it, so runs with such disks promise no order, and neither does what an agent
// is told of the past of a room that it was in before it was known.
func (l *ledger) inOrder(n *node, c *client, ref hub.Ref, env *protocol.Envelope) {
	if l.w.lean || env.Room != "" || n.missed || l.w.Stats.Restores+l.w.Stats.Wipes > 0 {
		return
	}
	if _, again := c.given[env.Identity()]; again {
		return
	}
	by := writer{ref.Log.Peer, ref.Log.Scope}
	if last, ok := c.last[by]; ok && compareRefs(ref, last) < 0 {
		l.w.fail("what one node says comes in its order", "node %d gave %s %s/%d after %s/%d", n.i, c.id, l.w.logName(ref.Log), ref.Seq, l.w.logName(last.Log), last.Seq)
	}
	c.last[by] = ref
}

// compareRefs orders records of one writer.
func compareRefs(a, b hub.Ref) int {
	return cmp.Or(a.Log.Start.Compare(b.Log.Start), cmp.Compare(a.Seq, b.Seq))
}

// inboxesInOrder is the same of the inboxes of a node.
func (w *World) inboxesInOrder(n *node) *broken {
	if w.Stats.Restores+w.Stats.Wipes > 0 {
		return nil
	}
	for agent, rows := range n.disk.inbox {
		last := map[writer]hub.Ref{}
		for _, row := range rows {
			rec := &row.rec.Record
			ref, by := hub.Ref{Log: rec.Log, Seq: rec.Seq}, writer{rec.Log.Peer, rec.Log.Scope}
			if before, ok := last[by]; ok && compareRefs(ref, before) < 0 {
				return &broken{"what one node says comes in its order", fmt.Sprintf("%s at node %d has %s/%d after %s/%d", agent, n.i, w.logName(ref.Log), ref.Seq, w.logName(before.Log), before.Seq)}
			}
			last[by] = ref
		}
	}
	return nil
}

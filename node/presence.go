package node

import (
	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// recall fills in what the journal says of agents whose home is not linked: their last presence that settled, as of when it
// was said, or as of the end of the link if that was later, since until then nothing else was heard.
func (l *loop) recall(agents []api.Agent) {
	var noted map[protocol.AgentID]board.Agent
	for i := range agents {
		a := &agents[i]
		if a.Here || l.peers[a.Home] != nil {
			continue
		}
		if noted == nil {
			noted = map[protocol.AgentID]board.Agent{}
			for _, b := range l.board.Agents() {
				noted[protocol.FoldAgentID(b.ID)] = b
			}
		}
		b, ok := noted[protocol.FoldAgentID(a.ID)]
		if !ok || b.Home != a.Home || b.StateAt == 0 {
			continue
		}
		a.State, a.Since, a.AsOf = b.State, b.StateAt, b.StateAt
		if seen, ok := l.lastSeen[a.Home]; ok {
			a.AsOf = max(a.AsOf, seen.UnixMilli())
		}
	}
}

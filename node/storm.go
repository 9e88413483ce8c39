package node

import (
	"fmt"
	"strings"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// storm tells people that two agents answer each other without end: on status, until it is over, and on every board here.
func (l *loop) storm(o hub.Storm) {
	line := fmt.Sprintf("%s and %s have answered each other %d times without a person's word: what one says wakes the other less and less often. "+
		"A word from you to either lets them go on: aster board", o.A, o.B, o.Turns)
	l.warn(stormKey(o.A, o.B), line)
	frame := l.enc.ServerNotice(l.now, "", asterism.Notice{Kind: "storm", Text: line, AgentID: o.A, Target: string(o.B)})
	for _, id := range l.core.Boards() {
		if s := l.sockets[id]; s != nil {
			s.conn.Send(frame)
		}
	}
}

func stormKey(a, b protocol.AgentID) string {
	a, b = protocol.FoldAgentID(a), protocol.FoldAgentID(b)
	if strings.Compare(string(a), string(b)) > 0 {
		a, b = b, a
	}
	return "storm/" + string(a) + "/" + string(b)
}

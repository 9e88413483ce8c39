package node

import (
	"strings"

	"github.com/aster-mesh/aster/node/foreign"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// keyGuest marks agents that another mesh's node brings to this board. They live there: were they taken on to further
// boards, two meshes that have joined one another would send their words round for ever.
const keyGuest = "board-guest/"

// guestCame notes an agent that comes as another node's client. Call it in the loop when its HELLO holds.
func (l *loop) guestCame(f *asterism.Frame) {
	if strings.HasPrefix(f.ClientID, joinMarkPrefix) {
		l.value(keyGuest+string(protocol.FoldAgentID(f.AgentID)), []byte{1})
	}
}

// guests are the agents, by folded id, that other nodes have brought here.
func (n *Node) guests() (map[protocol.AgentID]bool, error) {
	values, err := n.store.ValuesWithPrefix(keyGuest)
	out := make(map[protocol.AgentID]bool, len(values))
	for key := range values {
		out[protocol.AgentID(strings.TrimPrefix(key, keyGuest))] = true
	}
	return out, err
}

// mayGoOut says whether an agent of this node may join another board.
func (n *Node) mayGoOut(id protocol.AgentID) error {
	guests, err := n.guests()
	switch {
	case err != nil:
		return err
	case foreign.Guest(id):
		return protocol.Refuse(protocol.CodeBadAgentID, "%q looks like an agent of another board", "join with an agent whose name has no @, or call it so there with --as", string(id))
	case guests[protocol.FoldAgentID(id)]:
		return protocol.Refuse(protocol.CodeNotAllowed, "%q is a guest of this board: another mesh's node brings it here", "join from its own node", string(id))
	}
	return nil
}

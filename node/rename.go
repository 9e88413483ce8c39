package node

import (
	"context"
	"os"

	"github.com/aster-mesh/aster/node/bridge"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// RenameAgent implements web.Members. The folder of the old name stays served, so that a line written into its outbox is
// refused where its writer sees it.
func (n *Node) RenameAgent(ctx context.Context, agent, to protocol.AgentID) (out api.Agent, err error) {
	if _, err = n.loop.ask(ctx, func(t hub.Token) hub.Input { return hub.Rename{Agent: agent, To: to, Token: t} }); err != nil {
		return out, err
	}
	if _, err := os.Stat(bridge.FolderOf(n.home.path("agents"), agent)); err == nil {
		if err := n.bridge.Enable(to); err != nil {
			n.log.Warn("agent's folder not served", "agent", to, "err", err)
		}
	}
	err = n.loop.call(ctx, func() {
		if k, ok := n.loop.core.Agent(to); ok {
			out = n.agent(&k)
		}
	})
	return out, err
}

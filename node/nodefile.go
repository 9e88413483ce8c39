package node

import (
	"context"
	"os"
	"time"

	"github.com/aster-mesh/aster/protocol/api"
)

// nodeFileLook is how often it is looked whether node.json is there.
const nodeFileLook = time.Second

func (n *Node) writeNodeFile() error {
	return writeFile(n.home.path("node.json"), api.NodeFile{PID: os.Getpid(), Board: n.boardURL, Token: n.token, Peer: n.home.peer, Version: n.cfg.Version})
}

// keepNodeFile writes node.json again when somebody removed it, until ctx ends: without it no command finds this node, and none can
// begin another while it holds the home.
func (n *Node) keepNodeFile(ctx context.Context) {
	looks := time.NewTicker(nodeFileLook)
	defer looks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-looks.C:
		}
		if isThere(n.home.path("node.json")) {
			continue
		}
		if err := n.writeNodeFile(); err != nil {
			n.log.Debug("node.json not written again", "err", err) // in a second once more
			continue
		}
		n.log.Info("node.json was removed and is written again")
	}
}

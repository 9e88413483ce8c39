package node

import (
	"fmt"
	"strings"
)

func (n *Node) reportRecovery() {
	r := n.store.Recovery()
	if r.TornBytes > 0 {
		n.log.Info("unfinished commit left out", "part", "journal", "bytes", r.TornBytes)
	}
	if len(r.SetAside) > 0 {
		n.warnings.set("damaged", fmt.Sprintf("the store was damaged (%s): %d records were taken over, the rest comes from other nodes; the old files are kept as %s",
			r.Reason, r.Salvaged, strings.Join(r.SetAside, ", ")))
		n.log.Error("damaged store set aside", "part", "journal", "reason", r.Reason, "files", r.SetAside, "salvaged", r.Salvaged, "lost", len(r.Lost))
	}
}

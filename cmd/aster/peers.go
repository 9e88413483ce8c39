package main

import (
	"time"

	"github.com/aster-mesh/aster/protocol/api"
	"github.com/spf13/cobra"
)

func peersCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "peers", Short: "The nodes of the mesh, as seen from here", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.node()
			if err != nil {
				return err
			}
			defer c.Close()
			peers, err := c.Peers(cmd.Context())
			if err != nil {
				return err
			}
			if a.json {
				return emitAll(a, peers)
			}
			rows := [][]string{{"NODE", "ROLE", "LINK", "ALIVE", "RTT", "BEHIND", "SEEN"}}
			for _, p := range peers {
				rows = append(rows, peerRow(p))
			}
			table(a.stdout, rows...)
			return nil
		},
	}
}

func peerRow(p api.Peer) []string {
	name := clean(p.Name)
	if p.Self {
		return []string{name + " (here)", string(p.Role), "-", "-", "-", "-", "now"}
	}
	link, rtt := "none", "-"
	if p.Linked {
		link = dash(clean(p.Transport))
		if p.Relayed {
			link += ", relayed"
		}
		if p.RTTMicros > 0 {
			rtt = span(time.Duration(p.RTTMicros) * time.Microsecond)
		}
	}
	alive := dash(clean(p.Alive))
	if p.Revoked {
		alive = "revoked"
	}
	seen := "never"
	if p.LastSeen > 0 {
		seen = clock(p.LastSeen)
	}
	return []string{name, string(p.Role), link, alive, rtt, count(p.Behind), seen}
}

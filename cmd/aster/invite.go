package main

import (
	"net"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/spf13/cobra"
)

func inviteCommand(a *app) *cobra.Command {
	var role string
	var ttl time.Duration
	var lan bool
	cmd := &cobra.Command{
		Use: "invite", Short: "Make an invite: the token alone on stdout", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch r := protocol.Role(role); r {
			case protocol.RoleLocal, protocol.RoleUpstream, protocol.RoleCollab, protocol.RolePeer:
			default:
				return usage("--role %s: a node joins as local, upstream, collab or peer", role)
			}
			if ttl < time.Second {
				return usage("--ttl %s: an invite lives at least a second", ttl)
			}
			if ttl > protocol.InviteLifeMax {
				return usage("--ttl %s: an invite lives at most %d days", ttl, int(protocol.InviteLifeMax.Hours()/24))
			}
			c, err := a.node()
			if err != nil {
				return err
			}
			defer c.Close()
			got, err := c.Invite(cmd.Context(), api.InviteRequest{Role: protocol.Role(role), TTLMillis: ttl.Milliseconds(), LAN: lan})
			if err != nil {
				return err
			}
			a.talk("%s", inviteTalk(got, lan, ttl))
			if a.json {
				return a.emit(got)
			}
			a.say("%s", got.Token)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&role, "role", string(protocol.RoleLocal), "what it joins as: local, upstream, collab or peer")
	f.DurationVar(&ttl, "ttl", protocol.InviteLife, "how long the invite works, once")
	f.BoolVar(&lan, "lan", false, "listen on this machine's networks from now on, so that others can reach it; to end that: aster up --replace --mesh /ip4/127.0.0.1/tcp/0")
	return cmd
}

func inviteTalk(got api.InviteResult, lan bool, ttl time.Duration) string {
	use := "within " + span(ttl) + ", once, "
	if got.Loopback {
		return use + "on this machine only: aster --home DIR up --detach --join -\n" +
			"other machines cannot reach this node; to let them: aster invite --lan"
	}
	use += "on the other machine: aster up --detach --join -"
	if lan {
		return "this node now listens on " + strings.Join(hosts(got.Listen), ", ") + "; " + use
	}
	return use
}

// hosts are the addresses of multiaddrs that others can reach, each once.
func hosts(addrs []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, addr := range addrs {
		parts := strings.Split(addr, "/")
		if len(parts) < 3 || seen[parts[2]] {
			continue
		}
		if ip := net.ParseIP(parts[2]); ip != nil && (ip.IsLoopback() || ip.IsUnspecified()) {
			continue
		}
		seen[parts[2]] = true
		out = append(out, parts[2])
	}
	if len(out) == 0 {
		return []string{"this machine's networks"}
	}
	return out
}

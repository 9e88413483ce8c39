package node

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/member"
	"github.com/aster-mesh/aster/roles/worker"
)

// placeInMesh founds a mesh in a fresh home, or decides what --join means in this one (DESIGN 5).
func (n *Node) placeInMesh() (*member.Invite, error) {
	m := &n.home.mesh
	var invite *member.Invite
	if n.cfg.Join != "" {
		in, r := member.ParseInvite(n.cfg.Join)
		if r != nil {
			return nil, r
		}
		invite = &in
	}
	back := invite != nil && string(invite.Mesh) == m.Mesh && m.Revoked != ""
	if invite != nil && string(invite.Mesh) == m.Mesh && !back {
		half, err := n.halfMember()
		if err != nil {
			return nil, err
		}
		if half {
			return invite, nil
		}
	}
	if m.Mesh != "" && invite != nil && string(invite.Mesh) == m.Mesh && !back {
		n.warnings.set("join", "this home is in that mesh already; the invite was not used")
		invite = nil
	}
	if m.Mesh != "" && invite != nil && !back {
		alone, err := n.aloneInMesh()
		if err != nil {
			return nil, err
		}
		if !alone {
			return nil, protocol.Refuse(protocol.CodeNotAllowed, "this home is a member of another mesh with other nodes",
				"Leave that first: aster leave. Or use another home: aster up --home DIR --join -")
		}
		if !n.cfg.Leave {
			return nil, protocol.Refuse(protocol.CodeNotAllowed, "this home has a mesh of its own, with nobody else in it",
				"Give it up: aster up --leave --join -. Or use another home: aster up --home DIR --join -")
		}
		if err := n.retire(); err != nil {
			return nil, err
		}
	}
	if m.Name == "" {
		m.Name = hostName()
	}
	if n.cfg.Name != "" && m.Mesh == "" { // in a mesh, the certificate holds the name
		m.Name = n.cfg.Name
	}
	if n.cfg.Name != "" && n.cfg.Name != m.Name {
		n.warnings.set("name", fmt.Sprintf("this node is called %s, by its certificate: the name %s is not used. It takes another name with a new home: aster up --home DIR --name %[2]s", m.Name, n.cfg.Name))
	}
	if invite != nil {
		m.Mesh, m.Inviter = string(invite.Mesh), invite.Inviter
		return invite, nil
	}
	if m.Mesh != "" {
		if m.Revoked != "" {
			by := m.Revoked
			n.revokedBy.Store(&by)
			n.warnings.set("revoked", revokedLine(m.Revoked))
		}
		return nil, nil
	}
	return nil, n.found()
}

// homeBoard is the board as the home's own journal has it, of a node whose parts do not run yet.
func (n *Node) homeBoard() (*board.State, error) {
	store, err := journal.Open(n.home.path("journal"), journal.Options{Log: n.log, Sign: signer(n.home.key)})
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	defer store.Close()
	st, _, err := foldBoard(store, member.MeshID(n.home.mesh.Mesh), n.log)
	return st, err
}

// aloneInMesh looks into the home's own journal for other members that were not revoked.
func (n *Node) aloneInMesh() (bool, error) {
	st, err := n.homeBoard()
	if err != nil {
		return false, err
	}
	for _, m := range st.Members() {
		if m.Peer != n.home.peer && !m.Revoked {
			return false, nil
		}
	}
	return n.home.mesh.Inviter == "", nil
}

// found makes a mesh key and this node's certificate under it.
func (n *Node) found() error {
	key, err := keyFile(n.home.path("mesh.key"), true)
	if err != nil {
		return err
	}
	chain, r := member.Found(key, member.Admit{Peer: n.home.peer, Name: n.home.mesh.Name, Role: protocol.RoleLocal}, n.began)
	if r != nil {
		return r
	}
	m := &n.home.mesh
	m.Mesh = string(member.MeshIDOf(key.Public().(ed25519.PublicKey)))
	m.Chain = member.EncodeChain(chain)
	m.Agent = n.cfg.Agent
	return n.home.saveMesh()
}

// retire puts the present mesh's journal aside, readable, and makes the home fresh again.
func (n *Node) retire() error {
	m := &n.home.mesh
	aside := retiredPrefix + member.MeshID(m.Mesh).Short()
	if err := os.Rename(n.home.path("journal"), n.home.path(aside)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("put the old mesh aside: %w", err)
	}
	if err := removeIfThere(n.home.path("mesh.key")); err != nil {
		return err
	}
	*m = meshFile{Name: m.Name, Port: m.Port, Board: m.Board, Retired: append(m.Retired, aside)}
	return n.home.saveMesh()
}

// joinAgain is join. A home that is in that mesh already, and half a member, starts also where the invite is not taken.
func (n *Node) joinAgain(invite *member.Invite) (*api.Joined, error) {
	if w := n.cfg.Worker; len(w.Command) > 0 { // an invite works once: what would end this node is found before
		if err := worker.Mistaken(w.Command, w.Repo); err != nil {
			return nil, err
		}
	}
	again := len(n.home.mesh.Chain) > 0 && n.home.mesh.Revoked == ""
	joined, err := n.join(invite)
	var no *protocol.Refusal
	if again && errors.As(err, &no) {
		n.warnings.set("join", "this home is in that mesh already, and the invite was not taken: "+no.Error())
		return nil, nil
	}
	return joined, err
}

// join redeems an invite at its inviter. On a refusal the home is as before.
func (n *Node) join(invite *member.Invite) (*api.Joined, error) {
	m := &n.home.mesh
	ctx, cancel := context.WithTimeout(n.ctx, 30*time.Second)
	defer cancel()
	req := member.JoinRequest{Invite: invite.ID, Secret: invite.Secret, Name: m.Name, Version: n.cfg.Version, Addrs: n.mesh.Addrs()}
	raw, addr, err := n.mesh.Admit(ctx, invite.Inviter, invite.Addrs, append([]byte{askJoin}, req.Encode()...))
	if errors.Is(err, mesh.ErrGate) {
		return nil, protocol.Refuse(protocol.CodeRate, "the inviting node takes no newcomers from here at the moment: too many have knocked", "Try again in a few seconds")
	}
	if err != nil {
		return nil, protocol.Refuse(protocol.CodeInviteUnknown, "no node answers at the invite's addresses (%s)",
			"Is the inviting node running and reachable from here? On it: aster status; then aster invite --lan", strings.Join(invite.Addrs, ", "))
	}
	answer, err := member.DecodeJoinAnswer(raw)
	if err != nil {
		return nil, protocol.Refuse(protocol.CodeInviteBad, "the inviting node's answer cannot be read", "update aster on both machines")
	}
	if answer.Refusal != nil {
		return nil, answer.Refusal
	}
	chain, err := member.ParseChain(answer.Chain)
	if err != nil {
		return nil, protocol.Refuse(protocol.CodeCertBad, "the certificate cannot be read", "aster invite makes a new invite")
	}
	cert, r := member.Verify(invite.Mesh, chain, n.time(), nil)
	if r != nil {
		return nil, r
	}
	if cert.Peer != n.home.peer {
		return nil, protocol.Refuse(protocol.CodeCertBad, "the certificate is another node's", "aster invite makes a new invite")
	}
	m.Chain, m.Name, m.Inviter, m.Agent, m.Revoked = answer.Chain, cert.Name, invite.Inviter, cmp.Or(n.cfg.Agent, m.Agent), ""
	n.ownRole.Store(cert.Role)
	joined := &api.Joined{Transport: transportOf(addr), Direct: true}
	for _, in := range answer.Members {
		c, err := member.ParseChain(in.Chain)
		if err != nil {
			continue
		}
		if cert, r := member.Verify(invite.Mesh, c, n.time(), nil); r == nil {
			m.Seeds = append(m.Seeds, seedMember{Peer: cert.Peer, Chain: in.Chain, Addrs: in.Addrs})
			if cert.Peer == invite.Inviter {
				joined.Through = cert.Name
			}
		}
	}
	return joined, n.home.saveMesh()
}

func transportOf(addr string) string {
	switch {
	case strings.Contains(addr, "/ws"):
		return "ws"
	case strings.Contains(addr, "/quic"):
		return "quic"
	}
	return "tcp"
}

// hostName is what a node is called for want of a better name.
func hostName() string {
	host, err := os.Hostname()
	if err != nil {
		return "node"
	}
	name, _, _ := strings.Cut(host, ".")
	return name
}

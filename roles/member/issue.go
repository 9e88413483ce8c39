package member

import (
	"crypto/ed25519"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

const (
	newInvite = "New one, on a member's node: aster invite"
	fullHint  = "renew on the node that holds the mesh key: its chains are the shortest"
)

// Admit is what a certificate says of its holder.
type Admit struct {
	Peer  protocol.PeerID
	Name  string
	Role  protocol.Role // main is written as local: it is a term
	Lifts protocol.HLC  // Roster.RevokedAt(Peer) when a person lets a revoked node in again; else 0
}

func (a Admit) cert(mesh MeshID, issuer protocol.PeerID, now time.Time) Cert {
	role := a.Role
	if role == protocol.RoleMain {
		role = protocol.RoleLocal
	}
	c := Cert{
		Mesh: mesh, Peer: a.Peer, Name: a.Name, Role: role, Inside: role.Inside(), Caps: []Cap{}, Issuer: issuer,
		NotBefore: now.UnixMilli(), NotAfter: now.Add(protocol.CertLife).UnixMilli(), Lifts: a.Lifts,
	}
	if c.Inside {
		c.Caps = append(c.Caps, CapIssue)
	}
	return c
}

// Found admits an inside member by the mesh key: the founder, and later whoever's chain has grown too long.
func Found(meshKey ed25519.PrivateKey, a Admit, now time.Time) (Chain, *protocol.Refusal) {
	mesh := MeshIDOf(meshKey.Public().(ed25519.PublicKey))
	c := a.cert(mesh, "", now)
	if !c.Inside {
		return nil, protocol.Refuse(protocol.CodeWrongRole, "the mesh key admits inside members only, not %s", "invite it from an inside node", c.Role)
	}
	return finish(mesh, Chain{sign(c, meshKey)})
}

// Issue admits a node by a member that holds a chain with the issue capability, valid at now, and its key.
func Issue(key ed25519.PrivateKey, issuer Chain, a Admit, now time.Time) (Chain, *protocol.Refusal) {
	if len(issuer) == 0 {
		return nil, protocol.Refuse(protocol.CodeNotMember, "this node has no certificate", "")
	}
	own := issuer[0].Cert
	if own.Peer != protocol.PeerIDOf(key.Public().(ed25519.PublicKey)) {
		return nil, protocol.Refuse(protocol.CodeCertBad, "the certificate is not of this node's key", "")
	}
	if r := own.validAt(now); r != nil {
		return nil, r
	}
	if len(issuer) >= protocol.CertChainMax {
		return nil, protocol.Refuse(protocol.CodeCertBad, "the chain of %s has no room for another certificate", fullHint, own.Name)
	}
	return finish(own.Mesh, append(Chain{sign(a.cert(own.Mesh, own.Peer, now), key)}, issuer...))
}

func finish(mesh MeshID, chain Chain) (Chain, *protocol.Refusal) {
	if r := verifyChain(mesh, chain); r != nil {
		return nil, r
	}
	return chain, nil
}

// Renew issues a certificate that follows old: same holder, name, role and lifted revocation. It is refused before day
// 30 of old's life. The caller has asked the roster that the holder is in good standing.
func Renew(key ed25519.PrivateKey, issuer Chain, old Cert, now time.Time) (Chain, *protocol.Refusal) {
	if r := old.mayRenew(now); r != nil {
		return nil, r
	}
	return Issue(key, issuer, old.again(), now)
}

// RenewByMesh is Renew by the mesh key: the whole chain of an inside member becomes one certificate.
func RenewByMesh(meshKey ed25519.PrivateKey, old Cert, now time.Time) (Chain, *protocol.Refusal) {
	if r := old.mayRenew(now); r != nil {
		return nil, r
	}
	return Found(meshKey, old.again(), now)
}

func (c *Cert) again() Admit { return Admit{Peer: c.Peer, Name: c.Name, Role: c.Role, Lifts: c.Lifts} }

func (c *Cert) mayRenew(now time.Time) *protocol.Refusal {
	if c.Renewable(now) {
		return nil
	}
	return protocol.Refuse(protocol.CodeNotAllowed, "the certificate of %s is renewed from %s on", "nothing needs to be done before",
		c.Name, date(time.UnixMilli(c.NotBefore).Add(protocol.CertRenewFrom).UnixMilli()))
}

package node

import (
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/member"
)

// lookEvery is how often certificates are looked at: they live 90 days and are renewed from day 30.
const lookEvery = time.Hour

// lookAtCertificates notices what only time changes: certificates that ended, and those that are due for renewal.
func (l *loop) lookAtCertificates() {
	if l.now.Before(l.lookAt) {
		return
	}
	l.lookAt = l.now.Add(lookEvery)
	l.n.warnings.clear("mesh-key")
	l.membersDirty = true
	if !l.roster().Issuer(l.n.home.peer) || l.n.fenced.Load() != nil {
		return
	}
	own, err := member.ParseChain(l.n.home.mesh.Chain)
	if err != nil {
		l.log.Error("own certificate not readable", "err", err)
		return
	}
	for _, m := range l.roster().Members() {
		if !m.Cert.Renewable(l.now) || m.Revoked || !l.renews(m.Peer) {
			if m.Cert.Renewable(l.now) && !m.Revoked {
				l.missMeshKey(m)
			}
			continue
		}
		chain, r := l.renewed(own, m)
		if r != nil {
			l.log.Warn("certificate not renewed", "peer", m.Peer, "code", r.Code)
			continue
		}
		l.log.Info("certificate renewed", "peer", m.Peer)
		l.core.Step(l.now, hub.Author{Scope: protocol.ScopeInside, Kind: protocol.KindMember, Body: protocol.EncodeBody(
			protocol.MemberBody{Peer: m.Peer, Name: m.Name, Role: m.Role, Chain: member.EncodeChain(chain), Addrs: m.Addrs})})
	}
}

// renews says whether this node is the one to renew a member's certificate: of the inside nodes that are linked now, the
// smallest but the member itself. The founder renews its own with the mesh key, if that is still here.
func (l *loop) renews(p protocol.PeerID) bool {
	if p == l.n.home.peer {
		_, err := keyFile(l.n.home.path("mesh.key"), false)
		return err == nil
	}
	for other := range l.peers {
		if other < l.n.home.peer && other != p && l.n.standingOf(other) == mesh.Inside {
			return false
		}
	}
	return true
}

func (l *loop) renewed(own member.Chain, m member.Member) (member.Chain, *protocol.Refusal) {
	if m.Peer != l.n.home.peer {
		return member.Renew(l.n.home.key, own, m.Cert, l.now)
	}
	key, err := keyFile(l.n.home.path("mesh.key"), false)
	if err != nil {
		return nil, protocol.Refuse(protocol.CodeCertBad, "the mesh key is not here", "any other inside node renews this one")
	}
	return member.RenewByMesh(key, m.Cert, l.now)
}

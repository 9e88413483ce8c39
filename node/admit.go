package node

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/member"
)

// What an unknown peer may ask, by the first byte of its one request.
const (
	askJoin    = 'J' // member.JoinRequest: it holds an invite
	askTwin    = 'T' // a start of this very node: meshwire.Started
	askPresent = 'P' // an encoded chain: it was admitted by somebody whose record has not come here yet
)

// admit answers a peer that is no member here. It runs in one of the mesh's goroutines.
func (n *Node) admit(ctx context.Context, req mesh.AdmitRequest) ([]byte, bool) {
	if len(req.Body) == 0 {
		return refuseJoin(protocol.Refuse(protocol.CodeInviteBad, "empty request", "")), false
	}
	switch req.Body[0] {
	case askJoin:
		join, err := member.DecodeJoinRequest(req.Body[1:])
		if err != nil {
			return refuseJoin(protocol.Refuse(protocol.CodeInviteBad, "the request to join cannot be read", "update aster on both machines")), false
		}
		return n.admitJoin(ctx, req.Peer, join)
	case askTwin:
		return n.answerTwin(ctx, req.Body[1:]), false
	case askPresent:
		return n.admitPresented(ctx, req.Peer, req.Addr, req.Body[1:])
	}
	return refuseJoin(protocol.Refuse(protocol.CodeInviteBad, "unknown request", "update aster on both machines")), false
}

func refuseJoin(r *protocol.Refusal) []byte { return member.JoinAnswer{Refusal: r}.Encode() }

// admitJoin redeems an invite: its use and the newcomer's admission are on disk before the answer leaves.
func (n *Node) admitJoin(ctx context.Context, peer protocol.PeerID, join member.JoinRequest) ([]byte, bool) {
	type outcome struct {
		answer  member.JoinAnswer
		refusal *protocol.Refusal
	}
	done := make(chan outcome, 1)
	err := n.loop.post(ctx, func() {
		answer, refusal := n.loop.admitJoin(peer, join, func(a member.JoinAnswer) { done <- outcome{answer: a} })
		if refusal != nil {
			done <- outcome{refusal: refusal}
		} else if answer != nil {
			done <- outcome{answer: *answer}
		}
	})
	if err != nil {
		return refuseJoin(protocol.Refuse(protocol.CodeInviteBad, "the node is stopping", "try again")), false
	}
	select {
	case o := <-done:
		if o.refusal != nil {
			n.log.Info("invite refused", "peer", peer, "code", o.refusal.Code)
			return refuseJoin(o.refusal), false
		}
		return o.answer.Encode(), true
	case <-ctx.Done():
		return refuseJoin(protocol.Refuse(protocol.CodeInviteBad, "the node was too slow to answer", "try again")), false
	}
}

// admitJoin decides in the loop. committed gets the answer once its records are durable; a repeat of the same peer
// whose answer was lost is answered at once.
func (l *loop) admitJoin(peer protocol.PeerID, join member.JoinRequest, committed func(member.JoinAnswer)) (*member.JoinAnswer, *protocol.Refusal) {
	stored, err := l.invite(join.Invite)
	if err != nil {
		return nil, protocol.Refuse(protocol.CodeInviteBad, "the invite's record cannot be read", "aster invite makes a new one")
	}
	if r := member.Redeem(stored, join.Secret, peer, l.now); r != nil {
		return nil, r
	}
	if stored.UsedBy == peer {
		return &member.JoinAnswer{Chain: stored.Chain, Members: l.introductions(stored.Role.Inside())}, nil
	}
	if r := l.roster().MayAdmit(peer, stored.Made); r != nil {
		return nil, r
	}
	own, err := member.ParseChain(l.n.home.mesh.Chain)
	if err != nil {
		return nil, protocol.Refuse(protocol.CodeCertBad, "this node's own certificate cannot be read", "aster doctor")
	}
	name := l.freeName(join.Name, peer)
	chain, r := member.Issue(l.n.home.key, own, member.Admit{Peer: peer, Name: name, Role: stored.Role, Lifts: l.roster().RevokedAt(peer)}, l.now)
	if r != nil {
		return nil, r
	}
	used := stored.Used(peer, name, chain, l.now)
	l.value(keyInvite+stored.ID, protocol.EncodeBody(used))
	l.core.Step(l.now, hub.Author{Scope: protocol.ScopeInside, Kind: protocol.KindInviteUsed,
		Body: protocol.EncodeBody(protocol.InviteUsedBody{Invite: stored.ID, Peer: peer})})
	answer := member.JoinAnswer{Chain: used.Chain, Members: l.introductions(stored.Role.Inside())}
	token := l.expect(func(hub.Told) { committed(answer) })
	l.core.Step(l.now, hub.Author{Scope: protocol.ScopeInside, Kind: protocol.KindMember, Token: token,
		Body: protocol.EncodeBody(protocol.MemberBody{Peer: peer, Name: name, Role: stored.Role, Chain: used.Chain, Addrs: join.Addrs})})
	return nil, nil
}

func (l *loop) invite(id string) (*member.InviteRecord, error) {
	raw, ok, err := l.store.Value(keyInvite + id)
	if err != nil || !ok {
		return nil, err
	}
	var rec member.InviteRecord
	return &rec, json.Unmarshal(raw, &rec)
}

// freeName gives a newcomer a name that no other member in office has.
func (l *loop) freeName(want string, peer protocol.PeerID) string {
	if member.CheckName(want) != nil {
		want = "node-" + peer.Short()
	}
	for name, i := want, 2; ; i++ {
		taken := false
		for _, m := range l.roster().Members() {
			taken = taken || (m.Name == name && m.Peer != peer && !m.Revoked)
		}
		if !taken {
			return name
		}
		name = fmt.Sprintf("%s-%d", want, i)
	}
}

// introductions are the members that a newcomer may see: all for the inside, the inside for an outsider.
func (l *loop) introductions(inside bool) []member.Introduction {
	self := member.Introduction{Chain: l.n.home.mesh.Chain, Addrs: l.n.mesh.Addrs()}
	out := []member.Introduction{self}
	for _, m := range l.roster().Members() {
		if m.Peer != l.n.home.peer && !m.Revoked && (inside || m.Inside) {
			out = append(out, member.Introduction{Chain: m.Chain, Addrs: l.addrsOf(m.Peer, m.Addrs)})
		}
	}
	return out
}

// admitPresented takes a certificate whose record has not come here yet; the chain proves it.
func (n *Node) admitPresented(ctx context.Context, peer protocol.PeerID, addr string, raw []byte) ([]byte, bool) {
	var refusal *protocol.Refusal
	err := n.loop.call(ctx, func() { refusal = n.loop.seed(peer, raw, []string{addr}) })
	if err != nil {
		refusal = protocol.Refuse(protocol.CodeNotMember, "the node is stopping", "try again")
	}
	if refusal != nil {
		n.log.Info("stranger refused", "peer", peer, "code", refusal.Code)
		return refuseJoin(refusal), false
	}
	return member.JoinAnswer{Chain: n.home.mesh.Chain}.Encode(), true
}

// seed remembers a member by its chain alone until its record arrives.
func (l *loop) seed(peer protocol.PeerID, raw []byte, addrs []string) *protocol.Refusal {
	chain, err := member.ParseChain(raw)
	if err != nil {
		return protocol.Refuse(protocol.CodeCertBad, "the certificate cannot be read", "aster invite makes a new invite")
	}
	cert, r := member.Verify(l.roster().Mesh(), chain, l.now, l.roster().Withdrawn)
	if r != nil {
		return r
	}
	if cert.Peer != peer {
		return protocol.Refuse(protocol.CodeCertBad, "the certificate is another node's", "")
	}
	if m, known := l.roster().Member(peer); known && m.Revoked && l.roster().RevokedAt(peer) > cert.Lifts {
		return protocol.Refuse(protocol.CodeRevoked, "%s was revoked", "aster invite makes a new invite", m.Name)
	}
	l.n.seeded = nil
	for i, s := range l.n.home.mesh.Seeds {
		if s.Peer == peer {
			l.n.home.mesh.Seeds = append(l.n.home.mesh.Seeds[:i:i], l.n.home.mesh.Seeds[i+1:]...)
			break
		}
	}
	if len(l.n.home.mesh.Seeds) < protocol.NodesMax {
		l.n.home.mesh.Seeds = append(l.n.home.mesh.Seeds, seedMember{Peer: peer, Chain: raw, Addrs: addrs})
	}
	l.membersDirty = true
	if err := l.n.home.saveMesh(); err != nil {
		l.log.Error("seed member not kept", "err", err)
	}
	return nil
}

// Invite implements web.Members.
func (n *Node) Invite(ctx context.Context, req api.InviteRequest) (api.InviteResult, error) {
	if req.Role == protocol.RoleMain || !req.Role.Known() || req.Role == protocol.RoleBoard {
		return api.InviteResult{}, protocol.Refuse(protocol.CodeWrongRole, "nobody is invited as %q", "roles are local, upstream, collab and peer", string(req.Role))
	}
	ttl := time.Duration(req.TTLMillis) * time.Millisecond
	if ttl <= 0 {
		ttl = protocol.InviteLife
	}
	if ttl > protocol.InviteLifeMax {
		return api.InviteResult{}, protocol.Refuse(protocol.CodeInviteBad, "an invite lives at most %d days", "ask for less: aster invite --ttl 72h", int(protocol.InviteLifeMax.Hours()/24))
	}
	if req.LAN {
		if err := n.openLAN(); err != nil {
			return api.InviteResult{}, err
		}
	}
	var token string
	var refusal error
	expires := n.time().Add(ttl)
	done := make(chan struct{})
	err := n.loop.post(ctx, func() {
		if r := n.loop.mayIssue("invite", "aster invite"); r != nil {
			refusal = r
			close(done)
			return
		}
		text, rec, err := member.NewInvite(rand.Reader, n.loop.roster().Mesh(), n.home.peer, n.mesh.Addrs(), req.Role, n.loop.core.Clock(), expires)
		if err != nil {
			refusal = err
			close(done)
			return
		}
		token = text
		n.loop.value(keyInvite+rec.ID, protocol.EncodeBody(rec))
		n.loop.after = append(n.loop.after, func(err error) { refusal = err; close(done) })
	})
	if err != nil {
		return api.InviteResult{}, err
	}
	select {
	case <-done:
	case <-ctx.Done():
		return api.InviteResult{}, context.Cause(ctx)
	case <-n.done:
		return api.InviteResult{}, errStopping
	}
	if refusal != nil {
		return api.InviteResult{}, refusal
	}
	return api.InviteResult{Token: token, Expires: expires.UnixMilli(), Listen: n.mesh.Addrs(), Loopback: loopbackOnly(n.mesh.Addrs())}, nil
}

// RenewMember implements web.Members.
func (n *Node) RenewMember(ctx context.Context, peer protocol.PeerID) (api.Peer, error) {
	_, err := n.loop.askOr(ctx, func(t hub.Token) (hub.Input, error) {
		m, ok := n.loop.roster().Member(peer)
		if !ok {
			return nil, protocol.Refuse(protocol.CodeUnknownID, "no member %s", "aster member list shows them", string(peer))
		}
		if r := n.loop.roster().Standing(peer, n.loop.now); r != nil && r.Code != protocol.CodeCertExpired {
			return nil, r
		}
		own, err := member.ParseChain(n.home.mesh.Chain)
		if err != nil {
			return nil, err
		}
		chain, r := member.Renew(n.home.key, own, m.Cert, n.loop.now)
		if r != nil {
			return nil, r
		}
		return hub.Author{Scope: protocol.ScopeInside, Kind: protocol.KindMember, Token: t, Body: protocol.EncodeBody(
			protocol.MemberBody{Peer: peer, Name: m.Name, Role: m.Role, Chain: member.EncodeChain(chain), Addrs: m.Addrs})}, nil
	})
	if err != nil {
		return api.Peer{}, err
	}
	return n.peer(ctx, peer)
}

// RevokeMember implements web.Members.
func (n *Node) RevokeMember(ctx context.Context, peer protocol.PeerID, reason string) error {
	_, err := n.loop.askOr(ctx, func(t hub.Token) (hub.Input, error) {
		if peer == n.home.peer {
			return nil, protocol.Refuse(protocol.CodeNotAllowed, "a node does not revoke itself", "aster leave")
		}
		if r := n.loop.mayIssue("revoke", "aster member revoke"); r != nil {
			return nil, r
		}
		if _, ok := n.loop.roster().Member(peer); !ok {
			return nil, protocol.Refuse(protocol.CodeUnknownID, "no member %s", "aster member list shows them", string(peer))
		}
		return hub.Author{Scope: protocol.ScopeInside, Kind: protocol.KindRevoke, Token: t,
			Body: protocol.EncodeBody(protocol.RevokeBody{Peer: peer, Cuts: n.loop.cutsOf(peer), Reason: reason})}, nil
	})
	return err
}

// cutsOf names the last seq here of every log of a peer: what it says after that counts nowhere (DESIGN 4 Cuts).
func (l *loop) cutsOf(peer protocol.PeerID) map[string]uint64 {
	cuts := map[string]uint64{}
	heads, err := l.store.Heads()
	if err != nil {
		l.log.Error("heads not read", "err", err)
	}
	for _, h := range heads {
		if h.Log.Peer == peer {
			cuts[h.Log.String()] = h.Seq
		}
	}
	return cuts
}

// Leave implements web.Members: the farewell is logged, given a moment to reach others, and the node stops.
func (n *Node) Leave(ctx context.Context) error {
	scope := protocol.ScopeInside
	told, err := n.loop.askOr(ctx, func(t hub.Token) (hub.Input, error) {
		if m, ok := n.loop.roster().Member(n.home.peer); ok && !m.Inside || n.home.mesh.Inviter != "" && !ok {
			scope = protocol.ScopeOutside(n.home.peer)
		}
		return hub.Author{Scope: scope, Kind: protocol.KindRevoke, Token: t,
			Body: protocol.EncodeBody(protocol.RevokeBody{Peer: n.home.peer, Left: true, Reason: "left"})}, nil
	})
	if err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	n.waitReplicated(wait, told.Ref)
	n.later(answerTime, func() { n.stop(errLeft) })
	return nil
}

var errLeft = errors.New("left the mesh")

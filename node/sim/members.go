package sim

import (
	"encoding/json"
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/turn"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles"
	"github.com/aster-mesh/aster/roles/member"
)

// standing is what a node is to another, as mesh.Standing says it.
type standing int

const (
	unknown standing = iota
	insider
	outsider
	revoked
)

func (s standing) member() bool { return s == insider || s == outsider }

func (p *proc) standing(peer protocol.PeerID) standing { return p.standings[peer] }

// maySee is Node.maySee.
func (p *proc) maySee(viewer protocol.PeerID, s protocol.Scope) bool {
	if viewer == p.n.peer {
		return roles.MaySee(roles.Viewer{Inside: p.inside, Peer: viewer}, s)
	}
	return roles.MaySee(roles.Viewer{Inside: p.standing(viewer) == insider, Peer: viewer}, s)
}

// known is loop.known.
func (p *proc) known() map[protocol.PeerID]turn.KnownMember {
	seeded := map[protocol.PeerID]turn.KnownMember{}
	for _, s := range append([]seedMember{{p.n.peer, p.n.home.chain}}, p.n.home.seeds...) {
		if k, ok := turn.Seed(p.roster(), p.n.peer, s.chain, p.today()); ok {
			seeded[k.Peer] = k
		}
	}
	return turn.Known(p.roster(), seeded, p.today())
}

// membersChanged is loop.membersChanged.
func (p *proc) membersChanged() {
	if p.board.Stale() {
		p.refold()
	}
	st, all, dials := map[protocol.PeerID]standing{}, map[protocol.PeerID]hub.Member{}, map[protocol.PeerID]bool{}
	for peer, m := range p.known() {
		all[peer] = hub.Member{Name: m.Name, Role: m.Role, Inside: m.Inside, Gone: m.Revoked, Admitted: m.Since}
		switch {
		case m.Revoked:
			st[peer] = revoked
		case !m.Valid:
			st[peer] = unknown
		case m.Inside:
			st[peer] = insider
		default:
			st[peer] = outsider
		}
		if st[peer].member() && peer != p.n.peer && (p.inside || m.Inside) {
			dials[peer] = true
		}
	}
	before := p.standings
	p.standings, p.dials = st, dials
	for _, peer := range sortedPeers(st) {
		if st[peer] != revoked || before[peer] == revoked {
			continue
		}
		if l, _ := p.n.w.linkOf(p.n.i, p.n.w.byPeer[peer].i); l != nil && peer != p.n.peer {
			p.n.w.disconnect(l)
		}
	}
	p.cut()
	p.core.Step(p.now, hub.Members{All: all})
	if t := p.roster().Term(); t.Number > 0 {
		p.core.Step(p.now, hub.Term{TermBody: t})
	}
	if p.office != nil {
		p.office.Feed()
	}
	if m, ok := p.roster().Member(p.n.peer); ok && m.Revoked {
		p.n.home.revoked = true
	}
}

func (p *proc) cut() {
	for _, h := range p.rep.Heads() {
		bound := p.roster().Bound(h.Log)
		if bound != member.NoBound && (p.standing(h.Log.Peer) == revoked || h.Log.Start.At <= p.roster().RevokedAt(h.Log.Peer)) {
			p.rep.Cut(h.Log, bound)
			p.n.w.Stats.Cuts++
		}
	}
}

func (p *proc) refold() {
	p.board, p.refolded = p.board.Restart(), true
	p.foldDisk()
}

func (p *proc) foldDisk() {
	page, _ := p.n.disk.Since(0, 1<<30)
	for i := range page {
		if err := p.board.Apply(&page[i].Record, nil); err != nil {
			p.n.w.fail("the board folds", "node %d: %v", p.n.i, err)
		}
	}
	rooms, err := p.board.Rooms()
	if err != nil {
		p.n.w.fail("the board folds", "node %d: %v", p.n.i, err)
		return
	}
	shared, err := p.board.SharedRooms()
	if err != nil {
		p.n.w.fail("the board folds", "node %d: %v", p.n.i, err)
		return
	}
	p.core.Step(p.now, hub.Rooms{All: rooms, Shared: shared})
}

const keyInvite = "invite/"

// invite is Node.Invite: the token is shown when its record is durable.
func (p *proc) invite(role protocol.Role, shown func(string)) {
	if !p.roster().Issuer(p.n.peer) {
		return
	}
	token, rec, err := member.NewInvite(p.n.w, p.roster().Mesh(), p.n.peer, nil, role, p.core.Clock(), p.today().Add(protocol.InviteLife))
	if err != nil {
		p.n.w.fail("invites are made", "%v", err)
		return
	}
	p.value(keyInvite+rec.ID, protocol.EncodeBody(rec))
	p.n.w.after(p.n.w.between(20*time.Millisecond, 200*time.Millisecond), func() { shown(token) })
}

// admitJoin is loop.admitJoin.
func (p *proc) admitJoin(peer protocol.PeerID, join member.JoinRequest, answered func(member.JoinAnswer)) {
	var stored *member.InviteRecord
	if raw, ok, _ := p.n.disk.Value(keyInvite + join.Invite); ok {
		stored = &member.InviteRecord{}
		if json.Unmarshal(raw, stored) != nil {
			return
		}
	}
	if r := member.Redeem(stored, join.Secret, peer, p.today()); r != nil {
		return
	}
	if stored.UsedBy == peer {
		answered(member.JoinAnswer{Chain: stored.Chain, Members: p.introductions(stored.Role.Inside())})
		return
	}
	if r := p.roster().MayAdmit(peer, stored.Made); r != nil {
		return
	}
	own, err := member.ParseChain(p.n.home.chain)
	if err != nil {
		return
	}
	chain, r := member.Issue(p.n.key, own, member.Admit{Peer: peer, Name: join.Name, Role: stored.Role, Lifts: p.roster().RevokedAt(peer)}, p.today())
	if r != nil {
		return
	}
	used := stored.Used(peer, join.Name, chain, p.today())
	p.value(keyInvite+stored.ID, protocol.EncodeBody(used))
	p.core.Step(p.now, hub.Author{Scope: protocol.ScopeInside, Kind: protocol.KindInviteUsed,
		Body: protocol.EncodeBody(protocol.InviteUsedBody{Invite: stored.ID, Peer: peer})})
	answer := member.JoinAnswer{Chain: used.Chain, Members: p.introductions(stored.Role.Inside())}
	token := p.expect(func(t hub.Told) {
		if t.Refusal == nil {
			answered(answer)
		}
	})
	p.core.Step(p.now, hub.Author{Scope: protocol.ScopeInside, Kind: protocol.KindMember, Token: token,
		Body: protocol.EncodeBody(protocol.MemberBody{Peer: peer, Name: join.Name, Role: stored.Role, Chain: used.Chain})})
}

func (p *proc) introductions(inside bool) []member.Introduction {
	out := []member.Introduction{{Chain: p.n.home.chain}}
	for _, m := range p.roster().Members() {
		if m.Peer != p.n.peer && !m.Revoked && (inside || m.Inside) {
			out = append(out, member.Introduction{Chain: m.Chain})
		}
	}
	return out
}

// seed is loop.seed: a member known by its chain alone until its record arrives.
func (p *proc) seed(peer protocol.PeerID, raw []byte) {
	chain, err := member.ParseChain(raw)
	if err != nil {
		return
	}
	cert, r := member.Verify(p.roster().Mesh(), chain, p.today(), p.roster().Withdrawn)
	if r != nil || cert.Peer != peer {
		return
	}
	if m, known := p.roster().Member(peer); known && m.Revoked && p.roster().RevokedAt(peer) > cert.Lifts {
		p.n.w.byPeer[peer].home.revoked = true
		return
	}
	seeds := []seedMember{}
	for _, s := range p.n.home.seeds {
		if s.peer != peer {
			seeds = append(seeds, s)
		}
	}
	p.n.home.seeds = append(seeds, seedMember{peer, raw})
	p.dirty = true
}

// cutsOf is loop.cutsOf.
func (p *proc) cutsOf(peer protocol.PeerID) map[string]uint64 {
	cuts := map[string]uint64{}
	heads, _ := p.n.disk.Heads()
	for _, h := range heads {
		if h.Log.Peer == peer {
			cuts[h.Log.String()] = h.Seq
		}
	}
	return cuts
}

// joins brings a newcomer in: invited here, admitted here, started when it has its answer. Whoever got no answer asks
// again.
func (w *World) joins(n, by *node) {
	if by.p == nil || n.inMesh {
		return
	}
	p := by.p
	p.post(func() {
		p.invite(n.role, func(token string) {
			inv, r := member.ParseInvite(token)
			if r != nil {
				w.fail("invites are read", "%v", r)
				return
			}
			w.askToJoin(n, by, inv)
		})
	})
}

func (w *World) askToJoin(n, by *node, inv member.Invite) {
	if n.inMesh {
		return
	}
	w.after(w.between(500*time.Millisecond, 3*time.Second), func() {
		if !n.inMesh && w.now < w.Plan.Length+joinsUntil {
			w.askToJoin(n, by, inv)
		}
	})
	if by.p == nil || !w.network.passes(n.i, by.i) || by.suspended() {
		return
	}
	p := by.p
	p.post(func() {
		p.admitJoin(n.peer, member.JoinRequest{Invite: inv.ID, Secret: inv.Secret, Name: n.name}, func(a member.JoinAnswer) {
			w.after(w.between(time.Millisecond, 50*time.Millisecond), func() { n.joined(by, a) })
		})
	})
}

const joinsUntil = 30 * time.Second

func (n *node) joined(by *node, a member.JoinAnswer) {
	if n.inMesh || !n.w.network.passes(0, n.i) {
		return
	}
	n.w.Stats.Joins++
	n.inMesh, n.by = true, by
	n.home.chain = a.Chain
	for _, m := range a.Members {
		if chain, err := member.ParseChain(m.Chain); err == nil {
			n.home.seeds = append(n.home.seeds, seedMember{chain[0].Cert.Peer, m.Chain})
		}
	}
	n.w.logf("node %d is a member (%s)", n.i, n.role)
	n.boot()
}

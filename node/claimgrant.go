package node

import (
	"slices"

	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
	"github.com/aster-mesh/aster/roles/claim"
)

// settleGranter keeps a granter exactly while this node is in office. graceful: the former main has handed over, so this
// node holds all that it granted.
func (l *loop) settleGranter(graceful bool) {
	st := l.office.Status(l.moment())
	if !st.Main || st.Ended {
		l.granter = nil
		return
	}
	if l.granter != nil && l.granter.Term() == st.Term {
		return
	}
	var known []claim.Claim
	for _, c := range l.board.Claims() {
		known = append(known, claim.Claim{ID: c.ID, Agent: c.Agent, Home: c.Home, Session: c.Session, Scopes: c.Scopes, Why: c.Why, Term: c.Term})
	}
	var silent []protocol.PeerID
	if raw, _, err := l.store.Value(keyClaimsKnown); err != nil || !graceful && string(raw) != st.Term.String()+string(st.Term.Peer) {
		for p, m := range l.known() {
			if m.Inside && !m.Revoked && p != l.n.home.peer {
				silent = append(silent, p)
			}
		}
	}
	now := l.moment()
	l.granter = claim.NewGranter(st.Term, now, known, silent)
	l.tellOwn(now)
	l.claimAt = l.now
}

// tellOwn tells main here what agents here hold.
func (l *loop) tellOwn(now protocol.Moment) {
	for _, id := range l.granter.Held(now, l.n.home.peer, l.holder.Tell(l.granter.Term())) {
		if c, had := l.holder.Drop(id); had {
			l.lost(c, "another holds it")
		}
	}
	l.writeClaims()
}

// lead does what a main does as time passes: ends leases, asks who was silent.
func (l *loop) lead(now protocol.Moment) {
	if l.granter == nil || l.mainGrants() != nil {
		return
	}
	l.granter.Tick(now)
	l.writeClaims()
	silent := l.granter.Silent()
	for _, p := range silent {
		l.sendTo(p, meshwire.Claims{Kind: claimQuery, Term: l.granter.Term()})
	}
	if t := l.granter.Term(); len(silent) == 0 && !slices.Equal([]byte(l.claimsKnown), []byte(t.String())) {
		l.claimsKnown = t.String()
		l.value(keyClaimsKnown, []byte(t.String()+string(t.Peer)))
	}
}

// mainGrants says why main here may decide nothing on claims now.
func (l *loop) mainGrants() *protocol.Refusal {
	if l.office == nil || l.granter == nil || !l.office.Status(l.moment()).Sure {
		return protocol.Refuse(protocol.CodeBusy, "main does not reach enough nodes to know that it still is main", "aster main show; try again when they are linked")
	}
	return nil
}

// grant decides on a claim.
func (l *loop) grant(c claim.Claim) (claim.Claim, *protocol.Refusal) {
	if no := l.mainGrants(); no != nil {
		return c, no
	}
	got, no := l.granter.Acquire(l.moment(), c)
	l.writeClaims()
	return got, no
}

// writeClaims puts main's decisions into this turn's commit: answers that follow from them leave behind it.
func (l *loop) writeClaims() {
	for _, b := range l.granter.Records() {
		l.author(protocol.KindClaim, b)
	}
}

// claimFrom takes what another node says of claims.
func (l *loop) claimFrom(from protocol.PeerID, f meshwire.Claims) {
	if l.office == nil || l.n.standingOf(from) != mesh.Inside {
		return
	}
	switch f.Kind {
	case claimQuery:
		if f.Term.Peer == from && f.Term.Compare(l.roster().Term().Term()) >= 0 {
			out := meshwire.Claims{Kind: claimHeld, Term: f.Term}
			for _, c := range l.holder.Tell(f.Term) {
				out.Items = append(out.Items, itemOf(c))
			}
			l.later(func() { l.sendTo(from, out) })
		}
	case claimLost:
		for _, it := range f.Items {
			if c, had := l.holder.Drop(it.ID); had && f.Term.Peer == from {
				l.lost(c, "another holds it")
			}
		}
	default:
		l.claimAsked(from, f)
	}
}

// claimAsked answers a node as main.
func (l *loop) claimAsked(from protocol.PeerID, f meshwire.Claims) {
	if no := l.mainGrants(); no != nil {
		l.answer(from, f.Token, no)
		return
	}
	out := meshwire.Claims{Kind: askAnswer, Token: f.Token, Term: l.granter.Term(), OK: true}
	switch now := l.moment(); f.Kind {
	case askAcquire:
		if len(f.Items) != 1 || f.Items[0].ID == "" {
			return
		}
		c, no := l.grant(claimOf(from, f.Items[0]))
		if no != nil {
			l.answer(from, f.Token, no)
			return
		}
		out.Items = []meshwire.ClaimItem{itemOf(c)}
	case askRenew:
		for _, it := range f.Items {
			if l.granter.Renew(now, from, it.ID) {
				out.Items = append(out.Items, meshwire.ClaimItem{ID: it.ID})
			}
		}
	case askRelease:
		for _, it := range f.Items {
			l.granter.Release(from, it.ID, it.Why)
		}
	case claimHeld:
		if f.Term != l.granter.Term() {
			return
		}
		var all []claim.Claim
		for _, it := range f.Items {
			all = append(all, claimOf(from, it))
		}
		out = meshwire.Claims{Kind: claimLost, Term: f.Term}
		for _, id := range l.granter.Held(now, from, all) {
			out.Items = append(out.Items, meshwire.ClaimItem{ID: id})
		}
		if len(out.Items) == 0 {
			l.writeClaims()
			return
		}
	default:
		return
	}
	l.writeClaims()
	l.later(func() { l.sendTo(from, out) })
}

func claimOf(home protocol.PeerID, it meshwire.ClaimItem) claim.Claim {
	return claim.Claim{ID: it.ID, Agent: it.Agent, Home: home, Session: it.Session, Scopes: it.Scopes, Why: it.Why, Term: it.Term}
}

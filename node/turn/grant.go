package turn

import (
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
	"github.com/aster-mesh/aster/roles/claim"
)

// settleGranter keeps a granter exactly while this node is in office. graceful: the former main has handed over, so this
// node holds all that it granted.
func (o *Office) settleGranter(graceful bool) {
	now := o.do.Moment()
	st := o.core.Status(now)
	if !st.Main || st.Ended {
		o.granter = nil
		return
	}
	if o.granter != nil && o.granter.Term() == st.Term {
		return
	}
	known := o.shown()
	var silent []protocol.PeerID
	if raw, err := o.do.Stored(KeyClaimsKnown); err != nil || o.doubt || !graceful && string(raw) != st.Term.String()+string(st.Term.Peer) {
		silent = o.others()
	}
	o.granter, o.doubt = claim.NewGranter(st.Term, now, known, silent), false
	o.tellOwn(now)
	o.look = o.do.Now()
}

// Regained says that records of this node's own came back to it and are on the board: if it is main, it begins anew with
// what they say that it granted, and asks everybody.
func (o *Office) Regained() {
	if o.core == nil {
		return
	}
	o.granter, o.doubt, o.known, o.fresh = nil, true, protocol.Term{}, true
	o.do.Value(KeyClaimsKnown, nil)
}

// others are the members inside but this node, also those whose certificates have ended: they may still hold something.
func (o *Office) others() (out []protocol.PeerID) {
	m := o.do.Members()
	for _, p := range append(m.Inside[:len(m.Inside):len(m.Inside)], m.Lapsed...) {
		if p != o.self {
			out = append(out, p)
		}
	}
	return out
}

// tellOwn tells main here what agents here hold.
func (o *Office) tellOwn(now protocol.Moment) {
	for _, id := range o.granter.Held(now, o.self, o.holder.Tell(o.granter.Term())) {
		if c, had := o.holder.Drop(id); had {
			o.lost(c, "another holds it")
		}
	}
	o.writeClaims()
}

// lead does what a main does as time passes: ends leases, asks who was silent.
func (o *Office) lead(now protocol.Moment) {
	if o.granter == nil || o.mayGrant() != nil {
		return
	}
	o.granter.Tick(now)
	o.learnClaims(now)
	o.writeClaims()
	silent := o.granter.Silent()
	for _, p := range silent {
		o.do.Send(p, meshwire.Claims{Kind: claimQuery, Term: o.granter.Term()})
	}
	if t := o.granter.Term(); len(silent) == 0 && o.known != t {
		o.known = t
		o.do.Value(KeyClaimsKnown, []byte(t.String()+string(t.Peer)))
	}
}

// shown are the claims that the records show as held.
func (o *Office) shown() (out []claim.Claim) {
	_, view, _ := o.do.Cores()
	for _, c := range view.Claims() {
		out = append(out, claim.Claim{ID: c.ID, Agent: c.Agent, Home: c.Home, Session: c.Session, Scopes: c.Scopes, Why: c.Why, Term: c.Term})
	}
	return out
}

// learnClaims takes up what a former main granted and whose record came late: else nobody would ever end it.
func (o *Office) learnClaims(now protocol.Moment) {
	own := false
	for _, c := range o.shown() {
		own = o.granter.Learn(now, c) && c.Home == o.self || own
	}
	if own {
		o.tellOwn(now)
	}
}

// mayGrant says why main here may decide nothing on claims now.
func (o *Office) mayGrant() *protocol.Refusal {
	if o.core == nil || o.granter == nil || !o.core.Status(o.do.Moment()).Sure {
		return protocol.Refuse(protocol.CodeBusy, "main does not reach enough nodes to know that it still is main", "aster main show; try again when they are linked")
	}
	return nil
}

// grant decides on a claim.
func (o *Office) grant(c claim.Claim) (claim.Claim, *protocol.Refusal) {
	if no := o.mayGrant(); no != nil {
		return c, no
	}
	got, no := o.granter.Acquire(o.do.Moment(), c)
	o.writeClaims()
	return got, no
}

// writeClaims puts main's decisions into this turn's commit: answers that follow from them leave behind it.
func (o *Office) writeClaims() {
	for _, b := range o.granter.Records() {
		o.author(protocol.KindClaim, b)
	}
}

// claimFrom takes what another node says of claims.
func (o *Office) claimFrom(from protocol.PeerID, f *meshwire.Claims) {
	if o.core == nil {
		return
	}
	switch f.Kind {
	case claimQuery:
		if f.Term.Peer == from && f.Term.Compare(o.roster().Term().Term()) >= 0 {
			out := meshwire.Claims{Kind: claimHeld, Term: f.Term}
			for _, c := range o.holder.Tell(f.Term) {
				out.Items = append(out.Items, itemOf(c))
			}
			o.later(func() { o.do.Send(from, out) })
		}
	case claimLost:
		for _, it := range f.Items {
			if f.Term.Peer != from {
				break // it is not its to say
			}
			if c, had := o.holder.Drop(it.ID); had {
				o.lost(c, "another holds it")
			}
		}
	default:
		o.claimAsked(from, f)
	}
}

// claimAsked answers a node as main.
func (o *Office) claimAsked(from protocol.PeerID, f *meshwire.Claims) {
	if no := o.mayGrant(); no != nil {
		o.answer(from, f.Token, no)
		return
	}
	out := meshwire.Claims{Kind: askAnswer, Token: f.Token, Term: o.granter.Term(), OK: true}
	switch now := o.do.Moment(); f.Kind {
	case askAcquire:
		if len(f.Items) != 1 || f.Items[0].ID == "" {
			return
		}
		c, no := o.grant(claimOf(from, f.Items[0]))
		if no != nil {
			o.answer(from, f.Token, no)
			return
		}
		out.Items = []meshwire.ClaimItem{itemOf(c)}
	case askRenew:
		for _, it := range f.Items {
			if o.granter.Renew(now, from, it.ID) {
				out.Items = append(out.Items, meshwire.ClaimItem{ID: it.ID})
			}
		}
	case askRelease:
		for _, it := range f.Items {
			o.granter.Release(from, it.ID, it.Why)
		}
	case claimHeld:
		if f.Term != o.granter.Term() {
			return
		}
		var all []claim.Claim
		for _, it := range f.Items {
			all = append(all, claimOf(from, it))
		}
		out = meshwire.Claims{Kind: claimLost, Term: f.Term}
		for _, id := range o.granter.Held(now, from, all) {
			out.Items = append(out.Items, meshwire.ClaimItem{ID: id})
		}
		if len(out.Items) == 0 {
			o.writeClaims()
			return
		}
	default:
		return
	}
	o.writeClaims()
	o.later(func() { o.do.Send(from, out) })
}

func claimOf(home protocol.PeerID, it meshwire.ClaimItem) claim.Claim {
	return claim.Claim{ID: it.ID, Agent: it.Agent, Home: home, Session: it.Session, Scopes: it.Scopes, Why: it.Why, Term: it.Term}
}

func itemOf(c claim.Claim) meshwire.ClaimItem {
	return meshwire.ClaimItem{ID: c.ID, Agent: c.Agent, Session: c.Session, Scopes: c.Scopes, Why: c.Why, Term: c.Term}
}

// Knows says whether main here, in office, knows a claim, so that it will end.
func (o *Office) Knows(id string) bool { return o.granter != nil && o.granter.Knows(id) }

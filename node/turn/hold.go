package turn

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
	"github.com/aster-mesh/aster/roles/claim"
)

// keyClaims holds what agents here hold; KeyClaimsKnown the term in which main here knows all that is held.
const (
	keyClaims      = "claims"
	KeyClaimsKnown = "claims-known"
)

// claimLook is how often leases and the processes that claims are bound to are looked at.
const claimLook = time.Second

// claims is the office's part of who holds what.
type claims struct {
	granter *claim.Granter // while this node is main
	holder  *claim.Holder
	look    time.Time     // of the next look
	known   protocol.Term // in which nobody is silent any more
	doubt   bool          // this node does not know all that it granted itself
}

// restoreHolder reads what agents here hold: leases go on over a restart.
func (o *Office) restoreHolder() error {
	if o.holder != nil {
		return nil
	}
	raw, err := o.do.Stored(keyClaims)
	if err != nil {
		return fmt.Errorf("read claims: %w", err)
	}
	o.holder, err = claim.NewHolder(raw)
	return err
}

// claimsDue is when lookAtClaims has something to do; zero: never.
func (o *Office) claimsDue() time.Time {
	if o.holder == nil || len(o.holder.All()) == 0 && o.granter == nil {
		return time.Time{}
	}
	if o.look.IsZero() {
		o.look = o.do.Now()
	}
	return o.look
}

// lookAtClaims does what time brings about: renewals, ends, and questions to members who are silent.
func (o *Office) lookAtClaims() {
	if at := o.claimsDue(); at.IsZero() || o.do.Now().Before(at) {
		return
	}
	o.look = o.do.Now().Add(claimLook)
	now := o.do.Moment()
	for _, c := range o.holder.Expired(now) {
		o.lost(c, "main did not renew it in time")
	}
	for _, c := range o.holder.All() {
		if !o.do.Runs(c.Session) {
			o.letGo(c, "its process ended")
		}
	}
	if again := o.holder.ToRenew(now); len(again) > 0 {
		o.renew(now, again)
	}
	o.lead(now)
}

// keepClaims puts what is held into this turn's commit.
func (o *Office) keepClaims() { o.do.Value(keyClaims, o.holder.Encode()) }

// lost tells an agent that it holds a claim no more, as mail that wakes it: it hears before its next write.
func (o *Office) lost(c claim.Claim, why string) {
	o.keepClaims()
	o.announce(protocol.Envelope{To: c.Agent, Intent: "ClaimLost", Value: protocol.EncodeBody(struct {
		Text   string   `json:"text"`
		Claim  string   `json:"claim"`
		Scopes []string `json:"scopes"`
		Reason string   `json:"reason"`
	}{"You hold " + strings.Join(c.Scopes, ", ") + " no more: " + why, c.ID, c.Scopes, why})})
}

// letGo ends a claim of an agent here. Main on another node hears of it once the end is durable here, as it may grant the
// same to another at once: a crash, or a turn that is taken back, must not leave a store in which the claim goes on. What is
// taken back was not said, and the claim is held as before.
func (o *Office) letGo(c claim.Claim, why string) {
	putBack := o.holder.LetGo(c.ID)
	o.keepClaims()
	here := o.main() == o.self
	if here && o.granter != nil {
		o.granter.Release(o.self, c.ID, why)
		o.writeClaims()
	}
	o.do.Durable(func(err error) {
		switch {
		case err != nil:
			putBack()
			o.look = o.do.Now().Add(protocol.MainSilence) // a full store: what ended is ended again, but not in every turn
		case !here:
			_, _ = o.ask(meshwire.Claims{Kind: askRelease, Items: []meshwire.ClaimItem{{ID: c.ID, Why: why}}}, func(meshwire.Claims) {}) // else its lease ends it
		}
	})
}

func (o *Office) renew(asked protocol.Moment, all []claim.Claim) {
	if o.main() == o.self {
		if o.mayGrant() != nil {
			return
		}
		for _, c := range all {
			o.renewed(asked, c.ID, o.granter.Renew(asked, o.self, c.ID), o.granter.Term())
		}
		o.writeClaims()
		return
	}
	f := meshwire.Claims{Kind: askRenew}
	for _, c := range all {
		f.Items = append(f.Items, meshwire.ClaimItem{ID: c.ID})
	}
	_, _ = o.ask(f, func(a meshwire.Claims) { // unanswered: again after ClaimRenewEvery
		yes := map[string]bool{}
		for _, it := range a.Items {
			yes[it.ID] = true
		}
		for _, c := range all {
			if a.OK {
				o.renewed(asked, c.ID, yes[c.ID], a.Term)
			}
		}
	})
}

func (o *Office) renewed(asked protocol.Moment, id string, ok bool, term protocol.Term) {
	if ok {
		o.holder.Renewed(asked, id, term)
		o.keepClaims()
	} else if c, had := o.holder.Drop(id); had {
		o.lost(c, "main says that it is over")
	}
}

// Acquire asks main, wherever that is, for a claim of an agent here under an id that was never used. answer runs once the
// claim is durable here, or once it is refused, or never. forget gives the question up: if no answer ran yet none will, and
// what main grants all the same is released. Who holds the same already keeps it.
func (o *Office) Acquire(c claim.Claim, answer func(claim.Claim, *protocol.Refusal)) (forget func()) {
	asked, over, again := o.do.Moment(), false, o.holds(c)
	say := func(c claim.Claim, no *protocol.Refusal) {
		if !over {
			over = true
			answer(c, no)
		}
	}
	granted := func(c claim.Claim, no *protocol.Refusal) {
		if no == nil && !o.holder.Granted(asked, c) {
			no = protocol.Refuse(protocol.CodeBusy, "another node became main meanwhile", "try again")
		}
		if no == nil {
			o.keepClaims()
		}
		o.later(func() { say(c, no) })
	}
	drop := func() {}
	if o.main() == o.self {
		granted(o.grant(c))
	} else {
		drop = o.askFor(c, granted, say)
	}
	return func() {
		if over {
			return
		}
		over = true
		if !again { // else main ends the old one when it grants the new: a release would let another in beside the old
			drop()
			o.letGo(c, "nobody waits for it any more")
		}
	}
}

// holds says whether the same process holds the same already.
func (o *Office) holds(c claim.Claim) bool {
	scopes, no := claim.ParseAll(c.Scopes)
	return no == nil && slices.ContainsFunc(o.Held(), func(h claim.Claim) bool {
		return h.Agent == c.Agent && h.Session == c.Session && slices.Equal(h.Scopes, scopes.Texts())
	})
}

// askFor asks main's node for a claim; what it cannot even ask it says at once.
func (o *Office) askFor(c claim.Claim, granted, say func(claim.Claim, *protocol.Refusal)) (drop func()) {
	drop, no := o.ask(meshwire.Claims{Kind: askAcquire, Items: []meshwire.ClaimItem{itemOf(c)}}, func(f meshwire.Claims) {
		no := refusalOf(&f)
		if no == nil && len(f.Items) != 1 {
			no = protocol.Refuse(protocol.CodeBadFrame, "main's answer names no claim", "")
		}
		if no != nil {
			if no.Code == protocol.CodeBusy {
				no.Hint = "aster claim list shows what is held; ask its holder, or wait for it: --wait 5m" // no hint crosses the mesh
			}
			granted(c, no)
			return
		}
		c.Scopes, c.Term = f.Items[0].Scopes, f.Items[0].Term
		granted(c, nil)
	})
	if no != nil {
		say(c, no)
	}
	return drop
}

// Release ends a claim of an agent here, unless the turn is taken back.
func (o *Office) Release(id string) *protocol.Refusal {
	for _, c := range o.Held() {
		if c.ID == id {
			o.letGo(c, "released")
			return nil
		}
	}
	return protocol.Refuse(protocol.CodeUnknownID, "no agent of this node holds %s", "aster claim list shows what is held", id)
}

// Held are the claims of agents here.
func (o *Office) Held() []claim.Claim {
	if o.holder == nil {
		return nil
	}
	return o.holder.All()
}

// Left is how long a claim of an agent here may still be used without a renewal; 0: not at all, or it is no agent's here.
func (o *Office) Left(id string) time.Duration {
	if o.holder == nil {
		return 0
	}
	return o.holder.Left(o.do.Moment(), id)
}

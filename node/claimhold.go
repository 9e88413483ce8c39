package node

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/protocol/meshwire"
	"github.com/aster-mesh/aster/roles/claim"
)

// keyClaims holds what agents here hold; keyClaimsKnown the term in which main here knows all that is held.
const (
	keyClaims      = "claims"
	keyClaimsKnown = "claims-known"
)

// claimLook is how often leases and the processes that claims are bound to are looked at.
const claimLook = time.Second

// claimState is the loop's part of claims.
type claimState struct {
	granter *claim.Granter // while this node is main
	holder  *claim.Holder
	claimAt time.Time // of the next look

	claimsKnown string // the term in which nobody is silent any more
}

// restoreClaims reads what agents here hold: leases go on over a restart.
func (l *loop) restoreClaims() error {
	if l.holder != nil || !l.inside() {
		return nil
	}
	raw, _, err := l.store.Value(keyClaims)
	if err != nil {
		return fmt.Errorf("read claims: %w", err)
	}
	l.holder, err = claim.NewHolder(raw)
	return err
}

// claimsDue is when lookAtClaims has something to do; zero: never.
func (l *loop) claimsDue() time.Time {
	if l.holder == nil || len(l.holder.All()) == 0 && l.granter == nil {
		return time.Time{}
	}
	if l.claimAt.IsZero() {
		l.claimAt = l.now
	}
	return l.claimAt
}

// lookAtClaims does what time brings about: renewals, ends, and questions to members who are silent.
func (l *loop) lookAtClaims() {
	if at := l.claimsDue(); at.IsZero() || l.now.Before(at) {
		return
	}
	l.claimAt = l.now.Add(claimLook)
	now := l.moment()
	for _, c := range l.holder.Expired(now) {
		l.lost(c, "main did not renew it in time")
	}
	for _, c := range l.holder.All() {
		if !sessionRuns(c.Session) {
			l.letGo(c, "its process ended")
		}
	}
	if again := l.holder.ToRenew(now); len(again) > 0 {
		l.renewClaims(now, again)
	}
	l.lead(now)
}

// keepClaims puts what is held into this turn's commit.
func (l *loop) keepClaims() { l.value(keyClaims, l.holder.Encode()) }

// lost tells an agent that it holds a claim no more, as mail that wakes it: it hears before its next write.
func (l *loop) lost(c claim.Claim, why string) {
	l.keepClaims()
	l.core.Step(l.now, hub.Announce{Env: protocol.Envelope{
		ID: newID(), To: c.Agent, Intent: "ClaimLost", Value: protocol.EncodeBody(struct {
			Text   string   `json:"text"`
			Claim  string   `json:"claim"`
			Scopes []string `json:"scopes"`
			Reason string   `json:"reason"`
		}{"You hold " + strings.Join(c.Scopes, ", ") + " no more: " + why, c.ID, c.Scopes, why}),
	}})
}

// letGo ends a claim of an agent here.
func (l *loop) letGo(c claim.Claim, why string) {
	l.holder.Drop(c.ID)
	l.keepClaims()
	if l.mainPeer() == l.n.home.peer {
		if l.granter != nil {
			l.granter.Release(l.n.home.peer, c.ID, why)
			l.writeClaims()
		}
		return
	}
	_, _ = l.askMain(meshwire.Claims{Kind: askRelease, Items: []meshwire.ClaimItem{{ID: c.ID, Why: why}}}, func(meshwire.Claims) {}) // else its lease ends it
}

func (l *loop) renewClaims(asked protocol.Moment, all []claim.Claim) {
	if l.mainPeer() == l.n.home.peer {
		if l.mainGrants() != nil {
			return
		}
		for _, c := range all {
			l.claimRenewed(asked, c.ID, l.granter.Renew(asked, l.n.home.peer, c.ID), l.granter.Term())
		}
		l.writeClaims()
		return
	}
	f := meshwire.Claims{Kind: askRenew}
	for _, c := range all {
		f.Items = append(f.Items, meshwire.ClaimItem{ID: c.ID})
	}
	_, _ = l.askMain(f, func(a meshwire.Claims) { // unanswered: again after ClaimRenewEvery
		yes := map[string]bool{}
		for _, it := range a.Items {
			yes[it.ID] = true
		}
		for _, c := range all {
			if a.OK {
				l.claimRenewed(asked, c.ID, yes[c.ID], a.Term)
			}
		}
	})
}

func (l *loop) claimRenewed(asked protocol.Moment, id string, ok bool, term protocol.Term) {
	if ok {
		l.holder.Renewed(asked, id, term)
		l.keepClaims()
	} else if c, had := l.holder.Drop(id); had {
		l.lost(c, "main says that it is over")
	}
}

// sessionOf names a process: its id, its start and the boot that it runs in.
func sessionOf(pid int) (string, *protocol.Refusal) {
	start, ok := processStart(pid)
	if !ok {
		return "", protocol.Refuse(protocol.CodeUnknownID, "no process %d runs here", "name the process that is to hold the claim with --pid", pid)
	}
	return fmt.Sprintf("%d/%s/%s", pid, start, bootID()), nil
}

func sessionRuns(session string) bool {
	parts := strings.SplitN(session, "/", 3)
	pid, err := strconv.Atoi(parts[0])
	if err != nil || len(parts) != 3 || parts[2] != bootID() {
		return false
	}
	start, ok := processStart(pid)
	return ok && start == parts[1]
}

// Acquire implements web.Office: it returns the claim when main has granted it.
func (n *Node) Acquire(ctx context.Context, req api.ClaimRequest) (out api.Claim, err error) {
	session, no := sessionOf(req.PID)
	if no != nil {
		return out, no
	}
	agent, err := n.speaker(ctx, req.Agent, true)
	if err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	type reply struct {
		claim claim.Claim
		no    *protocol.Refusal
	}
	answer := make(chan reply, 1)
	err = n.loop.call(ctx, func() {
		l, asked := n.loop, n.loop.moment()
		if l.holder == nil {
			answer <- reply{no: protocol.Refuse(protocol.CodeNotAllowed, "this node is outside: claims are of the inside", "")}
			return
		}
		if _, ok := l.core.Agent(agent); !ok {
			l.core.Step(l.now, hub.Declare{Agent: agent, Client: "cli"}) // its first use
		}
		c := claim.Claim{ID: string(newID()), Agent: agent, Home: n.home.peer, Session: session, Scopes: req.Scopes, Why: protocol.CutText(req.Why, protocol.ShortTextBytesMax)}
		granted := func(c claim.Claim, no *protocol.Refusal) {
			if no == nil && !l.holder.Granted(asked, c) {
				no = protocol.Refuse(protocol.CodeBusy, "another node became main meanwhile", "try again")
			}
			if no == nil {
				l.keepClaims()
			}
			l.later(func() { answer <- reply{c, no} })
		}
		if l.mainPeer() == n.home.peer {
			granted(l.grant(c))
			return
		}
		_, no := l.askMain(meshwire.Claims{Kind: askAcquire, Items: []meshwire.ClaimItem{itemOf(c)}}, func(f meshwire.Claims) {
			if no := refusalOf(f); no != nil || len(f.Items) != 1 {
				if no != nil && no.Code == protocol.CodeBusy {
					no.Hint = "aster claim list shows what is held; ask its holder, or wait for it: --wait 5m" // no hint crosses the mesh
				}
				granted(c, no)
				return
			}
			c.Scopes, c.Term = f.Items[0].Scopes, f.Items[0].Term
			granted(c, nil)
		})
		if no != nil {
			answer <- reply{no: no}
		}
	})
	if err != nil {
		return out, err
	}
	select {
	case r := <-answer:
		if r.no != nil {
			return out, r.no
		}
		return api.Claim{ID: r.claim.ID, Agent: r.claim.Agent, Home: r.claim.Home, NodeName: n.home.mesh.Name, Scopes: r.claim.Scopes, Why: r.claim.Why,
			Since: time.Now().UnixMilli(), Term: r.claim.Term.Number, Here: true, Left: (protocol.ClaimLease - protocol.ClaimStopsEarly).Milliseconds()}, nil
	case <-ctx.Done():
		return out, protocol.Refuse(protocol.CodeNotAllowed, "main's node did not answer within %s", "aster main show says who it is; try again", askWait)
	}
}

// ReleaseClaim implements web.Office.
func (n *Node) ReleaseClaim(ctx context.Context, id string) error {
	var no *protocol.Refusal
	err := n.loop.call(ctx, func() {
		l := n.loop
		if l.holder != nil {
			for _, c := range l.holder.All() {
				if c.ID == id {
					l.letGo(c, "released")
					return
				}
			}
		}
		no = protocol.Refuse(protocol.CodeUnknownID, "no agent of this node holds %s", "aster claim list shows what is held", id)
	})
	if err == nil && no != nil {
		err = no
	}
	return err
}

func itemOf(c claim.Claim) meshwire.ClaimItem {
	return meshwire.ClaimItem{ID: c.ID, Agent: c.Agent, Session: c.Session, Scopes: c.Scopes, Why: c.Why, Term: c.Term}
}

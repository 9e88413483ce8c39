package claim

import (
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// Claim is what one holder has for itself alone.
type Claim struct {
	ID      string
	Agent   protocol.AgentID
	Home    protocol.PeerID
	Session string // names the holder's process: when it ends, its claims do
	Scopes  []string
	Why     string
	Term    protocol.Term // of the main that granted it
}

// Granter is main's side. Its lease of a claim begins with the last word of the claim's holder that it took, and so no
// earlier than the holder's own.
type Granter struct {
	term    protocol.Term
	since   protocol.Moment
	claims  map[string]*granted
	silent  map[protocol.PeerID]bool // they may hold what a former main granted and nobody here knows
	over    map[string]bool          // former mains' claims that ended in this term
	records []protocol.ClaimBody
}

type granted struct {
	Claim
	scopes Scopes
	last   protocol.Moment
	// sure: granted in this term, or its holder has said in this term that it holds it. Of two that overlap the one that was
	// sure first stays; the other is lost, and until its lease has run out nobody else is given what it covers.
	sure, lost bool
	former     bool // another main granted it, whoever has confirmed it since
}

func (c *granted) same(o *Claim) bool {
	return c.Home == o.Home && c.Agent == o.Agent && c.Session == o.Session
}

// NewGranter begins a term, or a restart within one. known are the claims that the records show, of any term; each is
// held to run from now. silent are the members inside who have yet to say what they hold, none after a hand-over: then all
// that was granted is known.
func NewGranter(term protocol.Term, now protocol.Moment, known []Claim, silent []protocol.PeerID) *Granter {
	g := &Granter{term: term, since: now, claims: map[string]*granted{}, silent: map[protocol.PeerID]bool{}, over: map[string]bool{}}
	for _, c := range known {
		g.know(now, c)
	}
	for _, p := range silent {
		g.silent[p] = true
	}
	return g
}

func (g *Granter) know(now protocol.Moment, c Claim) {
	if s, no := ParseAll(c.Scopes); no == nil {
		g.claims[c.ID] = &granted{Claim: c, scopes: s, last: now, former: true}
	}
}

// Learn takes a claim that the records show as held. One of a former main that is not known here came late, with a disk that
// was away: it is held to run from now, and its holder's home is asked. True: it was news. What has ended here is not
// taken up again, though the records may not show that yet.
func (g *Granter) Learn(now protocol.Moment, c Claim) bool {
	if c.Term == g.term || g.claims[c.ID] != nil || g.over[c.ID] {
		return false
	}
	g.know(now, c)
	if g.claims[c.ID] == nil {
		return false
	}
	g.silent[c.Home] = true
	return true
}

// Records are the decisions since the last call: they are to be durable before any answer leaves.
func (g *Granter) Records() []protocol.ClaimBody {
	out := g.records
	g.records = nil
	return out
}

func (g *Granter) grant(c *granted, of protocol.Term) {
	c.Term = g.term
	g.claims[c.ID] = c
	g.records = append(g.records, protocol.ClaimBody{Op: protocol.ClaimGrant, ID: c.ID, Term: g.term, Of: of, Agent: c.Agent, Home: c.Home,
		Session: c.Session, Scopes: c.Scopes, Why: c.Why, Lease: protocol.ClaimLease.Milliseconds()})
}

func (g *Granter) end(c *granted, reason string) {
	delete(g.claims, c.ID)
	if c.former {
		g.over[c.ID] = true
	}
	g.records = append(g.records, protocol.ClaimBody{Op: protocol.ClaimEnd, ID: c.ID, Term: g.term, Of: c.Term, Reason: reason})
}

// Acquire grants a claim under an id that was never used, or says who holds what overlaps it. The same holder asking for
// the same scopes again has them under the new id.
func (g *Granter) Acquire(now protocol.Moment, c Claim) (Claim, *protocol.Refusal) {
	g.Tick(now)
	scopes, no := ParseAll(c.Scopes)
	if no != nil {
		return c, no
	}
	c.Scopes = scopes.Texts()
	if old := g.claims[c.ID]; old != nil && old.same(&c) && !old.lost && slices.Equal(old.Scopes, c.Scopes) && old.Term == g.term {
		return old.Claim, nil // the question came twice
	}
	mine, again := 0, (*granted)(nil)
	for _, id := range g.ids() {
		old := g.claims[id]
		same := old.same(&c) && !old.lost
		switch {
		case same && slices.Equal(old.Scopes, c.Scopes) && old.Term == g.term:
			again = old
		case !same && scopes.Overlaps(old.scopes):
			return c, protocol.Refuse(protocol.CodeBusy, "%s is held by %s", "aster claim list shows what is held; ask its holder, or wait", strings.Join(old.Scopes, ", "), string(old.Agent))
		case old.Home == c.Home:
			mine++
		}
	}
	if again != nil { // under a new id: a word about the old one may still be on its way
		g.end(again, "asked for again")
		g.grant(&granted{Claim: c, scopes: scopes, last: now, sure: true}, protocol.Term{})
		return g.claims[c.ID].Claim, nil
	}
	if left := g.Caution(now); left > 0 {
		return c, protocol.Refuse(protocol.CodeBusy, "main is new and does not know all claims yet: it waits for members that are silent, %s at most", "try again later, or with --wait", left.Round(time.Second))
	}
	if mine >= protocol.ClaimsPerNodeMax {
		return c, protocol.Refuse(protocol.CodeTooMany, "agents of one node hold at most %d claims", "release some", protocol.ClaimsPerNodeMax)
	}
	g.grant(&granted{Claim: c, scopes: scopes, last: now, sure: true}, protocol.Term{})
	return g.claims[c.ID].Claim, nil
}

// Caution is how much longer nothing new is granted; 0: all that may be held is known.
func (g *Granter) Caution(now protocol.Moment) time.Duration {
	if len(g.silent) == 0 {
		return 0
	}
	return max(protocol.ClaimLease-now.AtLeast(g.since), 0)
}

// Renew takes a holder's word that it goes on. False: it holds this claim no more.
func (g *Granter) Renew(now protocol.Moment, home protocol.PeerID, id string) bool {
	g.Tick(now)
	c := g.claims[id]
	return c != nil && c.Home == home && g.confirm(now, c)
}

// confirm takes a holder's word that it holds a claim. False: another has what it covers.
func (g *Granter) confirm(now protocol.Moment, c *granted) bool {
	if c.lost {
		return false
	}
	if !c.sure {
		for _, o := range g.claims {
			if o.sure && !o.lost && !o.same(&c.Claim) && o.scopes.Overlaps(c.scopes) {
				c.lost = true
				return false
			}
		}
	}
	c.last, c.sure = now, true
	if c.Term != g.term {
		g.grant(c, c.Term)
	}
	return true
}

// Release ends a claim by its holder's word.
func (g *Granter) Release(home protocol.PeerID, id, reason string) bool {
	c := g.claims[id]
	if c == nil || c.Home != home {
		return false
	}
	g.end(c, reason)
	return true
}

// Held takes a member's word on all that its agents hold: what is new is taken over, what it does not name has ended. It
// returns what the member must give up, because another holds it here.
func (g *Granter) Held(now protocol.Moment, home protocol.PeerID, all []Claim) (lost []string) {
	named := map[string]bool{}
	for _, c := range all {
		named[c.ID] = true
		known := g.claims[c.ID]
		if known == nil {
			scopes, no := ParseAll(c.Scopes)
			if no != nil {
				continue
			}
			c.Home, c.Scopes = home, scopes.Texts()
			known = &granted{Claim: c, scopes: scopes, last: now, former: true}
			g.claims[c.ID] = known
		}
		if known.Home != home || !g.confirm(now, known) {
			lost = append(lost, c.ID)
		}
	}
	for _, id := range g.ids() {
		if c := g.claims[id]; c.Home == home && !named[id] && !c.sure {
			g.end(c, "its holder has it no more")
		}
	}
	delete(g.silent, home)
	return lost
}

// Tick ends the claims whose leases have surely run out.
func (g *Granter) Tick(now protocol.Moment) {
	for _, id := range g.ids() {
		if c := g.claims[id]; now.AtLeast(c.last) >= protocol.ClaimLease {
			g.end(c, "its lease ran out")
		}
	}
	if len(g.silent) > 0 && now.AtLeast(g.since) >= protocol.ClaimLease {
		clear(g.silent)
	}
}

// Silent are the members who have not said yet what they hold.
func (g *Granter) Silent() []protocol.PeerID {
	out := make([]protocol.PeerID, 0, len(g.silent))
	for p := range g.silent {
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}

// Knows says whether a claim is held as far as it knows, or may still be.
func (g *Granter) Knows(id string) bool { return g.claims[id] != nil }

// Term is the term that it grants in.
func (g *Granter) Term() protocol.Term { return g.term }

func (g *Granter) ids() []string {
	out := make([]string, 0, len(g.claims))
	for id := range g.claims {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

package board

import (
	"cmp"
	"slices"
	"strings"

	"github.com/aster-mesh/aster/protocol"
)

// Claim is what an agent holds for itself alone, as main's records say.
type Claim struct {
	protocol.ClaimBody
	At  protocol.HLC   `json:"at"`
	Log protocol.LogID `json:"-"`
	Seq uint64         `json:"-"`
	// Wall is main's wall clock at the grant, ms.
	Wall int64 `json:"wall"`
}

// claimKey names one grant: who takes a claim over grants it anew, in its own term.
type claimKey struct {
	id   string
	term protocol.Term
}

// claim is what is known of one grant. It is open with a grant and no end.
type claim struct {
	grant *claimGrant
	ended bool
}

type claimGrant struct {
	at   pos
	wall int64
	body protocol.ClaimBody
}

// decided is how far decisions of one term were taken from one log, and from where they were passed over; 0: nowhere.
type decided struct{ taken, passed uint64 }

type decidedKey struct {
	term protocol.Term
	log  protocol.LogID
}

// decision says whether what a record decides counts, and remembers that it was asked: a term that comes later may change
// the answer, and then the board is stale.
func (s *State) decision(at pos, t protocol.Term) bool {
	key := decidedKey{t, at.log}
	d := s.decided[key]
	ok := at.seq <= s.roster.DecisionBound(t, at.log)
	if ok {
		d.taken = at.seq
	} else if d.passed == 0 {
		d.passed = at.seq
	}
	s.decided[key] = d
	return ok
}

// redecided says whether another answer would be given now.
func (s *State) redecided() bool {
	for key, d := range s.decided {
		bound, settled := s.roster.DecisionBound(key.term, key.log), s.roster.SettledOf(key.log).Seq
		if d.taken > max(bound, settled) || d.passed > settled && d.passed <= bound {
			return true
		}
	}
	return false
}

// taken is up to where decisions count, by term and log.
func (s *State) taken() map[decidedKey]uint64 {
	out := map[decidedKey]uint64{}
	for key, d := range s.decided {
		if d.taken > 0 {
			out[key] = d.taken
		}
	}
	return out
}

// DecidedIn lists the logs in which a term's main has decided something that was taken.
func (s *State) DecidedIn(t protocol.Term) []protocol.LogID {
	var out []protocol.LogID
	for key, d := range s.decided {
		if key.term == t && d.taken > 0 {
			out = append(out, key.log)
		}
	}
	slices.SortFunc(out, compareLogs)
	return out
}

// claimStep takes a decision on a claim. Grants and ends may come in any order: each grant has its end, whoever writes it.
func (s *State) claimStep(at pos, wall int64, body protocol.ClaimBody) {
	if body.ID == "" || len(body.ID) > refBytesMax || !s.decision(at, body.Term) {
		return
	}
	switch body.Op {
	case protocol.ClaimGrant:
		if len(body.Scopes) > protocol.ClaimScopesMax {
			return
		}
		c := s.grantOf(claimKey{body.ID, body.Term})
		if c.grant == nil || at.before(c.grant.at) {
			body.Why = protocol.CutText(body.Why, protocol.ShortTextBytesMax)
			c.grant = &claimGrant{at, wall, body}
		}
		if body.Of.Number > 0 && body.Of != body.Term {
			s.grantOf(claimKey{body.ID, body.Of}).end()
		}
	case protocol.ClaimEnd:
		s.grantOf(claimKey{body.ID, body.Of}).end()
	}
}

func (s *State) grantOf(key claimKey) *claim {
	c := s.claims[key]
	if c == nil {
		c = &claim{}
		s.claims[key] = c
	}
	return c
}

// end drops the words of a claim that is over; that it is stays known, since its grant may come later.
func (c *claim) end() {
	c.ended = true
	if c.grant != nil {
		c.grant = &claimGrant{at: c.grant.at}
	}
}

// Claims are the claims that are held, by the name of their scopes, then the time of their grant. A lease that has run out
// and that main has not ended yet is among them: only main's clock says.
func (s *State) Claims() []Claim {
	var out []Claim
	for _, c := range s.claims {
		if c.grant != nil && !c.ended {
			g := c.grant
			out = append(out, Claim{g.body, g.at.at, g.at.log, g.at.seq, g.wall})
		}
	}
	slices.SortFunc(out, func(a, b Claim) int {
		return cmp.Or(strings.Compare(strings.Join(a.Scopes, "\n"), strings.Join(b.Scopes, "\n")), cmp.Compare(a.At, b.At),
			compareLogs(a.Log, b.Log), cmp.Compare(a.Seq, b.Seq))
	})
	return out
}

// claimImage and decidedImage are the same as plain values.
type claimImage struct {
	ID    string              `json:"id"`
	Term  protocol.Term       `json:"term"`
	Ended bool                `json:"ended,omitempty"`
	At    *pos                `json:"at,omitempty"`
	Wall  int64               `json:"wall,omitempty"`
	Body  *protocol.ClaimBody `json:"body,omitempty"`
}

type decidedImage struct {
	Term   protocol.Term `json:"term"`
	Log    string        `json:"log"`
	Taken  uint64        `json:"taken,omitempty"`
	Passed uint64        `json:"passed,omitempty"`
}

func (s *State) claimImages() (claims []claimImage, open []claimImage) {
	for key, c := range s.claims {
		img := claimImage{ID: key.id, Term: key.term, Ended: c.ended}
		if c.grant != nil && !c.ended {
			at, body := c.grant.at, c.grant.body
			img.At, img.Wall, img.Body = &at, c.grant.wall, &body
			open = append(open, img)
		}
		claims = append(claims, img)
	}
	byKey := func(a, b claimImage) int { return cmp.Or(strings.Compare(a.ID, b.ID), a.Term.Compare(b.Term)) }
	slices.SortFunc(claims, byKey)
	slices.SortFunc(open, byKey)
	return claims, open
}

func (s *State) decidedImages() (out []decidedImage) {
	for key, d := range s.decided {
		out = append(out, decidedImage{key.term, key.log.String(), d.taken, d.passed})
	}
	slices.SortFunc(out, func(a, b decidedImage) int { return cmp.Or(a.Term.Compare(b.Term), strings.Compare(a.Log, b.Log)) })
	return out
}

func (s *State) restoreClaims(img *image) error {
	for _, c := range img.Claims {
		into := s.grantOf(claimKey{c.ID, c.Term})
		into.ended = c.Ended
		if c.At != nil && c.Body != nil {
			into.grant = &claimGrant{*c.At, c.Wall, *c.Body}
		}
	}
	for _, d := range img.Decided {
		log, err := protocol.ParseLogID(d.Log)
		if err != nil {
			return err
		}
		s.decided[decidedKey{d.Term, log}] = decided{d.Taken, d.Passed}
	}
	return nil
}

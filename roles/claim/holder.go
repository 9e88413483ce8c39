package claim

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// ErrBadHeld says that bytes are not what Holder.Encode wrote.
var ErrBadHeld = errors.New("bad record of claims held")

// Holder is what agents of this node hold. A claim's lease here runs from when main was last asked, not from its answer:
// however long that took, main counts from later. It ends ClaimStopsEarly before main's.
type Holder struct {
	claims map[string]*held
	term   protocol.Term // of the newest main that was told what is held: an older one's yes comes too late
}

type held struct {
	Claim
	Asked protocol.Moment // of the last request that main said yes to
	tried protocol.Moment
}

// NewHolder reads what Encode wrote; nil: nothing is held.
func NewHolder(text []byte) (*Holder, error) {
	h := &Holder{claims: map[string]*held{}}
	if len(text) == 0 {
		return h, nil
	}
	if err := json.Unmarshal(text, &h.claims); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadHeld, err)
	}
	for id, c := range h.claims {
		if c == nil || c.ID != id {
			return nil, fmt.Errorf("%w: a claim contradicts itself", ErrBadHeld)
		}
	}
	return h, nil
}

// Encode is all that is held, for the store: leases go on over a restart.
func (h *Holder) Encode() []byte { return protocol.EncodeBody(h.claims) }

// Granted notes main's yes to what was asked at asked. False: a later main was told meanwhile that it is not held.
func (h *Holder) Granted(asked protocol.Moment, c Claim) bool {
	if c.Term.Compare(h.term) < 0 {
		return false
	}
	for id, old := range h.claims {
		if old.Agent == c.Agent && old.Session == c.Session && slices.Equal(old.Scopes, c.Scopes) {
			delete(h.claims, id) // asked for again
		}
	}
	h.claims[c.ID] = &held{c, asked, asked}
	return true
}

// Tell is all that is held, for the main of a term.
func (h *Holder) Tell(term protocol.Term) []Claim {
	if term.Compare(h.term) > 0 {
		h.term = term
	}
	return h.All()
}

// Renewed notes main's yes to a renewal that was asked at asked, in a term.
func (h *Holder) Renewed(asked protocol.Moment, id string, term protocol.Term) {
	if c := h.claims[id]; c != nil {
		c.Asked, c.Term = asked, term
	}
}

// Drop forgets a claim and says whether it was held.
func (h *Holder) Drop(id string) (Claim, bool) {
	c := h.claims[id]
	if c == nil {
		return Claim{}, false
	}
	delete(h.claims, id)
	return c.Claim, true
}

// LetGo forgets a claim that this node ends itself. putBack undoes that, for when its end could not be kept: it goes on with
// the lease it had, unless the same is held anew by then. Main must hear of the end only once the end is kept.
func (h *Holder) LetGo(id string) (putBack func()) {
	c := h.claims[id]
	if c == nil {
		return func() {}
	}
	delete(h.claims, id)
	return func() {
		for _, now := range h.claims {
			if now.Agent == c.Agent && now.Session == c.Session && slices.Equal(now.Scopes, c.Scopes) {
				return
			}
		}
		h.claims[id] = c
	}
}

// Left is how long a claim may still be used without a renewal; 0: not at all.
func (h *Holder) Left(now protocol.Moment, id string) time.Duration {
	c := h.claims[id]
	if c == nil {
		return 0
	}
	return max(protocol.ClaimLease-protocol.ClaimStopsEarly-now.AtMost(c.Asked), 0)
}

// Expired drops and returns the claims whose time is up.
func (h *Holder) Expired(now protocol.Moment) (out []Claim) {
	for _, id := range h.ids() {
		if h.Left(now, id) == 0 {
			c, _ := h.Drop(id)
			out = append(out, c)
		}
	}
	return out
}

// ToRenew are the claims to ask main for again, because a part of their lease has passed; it notes that they are asked for.
func (h *Holder) ToRenew(now protocol.Moment) (out []Claim) {
	for _, id := range h.ids() {
		if c := h.claims[id]; now.AtMost(c.tried) >= protocol.ClaimRenewEvery {
			c.tried = now
			out = append(out, c.Claim)
		}
	}
	return out
}

// All are the claims held, by id.
func (h *Holder) All() []Claim {
	out := make([]Claim, 0, len(h.claims))
	for _, id := range h.ids() {
		out = append(out, h.claims[id].Claim)
	}
	return out
}

func (h *Holder) ids() []string {
	out := make([]string, 0, len(h.claims))
	for id := range h.claims {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

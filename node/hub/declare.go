package hub

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles"
)

// Of a seat's telemetry one record in seatEvery is kept, always the newest; what comes between goes live only.
const seatEvery = 10 * time.Second

// declaredMax bounds what is remembered of declarations; beyond it equal ones are written once more.
const declaredMax = 10_000

// Declared is what the board holds of declarations, by which new ones are judged.
type Declared struct {
	Chart json.RawMessage // the newest CorporateChart
	Seats []string        // of the inside that have telemetry; to an outside sender its own
}

type declaredKey struct {
	agent  protocol.AgentID // folded; "" a person
	intent protocol.Intent
	item   string
}

// lastDeclared is the newest declaration of its kind, as it is kept or about to be.
type lastDeclared struct {
	ref     Ref
	at      time.Time
	content protocol.Digest
	held    *protocol.Envelope // newer, waiting for seatEvery
}

func declaration(name protocol.Intent) bool {
	return protocol.Lookup(name).Class == protocol.ClassDeclaration
}

func declaredKeyOf(env *protocol.Envelope) declaredKey {
	return declaredKey{protocol.FoldAgentID(env.From), env.Intent, protocol.DeclaredItem(env.Intent, env.Value)}
}

// admitDeclaration says why an agent may not declare this, or nil: limits, and who may speak for a chart or a seat
// (wire 7.5).
func (c *Core) admitDeclaration(env *protocol.Envelope, known Declared) *protocol.Refusal {
	if env.ValueBlob == nil { // larger ones were checked before they became a blob
		if no := protocol.CheckDeclaration(env.Intent, env.From, env.Value); no != nil {
			return no
		}
	}
	switch env.Intent {
	case "CorporateChart":
		return roles.May(env.FromRole, env.Intent, protocol.RoleMain)
	case "RoleState":
		return mayFill(env, known.Chart)
	case "SeatTelemetry":
		seat := protocol.DeclaredItem(env.Intent, env.Value)
		most := protocol.SeatsMax
		if outsideRole(env.FromRole) {
			most = protocol.SeatsOutsideMax
		}
		if len(known.Seats) >= most && !slices.Contains(known.Seats, seat) {
			return protocol.Refuse(protocol.CodeTooMany, "%d seats have telemetry already", "report under one of them", len(known.Seats))
		}
	}
	return nil
}

// mayFill: a seat's state is its holder's to tell, or main's or a person's. Without a chart nobody's seat is known.
func mayFill(env *protocol.Envelope, chart json.RawMessage) *protocol.Refusal {
	seats := protocol.Seats(chart)
	if seats == nil || env.FromRole == protocol.RoleMain || env.FromRole == protocol.RoleBoard {
		return nil
	}
	role := protocol.DeclaredItem(env.Intent, env.Value)
	holder, named := seats[role]
	switch {
	case named && protocol.FoldAgentID(holder) == protocol.FoldAgentID(env.From):
		return nil
	case named && holder != "":
		return protocol.Refuse(protocol.CodeNotAllowed, "the role %q is %s's", "declare your own, or ask main", role, string(holder))
	}
	return protocol.Refuse(protocol.CodeNotAllowed, "the chart does not give you the role %q", "ask main to put you into it", role)
}

// declare takes a declaration to nobody in particular. It returns true when no record is due: the same is kept already,
// or the seat's next record is not due yet.
func (c *Core) declares(now time.Time, env *protocol.Envelope, in Say) bool {
	last := c.declared[declaredKeyOf(env)]
	if last == nil {
		return false
	}
	if last.held == nil && last.content == env.Content() {
		c.tell(Told{Token: in.Token, Ref: last.ref, ID: env.ID, Repeat: true})
		return true
	}
	if at := last.at.Add(seatEvery); env.Intent == "SeatTelemetry" && now.Before(at) {
		last.held = env
		c.due(at)
		c.tell(Told{Token: in.Token, ID: env.ID})
		return true
	}
	return false
}

// hasDeclared notes what is kept now.
func (c *Core) hasDeclared(now time.Time, env *protocol.Envelope, ref Ref) {
	if len(c.declared) >= declaredMax {
		clear(c.declared)
	}
	c.declared[declaredKeyOf(env)] = &lastDeclared{ref: ref, at: now, content: env.Content()}
}

// tickSeats keeps the newest telemetry of seats whose record is due.
func (c *Core) tickSeats(now time.Time) {
	var due []*protocol.Envelope
	for _, last := range c.declared {
		if last.held == nil {
			continue
		}
		if at := last.at.Add(seatEvery); now.Before(at) {
			c.due(at)
			continue
		}
		due = append(due, last.held)
	}
	slices.SortFunc(due, func(a, b *protocol.Envelope) int {
		return cmp.Or(strings.Compare(string(a.From), string(b.From)), strings.Compare(string(a.ID), string(b.ID)))
	})
	for _, env := range due {
		scope := c.scopeTo("")
		if from := c.home(env.From); from != nil {
			c.author.name(&c.ready, now, scope, from)
		}
		ref := c.author.add(&c.ready, now, scope, protocol.KindMessage, protocol.EncodeBody(env), env)
		c.hasDeclared(now, env, ref)
		c.out(TierReached{Ref: ref, Tier: protocol.Logged})
	}
}

package turn

import (
	"slices"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/protocol"
)

// Past is what a store knows of messages that came before.
type Past interface {
	Identity(protocol.Digest) (journal.IdentityRow, bool, error)
	Tiers(log protocol.LogID, seq uint64) ([]journal.TierPut, error)
	MessageByID(from protocol.AgentID, id protocol.MsgID) (journal.Message, bool, error)
}

// Arrival is what judges the records of a verified range that continues our copy of its log.
type Arrival struct {
	Hub     *hub.Core
	Board   *board.State
	Replica *replica.Replica
	Past    Past
	Belief  *Belief
	// Older says that this home lost something once and was given it back by others.
	Older bool
}

// Take steps the hub with what an offer takes, and returns the entries for this turn's commit. envs are the envelopes of
// the records of offer.Take, nil where a record is no message or not a good one.
func (a *Arrival) Take(now time.Time, offer *replica.Offer, envs []*protocol.Envelope) []journal.Entry {
	out := make([]journal.Entry, len(offer.Take))
	var held func(protocol.LogID) uint64
	if len(out) > 0 && OfOutsider(offer.Take[0].Log) {
		held = a.Replica.Taken
	}
	for i := range offer.Take {
		rec, said := &offer.Take[i], envs[i]
		env, mixed := a.believed(rec, said)
		out[i] = journal.Entry{Record: *rec, Hash: offer.Hash, Envelope: env, Void: env == nil && rec.Kind == protocol.KindMessage}
		if i+1 < len(offer.Take) {
			out[i].Hash = offer.Take[i+1].Prev
		}
		in := hub.Applied{Record: rec, Env: env, Seen: a.seen(env), Parent: a.reported(env), Settled: a.settled(rec, env), Over: a.over(rec, env), Held: held}
		if mixed {
			in.Disbelieved = said
		}
		in.Later = in.Env != nil && a.Belief.back[protocol.FoldAgentID(a.Hub.Now(in.Env.To))]
		again := a.knownAgain(rec)
		a.Hub.Step(now, in)
		if again != "" && a.Hub.TakenHere(again) {
			a.Belief.regain(a.Hub.Now(again))
		}
	}
	return out
}

// knownAgain is the agent that a record may make known again here, where mail for it may have been passed over. What comes for
// it in the same turn waits until that is taken up (Missed).
func (a *Arrival) knownAgain(rec *protocol.Record) protocol.AgentID {
	if rec.Kind != protocol.KindBind {
		return ""
	}
	b, err := protocol.DecodeBody[protocol.BindBody](rec)
	if err != nil || b.Home != rec.Log.Peer || b.Forgotten || a.Hub.TakenHere(b.Agent) {
		return ""
	}
	return b.Agent
}

// Belief remembers the bindings of a turn, which the board has not folded yet. Forget them once it has.
type Belief struct {
	now  map[boundKey]bool
	back map[protocol.AgentID]bool // folded: agents that are known here again
}

// boundKey names an agent in a log.
type boundKey struct {
	log   protocol.LogID
	agent protocol.AgentID // folded
}

// Forget begins a new turn.
func (b *Belief) Forget() {
	clear(b.now)
	clear(b.back)
}

func (b *Belief) regain(agent protocol.AgentID) {
	if b.back == nil {
		b.back = map[protocol.AgentID]bool{}
	}
	b.back[protocol.FoldAgentID(agent)] = true
}

func (b *Belief) note(log protocol.LogID, agent protocol.AgentID, bound bool) {
	if b.now == nil {
		b.now = map[boundKey]bool{}
	}
	b.now[boundKey{log, protocol.FoldAgentID(agent)}] = bound
}

// believed is the envelope of an arrived message if its log may tell it: behind the binding of whoever speaks in it, and of
// an outside member not under the name of somebody else's agent (mixed). What is not believed is kept and passed on like any
// record, and shown nowhere.
func (a *Arrival) believed(rec *protocol.Record, env *protocol.Envelope) (_ *protocol.Envelope, mixed bool) {
	if rec.Kind == protocol.KindBind {
		if b, err := protocol.DecodeBody[protocol.BindBody](rec); err == nil && b.Home == rec.Log.Peer {
			a.Belief.note(rec.Log, b.Agent, !b.Forgotten)
			if b.Called != "" {
				a.Belief.note(rec.Log, b.Called, !b.Forgotten)
			}
		}
		return env, false
	}
	if env == nil || !OutsideMay(rec, env) || env.Copy && a.Hub.Inside() {
		return nil, false
	}
	if env.From == "" {
		return env, false
	}
	bound, now := a.Belief.now[boundKey{rec.Log, protocol.FoldAgentID(env.From)}]
	if !now {
		bound = a.Board.Bound(rec.Log, env.From)
	}
	k, ok := a.Hub.Agent(env.From)
	mixed = bound && OfOutsider(rec.Log) && ok && k.Home != rec.Log.Peer
	if !bound || mixed {
		return nil, mixed
	}
	return env, false
}

// OutsideMay says whether a record of a member outside claims no more than such a member may: it speaks for agents and
// persons of its own, never as the node, as main or as an agent of the inside, and says nothing that only a hub says but how
// a question of its own ended. It looks at the record alone, so all nodes answer alike.
func OutsideMay(rec *protocol.Record, env *protocol.Envelope) bool {
	if !OfOutsider(rec.Log) {
		return true
	}
	if env.Copy || env.SpeakerClass != "" && env.SpeakerClass != "agent" || env.Room != "" && env.From == "" {
		return false
	}
	if env.Source == protocol.SourceServer {
		return env.From == "" && (env.Intent == "SelectionExpired" || env.Intent == "SelectionResolved")
	}
	leaves := env.Intent == "RoomLeave" && env.Room != ""
	if info := protocol.Lookup(env.Intent); info.HubOnly || info.Keeping == protocol.Dropped && !leaves || env.FromRole.Inside() || env.FromRole == protocol.RoleBoard {
		return false
	}
	return (env.From == "") == (env.Source == protocol.SourceBoard)
}

// OfOutsider says whether a log's author writes in the scope of itself, as members outside alone do: that is known before
// their admission is.
func OfOutsider(log protocol.LogID) bool {
	out, ok := log.Scope.Outsider()
	return ok && out == log.Peer
}

// seen looks for an earlier message under the same identity, for messages to agents here.
func (a *Arrival) seen(env *protocol.Envelope) *hub.Seen {
	if env == nil || env.To == "" && env.Room == "" {
		return nil
	}
	if env.Room == "" && !a.Hub.TakenHere(env.To) {
		return nil
	}
	row, ok, err := a.Past.Identity(env.Identity())
	if err != nil || !ok {
		return nil
	}
	if tiers, err := a.Past.Tiers(row.Log, row.Seq); err == nil {
		for _, t := range tiers {
			if t.Tier == protocol.Refused {
				return nil // the earlier one was not taken: this is no second copy of it
			}
		}
	}
	return &hub.Seen{Content: row.Content, Ref: hub.Ref{Log: row.Log, Seq: row.Seq}}
}

// settled says whether a message that comes only now was settled before: by a former home of an agent that moved here, or by
// this node, whose disk was replaced by an older copy and is given back what it lost in any order.
func (a *Arrival) settled(rec *protocol.Record, env *protocol.Envelope) bool {
	if env == nil || env.Room != "" || env.To == "" || !a.Hub.MovedHere(env.To) && (!a.Older || !a.Hub.TakenHere(env.To)) {
		return false
	}
	tiers, err := a.Past.Tiers(rec.Log, rec.Seq)
	return err == nil && slices.ContainsFunc(tiers, func(t journal.TierPut) bool {
		return (t.Tier == protocol.Processed || t.Tier == protocol.Refused) && a.Hub.Now(t.Agent) == a.Hub.Now(env.To)
	})
}

// over names those with whom a room's message that comes only now was over before, by this node's word that came back first.
func (a *Arrival) over(rec *protocol.Record, env *protocol.Envelope) (out []protocol.AgentID) {
	if env == nil || env.Room == "" || !a.Older {
		return nil
	}
	tiers, err := a.Past.Tiers(rec.Log, rec.Seq)
	if err != nil {
		return nil
	}
	for _, t := range tiers {
		if t.Tier == protocol.Processed || t.Tier == protocol.Refused {
			out = append(out, a.Hub.Now(t.Agent))
		}
	}
	return out
}

// reported is what a report to an agent here is on.
func (a *Arrival) reported(env *protocol.Envelope) *protocol.Envelope {
	if env == nil || env.Room != "" || !a.Hub.TakenHere(env.To) {
		return nil
	}
	return Reported(a.Past, env)
}

// Reported is the Delegate that a message reports on, as far as it is held; nil: it is no report.
func Reported(past Past, env *protocol.Envelope) *protocol.Envelope {
	if hub.ReportOn(env) == "" {
		return nil
	}
	m, ok, err := past.MessageByID("", env.Re)
	if err != nil || !ok {
		return nil
	}
	return &m.Envelope
}

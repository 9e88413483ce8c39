package turn

import (
	"fmt"
	"slices"
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
)

// Mail is what a store knows of messages to an agent.
type Mail interface {
	Past
	Addressed(agent protocol.AgentID, since protocol.HLC) ([]journal.Place, error)
	Message(log protocol.LogID, seq uint64) (journal.Message, bool, error)
}

// Regained are the agents whose bindings to this node come back to it with these records: what is here for them was passed
// over when it came.
func Regained(self protocol.PeerID, entries []journal.Entry) (out []protocol.AgentID) {
	for i := range entries {
		rec := &entries[i].Record
		if rec.Log.Peer != self || rec.Kind != protocol.KindBind {
			continue
		}
		if b, err := protocol.DecodeBody[protocol.BindBody](rec); err == nil && b.Home == self && !b.Forgotten {
			out = append(out, b.Agent)
		}
	}
	return out
}

// Missed gathers what is here for an agent and is not over, in the order in which it came.
func Missed(now time.Time, store Mail, core *hub.Core, agent protocol.AgentID) (in hub.Missed, err error) {
	in.Agent = agent
	if !core.TakenHere(agent) {
		return in, nil
	}
	var places []journal.Place
	since := protocol.HLCAt(now.Add(-protocol.MessageLife)) // what is over by its age is not read: an author's hybrid time is never behind its wall
	names := append([]protocol.AgentID{agent}, core.Formerly(agent)...)
	for _, name := range names {
		found, err := store.Addressed(name, since)
		if err != nil {
			return in, err
		}
		places = append(places, found...)
	}
	slices.SortFunc(places, func(a, b journal.Place) int { return int(int64(a.Pos) - int64(b.Pos)) })
	for _, p := range slices.Compact(places) {
		m, ok, err := store.Message(p.Log, p.Seq)
		if err != nil {
			return in, fmt.Errorf("read mail of %s: %w", agent, err)
		}
		if !ok || dealtWith(core, &m, names) || now.UnixMilli()-m.Wall >= protocol.MessageLife.Milliseconds() {
			continue
		}
		got := hub.Arrived{Ref: hub.Ref{Log: m.Log, Seq: m.Seq}, Env: &m.Envelope, Parent: Reported(store, &m.Envelope), At: time.UnixMilli(m.Wall)}
		if row, ok, err := store.Identity(m.Envelope.Identity()); err == nil && ok && (row.Log != m.Log || row.Seq != m.Seq) {
			got.Seen = &hub.Seen{Content: row.Content, Ref: hub.Ref{Log: row.Log, Seq: row.Seq}}
		}
		in.Mail = append(in.Mail, got)
	}
	return in, nil
}

// dealtWith says whether a message is over for an agent. That it was taken once does not end it: the inbox that had it is lost.
func dealtWith(core *hub.Core, m *journal.Message, names []protocol.AgentID) bool {
	return m.Envelope.Room != "" || slices.ContainsFunc(m.Tiers, func(t journal.TierPut) bool {
		return (t.Tier == protocol.Processed || t.Tier == protocol.Refused) &&
			(core.Now(t.Agent) == core.Now(names[0]) || slices.ContainsFunc(names, func(n protocol.AgentID) bool { return protocol.FoldAgentID(n) == protocol.FoldAgentID(t.Agent) }))
	})
}

package node

import (
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// A word may stand in more than one record: a client said it again through another node, or a node wrote it once more for an agent
// that lives elsewhere now (hub/farroom.go:Core.passOn). People are shown one row, with what became of all of them.

// sameWord says whether two messages are one word: a copy of what was said in a room names whom it is for beside it.
func sameWord(a, b *protocol.Envelope) bool {
	x, y := *a, *b
	if x.Room != "" && y.Room != "" {
		x.To, y.To = "", ""
	}
	return x.Identity() == y.Identity() && x.Content() == y.Content()
}

// others are the other records of a message's word.
func (n *Node) others(m *journal.Message) (out []journal.Message) {
	e := &m.Envelope
	if more, err := n.store.Again(e.ID, m.Pos); err != nil || !more {
		return nil // what cannot be looked up is shown twice
	}
	all, err := n.store.Copies(e.From, e.ID)
	if err != nil {
		return nil
	}
	for i := range all {
		if all[i].Pos != m.Pos && sameWord(&all[i].Envelope, e) {
			out = append(out, all[i])
		}
	}
	return out
}

// before says which of two records of a word is shown: what was said in a room rather than a copy of it, else the first here.
func before(a, b *journal.Message) bool {
	if copied := a.Envelope.Room != "" && a.Envelope.To != ""; copied != (b.Envelope.Room != "" && b.Envelope.To != "") {
		return !copied
	}
	return a.Pos < b.Pos
}

// again says whether another record of a message's word is shown in its place.
func (n *Node) again(m *journal.Message) bool {
	for _, t := range n.others(m) {
		if before(&t, m) {
			return true
		}
	}
	return false
}

// stands is again for what has only just come, and may not be filed yet.
func (n *Node) stands(m *recentMessage) bool {
	row, ok, err := n.store.Identity(m.env.Identity())
	if err != nil || !ok || row.Pos == m.pos {
		return false
	}
	plain := *m.env
	if plain.Room != "" {
		plain.To = ""
	}
	return row.Content == plain.Content()
}

// joined are the tiers of all records of a word.
func (n *Node) joined(tiers []api.TierAt, twins []journal.Message) []api.TierAt {
	for i := range twins {
		for _, t := range n.tiersOf(&twins[i])[1:] { // that it was logged is said already
			tiers = addTier(tiers, t)
		}
	}
	sortTiers(tiers)
	return tiers
}

// tiersOfWord is joined for a recent message.
func (l *loop) tiersOfWord(m *recentMessage) []api.TierAt {
	return l.n.joined(l.tiersOf(m), l.n.others(&journal.Message{Pos: m.pos, Envelope: *m.env}))
}

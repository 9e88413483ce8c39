package hub

import (
	"slices"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// receiptBatch gathers what this home says of messages until the commit: one record a tier, agent and scope.
type receiptBatch struct {
	groups []receiptGroup
}

type receiptGroup struct {
	tier   protocol.Tier
	agent  protocol.AgentID
	reason string
	scope  protocol.Scope
	refs   []Ref
}

// add notes a receipt. The scope is that of the message: whoever may see the one may see the other.
func (b *receiptBatch) add(tier protocol.Tier, agent protocol.AgentID, reason string, scope protocol.Scope, ref Ref) {
	for i := range b.groups {
		g := &b.groups[i]
		if g.tier == tier && g.agent == agent && g.reason == reason && g.scope == scope {
			g.refs = append(g.refs, ref)
			return
		}
	}
	b.groups = append(b.groups, receiptGroup{tier, agent, reason, scope, []Ref{ref}})
}

// recalled lets what waits be said under the name that the agent has now.
func (b *receiptBatch) recalled(was, is protocol.AgentID) {
	for i := range b.groups {
		if protocol.FoldAgentID(b.groups[i].agent) == protocol.FoldAgentID(was) {
			b.groups[i].agent = is
		}
	}
}

// flush drafts the records.
func (b *receiptBatch) flush(c *Core, now time.Time) {
	for _, g := range b.groups {
		if a := c.home(g.agent); a != nil {
			c.author.name(&c.ready, now, g.scope, a) // a log knows an agent by its binding
		}
		body := protocol.ReceiptsBody{Tier: g.tier, Agent: g.agent, Of: ranges(g.refs), Reason: g.reason}
		at := c.author.add(&c.ready, now, g.scope, protocol.KindReceipts, protocol.EncodeBody(body), nil)
		last := c.ready.Drafts[len(c.ready.Drafts)-1].Record
		for _, ref := range g.refs {
			c.ready.Tiers = append(c.ready.Tiers, TierPut{
				Ref: ref, Tier: g.tier, Agent: g.agent, At: last.At, Wall: last.Wall, By: at.Log.Peer, Reason: g.reason,
			})
			c.out(TierReached{Ref: ref, Tier: g.tier, Agent: g.agent, Reason: g.reason})
		}
	}
	b.groups = b.groups[:0]
}

// ranges folds places into from-to pairs a log.
func ranges(refs []Ref) []protocol.LogRange {
	byLog := map[protocol.LogID][]uint64{}
	var order []protocol.LogID
	for _, r := range refs {
		if _, ok := byLog[r.Log]; !ok {
			order = append(order, r.Log)
		}
		byLog[r.Log] = append(byLog[r.Log], r.Seq)
	}
	out := make([]protocol.LogRange, 0, len(order))
	for _, l := range order {
		seqs := byLog[l]
		slices.Sort(seqs)
		lr := protocol.LogRange{Log: l.String()}
		for i := 0; i < len(seqs); {
			j := i
			for j+1 < len(seqs) && seqs[j+1] <= seqs[j]+1 {
				j++
			}
			lr.Ranges = append(lr.Ranges, seqs[i], seqs[j])
			i = j + 1
		}
		out = append(out, lr)
	}
	return out
}

// rangeRefsMax bounds how many messages one receipts record may speak of: a commit's worth.
const rangeRefsMax = 4 * protocol.CommitRecordsMax

// Refs lists the places that ranges name; false: they are impossible, or more than one commit's worth.
func Refs(of []protocol.LogRange) ([]Ref, bool) {
	return refsOf(protocol.ScopeInside, protocol.ReceiptsBody{Of: of})
}

// refsOf lists the places that a receipts record in a log of scope names, at most rangeRefsMax; false: the body is
// impossible. Whoever writes outside the inside's scope knows of no other scope's messages.
func refsOf(scope protocol.Scope, body protocol.ReceiptsBody) ([]Ref, bool) {
	var out []Ref
	for _, lr := range body.Of {
		id, err := protocol.ParseLogID(lr.Log)
		if err != nil || len(lr.Ranges)%2 != 0 || scope != protocol.ScopeInside && scope != id.Scope {
			return nil, false
		}
		for i := 0; i < len(lr.Ranges); i += 2 {
			from, to := lr.Ranges[i], lr.Ranges[i+1]
			if from == 0 || to < from || to-from >= rangeRefsMax || len(out) > rangeRefsMax {
				return nil, false
			}
			for s := from; s <= to; s++ {
				out = append(out, Ref{id, s})
			}
		}
	}
	return out, true
}

package node

import (
	"slices"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/node/turn"
	"github.com/aster-mesh/aster/protocol"
)

// owedAtOnce is how many messages one turn takes up.
const owedAtOnce = 256

// takeOwed puts into inboxes here what belongs there and came before the binding of its agent did: a home that was given back
// what it lost gets its logs in any order. It says whether there may be more, after which position.
func (l *loop) takeOwed(agent protocol.AgentID, after uint64) (next uint64, more bool, err error) {
	rows, err := l.store.Owed(agent, after, owedAtOnce)
	if err != nil {
		return 0, false, err
	}
	l.n.older.Store(true)
	a := turn.Arrival{Hub: l.core, Board: l.board, Replica: l.rep, Past: l.store, Belief: &l.belief, Older: true}
	for i := range rows {
		rec := &rows[i].Record
		env, err := protocol.DecodeBody[protocol.Envelope](rec)
		if err != nil || l.now.UnixMilli()-rec.Wall >= protocol.MessageLife.Milliseconds() {
			continue
		}
		a.Take(l.now, &replica.Offer{Verdict: replica.Take, Take: []protocol.Record{*rec}, Hash: rows[i].Hash}, []*protocol.Envelope{&env})
	}
	if len(rows) < owedAtOnce {
		return 0, false, nil
	}
	return rows[len(rows)-1].Pos, true, nil
}

// homeNames are the names under which mail is addressed to agents of this home.
func (l *loop) homeNames() (out []protocol.AgentID) {
	for _, a := range l.board.Agents() {
		if a.Home != l.n.home.peer || a.Move != nil {
			continue
		}
		for _, name := range []protocol.AgentID{a.ID, a.Bound} {
			if name != "" && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// fillInboxes takes up what agents here are owed of what came again.
func (l *loop) fillInboxes() {
	if l.mended {
		return // what came again in this turn is not durable yet; lookForDamage calls this when it is
	}
	for _, name := range l.homeNames() {
		for after, more := uint64(0), true; more; {
			var err error
			if after, more, err = l.takeOwed(name, after); err != nil {
				l.log.Error("what an agent is owed was not taken up", "agent", name, "err", err)
			}
		}
	}
}

// receiptsAtOnce is how many records one turn looks through for receipts.
const receiptsAtOnce = 1000

// replayReceipts lets the receipts that are on record count again: a rebuilt store has the records, and may have lost what
// was noted of them. It says up to where it got; 0: through.
func (l *loop) replayReceipts(after uint64) (next uint64, err error) {
	page, err := l.store.Since(after, receiptsAtOnce)
	if err != nil || len(page) == 0 {
		return 0, err
	}
	for i := range page {
		if rec := &page[i].Record; rec.Kind == protocol.KindReceipts && !page[i].Damaged {
			l.core.Step(l.now, hub.Applied{Record: rec})
		}
	}
	return page[len(page)-1].Pos, nil
}

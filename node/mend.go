package node

import (
	"slices"
	"time"

	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/node/turn"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
)

// A damaged record keeps its place in its log, so no comparison misses it. It is asked for by its numbers, of one linked
// node after the other, and taken only if it is the very record that stood there. Then the board is folded anew, since it
// was folded with a hole.

const (
	mendEvery = 15 * time.Second
	// mendAtOnce is how many ranges are asked for at once: peers owe no more proofs to one node.
	mendAtOnce = 16
	// commitEndMax is how far the end of a damaged record's commit is looked for.
	commitEndMax = 4 * protocol.CommitRecordsMax
)

// mending is what is under way with damaged records. Owned by the loop.
type mending struct {
	mendAt   time.Time // when they are asked for again
	mendTurn int       // whose turn it is to be asked
	mended   bool      // some came again that the board has not seen
}

// lookForDamage asks for damaged records, and folds what came again.
func (l *loop) lookForDamage() {
	if l.now.Before(l.mendAt) {
		return
	}
	l.mendAt = l.now.Add(mendEvery)
	if l.mended {
		l.mended = false
		l.refold()
		l.savedAt = 0 // the checkpoint has the hole
		l.checkpoint()
		l.membersDirty = true
		l.fillInboxes() // the binding of an agent may have been among what came again
	}
	if !l.store.HasDamaged() {
		return
	}
	bad, err := l.store.Damaged()
	if err != nil {
		l.log.Error("damaged records not listed", "err", err)
		return
	}
	if len(l.peers) == 0 {
		l.mendAt = l.now.Add(time.Second)
	}
	l.mendTurn++
	for _, b := range bad[:min(len(bad), mendAtOnce)] {
		if to, ok := l.holder(b.Log); ok {
			l.sendTo(to, meshwire.Need{Log: b.Log, From: b.From, To: l.commitEnd(b.Log, b.To)})
		}
	}
}

// holder is the linked node whose turn it is to be asked for records of a log: of the inside, or their author.
func (l *loop) holder(log protocol.LogID) (protocol.PeerID, bool) {
	var able []protocol.PeerID
	for p := range l.peers {
		if p == log.Peer || l.n.standingOf(p) == mesh.Inside {
			able = append(able, p)
		}
	}
	if len(able) == 0 {
		return "", false
	}
	slices.Sort(able)
	return able[l.mendTurn%len(able)], true
}

// commitEnd is the number of the record that signs the commit which a record is part of; only whole commits travel.
func (l *loop) commitEnd(log protocol.LogID, seq uint64) uint64 {
	for at := seq + 1; at <= seq+commitEndMax; at++ {
		st, ok, err := l.store.At(log, at)
		if err != nil || !ok {
			break // the log ends with the damaged one, or before this
		}
		if !st.Damaged && len(st.Record.Sig) > 0 {
			return at
		}
	}
	return seq
}

// mend puts those of a verified range into their places that are damaged here, and steps the hub with them as if they had
// come only now.
func (l *loop) mend(recs []protocol.Record, envs []*protocol.Envelope) {
	if !l.store.HasDamaged() {
		return
	}
	damaged := func(i int) bool {
		st, ok, err := l.store.At(recs[i].Log, recs[i].Seq)
		return err == nil && ok && st.Damaged
	}
	var were []int
	for i := range recs {
		if damaged(i) {
			were = append(were, i)
		}
	}
	if len(were) == 0 {
		return
	}
	n, err := l.store.Repair(recs)
	if err != nil {
		l.log.Error("records that came again were not taken", "log", recs[0].Log.String(), "err", err)
		return
	}
	if n == 0 {
		return
	}
	l.log.Info("damaged records came again", "log", recs[0].Log.String(), "records", n)
	l.n.older.Store(true) // this home lost something and is given it back: receipts may be older than what they are of
	l.value(keyOlder, []byte{1})
	l.mended = true
	a := turn.Arrival{Hub: l.core, Board: l.board, Replica: l.rep, Past: l.store, Belief: &l.belief, Older: true}
	for _, i := range were {
		if !damaged(i) {
			a.Take(l.now, &replica.Offer{Verdict: replica.Take, Take: recs[i : i+1], Hash: recs[i].Hash()}, envs[i:i+1])
		}
	}
	if l.mendAt = l.now.Add(mendEvery); !l.store.HasDamaged() {
		l.mendAt = l.now.Add(time.Millisecond) // not before this turn is durable
	} else if len(l.peers) > 0 {
		l.mendAt = l.now.Add(100 * time.Millisecond)
	}
}

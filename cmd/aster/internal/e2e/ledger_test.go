package e2e

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// ledger is what clients know of their own: what they said, what was acknowledged, and what each recipient dealt with.
// It knows nothing of the program, so that it can judge it.
type ledger struct {
	mu    sync.Mutex
	sent  map[protocol.MsgID]protocol.AgentID // id to recipient
	acked map[protocol.MsgID]bool
	seen  map[protocol.MsgID]map[protocol.AgentID]int
}

func newLedger() *ledger {
	return &ledger{sent: map[protocol.MsgID]protocol.AgentID{}, acked: map[protocol.MsgID]bool{}, seen: map[protocol.MsgID]map[protocol.AgentID]int{}}
}

func (l *ledger) send(id protocol.MsgID, to protocol.AgentID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent[id] = to
}

func (l *ledger) ack(id protocol.MsgID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked[id] = true
}

// acknowledged are the ids whose senders have an answer, with their recipients.
func (l *ledger) acknowledged() map[protocol.MsgID]protocol.AgentID {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[protocol.MsgID]protocol.AgentID{}
	for id := range l.acked {
		out[id] = l.sent[id]
	}
	return out
}

// see notes that a recipient dealt with a message so many times.
func (l *ledger) see(id protocol.MsgID, at protocol.AgentID, times int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen[id] == nil {
		l.seen[id] = map[protocol.AgentID]int{}
	}
	l.seen[id][at] += times
}

// verdict sorts every id into one of five: ok (acknowledged, dealt with once where it belongs), lost (acknowledged, never
// dealt with), unexpected (never said, or dealt with by another), duplicated (dealt with twice), recovered (dealt with,
// and its sender had no answer). What was neither acknowledged nor seen counts nowhere: nothing was promised.
type verdict struct {
	ok, lost, unexpected, duplicated, recovered int
	wrong                                       []string // the first of what is wrong, by name
}

func (v verdict) good() bool { return v.lost+v.unexpected+v.duplicated == 0 }

// line is the one line of a run.
func (v verdict) line(seed uint64) string {
	return fmt.Sprintf("ok %d lost %d unexpected %d duplicated %d recovered %d seed %d", v.ok, v.lost, v.unexpected, v.duplicated, v.recovered, seed)
}

func (l *ledger) judge() verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	var v verdict
	for id, to := range l.sent {
		switch times := l.seen[id][to]; {
		case times > 1:
			v.duplicated++
			v.wrong = append(v.wrong, fmt.Sprintf("%s was dealt with %d times", id, times))
		case times == 0 && l.acked[id]:
			v.lost++
			v.wrong = append(v.wrong, fmt.Sprintf("%s was acknowledged and is lost", id))
		case times == 1 && l.acked[id]:
			v.ok++
		case times == 1:
			v.recovered++
		}
	}
	for id, where := range l.seen {
		for at := range where {
			if to, said := l.sent[id]; !said || to != at {
				v.unexpected++
				v.wrong = append(v.wrong, fmt.Sprintf("%s came to %s, where nobody sent it", id, at))
			}
		}
	}
	slices.Sort(v.wrong)
	v.wrong = v.wrong[:min(len(v.wrong), 20)]
	return v
}

// TestLedgerSeesEachKindOfFault is the control of every run that the ledger judges: with one message dropped, doubled,
// misled or made up it says so.
func TestLedgerSeesEachKindOfFault(t *testing.T) {
	fill := func() *ledger {
		l := newLedger()
		for i := range 100 {
			id := protocol.MsgID(fmt.Sprintf("m%02d", i))
			l.send(id, "bob")
			if i%10 != 9 {
				l.ack(id)
			}
			if i%20 != 19 {
				l.see(id, "bob", 1)
			}
		}
		return l
	}
	for _, c := range []struct {
		name string
		do   func(*ledger)
		want verdict
	}{
		{"nothing", func(*ledger) {}, verdict{ok: 90, recovered: 5}},
		{"dropped", func(l *ledger) { delete(l.seen, "m07") }, verdict{ok: 89, lost: 1, recovered: 5}},
		{"doubled", func(l *ledger) { l.see("m07", "bob", 1) }, verdict{ok: 89, duplicated: 1, recovered: 5}},
		{"doubled without an answer", func(l *ledger) { l.see("m09", "bob", 1) }, verdict{ok: 90, duplicated: 1, recovered: 4}},
		{"made up", func(l *ledger) { l.see("x", "bob", 1) }, verdict{ok: 90, unexpected: 1, recovered: 5}},
		{"misled", func(l *ledger) { delete(l.seen, "m07"); l.see("m07", "eve", 1) }, verdict{ok: 89, lost: 1, unexpected: 1, recovered: 5}},
	} {
		l := fill()
		c.do(l)
		got := l.judge()
		if good := c.name == "nothing"; got.line(1) != c.want.line(1) || got.good() != good || good != (len(got.wrong) == 0) {
			t.Errorf("%s: %s %v, want %s", c.name, got.line(1), got.wrong, c.want.line(1))
		}
	}
}

package board

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/aster-mesh/aster/protocol"
)

// waitingReceipt speaks of messages that have not arrived: a recipient's log may be ahead of the sender's here. It takes no more
// room than the record that said it.
type waitingReceipt struct {
	Ranges []uint64      `json:"ranges"` // as apart makes them; those with a message to come
	Tier   protocol.Tier `json:"tier"`
	tierWrite
	From uint64 `json:"from,omitempty"` // of earlier programs, with To: the one range
	To   uint64 `json:"to,omitempty"`
}

// last is the greatest number that it speaks of.
func (w *waitingReceipt) last() uint64 { return w.Ranges[len(w.Ranges)-1] }

func (w *waitingReceipt) of(seq uint64) bool {
	n := len(w.Ranges) / 2
	i := sort.Search(n, func(i int) bool { return w.Ranges[2*i+1] >= seq })
	return i < n && w.Ranges[2*i] <= seq
}

// apart is ranges in ascending order, no two of which touch, so that order and repeats in what was said make no difference.
func apart(ranges []uint64) (out []uint64) {
	var all [][2]uint64
	for i := 0; i+1 < len(ranges); i += 2 {
		if from, to := ranges[i], ranges[i+1]; from > 0 && from <= to {
			all = append(all, [2]uint64{from, to})
		}
	}
	slices.SortFunc(all, func(a, b [2]uint64) int { return cmp.Compare(a[0], b[0]) })
	for _, r := range all {
		if n := len(out); n > 0 && r[0]-1 <= out[n-1] {
			out[n-1] = max(out[n-1], r[1])
		} else {
			out = append(out, r[0], r[1])
		}
	}
	return out
}

// endAbove is those of ranges that end above a number.
func endAbove(ranges []uint64, mark uint64) []uint64 {
	i := sort.Search(len(ranges)/2, func(i int) bool { return ranges[2*i+1] > mark })
	return ranges[2*i:]
}

// Of an outside member's log so many ranges count, in all and more with each record, and so many in one record: whatever it
// writes, what waits here for messages that never come stays small. The budget looks at the log alone, so order cannot
// matter. Inside members are believed.
const (
	rangesOutside       = 1024
	rangesOutsideRecord = 4
)

// affords counts a body's ranges against the budget of its author's log.
func (ls *logState) affords(body protocol.ReceiptsBody) bool {
	if outsider, out := ls.id.Scope.Outsider(); !out || outsider != ls.id.Peer {
		return true
	}
	for _, of := range body.Of {
		ls.ranges += uint64(len(of.Ranges) / 2)
	}
	return ls.ranges <= rangesOutside+rangesOutsideRecord*(ls.mark)
}

// receipts takes what a recipient's home says of Delegates; other messages' receipts are the hub's business.
func (s *State) receipts(at pos, wall int64, body protocol.ReceiptsBody) {
	switch body.Tier {
	case protocol.Persisted, protocol.Processed, protocol.Refused:
	default:
		return
	}
	w := tierWrite{moment{at, wall}, body.Agent, protocol.CutText(body.Reason, refBytesMax)}
	for _, of := range body.Of {
		log, err := protocol.ParseLogID(of.Log)
		if err != nil || len(of.Ranges)%2 != 0 || at.log.Scope != protocol.ScopeInside && at.log.Scope != log.Scope {
			continue // whoever writes in a scope knows of no other scope's messages
		}
		ls, ranges := s.log(log), apart(of.Ranges)
		for i := 0; i < len(ranges); i += 2 {
			s.receiptRange(ls, ranges[i], ranges[i+1], body.Tier, w)
		}
		if late := endAbove(ranges, ls.mark); len(late) > 0 {
			ls.waits(waitingReceipt{Ranges: slices.Clone(late), Tier: body.Tier, tierWrite: w})
		}
	}
}

func (s *State) receiptRange(ls *logState, from, to uint64, tier protocol.Tier, w tierWrite) {
	if n := uint64(len(ls.delegates)); to-from > n { // a range costs no more than the Delegates that there are
		for seq, item := range ls.delegates {
			if from <= seq && seq <= to {
				item.task.receipt(tier, w)
			}
		}
		return
	}
	for i := uint64(0); i <= to-from; i++ { // not by seq, which could wrap round
		if item := ls.delegates[from+i]; item != nil {
			item.task.receipt(tier, w)
		}
	}
}

// waitingInOrder is what waits in one order, whichever came first.
func (ls *logState) waitingInOrder() []waitingReceipt {
	var out []waitingReceipt
	for _, w := range ls.waiting {
		if w.Ranges = endAbove(w.Ranges, ls.mark); len(w.Ranges) > 0 {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b waitingReceipt) int {
		return cmp.Or(a.At.compare(b.At), strings.Compare(string(a.Agent), string(b.Agent)), strings.Compare(string(a.Tier), string(b.Tier)),
			slices.Compare(a.Ranges, b.Ranges))
	})
	return out
}

func (ls *logState) waits(w waitingReceipt) {
	ls.waiting = append(ls.waiting, w)
	ls.soonest = min(ls.soonest, w.last())
}

// prune drops receipts whose messages have all arrived.
func (ls *logState) prune() {
	if ls.mark < ls.soonest {
		return
	}
	ls.soonest = ^uint64(0)
	ls.waiting = slices.DeleteFunc(ls.waiting, func(w waitingReceipt) bool {
		if w.last() <= ls.mark {
			return true
		}
		ls.soonest = min(ls.soonest, w.last())
		return false
	})
}

// restoreWaiting takes what a checkpoint says of it.
func (ls *logState) restoreWaiting(all []waitingReceipt) {
	for _, w := range all {
		w.Ranges = append(w.Ranges, w.From, w.To)
		w.From, w.To = 0, 0
		if w.Ranges = apart(w.Ranges); len(w.Ranges) > 0 {
			ls.waits(w)
		}
	}
}

// ReceiptTasks names tasks whose Delegates a receipt speaks of, at most limit of them, in no order.
func (s *State) ReceiptTasks(body protocol.ReceiptsBody, limit int) (out []protocol.TaskID) {
	for _, of := range body.Of {
		log, err := protocol.ParseLogID(of.Log)
		ls := s.logs[log]
		if err != nil || ls == nil {
			continue
		}
		for seq, item := range ls.delegates {
			for i := 0; i+1 < len(of.Ranges) && len(out) < limit; i += 2 {
				if of.Ranges[i] <= seq && seq <= of.Ranges[i+1] {
					out = append(out, item.task.key.ID)
					break
				}
			}
		}
	}
	return out
}

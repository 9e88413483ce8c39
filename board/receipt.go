package board

import (
	"cmp"
	"slices"
	"strings"

	"github.com/aster-mesh/aster/protocol"
)

// waitingReceipt speaks of messages that have not arrived: a recipient's log may be ahead of the sender's here.
type waitingReceipt struct {
	From uint64        `json:"from"`
	To   uint64        `json:"to"`
	Tier protocol.Tier `json:"tier"`
	tierWrite
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
		ls := s.log(log)
		for i := 0; i < len(of.Ranges); i += 2 {
			s.receiptRange(ls, of.Ranges[i], of.Ranges[i+1], body.Tier, w)
		}
	}
}

func (s *State) receiptRange(ls *logState, from, to uint64, tier protocol.Tier, w tierWrite) {
	if from == 0 || to < from {
		return
	}
	if to > ls.mark {
		ls.waiting = append(ls.waiting, waitingReceipt{from, to, tier, w})
	}
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
func waitingInOrder(in []waitingReceipt) []waitingReceipt {
	out := slices.Clone(in)
	slices.SortFunc(out, func(a, b waitingReceipt) int {
		return cmp.Or(a.At.compare(b.At), strings.Compare(string(a.Agent), string(b.Agent)), strings.Compare(string(a.Tier), string(b.Tier)),
			cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return out
}

// prune drops receipts whose messages have all arrived.
func (ls *logState) prune() {
	ls.waiting = slices.DeleteFunc(ls.waiting, func(w waitingReceipt) bool { return w.To <= ls.mark })
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

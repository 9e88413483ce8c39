package turn

import (
	"errors"
	"fmt"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/member"
)

// CutMarks are how far the logs that are durable here count now, as a proposal names them; nil: there are more than one record
// may name.
func CutMarks(rep *replica.Replica, roster *member.Roster) map[string]uint64 {
	out := map[string]uint64{}
	for _, h := range rep.Ends() {
		if seq := min(h.Seq, roster.Bound(h.Log)); seq > 0 {
			out[h.Log.String()] = seq
		}
	}
	if len(out) > protocol.CutMarksMax {
		return nil
	}
	return out
}

// ParseCut reads the marks of a proposal. It is an error when a log's name is none.
func ParseCut(body *protocol.CutBody) (map[protocol.LogID]uint64, error) {
	out := make(map[protocol.LogID]uint64, len(body.Marks))
	for text, seq := range body.Marks {
		log, err := protocol.ParseLogID(text)
		if err != nil {
			return nil, fmt.Errorf("marks of a cut: %w", err)
		}
		if seq > 0 {
			out[log] = seq
		}
	}
	return out, nil
}

// HoldsCut says whether all records up to a cut are durable here.
func HoldsCut(rep *replica.Replica, marks map[protocol.LogID]uint64) bool {
	for log, seq := range marks {
		if rep.Head(log).Seq < seq {
			return false
		}
	}
	return true
}

// Pages is a store's records in the order in which they came.
type Pages interface {
	Since(pos uint64, limit int) ([]journal.Stored, error)
}

var (
	// ErrCutShort says that a store does not hold all records up to a cut.
	ErrCutShort = errors.New("not all records up to the cut are here")
	// ErrCutDamaged says that one of them is damaged here.
	ErrCutDamaged = errors.New("a record up to the cut is damaged here")
)

// cutPage is how many records are folded between two rests.
const cutPage = 256

// FoldAt folds what a store holds up to a cut, from its first record on. st is a new board, or what was folded up to a lower
// cut; the board returned takes its place. rest, if there is one, is called after each page and ends the work with its error.
// It touches nothing else, so it may run beside the loop.
func FoldAt(store Pages, st *board.State, marks map[protocol.LogID]uint64, rest func() error) (*board.State, error) {
	for {
		if err := foldOnce(store, st, marks, rest); err != nil {
			return nil, err
		}
		if !st.Stale() {
			return st, nil
		}
		st = st.Restart()
	}
}

func foldOnce(store Pages, st *board.State, marks map[protocol.LogID]uint64, rest func() error) error {
	left := len(marks)
	for pos := uint64(0); left > 0; {
		page, err := store.Since(pos, cutPage)
		if err != nil {
			return fmt.Errorf("read journal: %w", err)
		}
		if len(page) == 0 {
			return ErrCutShort
		}
		for i := range page {
			rec := &page[i].Record
			pos = page[i].Pos
			mark := marks[rec.Log]
			if rec.Seq > mark {
				continue
			}
			if page[i].Damaged {
				return fmt.Errorf("%w: %s %d", ErrCutDamaged, rec.Log, rec.Seq)
			}
			if err := st.Apply(rec, nil); err != nil {
				return fmt.Errorf("fold %s %d: %w", rec.Log, rec.Seq, err)
			}
			if rec.Seq == mark {
				left--
			}
		}
		if rest != nil {
			if err := rest(); err != nil {
				return err
			}
		}
	}
	return nil
}

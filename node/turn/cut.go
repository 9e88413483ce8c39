package turn

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/member"
)

// ProposeCut names how far the logs that are durable here count now; false: there are more of last starts than one record may
// name.
func ProposeCut(rep *replica.Replica, roster *member.Roster) (protocol.CutBody, bool) {
	body := protocol.CutBody{Step: protocol.CutPropose, Marks: map[string]uint64{}, Past: map[protocol.PeerID]string{}}
	for peer, logs := range countedLogs(rep, roster) {
		last := logs[len(logs)-1].Log.Start
		for _, h := range logs {
			body.Records += h.Seq
			if h.Log.Start == last {
				body.Marks[h.Log.String()] = h.Seq
			}
		}
		if past := former(logs, last); len(past) > 0 {
			body.Past[peer] = pastDigest(past)
		}
	}
	return body, len(body.Marks) <= protocol.CutMarksMax
}

// CutMarks says how far each log goes up to the cut of a proposal. False: not all of it is durable here, or of an author's former
// starts more is. It is an error when a log's name is none.
func CutMarks(rep *replica.Replica, roster *member.Roster, body *protocol.CutBody) (map[protocol.LogID]uint64, bool, error) {
	out := make(map[protocol.LogID]uint64, len(body.Marks))
	last := map[protocol.PeerID]protocol.Start{}
	for text, seq := range body.Marks {
		log, err := protocol.ParseLogID(text)
		if err != nil {
			return nil, false, fmt.Errorf("marks of a cut: %w", err)
		}
		if seq > rep.Head(log).Seq {
			return nil, false, nil
		}
		if seq > 0 {
			out[log] = seq
		}
		if log.Start.Compare(last[log.Peer]) > 0 {
			last[log.Peer] = log.Start
		}
	}
	logs := countedLogs(rep, roster)
	for peer, digest := range body.Past {
		past := former(logs[peer], last[peer])
		if pastDigest(past) != digest {
			return nil, false, nil
		}
		for _, h := range past {
			out[h.Log] = h.Seq
		}
	}
	return out, true, nil
}

// countedLogs are the logs that are held, as far as they count, by author; each author's by start and scope.
func countedLogs(rep *replica.Replica, roster *member.Roster) map[protocol.PeerID][]replica.Head {
	out := map[protocol.PeerID][]replica.Head{}
	for _, h := range rep.Ends() {
		if h.Seq = min(h.Seq, roster.Bound(h.Log)); h.Seq > 0 {
			out[h.Log.Peer] = append(out[h.Log.Peer], h)
		}
	}
	return out
}

// former are an author's logs of starts before one.
func former(logs []replica.Head, last protocol.Start) []replica.Head {
	n := 0
	for n < len(logs) && logs[n].Log.Start.Compare(last) < 0 {
		n++
	}
	return logs[:n]
}

// pastDigest stands for how far logs go.
func pastDigest(logs []replica.Head) string {
	h := sha256.New()
	for _, l := range logs {
		fmt.Fprintf(h, "%s %d\n", l.Log, l.Seq)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
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

// FoldAt folds what a store holds up to a cut, from its first record on. st is a new board, one at a base, or what was folded up
// to a lower cut; the board returned takes its place. rest, if there is one, is called after each page and ends the work with its error.
// It touches nothing else, so it may run beside the loop.
func FoldAt(store Pages, st *board.State, marks map[protocol.LogID]uint64, rest func() error) (*board.State, error) {
	return foldAt(store, st, marks, rest, nil)
}

// foldAt shows each record that is folded to see, those again that are folded anew.
func foldAt(store Pages, st *board.State, marks map[protocol.LogID]uint64, rest func() error, see func(*journal.Stored)) (*board.State, error) {
	for {
		if err := foldOnce(store, st, marks, rest, see); err != nil {
			return nil, err
		}
		if !st.Stale() {
			return st, nil
		}
		st = st.Restart()
	}
}

func foldOnce(store Pages, st *board.State, marks map[protocol.LogID]uint64, rest func() error, see func(*journal.Stored)) error {
	left := 0
	for log, mark := range marks {
		if st.Mark(log) < mark {
			left++
		}
	}
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
			if rec.Seq > mark || rec.Seq <= st.Mark(rec.Log) {
				continue
			}
			if page[i].Damaged {
				return fmt.Errorf("%w: %s %d", ErrCutDamaged, rec.Log, rec.Seq)
			}
			if err := st.Apply(rec, nil); err != nil {
				return fmt.Errorf("fold %s %d: %w", rec.Log, rec.Seq, err)
			}
			if see != nil {
				see(&page[i])
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
